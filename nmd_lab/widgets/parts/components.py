"""The components of a fit as pictures, lists of labels or bars, some of them switched off."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.widgets.states.frame import Frame

Array = NDArray[Any]

MOST = 60  # largest number of components that are shown

SIDE, BARS, LISTED = 56, 64, 5
"""Largest number of pixels along a side, of bars, and of labels of a component."""


def components_part(
    factors: tuple[Array, Array],
    frame: Frame | None,
    labels: Sequence[str],
    off: Collection[int],
    chosen: int | None,
    said: str,
) -> dict[str, Any]:
    """Return the components of W and H, by what each contributes where it is drawn."""
    W, H = factors
    size = np.linalg.norm(W, axis=0)[:, None]
    count = min(H.shape[0], MOST)
    kind = "list" if labels else "bars"
    if frame is not None and (frame.picture is not None or not labels):
        kind = (
            "image"
            if frame.picture is not None or frame.channels == 3 or _is_large(frame)
            else kind
        )
    lists: list[list[list[Any]]] = []
    values = np.zeros((count, 0, 0))
    if kind == "image" and frame is not None:
        values = np.stack([_image(W[:, k], size[k] * H[k], frame) for k in range(count)])
    elif kind == "bars":
        values = (size * H)[:count, None, :: max(1, -(-H.shape[1] // BARS))]
    else:
        lists = [_largest(H[k], labels) for k in range(count)]
    return {
        "kind": kind,
        "count": count,
        "height": values.shape[1],
        "width": values.shape[2],
        "values": np.ascontiguousarray(values, dtype="<f4").tobytes(),
        "lists": lists,
        "shares": _shares(W, H)[:count],
        "off": sorted(off),
        "chosen": chosen,
        "said": said,
    }


def _shares(W: Array, H: Array) -> list[float]:
    """Return the share of each component in the sum of squares of what all of them add."""
    sizes = np.square(np.linalg.norm(W, axis=0) * np.linalg.norm(H, axis=1)).astype(float)
    shares: list[float] = (sizes / (sizes.sum() or 1.0)).tolist()
    return shares


def _is_large(frame: Frame) -> bool:
    """Return whether a whole matrix is a picture rather than a table."""
    return min(frame.height, frame.width) > BARS


def _image(w: Array, h: Array, frame: Frame) -> Array:
    """Return a component as a small picture, NaN where there is no pixel."""
    if frame.picture is not None:
        image = frame.picture(h)
    else:
        steps = (max(1, -(-each // SIDE)) for each in (frame.height, frame.width))
        every_row, every_column = steps
        rows, columns = frame.rows[::every_row], frame.columns[:: frame.channels][::every_column]
        return np.outer(w[rows] / (np.linalg.norm(w) or 1.0), h[columns])
    step = max(1, -(-max(image.shape) // SIDE))
    return image[::step, ::step]


def _largest(h: Array, labels: Sequence[str]) -> list[list[Any]]:
    """Return the labels with the largest absolute numbers, and the numbers."""
    order = np.argsort(-np.abs(h), kind="stable")[:LISTED]
    return [[labels[k], float(h[k])] for k in order]


def typical_rows(W: Array, component: int, count: int) -> NDArray[np.intp]:
    """Return the rows with the largest absolute weights of a component, largest first."""
    order = np.argsort(-np.abs(W[:, component]), kind="stable")
    rows: NDArray[np.intp] = order[:count]
    return rows
