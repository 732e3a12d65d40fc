"""Weighted low-rank approximation by alternating least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._runtime.checks import check_number, check_rank
from nmd_lab._runtime.machine import one_thread
from nmd_lab.baselines import first_factors
from nmd_lab.data.inputs import observe
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.problem.columns import with_bounds
from nmd_lab.result.decomposition import Decomposition

from ._iterations import BaselineRun
from ._observed_matrices import ObservedMatrices, solve_rows


@one_thread()
def wlra(
    X: Any,
    rank: int,
    *,
    observed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    nonlinearity: str | Nonlinearity = "identity",
    init: Any = "svd",
    max_iter: int = 500,
    tol: float = 1e-9,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
    alpha: float = 0.0,
) -> Decomposition:
    """Minimise Σ w_ij (X - WH)_ij² / 2 + alpha/2 (‖W‖² + ‖H‖²) by alternating least squares.

    With H fixed, each row of W is the solution of a small weighted least-squares problem, and with
    W fixed each column of H. An iteration solves for W and then for H.

    Parameters
    ----------
    X, observed, weights, dtype
        As for `nmd_lab.complete`. Without weights all observed entries have the weight 1.
    rank : int
        Number of components, from 1 to min(m, n).
    nonlinearity : str or Nonlinearity, default "identity"
        Nonlinearity f of the predictions, for example ``nmd.MinMax(0, 1)`` to clip them. The steps
        fit WH without f. The history is that of f(WH).
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors, or how to make them. Only H is used. "svd" is the truncated singular
        value decomposition of X with missing entries replaced by the mean.
    max_iter : int, default 500
        Largest number of iterations.
    tol : float, default 1e-9
        Largest relative change of the objective at which the run stops. 0 switches this rule off.
    time_limit : float, optional
        Largest time of the iterations, in seconds. Default: no limit.
    callback : callable, optional
        Function called with the `State` of each iteration. A true return value stops the run.
    random_state : int, Generator or None
        Seed of a random start.
    alpha : float, default 0
        Weight of the ridge on W and H.

    Returns
    -------
    Decomposition
        The fit.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.

    Notes
    -----
    The problem is that of N. Srebro and T. Jaakkola, "Weighted low-rank approximations", 2003, and
    N. Gillis and F. Glineur, "Low-rank matrix approximation with weights or missing data is
    NP-hard", 2011. Alternating least squares is the usual local method for it.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.methods import wlra
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[0, 2] = 7.0
    >>> trust = np.where(X == 7, 1e-6, 1.0)
    >>> wlra(X, 1, weights=trust).predict(0, 2).round(3)
    array([4.])
    """
    observations = observe(X, observed=observed, weights=weights, dtype=dtype)
    f = with_bounds(nonlinearity, observations)
    rank = check_rank(rank, observations.shape)
    alpha = check_number("alpha", alpha, 0)
    run = BaselineRun(
        observations,
        f,
        Frobenius(),
        max_iter=max_iter,
        tol=tol,
        time_limit=time_limit,
        callback=callback,
        alpha=alpha,
    )
    W, H = first_factors(observations, rank, init, random_state)
    rows = ObservedMatrices.of(observations)
    columns = rows.T
    while run.record(W, H):
        W = solve_rows(rows, H.T, alpha)
        H = np.ascontiguousarray(solve_rows(columns, W, alpha).T)
    return run.result(method="wlra", init=init, random_state=random_state, alpha=alpha)
