"""The pictures of an explorer: data, reconstruction and standard deviation, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.widgets.states.frame import Frame

Array = NDArray[Any]

MANY_HOLES = 0.25  # share of hidden entries from which data are shown with their holes


def pictures_part(
    frame: Frame,
    limits: tuple[float, float],
    names: Sequence[str],
    *,
    original: Array | None = None,
    seen: Array | None = None,
    spread: Array | None = None,
    beside: Array | None = None,
    beside_title: str = "",
    can_brush: bool = False,
    n_painted: int = 0,
) -> dict[str, Any]:
    """Return the pictures that stay as they are while a fit runs.

    `limits` are those of the data, `names` the labels of all rows, `seen` what the fit sees.
    """
    rows = frame.rows.tolist() if frame.picture is not None else [0]
    hidden = 0.0
    if original is not None and seen is not None:
        hidden = float(np.mean(np.isnan(seen) & ~np.isnan(original)))
    pictures = {"original": original, "seen": seen, "spread": spread, "beside": beside}
    return {
        "count": frame.n_pictures,
        "height": frame.height,
        "width": frame.width,
        "channels": frame.channels,
        "step": frame.step,
        "layout": "matrix" if frame.picture is None else "rows",
        "scale": "rgb" if frame.channels == 3 else "gray" if limits[0] >= 0 else "signed",
        "low": limits[0],
        "high": limits[1],
        "ids": rows,
        "labels": [names[row] if names else "" for row in rows],
        **{name: x if x is None else frame.arranged(x) for name, x in pictures.items()},
        "beside_title": beside_title,
        "can_brush": can_brush,
        "n_painted": n_painted,
        "many_holes": n_painted > 0 or hidden > MANY_HOLES,
    }


def at(frame: Frame, matrix: Array) -> Array:
    """Return a matrix at the entries of a frame."""
    m, n = matrix.shape
    return frame.means((m, n), lambda i, j: matrix[np.ix_(i, j)])


def spread_at(posterior: Posterior, frame: Frame) -> Array:
    """Return the standard deviation of the posterior at the entries of a frame."""
    spread = posterior.predict_std(entries_at(frame.rows[:, None], frame.columns), noise=False)
    return np.reshape(spread, (frame.rows.size, frame.columns.size))
