"""Tensors of PyTorch, on a processor or on an accelerator.

A pass takes the arguments of the compiled one, of which it leaves out limits, upper ends and the
positions of column models, which are None here, and the numbers of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from nmd_lab.data.entries import EntryReader, FloatArray, WeightReader
from nmd_lab.model.model import Model

from .tensor_model import TensorModel


def update_pass(model: Model, kind: str) -> Callable[..., tuple[float, ...]]:
    """Return the T- and U-update of a block; see `compiled_passes.update_kernel`."""
    entries = TensorModel(model)

    def update(x: Tensor, A: Tensor, weights: Tensor | None, *others: Any) -> tuple[float, ...]:
        _, _, _, T, U, penalty, dual_scale, _ = others
        a, data, weight, seen = _double(A), *_values_and_weights(x, weights)
        v = a - dual_scale * U
        new = _where(seen, entries.solve(v, data, penalty / weight), v)
        losses = _where(seen, weight * entries.loss(data, a), 0.0)
        residual, step = new - a, new - T
        T.copy_(new)
        U.copy_(new - v)
        A.copy_(residual + (new - v))
        return _sums(losses, residual * residual, step * step)

    return update


def envelope_pass(model: Model, kind: str) -> Callable[..., tuple[float, ...]]:
    """Return the Moreau envelope of a block; see `compiled_passes.envelope_kernel`."""
    entries = TensorModel(model)

    def evaluate(x: Tensor, A: Tensor, weights: Tensor | None, *others: Any) -> tuple[float, ...]:
        _, _, _, U, penalty, update_from, _ = others
        a, data, weight, seen = _double(A), *_values_and_weights(x, weights)
        if update_from > 0:
            v = a - U
            t = entries.solve(v, data, update_from / weight)
            U.copy_(_where(seen, (t - v) * (update_from / penalty), _double(U)))
        v = a - U
        t = entries.solve(v, data, penalty / weight)
        losses = _where(seen, weight * entries.loss(data, a), 0.0)
        values = weight * entries.loss(data, t) + 0.5 * penalty * (t - v) ** 2
        A.copy_(_where(seen, penalty * (v - t), 0.0))
        return _sums(_where(seen, values, 0.0), losses, _where(seen, (t - a) ** 2, 0.0))

    return evaluate


def zero_pass(model: Model, dtype: Any) -> Callable[..., tuple[float, ...]]:
    """Return the envelope of a tile of zeros; see `compiled_zeros.ZeroLoss`."""
    entries = TensorModel(model)

    def evaluate(A: Tensor, penalty: float) -> tuple[float, ...]:
        a = _double(A)
        zero = torch.zeros((), dtype=a.dtype, device=a.device)
        t = entries.solve(a, zero, penalty)
        gap = a - t
        values = entries.loss(zero, t) + 0.5 * penalty * gap * gap
        losses = entries.loss(zero, a)
        A.copy_(penalty * gap)
        return _sums(values, losses, gap * gap)

    return evaluate


def _double(array: Tensor) -> Tensor:
    return array.to(torch.float64, copy=True)


def _values_and_weights(x: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return values and weights in double precision, and where entries are observed.

    Where they are not, the value is 0 and the weight 1.
    """
    if weights is None:
        return _double(x), torch.ones((), dtype=torch.float64, device=x.device), None
    seen = weights > 0
    return _where(seen, _double(x), 0.0), _where(seen, _double(weights), 1.0), seen


def _where(seen: Tensor | None, values: Tensor, others: Tensor | float) -> Tensor:
    return values if seen is None else torch.where(seen, values, others)


def _sums(*arrays: Tensor) -> tuple[float, ...]:
    """Return the sums of some tensors, which come from the device together."""
    return tuple(torch.stack([each.sum() for each in arrays]).tolist())


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
    zero_pass = staticmethod(zero_pass)


TYPES = {"float32": torch.float32, "float64": torch.float64}
"""Types of tensors by the names of those of NumPy."""
