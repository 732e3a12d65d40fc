"""NumPy arrays, BLAS products and compiled passes: the device of a usual fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nmd_lab.data.entries import EntryReader, FloatArray, WeightReader

from .base import Device
from .compiled_passes import curvature_kernel, envelope_kernel, update_kernel
from .compiled_zeros import ZeroLoss


class Host:
    """NumPy arrays; see `Device` for the methods."""

    name = ""
    factor = 1

    def put(self, array: NDArray[Any]) -> Any:
        """Return the array itself."""
        return array

    def read(self, reader: EntryReader | WeightReader, size: int) -> Any:
        """Return the reader itself."""
        return reader

    def get(self, array: Any) -> FloatArray:
        """Return the array itself."""
        result: FloatArray = array
        return result

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return `numpy.empty`."""
        return np.empty(shape, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return zeros, in memory that has been written to: the first reading is fast, too."""
        return np.full(shape, 0, dtype)

    def multiply(self, left: Any, right: Any, out: Any) -> Any:
        """Put the product of two matrices into `out`."""
        return np.dot(left, right, out=out)

    def fill(self, out: Any, values: Any, where: Any) -> None:
        """Put values into `out` where a condition holds."""
        np.copyto(out, values, where=where)

    def threads(self, threads: int) -> int:
        """Return the number of threads."""
        return threads

    update_pass = staticmethod(update_kernel)
    envelope_pass = staticmethod(envelope_kernel)
    curvature_pass = staticmethod(curvature_kernel)
    zero_pass = staticmethod(ZeroLoss)


HOST: Device = Host()
"""The device of a usual fit."""
