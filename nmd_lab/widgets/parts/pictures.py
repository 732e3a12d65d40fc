"""The pictures of an explorer as numbers: data, model, doubt, and what the plane is drawn with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.widgets.states.frame import Frame

Array = NDArray[Any]

MANY_HOLES = 0.25  # share of hidden entries from which data are shown with their holes
MOST_COLUMNS = 4096  # largest number of columns of a row that is drawn
MOST_VALUES = 4_000_000  # largest number of entries of which the data are sent, as a byte each
STEPS = 4097  # length of the table of f


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


def drawing_part(
    fitted: FittedValues, off: Sequence[int], frame: Frame, rows: Array, X: Array | None
) -> dict[str, Any] | None:
    """Return the numbers to draw the rows of a plane; None for wide rows and several kinds.

    The page draws f(wH) of any w, without the kernel.  The offsets are two more components: W has
    a column of the offsets of the rows and one of ones.
    """
    n = fitted.shape[1]
    if fitted.model.single is None or n > MOST_COLUMNS:
        return None
    of_rows, of_columns = fitted.offsets_at(rows, slice(None))
    W = np.column_stack([fitted.W[rows], of_rows, np.ones_like(of_rows)])
    H = np.vstack([fitted.H, np.ones_like(of_columns), of_columns])
    H[list(off)] = 0
    every = -(-rows.size * n // MOST_VALUES)
    t = W[::every] @ H
    room = float(np.ptp(t)) or 1.0  # the pointer reaches values that no row has
    low, high = float(t.min()) - room, float(t.max()) + room
    with np.errstate(all="ignore"):
        table = fitted.model.expected(np.linspace(low, high, STEPS))
    height, width = frame.picture.shape if frame.picture else (1, n // frame.channels)
    return {
        "height": height,
        "width": width,
        "channels": frame.channels,
        "rank": H.shape[0],
        "W": np.ascontiguousarray(W, dtype="<f4").tobytes(),
        "H": frame.arranged(H),
        "low": low,
        "high": high,
        "table": np.ascontiguousarray(table, dtype="<f4").tobytes(),
        "data": None if X is None or every > 1 else _as_bytes(frame.arranged(X[rows])),
    }


def _as_bytes(values: bytes) -> dict[str, Any]:
    """Return float32 numbers as bytes 0 to 254, 255 for NaN, and what 0 and 254 stand for."""
    numbers = np.frombuffer(values, "<f4")
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    codes = np.nan_to_num((numbers - low) * (254 / ((high - low) or 1.0)), nan=255)
    return {"low": low, "high": high, "codes": np.rint(codes).astype(np.uint8).tobytes()}
