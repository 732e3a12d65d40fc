"""The objective of a fit, computed again with plain NumPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import nmd_lab

from .faults import Fault
from .matrices import Array

KL_FLOOR = 1e-12
"""Lower bound of y in the KL divergence, relative to x."""


def _f(f: nmd_lab.nonlinearities.Nonlinearity, t: Array) -> Array:
    return {
        "identity": lambda: t,
        "relu": lambda: np.maximum(t, 0),
        "minmax": lambda: np.clip(t, *f.parameters),
        "modulus": lambda: np.abs(t),
        "square": lambda: t * t,
    }[f.name]()


def _d(name: str, x: Array, y: Array) -> Array:
    if name == "frobenius":
        return 0.5 * (x - y) ** 2
    if name == "l1":
        return np.abs(x - y)
    y = np.maximum(y, KL_FLOOR * x)
    safe = np.where(x > 0, x, 1.0)
    return np.where(x > 0, x * (np.log(safe) - np.log(y)) - x + y, y)


def _reference(name: str, x: Array, weights: Array) -> float:
    if name == "frobenius":
        return 0.5 * float(np.sum(weights * x * x))
    if name == "l1":
        return float(np.sum(weights * np.abs(x)))
    mean = np.full_like(x, np.average(x, weights=weights))
    rounding = np.finfo(float).eps * float(np.sum(weights * np.abs(x)))
    return max(float(np.sum(weights * _d(name, x, mean))), rounding)


class Product(NamedTuple):
    """t = WH + offsets in double precision, and how far rounding may move it.

    Attributes
    ----------
    t : ndarray (m, n)
        Product.
    rounding : ndarray (m, n)
        A few units of |W||H| + |offsets|, which bounds the rounding even where terms cancel.
    """

    t: Array
    rounding: Array


def unit_of(fit: nmd_lab.Decomposition) -> float:
    """Return a few units of rounding, in proportion to the number of terms."""
    return 8 * (fit.rank + 4) * float(np.finfo(fit.W.dtype).eps)


def product_of(fit: nmd_lab.Decomposition) -> Product:
    """Return t = WH + offsets, and its rounding."""
    W, H = (factor.astype(np.float64) for factor in fit.factors)
    m, n = fit.shape
    b, c = fit.offsets.of_rows(m, float)[:, None], fit.offsets.of_columns(n, float)
    t = W @ H + b + c + fit.offsets.mean
    size = np.abs(W) @ np.abs(H) + np.abs(b) + np.abs(c) + abs(fit.offsets.mean)
    return Product(t, unit_of(fit) * size)


def rounding_of(fit: nmd_lab.Decomposition) -> Array:
    """Return how far rounding may move each entry of f(WH + offsets)."""
    t, rounding = product_of(fit)
    if fit.nonlinearity.name == "mixed":  # in the units of each column, f has slopes of at most 1
        return rounding * np.nanstd(fit.reconstruct().values, axis=0)
    exact, *ends = (_f(fit.nonlinearity, t + sign * rounding) for sign in (0, -1, 1))
    return np.max([np.abs(end - exact) for end in ends], axis=0)


def check_scores(fit: nmd_lab.Decomposition, values: Array, weights: Array) -> None:
    """Raise a Fault if objective or relative error are not those of W and H.

    The tolerance is what the rounding of t = WH + offsets changes in the sum, and a few units of
    the sum itself.

    Parameters
    ----------
    fit : Decomposition
        Fit.
    values, weights : ndarray (m, n)
        Values, and their weights; 0 where nothing is observed.
    """
    dtype = fit.W.dtype
    seen = weights > 0
    x, w = values.astype(dtype)[seen].astype(np.float64), weights[seen].astype(np.float64)
    t, rounding = (part[seen] for part in product_of(fit))
    unit = unit_of(fit)
    f, d = fit.nonlinearity, fit.loss.name
    exact = _d(d, x, _f(f, t))
    ends = [_d(d, x, _f(f, t + sign * rounding)) for sign in (-1, 1)]
    data_term = float(np.sum(w * exact))
    slack = float(np.sum(w * np.max([np.abs(end - exact) for end in ends], axis=0)))
    slack += 1e-9 * data_term if dtype == np.float64 else 1e-3 * data_term
    slack += unit**2 * float(np.sum(w * np.abs(x)))  # of the reported sum where all is exact
    if d == "kl":  # x log(x/y) - x + y cancels near y = x
        slack += 4e-15 * float(np.sum(w * (x + _f(f, t))))
    alpha = float(fit.parameters["alpha"])
    offsets = [part for part in fit.offsets[1:] if part is not None]
    of_factors, of_offsets = (
        sum(float(np.sum(np.square(part, dtype=float))) for part in parts)
        for parts in (fit.factors, offsets)
    )
    ridge = 0.5 * (alpha * of_factors + float(fit.parameters["offset_alpha"]) * of_offsets)
    _compare("objective", fit.objective, data_term + ridge, slack + unit * ridge)
    reference = _reference(d, x, w)
    low, high = (
        fit.loss.relative_error(max(data_term + sign * 1.01 * slack, 0.0), reference)
        for sign in (-1, 1)
    )
    reported = fit.relative_error
    if reference > 0 and not low * (1 - 1e-6) <= reported <= high * (1 + 1e-6):
        raise Fault("relative_error is not that of W and H", f"{reported!r} not in {low, high}")


def _compare(name: str, reported: float, true: float, slack: float) -> None:
    if not abs(reported - true) <= slack:
        raise Fault(f"{name} is not that of W and H", f"{reported!r}, recomputed {true!r}")


def fitted_data(case: Any, fit: nmd_lab.Decomposition) -> tuple[Array, Array] | None:
    """Return the values and weights that a case fits, None where entries are held out or mixed."""
    if "validation" in case.options or fit.shape != case.shape or fit.nonlinearity.name == "mixed":
        return None
    if case.container == "dia" and (case.matrix[case.seen] == 0).any():
        return None  # this format drops zeros
    if case.absent_are_zeros:
        return np.where(case.seen, case.matrix, 0), np.ones(case.shape)
    return case.matrix, case.seen.astype(float)
