"""LMaFit: low-rank matrix fitting by successive over-relaxation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse

from nmd_lab._runtime.checks import check_number, check_rank
from nmd_lab._runtime.machine import one_thread
from nmd_lab.baselines import first_factors
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import observe
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.problem.columns import with_bounds
from nmd_lab.result.decomposition import Decomposition

from ._iterations import BaselineRun
from ._observed_matrices import ObservedMatrices
from ._relaxation import Relaxation


@one_thread()
def lmafit(
    X: Any,
    rank: int,
    *,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    nonlinearity: str | Nonlinearity = "identity",
    init: Any = "svd",
    max_iter: int = 500,
    tol: float = 1e-9,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
    increment: float = 1.0,
) -> Decomposition:
    """Complete X by a matrix WH of fixed rank with LMaFit.

    The problem is to minimise ‖Z - WH‖² over W, H and the filled matrix Z, which equals X on the
    observed entries. An iteration updates W, H and Z in turn, with ω times the residual of the
    last iteration. The weight ω grows while the residual decreases slowly, and is set to 1 if it
    does not decrease. Z is stored as WH plus a sparse residual, so sparse data stay sparse.

    Parameters
    ----------
    X, observed, dtype
        As for `nmd_lab.complete`.
    rank : int
        Number of components, from 1 to min(m, n).
    nonlinearity : str or Nonlinearity, default "identity"
        Nonlinearity f of the predictions, for example ``nmd.MinMax(0, 1)`` to clip them. The steps
        fit WH without f. The history is that of f(WH).
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors, or how to make them. "svd" is the truncated singular value decomposition
        of X with missing entries replaced by the mean.
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
    increment : float, default 1
        Smallest increase of ω after a slow iteration, >= 0. 0 gives no over-relaxation.

    Returns
    -------
    Decomposition
        The fit. The columns of W are orthonormal.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.

    Notes
    -----
    Z. Wen, W. Yin and Y. Zhang, "Solving a low-rank factorization model for matrix completion by
    a nonlinear successive over-relaxation algorithm", 2012. Its estimation of the rank is left
    out.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.methods import lmafit
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[0, 2] = np.nan
    >>> lmafit(X, 1).predict(0, 2).round(3)
    array([4.])
    """
    increment = check_number("increment", increment, 0)
    observations = observe(X, observed=observed, dtype=dtype)
    f = with_bounds(nonlinearity, observations)
    rank = check_rank(rank, observations.shape)
    run = BaselineRun(
        observations,
        f,
        Frobenius(),
        max_iter=max_iter,
        tol=tol,
        time_limit=time_limit,
        callback=callback,
    )
    W, H = first_factors(observations, rank, init, random_state)
    entries = ObservedMatrices.of(observations)
    S, relaxation = entries.residual(W, H), Relaxation(increment)
    while run.record(W, H):
        before = _squared_norm(S)
        step = _step(entries, W, H, S, relaxation.omega)
        # Too much relaxation may stop all progress, which must not look like convergence.
        if relaxation.omega > 1 and _squared_norm(step[2]) >= (1 - tol) * before:
            relaxation.increment = 0.1 * max(relaxation.increment, relaxation.omega - 1)
            relaxation.omega = 1.0
            step = _step(entries, W, H, S, relaxation.omega)
        W, H, S = step
        if _squared_norm(S) > relaxation.slow**2 * before:
            relaxation.increase()
    return run.result(method="lmafit", init=init, random_state=random_state, increment=increment)


def _step(
    entries: ObservedMatrices, W: FloatArray, H: FloatArray, S: sparse.csr_array, omega: float
) -> tuple[FloatArray, FloatArray, sparse.csr_array]:
    """Return the next W, H and residual, with WH + ωS instead of Z."""
    Q, _ = np.linalg.qr(W @ (H @ H.T) + omega * (S @ H.T))
    H = (Q.T @ W) @ H + omega * (S.T @ Q).T
    return Q, H, entries.residual(Q, H)


def _squared_norm(S: sparse.csr_array) -> float:
    """Return the squared Frobenius norm of a residual."""
    return float(np.sum(np.square(S.data), dtype=np.float64))
