"""A-NMD: truncated SVDs of a latent matrix, with adaptive momentum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._runtime.checks import check_number, check_share
from nmd_lab._runtime.machine import one_thread
from nmd_lab.result.decomposition import Decomposition

from ._latent import LatentProblem, best_low_rank


@one_thread()
def anmd(
    X: Any,
    rank: int,
    *,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    init: Any = "svd",
    max_iter: int = 1000,
    tol: float = 1e-9,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
    momentum: float = 0.9,
    growth: float = 1.05,
    cap_growth: float = 1.1,
    shrinkage: float = 0.4,
) -> Decomposition:
    """Decompose X ≈ max(0, WH) by aggressive accelerated NMD (A-NMD).

    An iteration takes the closest matrix Z to Θ with max(0, Z) = X, and then the closest matrix
    Θ = WH of the given rank to Z. Both are extrapolated with a momentum. The momentum grows while
    the distance of Z and Θ decreases. A step that does not decrease it is rejected, and the
    momentum shrinks.

    Parameters
    ----------
    X, observed, dtype
        As for `nmd_lab.decompose`. X must be >= 0.
    rank : int
        Number of components, from 1 to min(m, n).
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors, or how to make them. "svd" is the truncated singular value decomposition
        of X with missing entries replaced by the mean.
    max_iter : int, default 1000
        Largest number of iterations.
    tol : float, default 1e-9
        Largest relative change of the objective at which the run stops. 0 switches this rule off.
    time_limit : float, optional
        Largest time of the iterations, in seconds. Default: no limit.
    callback : callable, optional
        Function called with the `State` of each iteration. A true return value stops the run.
    random_state : int, Generator or None
        Seed of a random start.
    momentum : float, default 0.9
        Momentum of the first iteration, from 0 to 1.
    growth, cap_growth : float, default 1.05 and 1.1
        Factors >= 1 that multiply the momentum and its upper bound after an accepted step.
    shrinkage : float, default 0.4
        Factor from 0 to 1 that multiplies the momentum after a rejected step.

    Returns
    -------
    Decomposition
        The iterate of smallest ‖X - max(0, WH)‖. The history holds this error, not that of
        Z ≈ WH.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, for example if X has a negative entry.

    Notes
    -----
    G. Seraghiti, A. Awari, A. Vandaele, M. Porcelli, N. Gillis, "Accelerated algorithms for
    nonlinear matrix decomposition with the ReLU function" (2023).

    Examples
    --------
    The matrix of cosines has rank 2. A truncated SVD does not find it behind the ReLU.

    >>> import numpy as np
    >>> from benchmarks.methods import anmd
    >>> angles = np.arange(12.0)
    >>> X = np.maximum(0, np.cos(angles[:, None] - angles))
    >>> anmd(X, 2).relative_error < 1e-6
    True
    """
    check_share("momentum", momentum, one=True)
    check_number("growth", growth, 1)
    check_number("cap_growth", cap_growth, 1)
    check_share("shrinkage", shrinkage, one=True)
    problem = LatentProblem(X, rank, observed, dtype, init, random_state)
    W, H = problem.W, problem.H
    run = problem.run(max_iter=max_iter, tol=tol, time_limit=time_limit, callback=callback)
    beta, largest_beta, smallest_error = momentum, 1.0, math.inf
    theta = W @ H
    Z = problem.closest(theta)
    while run.record(W, H):
        new_Z = problem.closest(theta)
        new_Z += beta * (new_Z - Z)
        W, H = best_low_rank(new_Z, rank)
        new_theta = W @ H
        new_theta += beta * (new_theta - theta)
        error = float(np.linalg.norm(problem.closest(new_theta) - new_theta))
        if error < smallest_error:
            Z, theta, smallest_error = new_Z, new_theta, error
            beta = min(largest_beta, growth * beta)
            largest_beta = min(1.0, cap_growth * largest_beta)
        else:
            beta, largest_beta = shrinkage * beta, beta
    return run.result(method="anmd", init=init, random_state=random_state, momentum=momentum,
                      growth=growth, cap_growth=cap_growth, shrinkage=shrinkage)  # fmt: skip
