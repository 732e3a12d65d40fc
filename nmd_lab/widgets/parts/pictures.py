"""The pictures of an explorer: data, reconstruction and standard deviation, as numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.widgets.states.frame import Frame

Array = NDArray[Any]


MANY_HOLES = 0.25  # share of hidden entries from which data are shown with their holes


class Shown(NamedTuple):
    """What the pictures show beside the model."""

    frame: Frame  # which entries
    original: Array | None
    seen: Array | None
    limits: tuple[float, float]  # smallest and largest value of the data
    names: list[str]  # labels of all rows; empty if there are none
    spread: Array | None = None
    can_brush: bool = False  # whether entries can be hidden and revealed
    n_painted: int = 0  # number of entries that were


def pictures_part(
    shown: Shown, beside: Array | None = None, beside_title: str = ""
) -> dict[str, Any]:
    """Return the pictures that stay as they are while a fit runs."""
    frame, (low, high) = shown.frame, shown.limits
    rows = frame.rows.tolist() if frame.picture is not None else [0]
    return {
        "count": frame.n_pictures,
        "height": frame.height,
        "width": frame.width,
        "channels": frame.channels,
        "step": frame.step,
        "layout": "matrix" if frame.picture is None else "rows",
        "scale": "rgb" if frame.channels == 3 else "gray" if low >= 0 else "signed",
        "low": low,
        "high": high,
        "ids": rows,
        "labels": [shown.names[row] if shown.names else "" for row in rows],
        "original": _bytes(frame, shown.original),
        "seen": _bytes(frame, shown.seen),
        "spread": _bytes(frame, shown.spread),
        "beside": _bytes(frame, beside),
        "beside_title": beside_title,
        "can_brush": shown.can_brush,
        "n_painted": shown.n_painted,
        "many_holes": shown.n_painted > 0 or _share_hidden(shown) > MANY_HOLES,
    }


def _share_hidden(shown: Shown) -> float:
    """Return the share of what is shown that the fit does not see."""
    if shown.original is None or shown.seen is None:
        return 0.0
    return float(np.mean(np.isnan(shown.seen) & ~np.isnan(shown.original)))


def _bytes(frame: Frame, values: Array | None) -> bytes | None:
    return None if values is None else frame.arranged(values)


def at(frame: Frame, matrix: Array) -> Array:
    """Return a matrix at the entries of a frame."""
    m, n = matrix.shape
    return frame.means((m, n), lambda i, j: matrix[np.ix_(i, j)])


def spread_at(posterior: Posterior, frame: Frame) -> Array:
    """Return the standard deviation of the posterior at the entries of a frame."""
    spread = posterior.predict_std(entries_at(frame.rows[:, None], frame.columns), noise=False)
    return np.reshape(spread, (frame.rows.size, frame.columns.size))
