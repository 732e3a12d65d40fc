"""The curves of a running fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ipywidgets as widgets

from ._charts import CurveChart, Panel

Numbers = Sequence[float]


class LiveChart:
    """An image of curves, which is drawn again when there are new numbers.

    Parameters
    ----------
    panels : sequence of Panel
        Panels from left to right.
    hide_empty : bool, default True
        Whether the image is hidden while there are no numbers.

    Attributes
    ----------
    image : Image
        The widget.
    """

    def __init__(self, panels: Sequence[Panel], *, hide_empty: bool = True) -> None:
        self.image = widgets.Image().add_class("nmd-chart")
        self._chart = CurveChart(panels)
        self._hide_empty = hide_empty
        self._drawn: list[int] | None = None

    def show(
        self,
        curves: Mapping[str, Numbers],
        others: Mapping[str, tuple[Numbers, Numbers]] | None = None,
    ) -> None:
        """Show the curves as they are now.

        Parameters
        ----------
        curves : mapping of str to sequence of float
            Numbers of each curve by its key; those of "iteration" are the positions along x.
        others : mapping of str to (sequence of float, sequence of float), optional
            Curves with positions of their own.
        """
        iterations = curves.get("iteration", ())
        data = {key: (iterations, numbers) for key, numbers in curves.items()} | dict(others or {})
        lengths = [len(numbers) for _, numbers in data.values()]
        hidden = self._hide_empty and not any(lengths)
        self.image.layout.display = "none" if hidden else None
        if lengths != self._drawn and not hidden:
            self.image.value = self._chart.draw(data)
        self._drawn = lengths


RESIDUALS = Panel("residuals", {"primal_residual": "‖T − WH‖", "dual_residual": "dual"})
"""Panel that several explorers show."""
