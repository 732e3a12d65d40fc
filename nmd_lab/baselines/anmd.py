"""A-NMD: truncated SVDs of an extrapolated latent matrix, with a momentum that adapts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._checks import check_number
from nmd_lab._threads import one_thread
from nmd_lab.result.decomposition import Decomposition

from ._latent import LatentProblem, truncated


@one_thread()
def anmd(
    X: Any,
    rank: int,
    *,
    mask: ArrayLike | None = None,
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

    Z, the closest matrix to Θ with max(0, Z) = X, and Θ, the closest matrix of the rank to Z,
    are found in turn, and both are moved on in the direction in which they changed.  The
    momentum grows as long as Z and Θ come closer to one another; a step after which they do not
    is taken back and repeated with less.

    Parameters
    ----------
    X, mask, dtype
        As for `decompose`; X >= 0.
    rank : int
        Number of components, from 1 to min(m, n).
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors.
    max_iter : int, default 1000
        Most iterations.
    tol : float, default 1e-9
        Ends the iteration when the objective changes by at most this share of it; 0 never does.
    time_limit : float, optional
        Seconds.
    callback : callable, optional
        Called with each `Iterate`; a true value ends the iteration.
    random_state : int, Generator or None
        Seed of a random start.
    momentum : float, default 0.9
        The first momentum, from 0 to 1.
    growth, cap_growth : float, default 1.05 and 1.1
        By what the momentum, and the most that it may be, are multiplied after a good step; at
        least 1.
    shrinkage : float, default 0.4
        By what the momentum is multiplied after a bad one, from 0 to 1.

    Returns
    -------
    Decomposition
        The iterate with the smallest ‖X - max(0, WH)‖; the history holds the error of max(0, WH),
        not that of Z ≈ WH.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense, for example if X has a negative entry.

    Notes
    -----
    G. Seraghiti, A. Awari, A. Vandaele, M. Porcelli, N. Gillis, "Accelerated algorithms for
    nonlinear matrix decomposition with the ReLU function" (2023).

    Examples
    --------
    Cosines of differences have rank 2, which the ReLU hides from a truncated SVD.

    >>> import numpy as np
    >>> from nmd_lab.baselines import anmd
    >>> angles = np.arange(12.0)
    >>> X = np.maximum(0, np.cos(angles[:, None] - angles))
    >>> anmd(X, 2).relative_error < 1e-6
    True
    """
    check_number("momentum", momentum, 0, 1)
    check_number("growth", growth, 1, 10)
    check_number("cap_growth", cap_growth, 1, 10)
    check_number("shrinkage", shrinkage, 0, 1)
    problem = LatentProblem(X, rank, mask, dtype, init, random_state)
    W, H = problem.W, problem.H
    run = problem.run(max_iter=max_iter, tol=tol, time_limit=time_limit, callback=callback)
    beta, cap, lowest = momentum, 1.0, math.inf
    theta = W @ H
    Z = problem.closest(theta)
    while run.goes_on(W, H):
        new_Z = problem.closest(theta)
        new_Z += beta * (new_Z - Z)
        W, H = truncated(new_Z, rank)
        new_theta = W @ H
        new_theta += beta * (new_theta - theta)
        error = float(np.linalg.norm(problem.closest(new_theta) - new_theta))
        if error < lowest:
            Z, theta, lowest = new_Z, new_theta, error
            beta, cap = min(cap, growth * beta), min(1.0, cap_growth * cap)
        else:
            beta, cap = shrinkage * beta, beta
    return run.result(method="anmd", init=init, random_state=random_state, momentum=momentum,
                      growth=growth, cap_growth=cap_growth, shrinkage=shrinkage)  # fmt: skip
