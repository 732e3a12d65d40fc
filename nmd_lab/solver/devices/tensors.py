"""Tensors of PyTorch, on a processor or on an accelerator."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from nmd_lab.data.entries import EntryReader, FloatArray, WeightReader

from .tensor_passes import curvature_pass, envelope_pass, update_pass, zero_pass

ACCELERATOR_FACTOR = 64
"""Size of a block on an accelerator, in blocks of a cache.  Starting an operation takes longer than
its work on a small block."""


class TensorDevice:
    """A device of PyTorch; see `Device` for the methods."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.factor = 1 if name == "cpu" else ACCELERATOR_FACTOR

    def put(self, array: NDArray[Any]) -> Any:
        """Return an array on the device."""
        # there are no read-only tensors
        writable = array if array.flags.writeable else array.copy()
        return torch.from_numpy(writable).to(self.name)

    def read(self, reader: EntryReader | WeightReader, size: int) -> Any:
        """Return all that a reader of entries reads."""
        return self.put(reader[slice(0, size)])

    def get(self, array: Any) -> FloatArray:
        """Return an array of the device as a NumPy array."""
        values: FloatArray = array.cpu().numpy()
        return values

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return a new tensor, with any numbers."""
        return torch.empty(shape, dtype=TYPES[np.dtype(dtype).name], device=self.name)

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return a new tensor of zeros."""
        return torch.zeros(shape, dtype=TYPES[np.dtype(dtype).name], device=self.name)

    def multiply(self, left: Any, right: Any, out: Any) -> Any:
        """Put the product of two matrices into `out`."""
        return torch.mm(left, right, out=out)

    def fill(self, out: Any, values: Any, where: Any) -> None:
        """Put values into `out` where a condition holds."""
        out.copy_(torch.where(where, values, out))

    def threads(self, threads: int) -> int:
        """Return 1: PyTorch has threads of its own."""
        return 1

    update_pass = staticmethod(update_pass)
    envelope_pass = staticmethod(envelope_pass)
    curvature_pass = staticmethod(curvature_pass)
    zero_pass = staticmethod(zero_pass)


TYPES = {"float32": torch.float32, "float64": torch.float64}
"""Types of tensors by the names of those of NumPy."""
