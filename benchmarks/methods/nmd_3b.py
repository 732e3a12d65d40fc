"""3B-NMD: three-block coordinate descent with a fixed momentum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._runtime.checks import check_share
from nmd_lab._runtime.machine import one_thread
from nmd_lab.result.decomposition import Decomposition

from ._latent import LatentProblem, least_squares_step


@one_thread()
def nmd_3b(
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
    momentum: float = 0.7,
) -> Decomposition:
    """Decompose X ≈ max(0, WH) by three-block NMD.

    An iteration takes the closest matrix Z to Θ with max(0, Z) = X, then W and then H by least
    squares. Z and Θ = WH are both extrapolated in the direction of their last change.

    Parameters
    ----------
    X, rank, observed, dtype, init, max_iter, tol, time_limit, callback, random_state
        As for `anmd`.
    momentum : float, default 0.7
        Extrapolation of Z and Θ, from 0 (plain alternating minimisation) to 1.

    Returns
    -------
    Decomposition
        The iterate of smallest ‖X - max(0, WH)‖.

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
    >>> import numpy as np
    >>> from benchmarks.methods import nmd_3b
    >>> angles = np.arange(12.0)
    >>> X = np.maximum(0, np.cos(angles[:, None] - angles))
    >>> nmd_3b(X, 2).relative_error < 1e-6
    True
    """
    check_share("momentum", momentum, one=True)
    problem = LatentProblem(X, rank, observed, dtype, init, random_state)
    W, H = problem.W, problem.H
    run = problem.run(max_iter=max_iter, tol=tol, time_limit=time_limit, callback=callback)
    theta = W @ H
    Z = problem.closest(theta)
    while run.record(W, H):
        new_Z = problem.closest(theta)
        Z = new_Z + momentum * (new_Z - Z)
        W, H = least_squares_step(Z, H)
        WH = W @ H
        theta = WH + momentum * (WH - theta)
    return run.result(method="nmd_3b", init=init, random_state=random_state, momentum=momentum)
