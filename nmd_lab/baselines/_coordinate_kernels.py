"""Coordinate descent: each entry of W and of H in turn takes its exact best value.

With all others fixed, an entry of W decides over one row of X ≈ f(WH) and one of H over one
column; a column is a row of the transpose, so that one kernel serves both.  Everything is in
terms of δ, the change of the entry: the row's products p become p + δh.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nmd_lab._checks import check_rank
from nmd_lab._threads import one_thread
from nmd_lab.data.base import FloatArray
from nmd_lab.data.dense import observe_dense
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Nonlinearity, ReLU
from nmd_lab.result.decomposition import Decomposition

from ._run import Run
from ._start import first_factors

COMPILED: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
"""How the kernels are compiled; a division by zero gives a δ that no comparison prefers."""


@one_thread()
def descend(
    f: Nonlinearity,
    X: Any,
    rank: int,
    *,
    mask: ArrayLike | None,
    dtype: DTypeLike | None,
    init: Any,
    max_iter: int,
    tol: float,
    time_limit: float | None,
    callback: Callable[..., Any] | None,
    random_state: Any,
    method: str,
) -> Decomposition:
    """Decompose X ≈ f(WH) in the Frobenius sense, where f is ReLU or Square.

    An iteration changes every entry of W once, row by row, and then every entry of H.
    """
    observations = observe_dense(X, mask=mask, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    W, H = first_factors(observations, rank, init, random_state, f)
    run = Run(observations, f, Frobenius(), max_iter=max_iter, tol=tol, time_limit=time_limit,
              callback=callback)  # fmt: skip
    relu, values = isinstance(f, ReLU), observations.values
    seen = np.ones(values.shape, bool) if observations.weights is None else observations.weights
    seen, transposed = np.ascontiguousarray(seen), np.ascontiguousarray(seen.T)
    columns = np.ascontiguousarray(values.T)
    empty = np.empty((0, 0), values.dtype)
    sweep(empty, empty.astype(bool), empty, empty, empty, relu)  # compiles before the clock starts
    while run.goes_on(W, H):
        sweep(values, seen, W @ H, W, H, relu)
        Ht, Wt = np.ascontiguousarray(H.T), np.ascontiguousarray(W.T)
        sweep(columns, transposed, Ht @ Wt, Ht, Wt, relu)
        H = np.ascontiguousarray(Ht.T)
    return run.result(method=method, init=init, random_state=random_state)


@njit(**COMPILED)
def sweep(
    X: FloatArray,
    seen: NDArray[np.bool_],
    product: FloatArray,
    left: FloatArray,
    right: FloatArray,
    relu: bool,
) -> None:
    """Let each entry of the left factor take its best value, and its row of the product follow.

    Parameters
    ----------
    X, seen, product : ndarray (m, n)
        Data, True where they count, and the product of the factors; changed in place.
    left, right : ndarray (m, rank), (rank, n)
        The factors; the left one is changed in place.
    relu : bool
        Whether f is ReLU; else it is Square.
    """
    m, rank = left.shape
    for i in range(m):
        x, p, counts = X[i], product[i], seen[i]
        for k in range(rank):
            h = right[k]
            change = (
                best_relu_change(x, p, h, counts) if relu else best_square_change(x, p, h, counts)
            )
            entry = left[i, k]
            left[i, k] += change
            change = left[i, k] - entry  # what the precision of the factor made of it
            if change != 0.0:
                for j in range(x.size):
                    p[j] += change * h[j]


@njit(**COMPILED)
def best_relu_change(x: FloatArray, p: FloatArray, h: FloatArray, seen: NDArray[np.bool_]) -> float:
    """Return the δ with the least Σ (x - max(0, p + δh))², 0 if none is better than 0.

    Between two neighbours among the breakpoints -p/h the sum is a quadratic in δ; its coefficients
    are followed from the leftmost piece to the rightmost.
    """
    breakpoints, owners = np.empty(x.size), np.empty(x.size, np.int64)
    found, active = 0, 0
    square, linear, constant = 0.0, 0.0, 0.0  # the sum is square δ² - 2 linear δ + constant
    for j in range(x.size):
        if not seen[j] or h[j] == 0.0:
            continue
        data, slope, rest = float(x[j]), float(h[j]), float(x[j]) - float(p[j])
        breakpoints[found], owners[found] = -float(p[j]) / slope, j
        found += 1
        if slope < 0.0:  # above zero from the far left up to its breakpoint
            active += 1
            square += slope * slope
            linear += slope * rest
            constant += rest * rest
        else:
            constant += data * data
    order = np.argsort(breakpoints[:found])
    best, lowest = 0.0, math.inf
    low = -math.inf
    for position in range(found + 1):
        high = breakpoints[order[position]] if position < found else math.inf
        # on a flat piece any δ is as good, and the smallest is taken
        vertex = linear / square if active > 0 and square > 0.0 else 0.0
        candidate = min(max(vertex, low), high)
        value = (square * candidate - 2.0 * linear) * candidate + constant
        if value < lowest:
            best, lowest = candidate, value
        if position == found:
            break
        low = high
        j = owners[order[position]]
        data, slope, rest = float(x[j]), float(h[j]), float(x[j]) - float(p[j])
        sign = 1.0 if slope > 0.0 else -1.0  # it rises above zero here, or sinks below
        active += 1 if slope > 0.0 else -1
        square += sign * slope * slope
        linear += sign * slope * rest
        constant += sign * (rest * rest - data * data)
        if active == 0:  # nothing is left but what rounding leaves
            square, linear = 0.0, 0.0
    return best if _relu_gain(best, x, p, h, seen) > 0.0 else 0.0


@njit(**COMPILED)
def _relu_gain(
    change: float, x: FloatArray, p: FloatArray, h: FloatArray, seen: NDArray[np.bool_]
) -> float:
    """Return by how much the sum falls if an entry changes, without what never changes."""
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
    """Return the δ with the least Σ (x - (p + δh)²)², 0 if none is better than 0.

    The sum changes by the quartic a δ⁴ + b δ³ + c δ² + d δ.
    """
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(x.size):
        if seen[j]:
            slope, now = float(h[j]), float(p[j])
            rest = now * now - float(x[j])
            a += slope**4
            b += 4.0 * slope**3 * now
            c += slope * slope * (4.0 * now * now + 2.0 * rest)
            d += 4.0 * slope * now * rest
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
    """Return the real roots of t³ + b t² + c t + d, one of them three times if it is alone."""
    shift = b / 3.0
    third = c / 3.0 - shift * shift
    half = 0.5 * (d + shift * (2.0 * shift * shift - c))
    discriminant = half * half + third**3
    if discriminant > 0.0:
        size = np.cbrt(abs(half) + math.sqrt(discriminant))
        alone = size - third / size  # no cancellation, as third < size²
        alone = (-alone if half > 0.0 else alone) - shift
        return alone, alone, alone
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
