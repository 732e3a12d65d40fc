"""The offsets of a model, X ≈ f(WH + mean + b_i + c_j)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Offsets(NamedTuple):
    """What is added to WH inside f.

    Attributes
    ----------
    mean : float
        Global offset; 0 if the model has none.
    rows : ndarray (m,) or None
        Offset of each row.
    columns : ndarray (n,) or None
        Offset of each column.
    """

    mean: float
    rows: NDArray[np.floating] | None
    columns: NDArray[np.floating] | None

    def of_rows(self, size: int, dtype: Any) -> NDArray[np.floating]:
        """Return the offset of each row, zeros if there is none."""
        return np.zeros(size, dtype) if self.rows is None else self.rows

    def of_columns(self, size: int, dtype: Any) -> NDArray[np.floating]:
        """Return the offset of each column, zeros if there is none."""
        return np.zeros(size, dtype) if self.columns is None else self.columns


NO_OFFSETS = Offsets(0.0, None, None)
