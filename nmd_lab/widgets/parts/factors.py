"""Components and the plane of the rows: what several views show of W and H."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.labels import Labels
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.widgets.latest import Latest
from nmd_lab.widgets.states.frame import MOST_ROWS, Frame

from .axis_labels import texts
from .components import components_part, typical_rows
from .drawing import drawing_part
from .scatter import Plane


class FactorsPart:
    """Components, some of which are switched off, and rows in the plane of two of them."""

    def __init__(self) -> None:
        self._plane: Plane | None = None
        self._drawing = Latest[dict[str, Any] | None]()
        self.actions = {"component": self._act, "plane": self._choose_plane}
        self.forget()

    def forget(self) -> None:
        """Switch all components on, since they are those of another model."""
        self._off: set[int] = set()
        self.chosen: int | None = None  # component whose rows are shown

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
        if self._plane is None or self._plane.of is not labels:
            self._plane = Plane(labels)
        if fitted is None:
            return {}
        factors = np.asarray(fitted.W), fitted.H
        names = texts(labels, "columns") if columns is None else columns
        return {
            "components": components_part(
                factors, frame, names, self.off(fitted), self.chosen, said
            ),
            "scatter": self._plane.points(factors[0]),
        }

    def drawing(
        self, fitted: FittedValues | None, frame: Frame, X: NDArray[Any] | None = None
    ) -> dict[str, Any] | None:
        """Return what the page draws the plane with; the same while the model and X are."""
        if fitted is None or self._plane is None:
            return None
        off, rows = self.off(fitted), self._plane.rows
        return self._drawing(
            lambda: drawing_part(fitted, off, frame, rows, X),
            *(fitted.W, fitted.H, X, rows, frame.picture, off),
        )

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
            self._plane.a, self._plane.b = int(message["a"]), int(message["b"])
