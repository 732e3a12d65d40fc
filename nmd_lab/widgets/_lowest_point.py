"""The mark of the lowest point of a curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._held_out import lowest


class LowestPoint:
    """A ring around the lowest point of a curve, with its number and its iteration.

    Parameters
    ----------
    ax : Axes
        Axes of the curve.
    key : str or None
        Key of the curve; None: there is no mark.
    color : str
        Colour of the mark.

    Attributes
    ----------
    is_shown : bool
        Whether there is a lowest point.
    """

    def __init__(self, ax: Any, key: str | None, color: str) -> None:
        self.key, self.is_shown, self._ax = key, False, ax
        look: Any = {"markerfacecolor": "none", "color": color, "zorder": 6}
        (self._ring,) = ax.plot([], [], "o", markersize=8, **look)
        self._text = ax.annotate(
            "", (0, 0), (0, -7), textcoords="offset points", va="top", fontsize=8.5, color=color
        )

    def move(self, iterations: Sequence[float], numbers: Sequence[float]) -> None:
        """Put the mark at the lowest positive number."""
        pairs = zip(iterations, numbers, strict=True)
        point = lowest({int(iteration): number for iteration, number in pairs if number > 0})
        self.is_shown = point is not None
        self._ring.set_data(*([], []) if point is None else ([point[0]], [point[1]]))
        self._text.set_text("" if point is None else f"{point[1]:.4g} at {point[0]}")
        self._text.xy = point or (0, 0)

    def keep_text_inside(self) -> None:
        """Write the text on the side where there is room, given the limits of the axes."""
        iteration, _ = self._text.xy
        on_the_right = iteration > 0.6 * self._ax.get_xlim()[1]
        self._text.set_horizontalalignment("right" if on_the_right else "left")
