"""Components and the plane of the rows: what several views show of W and H."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.labels import Labels
from nmd_lab.model.fitted_values import FittedValues

from .background import Latest, in_sample
from .charts import colours, texts
from .pictures import MOST_ROWS, Frame, drawing_part

Array = NDArray[Any]

MOST_COMPONENTS = 60  # largest number of components that are shown
MOST_POINTS = 20_000  # rows in the plane; of more, a random sample that is always the same
SIDE, BARS, LISTED = 56, 64, 5  # pixels along a side, bars and labels of a component, at most


class FactorsPart:
    """Components, some of which are switched off, and rows in the plane of two of them."""

    def __init__(self) -> None:
        self._points = Latest[dict[str, Any]]()
        self._drawing = Latest[dict[str, Any] | None]()
        self.actions = {"component": self._act, "plane": self._act}
        self.forget()

    def forget(self) -> None:
        """Switch all components on, and show the first two, since they are of another model."""
        self._plane = 0, 1
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
        return np.argsort(-oriented(fitted).W[:, self.chosen], kind="stable")[:count]

    def parts(
        self,
        fitted: FittedValues | None,
        frame: Frame | None,
        labels: Labels,
        said: str,
        columns: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Return the components and the plane."""
        if fitted is None:
            return {}
        W, H, *_ = oriented(fitted)
        names = texts(labels, "columns") if columns is None else columns
        switched = {"off": self.off(fitted), "chosen": self.chosen, "said": said}
        components = components_part(W, H, frame, names) | switched
        return {"components": components, "scatter": self._scatter(W, labels)}

    def _scatter(self, W: Array, labels: Labels) -> dict[str, Any] | None:
        """Return the rows in the plane of two components; None with fewer."""
        if (rank := W.shape[1]) < 2:
            return None
        points = self._points(lambda: points_of(labels), labels)
        a, b = (min(k, rank - 1) for k in self._plane)
        rows = points["rows"]
        x, y = (np.ascontiguousarray(W[rows, k], dtype="<f4").tobytes() for k in (a, b))
        about = {"rank": rank, "a": a, "b": b, "x": x, "y": y}
        return points | about | {"rows": rows.astype("<i4").tobytes()}

    def drawing(
        self, fitted: FittedValues | None, frame: Frame, labels: Labels, X: Array | None = None
    ) -> dict[str, Any] | None:
        """Return what the page draws the plane with; the same while the model and X are."""
        if fitted is None:
            return None
        off, rows = self.off(fitted), self._points(lambda: points_of(labels), labels)["rows"]
        return self._drawing(
            lambda: drawing_part(oriented(fitted), off, frame, rows, X),
            *(fitted.W, fitted.H, X, rows, frame.picture, off),
        )

    def _act(self, message: Mapping[str, Any]) -> None:
        """Show another plane, switch a component off or on, or show the rows with most of it."""
        k, what = message.get("k"), message.get("what")
        if k is None:
            self._plane = int(message["a"]), int(message["b"])
        elif what == "off":
            self._off ^= {int(k)}
        else:
            self.chosen = None if self.chosen == k else int(k)


def points_of(labels: Labels) -> dict[str, Any]:
    """Return the rows that are drawn in a plane, their labels, and what colours them."""
    total = labels.matrix_shape[0]
    rows = np.flatnonzero(in_sample(total, MOST_POINTS))
    names, (color, numbers, values) = texts(labels, "rows"), colours(labels)
    return {
        "rows": rows,
        "labels": [names[row] for row in rows] if names else [],
        "groups": [numbers[row] for row in rows] if numbers else [],
        "color": color,
        "values": values,
        "total": total,
    }


def components_part(
    W: Array, H: Array, frame: Frame | None, labels: Sequence[str]
) -> dict[str, Any]:
    """Return the components as pictures, lists of labels or bars, and what each contributes."""
    size, count = np.linalg.norm(W, axis=0)[:, None], min(H.shape[0], MOST_COMPONENTS)
    kind, values = "list" if labels else "bars", np.zeros((count, 0, 0))
    lists: list[list[list[Any]]] = []
    if frame is not None and (frame.picture is not None or (not labels and _is_picture(frame))):
        kind = "image"
        values = np.stack([_image(W[:, k], size[k] * H[k], frame) for k in range(count)])
    elif labels:
        largest = np.argsort(-np.abs(H[:count]), axis=1, kind="stable")[:, :LISTED]
        lists = [[[labels[j], float(h[j])] for j in at] for h, at in zip(H, largest, strict=False)]
    else:
        values = (size * H)[:count, None, :: max(1, -(-H.shape[1] // BARS))]
    squares = np.square(size[:, 0] * np.linalg.norm(H, axis=1)).astype(float)
    return {
        "kind": kind,
        "count": count,
        "total": H.shape[0],
        "height": values.shape[1],
        "width": values.shape[2],
        "values": np.ascontiguousarray(values, dtype="<f4").tobytes(),
        "lists": lists,
        "shares": (squares / (squares.sum() or 1.0)).tolist()[:count],
    }


def _is_picture(frame: Frame) -> bool:
    """Return whether a whole matrix is a picture rather than a table."""
    return frame.channels == 3 or min(frame.height, frame.width) > BARS


def _image(w: Array, h: Array, frame: Frame) -> Array:
    """Return a component as a small picture, NaN where there is no pixel."""
    if frame.picture is None:
        down, right = (max(1, -(-each // SIDE)) for each in (frame.height, frame.width))
        rows, columns = frame.rows[::down], frame.columns[:: frame.channels][::right]
        return np.outer(w[rows] / (np.linalg.norm(w) or 1.0), h[columns])
    image = frame.picture(h)
    step = max(1, -(-max(image.shape) // SIDE))
    return image[::step, ::step]


def oriented(fitted: FittedValues) -> FittedValues:
    """Return the same model, with signs such that rows have more of a component than of -it."""
    signs = signs_of(fitted)
    return fitted._replace(W=np.asarray(fitted.W) * signs, H=fitted.H * signs[:, None])


def signs_of(fitted: FittedValues) -> Array:
    """Return the signs (rank,) by which `oriented` multiplies components."""
    W = np.asarray(fitted.W)
    return np.where((W * np.abs(W)).sum(axis=0) < 0, -1, 1).astype(W.dtype)
