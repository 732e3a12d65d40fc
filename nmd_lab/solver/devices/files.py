"""Compiled passes over arrays that lie in files: the device of data larger than memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from nmd_lab._runtime.disk import SMALLEST, FileArray, Scratch
from nmd_lab.data.entries import FloatArray

from .host import Host


class FileHost(Host):
    """A `Host` whose long flat arrays lie in files."""

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch

    def put(self, array: Any) -> Any:
        """Return an array itself, and a copy in a file of one that is long and flat."""
        if type(array) is FileArray or array.ndim != 1 or array.size < SMALLEST:
            return array
        out = self.scratch.zeros(array.size, array.dtype)
        out[:] = array
        return out

    def get(self, array: Any) -> FloatArray:
        """Return the array, whose numbers may lie in a file."""
        result: FloatArray = array.array if isinstance(array, FileArray) else array
        return result

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return zeros, in a file if they are many in a flat array."""
        if len(shape) == 1 and shape[0] >= SMALLEST:
            return self.scratch.zeros(shape[0], dtype)
        return np.full(shape, 0, dtype)
