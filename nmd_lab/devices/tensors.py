"""Passes over tensors of PyTorch, on a processor or on an accelerator.

The T-update is that of `nmd_lab.model.entry`: the best piece of a piecewise-linear f, or a
closed form for Square.  All entries take all branches, and a selection follows.  A pass takes the
arguments of the compiled one, of which it leaves out limits, upper ends and the positions of column
models, which are None here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from nmd_lab.data.entries import FloatArray
from nmd_lab.model.loss import LAPLACE, NORMAL, POISSON, NoiseModel
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearity import Nonlinearity


class TensorLoss(NamedTuple):
    """A loss.

    Attributes
    ----------
    value : callable
        Function of (x, y) that returns d(x, y).
    proximal : callable
        Function of (q, x, ρ) that returns the minimiser over y of d(x, y) + ρ/2 (y - q)².
    square : callable
        Function of (v, x, ρ), v >= 0, that returns the T-update with f(t) = t².
    """

    value: Callable[[Tensor, Tensor], Tensor]
    proximal: Callable[[Tensor, Tensor, Any], Tensor]
    square: Callable[[Tensor, Tensor, Any], Tensor]


class TensorPasses:
    """The passes of a model over blocks of tensors, as `EntryPasses`."""

    def __init__(self, model: Model, *, limited: bool = False) -> None:
        self.f, self.pieces = model.nonlinearity, model.only.pieces
        self.losses, self.floors = LOSSES[model.loss.noise_model], model.loss.floors

    def update(
        self, x: Tensor, A: Tensor, weights: Tensor | None, *others: Any
    ) -> tuple[float, ...]:
        """Update T and U, and turn A into S."""
        _, _, _, T, U, penalty = others
        a, data, weight, seen = _double(A), *_values_and_weights(x, weights)
        v = a - U
        new = _where(seen, self.solve(v, data, penalty / weight), v)
        losses = _where(seen, weight * self.loss(data, a), 0.0)
        residual, step = new - a, new - T
        T.copy_(new)
        U.copy_(new - v)
        A.copy_(residual + (new - v))
        return _sums(losses, residual * residual, step * step)

    def envelope(
        self, x: Tensor, A: Tensor, weights: Tensor | None, *others: Any
    ) -> tuple[float, ...]:
        """Turn A into the gradient of L."""
        _, _, _, U, penalty, update_from = others
        a, data, weight, seen = _double(A), *_values_and_weights(x, weights)
        if update_from > 0:
            self.update(x, A.clone(), weights, None, None, None, A.clone(), U, update_from)
            U *= update_from / penalty
        v = a - U
        t = self.solve(v, data, penalty / weight)
        losses = _where(seen, weight * self.loss(data, a), 0.0)
        values = weight * self.loss(data, t) + 0.5 * penalty * (t - v) ** 2
        A.copy_(_where(seen, penalty * (v - t), 0.0))
        return _sums(_where(seen, values, 0.0), losses, _where(seen, (t - a) ** 2, 0.0))

    def zeros(self, A: Tensor, penalty: float) -> tuple[float, ...]:
        """Turn A = WH of a tile of zeros into the gradient of the envelope."""
        return self.envelope(A.new_zeros(()), A, None, None, None, None, 0.0, penalty, 0.0)

    def solve(self, v: Tensor, x: Tensor, penalty: Any) -> Tensor:
        """Return the minimisers over t of d(x, f(t)) + ρ/2 (t - v)²."""
        if not self.f.even:
            return self._solve(v, x, penalty)
        return torch.copysign(self._solve(v.abs(), x, penalty), v)

    def loss(self, x: Tensor, a: Tensor) -> Tensor:
        """Return d(x, f(a)), with the floors of the loss on f(a)."""
        y = forward(self.f, a)
        if self.floors[0] > -math.inf:
            y = torch.maximum(y, self.floors[0] + self.floors[1] * x.abs())
        return self.losses.value(x, y)

    def _solve(self, v: Tensor, x: Tensor, penalty: Any) -> Tensor:
        if self.f.form == "square":
            return self.losses.square(v, x, penalty)
        found = []
        for low, high, slope, intercept in self.pieces:
            if slope == 0:
                t = v.clamp(low, high)
            else:
                q, weight = slope * v + intercept, penalty / slope**2
                y = self.losses.proximal(q, x, weight)
                t = ((y - intercept) / slope).clamp(low, high)
            value = self.losses.value(x, slope * t + intercept)
            found.append((t, value + 0.5 * penalty * (t - v) ** 2))
        minima, objectives = (torch.stack(each) for each in zip(*found, strict=True))
        return minima.gather(0, objectives.nan_to_num(math.inf).argmin(dim=0, keepdim=True))[0]


def supports(model: Model) -> bool:
    """Return whether there are `TensorPasses` of a model."""
    if model.is_mixed or model.loss.noise_model not in LOSSES:
        return False
    return model.nonlinearity.form == "square" or bool(model.only.pieces)


def forward(f: Nonlinearity, t: Tensor) -> Tensor:
    """Return f(t) of Square or of a piecewise-linear f."""
    if f.form == "square":
        return t * t
    t = t.abs() if f.even else t
    (_, _, slope, intercept), *others = f.pieces() or ()
    y = slope * t + intercept
    for low, _, slope, intercept in others:
        y = torch.where(t > low, slope * t + intercept, y)
    return y


def _square(x: Tensor, y: Tensor) -> Tensor:
    return 0.5 * (x - y) ** 2


def _mean(q: Tensor, x: Tensor, penalty: Any) -> Tensor:
    return (x + penalty * q) / (1.0 + penalty)


def _square_of_square(v: Tensor, x: Tensor, penalty: Any) -> Tensor:
    """Return the positive root of t³ + (ρ/2 - x) t - ρ v/2; see `square_frobenius`."""
    linear, constant = 0.5 * penalty - x, 0.5 * penalty * v
    root = constant ** (1.0 / 3.0)
    square = root * root
    t = torch.where(linear > 0, constant / (linear + square), (square - linear).clamp(min=0).sqrt())
    # The start is within 40 % of the root: one step more than for one entry at a time.
    for _ in range(5):
        gap, slope = t * (t * t + linear) - constant, 3.0 * t * t + linear
        t = t - 2.0 * gap * slope / (2.0 * slope * slope - 6.0 * t * gap)
    return torch.where(constant <= 1e-200, (-linear).clamp(min=0).sqrt(), t)


def _absolute(x: Tensor, y: Tensor) -> Tensor:
    return (x - y).abs()


def _clipped(q: Tensor, x: Tensor, penalty: Any) -> Tensor:
    return torch.minimum(torch.maximum(x, q - 1.0 / penalty), q + 1.0 / penalty)


def _absolute_of_square(v: Tensor, x: Tensor, penalty: Any) -> Tensor:
    penalty = torch.as_tensor(penalty, dtype=v.dtype, device=v.device)
    t = torch.maximum(x.clamp(min=0).sqrt(), penalty * v / (penalty + 2.0))
    return torch.where(penalty > 2.0, torch.minimum(t, penalty * v / (penalty - 2.0)), t)


def _divergence(x: Tensor, y: Tensor) -> Tensor:
    """Return x log(x/y) - x + y, without cancellation near y = x."""
    away = (y - x) / x
    near = sum((-away) ** k / (k + 2) for k in range(7)) * away * away
    # The series where the logarithm would cancel
    inside = x * torch.where(away.abs() < 0.02, near, away - torch.log(y / x))
    return torch.where(x == 0, y, inside)


def _root(q: Tensor, x: Tensor, penalty: Any) -> Tensor:
    """Return the positive root of ρ y² + (1 - ρ q) y - x, free of cancellation."""
    b = 1.0 - penalty * q
    root = torch.sqrt(b * b + 4.0 * penalty * x)
    return torch.where(b > 0, 2.0 * x / (b + root), (root - b) / (2.0 * penalty))


def _divergence_of_square(v: Tensor, x: Tensor, penalty: Any) -> Tensor:
    b = penalty * v
    return (b + torch.sqrt(b * b + 8.0 * x * (penalty + 2.0))) / (2.0 * (penalty + 2.0))


LOSSES: dict[NoiseModel, TensorLoss] = {
    NORMAL: TensorLoss(_square, _mean, _square_of_square),
    LAPLACE: TensorLoss(_absolute, _clipped, _absolute_of_square),
    POISSON: TensorLoss(_divergence, _root, _divergence_of_square),
}
"""Losses that have a form for tensors, by the noise that they stand for."""


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

    def read(self, reader: Any, size: int) -> Any:
        """Return all that a reader of entries reads."""
        return self.put(reader[slice(0, size)])

    def get(self, array: Any) -> FloatArray:
        """Return an array of the device as a NumPy array."""
        return np.asarray(array.cpu())

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return a new tensor, with any numbers."""
        return torch.empty(shape, dtype=getattr(torch, np.dtype(dtype).name), device=self.name)

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return a new tensor of zeros."""
        return self.empty(shape, dtype).zero_()

    def multiply(self, left: Any, right: Any, out: Any) -> None:
        """Put the product of two matrices into `out`."""
        torch.mm(left, right, out=out)

    passes = TensorPasses
