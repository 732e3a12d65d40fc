"""The curves of a running fit, and their lowest held-out error in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import ipywidgets as widgets

from ._curves import CurveView, Panel, Points
from ._held_out import lowest

Numbers = Sequence[float]


class LiveChart:
    """Curves, which change when there are new numbers.

    Parameters
    ----------
    panels : sequence of Panel
        Panels from left to right.
    hide_empty : bool, default True
        Whether the curves are hidden while there are no numbers.

    Attributes
    ----------
    view : CurveView
        The widget.
    caption : HTML
        The lowest held-out error in words.
    """

    def __init__(self, panels: Sequence[Panel], *, hide_empty: bool = True) -> None:
        self.view = CurveView(panels).add_class("nmd-curves")
        self.caption = widgets.HTML(layout={"display": "none"}).add_class("nmd-caption")
        self._hide_empty = hide_empty
        self._drawn: list[int] | None = None

    def show(
        self,
        curves: Mapping[str, Numbers],
        held_out: Mapping[int, float] | None = None,
        where: str = "",
    ) -> None:
        """Show the curves as they are now.

        Parameters
        ----------
        curves : mapping of str to sequence of float
            Numbers of each curve by its key; those of "iteration" are the positions along x.
        held_out : mapping of int to float, optional
            Held-out errors by iteration, for the curve "held_out".
        where : str, default ""
            At which entries the held-out errors were measured, for the caption.
        """
        iterations, held_out = curves.get("iteration", ()), held_out or {}
        data: dict[str, Points] = {key: (iterations, numbers) for key, numbers in curves.items()}
        data["held_out"] = tuple(held_out), tuple(held_out.values())
        self._say_lowest(held_out, where)
        lengths = [len(numbers) for _, numbers in data.values()]
        hidden = self._hide_empty and not any(lengths)
        self.view.layout.display = "none" if hidden else None
        if lengths != self._drawn and not hidden:
            self.view.show(data)
        self._drawn = lengths

    def _say_lowest(self, held_out: Mapping[int, float], where: str) -> None:
        """Say the lowest and the last held-out error in the caption."""
        point = lowest(held_out)
        self.caption.layout.display = "none" if point is None else None
        if point is not None:
            last = max(held_out)
            self.caption.value = escape(
                f"held-out error: lowest {point[1]:.4g} at iteration {point[0]}, "
                f"{held_out[last]:.4g} at {last}{where}"
            )


RESIDUALS = Panel("residuals", {"primal_residual": "‖T − WH‖", "dual_residual": "dual"})
"""Panel that several explorers show."""
