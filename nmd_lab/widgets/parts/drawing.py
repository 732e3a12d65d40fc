"""What the page draws f(wH) of any w with, without the kernel: factors, a table of f, and the data.

The offsets are two more components: W has a column of the offsets of the rows and one of ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.widgets.states.frame import Frame

Array = NDArray[Any]

MOST_COLUMNS = 4096  # largest number of columns of a row that is drawn
MOST_VALUES = 4_000_000  # largest number of entries of which the data are sent, as a byte each
STEPS = 4097  # length of the table of f


def drawing_part(
    fitted: FittedValues, off: Sequence[int], frame: Frame, rows: Array, X: Array | None
) -> dict[str, Any] | None:
    """Return the numbers to draw the rows of a plane; None for wide rows and several kinds."""
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
