"""Bounded matrix factorisation: every prediction within bounds, observed or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._checks import as_generator, check_number, check_rank, check_word
from nmd_lab._threads import one_thread
from nmd_lab.data.base import FloatArray, IntArray, Observations
from nmd_lab.data.observations import observe
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Identity
from nmd_lab.result.decomposition import Decomposition

from ._residuals import Entries
from ._run import Run
from ._start import first_factors


@one_thread()
def bmf(
    X: Any,
    rank: int,
    *,
    low: float | None = None,
    high: float | None = None,
    mask: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    init: Any = "random",
    max_iter: int = 200,
    tol: float = 1e-6,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
) -> Decomposition:
    """Minimise Σ over Ω of (X - WH)² / 2 with low <= (WH)_ij <= high at all entries.

    The entries of W, then those of H, are minimised over one at a time: the best value of one is a
    weighted mean, clipped to the interval in which no entry of WH leaves the bounds.  An iteration
    costs O(m n r) time, since the bounds hold everywhere, but WH is never stored.

    Parameters
    ----------
    X, mask, dtype
        As for `complete`.
    rank : int
        Number of components, from 1 to min(m, n).
    low, high : float, optional
        The bounds, in the units of X; by default the smallest and the largest observed value.
    init : "random", (W, H) or Decomposition, default "random"
        Starting factors, whose product must lie within the bounds.  "random" takes the mean
        of the observed entries and a little noise.
    max_iter : int, default 200
        Most iterations.
    tol : float, default 1e-6
        Ends the run when an iteration changes the objective by at most this share; 0 never does.
    time_limit : float, optional
        Seconds of iterating.
    callback : callable, optional
        Called with each `Iterate`; a true value ends the run.
    random_state : int, Generator or None
        Seed of a random start.

    Returns
    -------
    Decomposition
        Whose predictions lie within the bounds, to rounding; those of a row or column in which
        nothing is observed stay as they started.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense, for example a start outside the bounds.

    Notes
    -----
    R. Kannan, M. Ishteva and H. Park, "Bounded matrix factorization for recommender system", 2014.
    Descent by coordinates may stop at a point where the bounds block each of them alone.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.baselines import bmf
    >>> X = np.array([[5.0, 1.0, np.nan], [4.0, 2.0, 5.0], [np.nan, 1.0, 5.0]])
    >>> model = bmf(X, 2, low=1, high=5, random_state=0).reconstruct().values
    >>> bool(model.min() > 1 - 1e-12 and model.max() < 5 + 1e-12)
    True
    """
    observations = observe(X, mask=mask, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    bounds = _checked_bounds(observations, low, high)
    run = Run(observations, Identity(), Frobenius(), max_iter=max_iter, tol=tol,
              time_limit=time_limit, callback=callback)  # fmt: skip
    if not isinstance(init, str):
        W, H = first_factors(observations, rank, init, random_state)
        _check_product(W, H, bounds)
    else:
        check_word("init", init, ["random"], ", a pair (W, H) or a fit")
        W, H = _inner_start(observations, rank, bounds, random_state)
    by_rows = Entries.of(observations)
    by_columns = by_rows.T
    while run.goes_on(W, H):
        _improve(by_rows, W, H, bounds)
        columns = np.ascontiguousarray(H.T)
        _improve(by_columns, columns, np.ascontiguousarray(W.T), bounds)
        H = np.ascontiguousarray(columns.T)
    remembered = {"init": init, "random_state": random_state, "low": bounds[0], "high": bounds[1]}
    return run.result(method="bmf", blank_unobserved=False, **remembered)


def _checked_bounds(
    observations: Observations, low: float | None, high: float | None
) -> tuple[float, float]:
    """Return the bounds, from the data where they are not given."""
    values, _ = observations.observed()
    low = check_number("low", float(values.min()) if low is None else low, -math.inf)
    high = check_number("high", float(values.max()) if high is None else high, -math.inf)
    if low > high:
        raise ValueError(f"low={low:g} is above high={high:g}: swap the bounds.")
    return low, high


def _inner_start(
    observations: Observations, rank: int, bounds: tuple[float, float], random_state: Any
) -> tuple[FloatArray, FloatArray]:
    """Return factors of the mean and a little noise, well within the bounds.

    From a product that is near a bound somewhere, single entries cannot go far.
    """
    values, _ = observations.observed()
    margin = 0.1 * (bounds[1] - bounds[0])
    centre = float(np.clip(values.mean(), bounds[0] + margin, bounds[1] - margin))
    rng, dtype = as_generator(random_state), observations.values.dtype
    W, H = (rng.uniform(-1, 1, (size, rank)) for size in observations.shape)
    # The product of the noise is at most half the margin, and less where bounds are wide.
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


def _improve(entries: Entries, W: FloatArray, H: FloatArray, bounds: tuple[float, float]) -> None:
    """Minimise over the entries of W one after another, in place."""
    pattern = entries.values.indptr, entries.values.indices
    _improve_rows(*pattern, entries.values.data, W, H, *bounds)


@njit(cache=True, nogil=True, error_model="numpy")
def _improve_rows(
    indptr: IntArray,
    indices: IntArray,
    values: FloatArray,
    W: FloatArray,
    H: FloatArray,
    low: float,
    high: float,
) -> None:
    """Minimise over the entries of W one after another, in place.

    Parameters
    ----------
    indptr, indices, values : ndarray
        The observed entries, row after row.
    W, H : ndarray (m, rank), (rank, n)
        Factors whose product lies within the bounds.
    low, high : float
        The bounds.
    """
    for i in range(W.shape[0]):
        model = W[i] @ H
        for k in range(W.shape[1]):
            top, bottom = 0.0, 0.0
            for entry in range(indptr[i], indptr[i + 1]):
                j = indices[entry]
                top += H[k, j] * (values[entry] - model[j])
                bottom += H[k, j] * H[k, j]
            step = top / bottom if bottom > 0 else 0.0
            # How far the entry may go before some product meets a bound; 0 is always allowed.
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
