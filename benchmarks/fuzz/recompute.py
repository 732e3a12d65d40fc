"""The objective of a fit, computed again with plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracles import distance
from part_oracles import forward

import nmd_lab

from .matrices import Array

KL_FLOOR = 1e-12
"""Lower bound of y in the KL divergence, relative to x."""


def _f(fit: nmd_lab.Decomposition, t: Array) -> Array:
    return np.asarray(forward((fit.nonlinearity.name, *fit.nonlinearity.parameters), t))


def _d(loss: str, x: Array, y: Array) -> Array:
    return distance(loss, x, np.maximum(y, KL_FLOOR * x) if loss == "kl" else y)


def _reference(loss: str, x: Array, weights: Array) -> float:
    if loss != "kl":
        return float(np.sum(weights * distance(loss, x, np.zeros_like(x))))
    mean = np.full_like(x, np.average(x, weights=weights))
    rounding = np.finfo(float).eps * float(np.sum(weights * np.abs(x)))
    return max(float(np.sum(weights * distance(loss, x, mean))), rounding)


def unit_of(fit: nmd_lab.Decomposition) -> float:
    """Return a few units of rounding, in proportion to the number of terms."""
    return 8 * (fit.rank + 4) * float(np.finfo(fit.W.dtype).eps)


def product_of(fit: nmd_lab.Decomposition) -> tuple[Array, Array]:
    """Return t = WH + offsets in double precision, and how far rounding may move it.

    That is a few units of |W||H| + |offsets|, which bounds the rounding even where terms cancel.
    """
    W, H = (factor.astype(np.float64) for factor in fit._factors)
    m, n = fit._shape
    b, c = fit.offsets.of_rows(m, float)[:, None], fit.offsets.of_columns(n, float)
    t = W @ H + b + c + fit.offsets.mean
    size = np.abs(W) @ np.abs(H) + np.abs(b) + np.abs(c) + abs(fit.offsets.mean)
    return t, unit_of(fit) * size


def rounding_of(fit: nmd_lab.Decomposition) -> Array:
    """Return how far rounding may move each entry of f(WH + offsets)."""
    t, rounding = product_of(fit)
    if fit.nonlinearity.name == "mixed":  # in the units of each column, f has slopes of at most 1
        return rounding * np.nanstd(fit.reconstruct().values, axis=0)
    return np.max([np.abs(_f(fit, t + s * rounding) - _f(fit, t)) for s in (-1, 1)], axis=0)


def check_scores(fit: nmd_lab.Decomposition, values: Array, weights: Array) -> None:
    """Raise if objective or relative error are not those of W and H.

    The tolerance is what the rounding of t = WH + offsets changes in the sum, and a few units of
    the sum itself.  Weights are 0 where nothing is observed.
    """
    dtype, seen, loss, unit = fit.W.dtype, weights > 0, fit.loss.name, unit_of(fit)
    x, w = values.astype(dtype)[seen].astype(np.float64), weights[seen].astype(np.float64)
    t, rounding = (part[seen] for part in product_of(fit))
    exact = _d(loss, x, _f(fit, t))
    ends = [_d(loss, x, _f(fit, t + sign * rounding)) for sign in (-1, 1)]
    data_term = float(np.sum(w * exact))
    slack = float(np.sum(w * np.max([np.abs(end - exact) for end in ends], axis=0)))
    slack += 1e-9 * data_term if dtype == np.float64 else 1e-3 * data_term
    slack += unit**2 * float(np.sum(w * np.abs(x)))  # of the reported sum where all is exact
    if loss == "kl":  # x log(x/y) - x + y cancels near y = x
        slack += 4e-15 * float(np.sum(w * (x + _f(fit, t))))
    ridge = 0.5 * float(fit.parameters["alpha"]) * _squares(fit._factors)
    ridge += 0.5 * float(fit.parameters["offset_alpha"]) * _squares(fit.offsets[1:])
    true, reported = data_term + ridge, fit.objective
    details = f"{reported!r}, recomputed {true!r}"
    close = abs(reported - true) <= slack + unit * ridge
    assert close, f"objective is not that of W and H: {details}"
    reference, near = _reference(loss, x, w), (1 - 1e-6, 1 + 1e-6)
    low, high = (
        factor * fit.loss.relative_error(max(data_term + sign * 1.01 * slack, 0.0), reference)
        for sign, factor in zip((-1, 1), near, strict=True)
    )
    right = reference <= 0 or low <= fit.relative_error <= high
    details = f"{fit.relative_error!r} not in {low, high}"
    assert right, f"relative_error is not that of W and H: {details}"


def _squares(parts: Any) -> float:
    return sum(float(np.sum(np.square(p, dtype=float))) for p in parts if p is not None)
