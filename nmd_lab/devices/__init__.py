"""Where the passes over X run: the processor, files by blocks, or an accelerator.

A device has the memory of T, U and X, and the operations on blocks of them.  The factors W and H
stay NumPy arrays, and so does all that a step does with them.  A pass over the data puts W and H
onto the device, and takes sums and products with r columns back.  The sweeps and the envelopes are
therefore the same for every device.

A usual fit has NumPy arrays, BLAS products and compiled passes.  Data larger than memory have
compiled passes over arrays that lie in files.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nmd_lab._runtime.checks import needs_library
from nmd_lab._runtime.machine import MIN_ENTRIES, FileArray, Scratch, for_kernels
from nmd_lab.data.entries import FloatArray
from nmd_lab.kernels.passes import EntryPasses
from nmd_lab.model.model import Model


class Device:
    """A device; this one has NumPy arrays.  Arrays have the usual indices and operators.

    Attributes
    ----------
    name : str
        Name of the device, as an argument `device` gives it; "" for NumPy arrays.
    factor : int
        Size of a block, in units of one that stays in the cache of a processor.
    """

    name = ""
    factor = 1

    def put(self, array: NDArray[Any]) -> Any:
        """Return an array on the device."""
        return array

    def read(self, reader: Any, size: int) -> Any:
        """Return what reads entries on the device, given their number."""
        return for_kernels(reader)

    def get(self, array: Any) -> FloatArray:
        """Return an array of the device as a NumPy array."""
        return np.asarray(array)

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return a new array of zeros, in memory that has been written to: it is read fast, too."""
        return np.full(shape, 0, dtype)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return a new array on the device, with any numbers."""
        return np.empty(shape, dtype)

    def multiply(self, left: Any, right: Any, out: Any) -> None:
        """Put the product of two matrices into `out`."""
        np.dot(left, right, out=out)

    # T and U of a block, its Moreau envelope, and that of a tile of zeros
    passes: Any = EntryPasses


HOST = Device()
"""The device of a usual fit."""


class FileHost(Device):
    """NumPy arrays, of which long flat arrays lie in files."""

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch

    def put(self, array: Any) -> Any:
        """Return an array itself, and a copy in a file of one that is long and flat."""
        if type(array) is FileArray or array.ndim != 1 or array.size < MIN_ENTRIES:
            return array
        out = self.scratch.zeros(array.size, array.dtype)
        out[:] = array
        return out

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return zeros, in a file if they are many in a flat array."""
        if len(shape) == 1 and shape[0] >= MIN_ENTRIES:
            return self.scratch.zeros(shape[0], dtype)
        return super().zeros(shape, dtype)


@cache
def device_of(name: str | None) -> Device:
    """Return the device of a name; that of NumPy arrays for None."""
    if name is None:
        return HOST
    remedy = "pip install torch, or leave device out."
    with needs_library(f"device={name!r} needs PyTorch: {remedy}"):
        import torch

        from .tensors import TensorDevice
    try:
        torch.zeros(1, dtype=torch.float64, device=name)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise ValueError(
            f"device={name!r} is not there, or has no double precision: give 'cpu', 'cuda' or "
            "another device of PyTorch, or leave device out."
        ) from error
    return cast(Device, TensorDevice(name))  # which has the methods of one


def refuse_unsupported(device: Device, model: Model, *, observed_only: bool) -> None:
    """Raise ValueError if a device has no passes for such a problem."""
    if device is HOST:
        return
    from .tensors import supports

    if not supports(model):
        f, loss = model.shown
        why = f"nonlinearity={f!r} and loss={loss!r}, which have no form for tensors"
    elif observed_only:
        why = "split='observed', the default below a third of observed entries"
    else:
        return
    raise ValueError(
        f"device={device.name!r} does not go with {why}: leave device out, and "
        "give an array in the place of a tensor."
    )
