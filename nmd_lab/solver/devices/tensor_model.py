"""The T-update and the loss of a model, for tensors.

The T-update is that of `nmd_lab.model.proximal`: the best piece of a piecewise-linear f, or a
closed form for Square.  All entries take all branches, and a selection follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmd_lab.model.loss import LAPLACE, NORMAL, POISSON, NoiseModel
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearity import Nonlinearity

HALLEY_STEPS = 5
"""Steps from a start within 40 % of the root, one more than for one entry at a time."""

SERIES_BELOW = 0.02
"""Distance of y/x from 1 below which the divergence is a series, since logarithms would cancel."""


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


class TensorModel:
    """T-update and loss of a model, entry by entry, for tensors of double precision."""

    def __init__(self, model: Model) -> None:
        self.f, self.pieces = model.nonlinearity, model.only.pieces
        self.losses, self.floors = LOSSES[model.loss.noise_model], model.loss.floors

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
        best, lowest = None, None
        for low, high, slope, intercept in self.pieces:
            if slope == 0:
                t = v.clamp(low, high)
            else:
                q, weight = slope * v + intercept, penalty / slope**2
                y = self.losses.proximal(q, x, weight)
                t = ((y - intercept) / slope).clamp(low, high)
            gap = t - v
            objective = self.losses.value(x, slope * t + intercept) + 0.5 * penalty * gap * gap
            if best is None or lowest is None:
                best, lowest = t, objective
            else:
                better = objective < lowest
                best = torch.where(better, t, best)
                lowest = torch.where(better, objective, lowest)
        assert best is not None
        return best


def supports(model: Model) -> bool:
    """Return whether there is a `TensorModel` of a model."""
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
    for _ in range(HALLEY_STEPS):
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
    inside = x * torch.where(away.abs() < SERIES_BELOW, near, away - torch.log(y / x))
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
