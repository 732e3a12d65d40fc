"""The weights of a dense matrix, read one range of entries at a time.

A mask takes one bit for each entry, and weights are those that the user gave, without a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import FloatArray


class EntryWeights:
    """Weights of all entries of a matrix, 0 where an entry is missing.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and columns.
    dtype : dtype
        That of the weights; bool if there is a mask only.
    """

    def __init__(self, seen: NDArray[np.bool_] | None, weights: FloatArray | None) -> None:
        array: Any = seen if weights is None else weights
        self.shape: tuple[int, int] = array.shape
        self.dtype: np.dtype[Any] = array.dtype
        self._bits = None if seen is None else np.packbits(seen)
        self._weights = None if weights is None else weights.ravel()

    @classmethod
    def from_bits(
        cls, bits: NDArray[np.uint8] | None, weights: Any, shape: tuple[int, int]
    ) -> EntryWeights:
        """Return the weights from a mask in bits, and from flat weights that are read by ranges."""
        result = object.__new__(cls)
        result.shape, result.dtype = shape, np.dtype(bool) if weights is None else weights.dtype
        result._bits, result._weights = bits, weights
        return result

    def __getitem__(self, entries: slice, /) -> NDArray[Any]:
        """Return the weights of a range of entries, flat."""
        weights = None if self._weights is None else self._weights[entries]
        if self._bits is None:
            assert weights is not None
            return weights
        m, n = self.shape
        start, stop, _ = entries.indices(m * n)
        seen = np.unpackbits(self._bits[start // 8 : -(-stop // 8)]).view(bool)
        seen = seen[start % 8 : start % 8 + stop - start]
        return seen if weights is None else np.where(seen, weights, weights.dtype.type(0))

    def of_rows(self, rows: slice) -> NDArray[Any]:
        """Return the weights of a range of rows, as a matrix."""
        m, n = self.shape
        start, stop, _ = rows.indices(m)
        return self[start * n : max(start, stop) * n].reshape(-1, n)
