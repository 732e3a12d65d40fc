"""Kernels of coordinate descent: each entry of W and of H in turn gets its best value.

An entry of W changes one row of WH, and an entry of H one column. A column is a row of the
transpose, so the same kernel updates both factors.

The unknown is the change δ of the entry. It changes the row p of WH to p + δh, where h is the row
of the other factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nmd_lab._runtime.checks import check_rank
from nmd_lab._runtime.machine import one_thread
from nmd_lab.baselines import first_factors
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import observe_dense
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Nonlinearity, ReLU
from nmd_lab.result.decomposition import Decomposition

from ._iterations import BaselineRun

COMPILED: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
"""Options of Numba. After a division by zero a kernel goes on with infinity or NaN, which no
comparison prefers."""


@one_thread()
def descend(
    f: Nonlinearity,
    X: Any,
    rank: int,
    *,
    observed: ArrayLike | None,
    dtype: DTypeLike | None,
    init: Any,
    max_iter: int,
    tol: float,
    time_limit: float | None,
    callback: Callable[..., Any] | None,
    random_state: Any,
    method: str,
) -> Decomposition:
    """Minimise ‖X - f(WH)‖² by coordinate descent, where f is ReLU or Square.

    An iteration updates every entry of W once, row by row, and then every entry of H.
    """
    observations = observe_dense(X, observed=observed, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    W, H = first_factors(observations, rank, init, random_state, f)
    run = BaselineRun(
        observations,
        f,
        Frobenius(),
        max_iter=max_iter,
        tol=tol,
        time_limit=time_limit,
        callback=callback,
    )
    relu, values, weights = isinstance(f, ReLU), observations.values, observations.weights
    seen = np.ones(values.shape, bool) if weights is None else np.ascontiguousarray(weights)
    values_t, seen_t = np.ascontiguousarray(values.T), np.ascontiguousarray(seen.T)
    empty = np.empty((0, 0), values.dtype)
    # The first call compiles, so it comes before the clock starts.
    update_factor(empty, empty.astype(bool), empty, empty, empty, relu)
    while run.record(W, H):
        update_factor(values, seen, W @ H, W, H, relu)
        Ht, Wt = np.ascontiguousarray(H.T), np.ascontiguousarray(W.T)
        update_factor(values_t, seen_t, Ht @ Wt, Ht, Wt, relu)
        H = np.ascontiguousarray(Ht.T)
    return run.result(method=method, init=init, random_state=random_state)


@njit(**COMPILED)
def update_factor(
    X: FloatArray, seen: NDArray[np.bool_], WH: FloatArray, W: FloatArray, H: FloatArray, relu: bool
) -> None:
    """Give each entry of W its best value in turn, in place."""
    m, rank = W.shape
    for i in range(m):
        x, p, seen_row = X[i], WH[i], seen[i]
        for k in range(rank):
            h = H[k]
            if relu:
                change = best_relu_change(x, p, h, seen_row)
            else:
                change = best_square_change(x, p, h, seen_row)
            entry = W[i, k]
            W[i, k] += change
            change = W[i, k] - entry  # the change after rounding to the precision of W
            if change != 0.0:
                for j in range(x.size):
                    p[j] += change * h[j]


@njit(**COMPILED)
def best_relu_change(x: FloatArray, p: FloatArray, h: FloatArray, seen: NDArray[np.bool_]) -> float:
    """Return the δ that minimises Σ (x - max(0, p + δh))²; 0 if no δ improves the sum.

    Between two neighbouring breakpoints -p/h the sum is a quadratic function of δ. The loop goes
    through these pieces from left to right and updates the coefficients at each breakpoint.
    """
    breakpoints, columns = np.empty(x.size), np.empty(x.size, np.int64)
    n_breakpoints, n_positive = 0, 0  # n_positive entries of p + δh are positive on the piece
    square, linear, constant = 0.0, 0.0, 0.0  # the sum is square δ² - 2 linear δ + constant
    for j in range(x.size):
        if not seen[j] or h[j] == 0.0:
            continue
        data, slope, residual = float(x[j]), float(h[j]), float(x[j]) - float(p[j])
        breakpoints[n_breakpoints], columns[n_breakpoints] = -float(p[j]) / slope, j
        n_breakpoints += 1
        if slope < 0.0:  # positive to the left of its breakpoint
            n_positive += 1
            square += slope * slope
            linear += slope * residual
            constant += residual * residual
        else:
            constant += data * data
    order = np.argsort(breakpoints[:n_breakpoints])
    best, lowest = 0.0, math.inf
    low = -math.inf
    for position in range(n_breakpoints + 1):
        high = breakpoints[order[position]] if position < n_breakpoints else math.inf
        # on a flat piece every δ has the same sum, and the smallest change is taken
        vertex = linear / square if n_positive > 0 and square > 0.0 else 0.0
        candidate = min(max(vertex, low), high)
        value = (square * candidate - 2.0 * linear) * candidate + constant
        if value < lowest:
            best, lowest = candidate, value
        if position == n_breakpoints:
            break
        low = high
        j = columns[order[position]]
        data, slope, residual = float(x[j]), float(h[j]), float(x[j]) - float(p[j])
        sign = 1.0 if slope > 0.0 else -1.0  # entry j becomes positive here, or stops being so
        n_positive += 1 if slope > 0.0 else -1
        square += sign * slope * slope
        linear += sign * slope * residual
        constant += sign * (residual * residual - data * data)
        if n_positive == 0:  # remove rounding errors: the sum is constant here
            square, linear = 0.0, 0.0
    return best if _relu_gain(best, x, p, h, seen) > 0.0 else 0.0


@njit(**COMPILED)
def _relu_gain(
    change: float, x: FloatArray, p: FloatArray, h: FloatArray, seen: NDArray[np.bool_]
) -> float:
    """Return the decrease of Σ (x - max(0, p + δh))² for a change δ."""
    gain = 0.0
    for j in range(x.size):
        if seen[j]:
            before = max(0.0, float(p[j]))
            after = max(0.0, float(p[j]) + change * float(h[j]))
            gain += (after - before) * (2.0 * float(x[j]) - before - after)
    return gain


@njit(**COMPILED)
def best_square_change(
    x: FloatArray, p: FloatArray, h: FloatArray, seen: NDArray[np.bool_]
) -> float:
    """Return the δ that minimises Σ (x - (p + δh)²)²; 0 if no δ improves the sum.

    The change of the sum is the quartic a δ⁴ + b δ³ + c δ² + d δ. Its minimiser is a root of the
    derivative, a cubic.
    """
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(x.size):
        if seen[j]:
            slope, product = float(h[j]), float(p[j])
            error = product * product - float(x[j])
            a += slope**4
            b += 4.0 * slope**3 * product
            c += slope * slope * (4.0 * product * product + 2.0 * error)
            d += 4.0 * slope * product * error
    if a == 0.0:
        return 0.0
    best, lowest = 0.0, 0.0
    for root in real_roots(0.75 * b / a, 0.5 * c / a, 0.25 * d / a):
        value = (((a * root + b) * root + c) * root + d) * root
        if value < lowest:
            best, lowest = root, value
    return best


@njit(**COMPILED)
def real_roots(b: float, c: float, d: float) -> tuple[float, float, float]:
    """Return the real roots of t³ + b t² + c t + d; a single real root is returned three times."""
    shift = b / 3.0
    third = c / 3.0 - shift * shift
    half = 0.5 * (d + shift * (2.0 * shift * shift - c))
    discriminant = half * half + third**3
    if discriminant > 0.0:
        size = np.cbrt(abs(half) + math.sqrt(discriminant))
        root = size - third / size  # no cancellation, since third < size²
        root = (-root if half > 0.0 else root) - shift
        return root, root, root
    radius = 2.0 * math.sqrt(-third) if third < 0.0 else 0.0
    if radius == 0.0:
        return -shift, -shift, -shift
    cosine = min(max(-half / math.sqrt(-third) ** 3, -1.0), 1.0)
    angle = math.acos(cosine) / 3.0
    turn = 2.0 * math.pi / 3.0
    return (
        radius * math.cos(angle) - shift,
        radius * math.cos(angle - turn) - shift,
        radius * math.cos(angle + turn) - shift,
    )
