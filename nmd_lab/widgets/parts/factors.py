"""Components and the plane of the rows: what several views show of W and H."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.labels import Labels
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.widgets.states.frame import MOST_ROWS, Frame

from .axis_labels import texts
from .components import components_part, typical_rows
from .drawing import drawing_part
from .scatter import Plane


class FactorsPart:
    """Components, some of which are switched off, and rows in the plane of two of them.

    Attributes
    ----------
    chosen : int or None
        Component whose rows are shown.
    actions : dict of str to callable
        What the messages of the front end do, by their name.
    """

    def __init__(self) -> None:
        self._plane: tuple[Labels, Plane] | None = None
        self._drawing: tuple[tuple[Any, ...], dict[str, Any] | None] | None = None
        self.actions = {"component": self._act, "plane": self._choose_plane}
        self.forget()

    def forget(self) -> None:
        """Switch all components on, since they are those of another model."""
        self._off: set[int] = set()
        self.chosen: int | None = None

    def off(self, fitted: FittedValues | None) -> list[int]:
        """Return the components of a model that are switched off."""
        return [] if fitted is None else sorted(k for k in self._off if k < fitted.H.shape[0])

    def shown_rows(
        self, fitted: FittedValues | None, selection: Mapping[str, Any] | None, m: int
    ) -> Any:
        """Return the rows that were picked, or those of the chosen component; None for neither."""
        picked = [row for row in (selection or {}).get("rows") or [] if 0 <= row < m]
        return np.asarray(picked[:MOST_ROWS], np.intp) if picked else self.rows(fitted)

    def rows(self, fitted: FittedValues | None, count: int = MOST_ROWS) -> Any:
        """Return the rows with most of the chosen component; None without one."""
        if fitted is None or self.chosen is None or self.chosen >= fitted.H.shape[0]:
            return None
        return typical_rows(np.asarray(fitted.W), self.chosen, count)

    def parts(
        self,
        fitted: FittedValues | None,
        frame: Frame | None,
        labels: Labels,
        said: str,
        columns: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Return the components and the plane."""
        if self._plane is None or self._plane[0] is not labels:
            self._plane = labels, Plane(labels)
        if fitted is None:
            return {}
        factors = np.asarray(fitted.W), fitted.H
        names = texts(labels, "columns") if columns is None else columns
        return {
            "components": components_part(
                factors, frame, names, self.off(fitted), self.chosen, said
            ),
            "scatter": self._plane[1].points(factors[0]),
        }

    def drawing(
        self, fitted: FittedValues | None, frame: Frame, X: NDArray[Any] | None = None
    ) -> dict[str, Any] | None:
        """Return what the page draws the plane with; the same while the model and X are."""
        if fitted is None or self._plane is None:
            return None
        off, rows = self.off(fitted), self._plane[1].rows
        key = fitted.W, fitted.H, X, rows, frame.picture, off
        if (
            self._drawing is None
            or any(
                one is not other for one, other in zip(self._drawing[0][:-1], key[:-1], strict=True)
            )
            or self._drawing[0][-1] != off
        ):
            self._drawing = key, drawing_part(fitted, off, frame, rows, X)
        return self._drawing[1]

    def _act(self, message: Mapping[str, Any]) -> None:
        """Switch a component off or on, or show the rows that have most of it."""
        k = int(message["k"])
        if message["what"] == "off":
            self._off ^= {k}
        else:
            self.chosen = None if self.chosen == k else k

    def _choose_plane(self, message: Mapping[str, Any]) -> None:
        """Show the plane of other components."""
        if self._plane is not None:
            self._plane[1].choose(message["a"], message["b"])


def lost_text(off: Sequence[int], before: float, after: float) -> str:
    """Return what is lost without some components in words."""
    named = ", ".join(map(str, off))
    return f"without component {named}: relative error {before:.4g} becomes {after:.4g}"
