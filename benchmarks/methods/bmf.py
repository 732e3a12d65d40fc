"""Bounded matrix factorisation: all predictions lie within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._runtime.checks import as_generator, check_number, check_rank, check_word
from nmd_lab._runtime.machine import one_thread
from nmd_lab.baselines import first_factors
from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.data.inputs import observe
from nmd_lab.data.observations import Observations
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Identity
from nmd_lab.result.decomposition import Decomposition

from ._iterations import BaselineRun
from ._observed_matrices import ObservedMatrices


@one_thread()
def bmf(
    X: Any,
    rank: int,
    *,
    low: float | None = None,
    high: float | None = None,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    init: Any = "random",
    max_iter: int = 200,
    tol: float = 1e-6,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
) -> Decomposition:
    """Minimise the squared error at the observed entries, subject to low <= WH <= high.

    The bounds hold at all entries, observed or not. Coordinate descent gives each entry of W, and
    then each entry of H, its best value within the bounds. This value is a weighted mean, clipped
    to the interval in which no entry of WH leaves the bounds. An iteration takes O(mn rank) time,
    but WH is never stored.

    Parameters
    ----------
    X, observed, dtype
        As for `nmd_lab.complete`.
    rank : int
        Number of components, from 1 to min(m, n).
    low, high : float, optional
        Bounds of the predictions, in the units of X. Default: the smallest and the largest
        observed value.
    init : "random", (W, H) or Decomposition, default "random"
        Starting factors, whose product must lie within the bounds. "random" is the mean of the
        observed entries plus a small random product.
    max_iter : int, default 200
        Largest number of iterations.
    tol : float, default 1e-6
        Largest relative change of the objective at which the run stops. 0 switches this rule off.
    time_limit : float, optional
        Largest time of the iterations, in seconds. Default: no limit.
    callback : callable, optional
        Function called with the `State` of each iteration. A true return value stops the run.
    random_state : int, Generator or None
        Seed of a random start.

    Returns
    -------
    Decomposition
        The fit. Its predictions lie within the bounds up to rounding. Rows and columns without
        observed entries keep their starting factors.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, for example a start outside the bounds.

    Notes
    -----
    R. Kannan, M. Ishteva and H. Park, "Bounded matrix factorization for recommender system", 2014.
    Coordinate descent may stop at a point that is not a local minimum, if the bounds block every
    change of a single entry.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.methods import bmf
    >>> X = np.array([[5.0, 1.0, np.nan], [4.0, 2.0, 5.0], [np.nan, 1.0, 5.0]])
    >>> model = bmf(X, 2, low=1, high=5, random_state=0).reconstruct().values
    >>> bool(model.min() > 1 - 1e-12 and model.max() < 5 + 1e-12)
    True
    """
    observations = observe(X, observed=observed, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    bounds = _checked_bounds(observations, low, high)
    run = BaselineRun(observations, Identity(), Frobenius(), max_iter=max_iter, tol=tol,
              time_limit=time_limit, callback=callback)  # fmt: skip
    if not isinstance(init, str):
        W, H = first_factors(observations, rank, init, random_state)
        _check_product(W, H, bounds)
    else:
        check_word("init", init, ["random"], ", a pair (W, H) or a fit")
        W, H = _random_factors(observations, rank, bounds, random_state)
    rows = ObservedMatrices.of(observations)
    columns = rows.T
    while run.record(W, H):
        _update_factor(rows, W, H, bounds)
        Ht = np.ascontiguousarray(H.T)
        _update_factor(columns, Ht, np.ascontiguousarray(W.T), bounds)
        H = np.ascontiguousarray(Ht.T)
    return run.result(method="bmf", zero_unobserved=False, init=init, random_state=random_state,
                      low=bounds[0], high=bounds[1])  # fmt: skip


def _checked_bounds(
    observations: Observations, low: float | None, high: float | None
) -> tuple[float, float]:
    """Return the bounds, by default the range of the observed values."""
    values, _ = observations.observed()
    low = check_number("low", float(values.min()) if low is None else low, -math.inf)
    high = check_number("high", float(values.max()) if high is None else high, -math.inf)
    if low > high:
        raise ValueError(f"low={low:g} is above high={high:g}: swap the bounds.")
    return low, high


def _random_factors(
    observations: Observations, rank: int, bounds: tuple[float, float], random_state: Any
) -> tuple[FloatArray, FloatArray]:
    """Return factors of the mean plus a small random product, well within the bounds.

    If a product is close to a bound, single entries can change only a little.
    """
    values, _ = observations.observed()
    margin = 0.1 * (bounds[1] - bounds[0])
    centre = float(np.clip(values.mean(), bounds[0] + margin, bounds[1] - margin))
    rng, dtype = as_generator(random_state), observations.dtype
    W, H = (rng.uniform(-1, 1, (size, rank)) for size in observations.shape)
    # The random product is at most half the margin, and less if the bounds are wide.
    noise = np.sqrt(0.5 * min(margin, float(values.std())) / rank)
    W, H = noise * W, noise * H
    W[:, 0], H[:, 0] = 1, centre
    return W.astype(dtype), np.ascontiguousarray(H.T, dtype=dtype)


def _check_product(W: FloatArray, H: FloatArray, bounds: tuple[float, float]) -> None:
    """Refuse factors whose product leaves the bounds by more than rounding."""
    slack = 100 * float(np.finfo(W.dtype).eps) * max(abs(bounds[0]), abs(bounds[1]))
    for row in W:
        model = row @ H
        for worst in (float(model.min()), float(model.max())):
            if not bounds[0] - slack <= worst <= bounds[1] + slack:
                raise ValueError(
                    f"init has the product {worst:g} outside [{bounds[0]:g}, {bounds[1]:g}]: give "
                    "factors whose products are all within, or init='random'."
                )


def _update_factor(
    entries: ObservedMatrices, W: FloatArray, H: FloatArray, bounds: tuple[float, float]
) -> None:
    """Give each entry of W its best value in turn, in place."""
    pattern = entries.values.indptr, entries.values.indices
    _update_rows(*pattern, entries.values.data, W, H, *bounds)


@njit(cache=True, nogil=True, error_model="numpy")
def _update_rows(
    indptr: IntArray,
    indices: IntArray,
    values: FloatArray,
    W: FloatArray,
    H: FloatArray,
    low: float,
    high: float,
) -> None:
    """Give each entry of W its best value in turn, in place."""
    for i in range(W.shape[0]):
        model = W[i] @ H
        for k in range(W.shape[1]):
            numerator, denominator = 0.0, 0.0
            for entry in range(indptr[i], indptr[i + 1]):
                j = indices[entry]
                numerator += H[k, j] * (values[entry] - model[j])
                denominator += H[k, j] * H[k, j]
            step = numerator / denominator if denominator > 0 else 0.0
            # The interval of steps that keep all products within the bounds; 0 is always allowed.
            least, most = -math.inf, math.inf
            for j in range(H.shape[1]):
                h = H[k, j]
                if h != 0.0:
                    down, up = (low - model[j]) / h, (high - model[j]) / h
                    least, most = max(least, min(down, up)), min(most, max(down, up))
            step = min(max(step, min(least, 0.0)), max(most, 0.0))
            W[i, k] += step
            for j in range(H.shape[1]):
                model[j] += step * H[k, j]
