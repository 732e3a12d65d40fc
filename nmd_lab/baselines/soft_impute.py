"""Soft-impute: completion with a nuclear-norm penalty, by alternating ridge regressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._checks import check_number, check_rank
from nmd_lab._threads import one_thread
from nmd_lab.data.base import FloatArray
from nmd_lab.data.observations import observe
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Nonlinearity, as_nonlinearity
from nmd_lab.result.decomposition import Decomposition

from ._residuals import Entries
from ._run import Run
from ._start import first_factors


@one_thread()
def soft_impute(
    X: Any,
    rank: int,
    *,
    shrinkage: float = 1.0,
    mask: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    nonlinearity: str | Nonlinearity = "identity",
    init: Any = "svd",
    max_iter: int = 500,
    tol: float = 1e-9,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
) -> Decomposition:
    """Minimise Σ over Ω of (X - M)² / 2 + λ ‖M‖_* over matrices M = WH of at most the rank.

    The nuclear norm of M is the least (‖W‖² + ‖H‖²) / 2 over all W and H that make M.  An iteration
    fills the holes of X with WH, takes a ridge regression for W, fills again, takes one for H, and
    balances the two.  The filled matrix is kept as WH plus a residual on Ω, so that sparse data
    stay sparse.  If the solution has a smaller rank than was allowed, it is that of the convex
    problem without a bound on the rank.

    Parameters
    ----------
    X, mask, dtype
        As for `complete`.
    rank : int
        Largest number of components, from 1 to min(m, n).
    shrinkage : float, default 1
        λ, in the units of the singular values of X: they are shrunk by about so much.
    nonlinearity : str or Nonlinearity, default "identity"
        Applied to the predictions of the linear fit, whose steps do not see it; for example
        ``nmd.MinMax(0, 1)`` clips.  The history is that of f(WH), with the penalty in the
        objective.
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors; "svd" are those of X with its holes filled by the mean.
    max_iter : int, default 500
        Most iterations.
    tol : float, default 1e-9
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
        W = U √D and H = √D Vᵀ, components from the largest singular value of WH down.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense.

    Notes
    -----
    T. Hastie, R. Mazumder, J. D. Lee and R. Zadeh, "Matrix completion and low-rank SVD via fast
    alternating least squares", 2015 (softImpute-ALS).

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.baselines import soft_impute
    >>> fit = soft_impute(np.diag([5.0, 3.0, 0.5]), 3, shrinkage=1)
    >>> np.linalg.svd(fit.reconstruct().values, compute_uv=False).round(3)
    array([4., 2., 0.])
    """
    f = as_nonlinearity(nonlinearity)
    observations = observe(X, mask=mask, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    shrinkage = check_number("shrinkage", shrinkage, 0)
    run = Run(observations, f, Frobenius(), max_iter=max_iter, tol=tol, time_limit=time_limit,
              callback=callback, alpha=shrinkage)  # fmt: skip
    entries = Entries.of(observations)
    W, H = balanced(*first_factors(observations, rank, init, random_state))
    while run.goes_on(W, H):
        W = _ridge(W @ (H @ H.T) + entries.residual(W, H) @ H.T, H, shrinkage)
        S = entries.residual(W, H)
        H = _ridge(H.T @ (W.T @ W) + S.T @ W, W.T, shrinkage).T
        W, H = balanced(W, H)
    remembered = {"init": init, "random_state": random_state, "shrinkage": shrinkage}
    return run.result(method="soft_impute", **remembered)


def _ridge(products: FloatArray, factor: FloatArray, shrinkage: float) -> FloatArray:
    """Return the rows whose ridge regression on a factor (rank, n) has these right-hand sides."""
    gram = factor @ factor.T
    rounding = np.finfo(gram.dtype).eps * max(float(np.trace(gram)), np.finfo(gram.dtype).tiny)
    gram[np.diag_indices_from(gram)] += shrinkage + rounding
    return np.asarray(np.linalg.solve(gram, products.T).T)


def balanced(W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return U √D and √D Vᵀ of the singular value decomposition of WH, never forming WH.

    Among all factors of WH these have the smallest ‖W‖² + ‖H‖².
    """
    Q, R = np.linalg.qr(W)
    P, L = np.linalg.qr(H.T)
    U, singular, Vt = np.linalg.svd(R @ L.T)
    root = np.sqrt(singular)
    return Q @ (U * root), np.ascontiguousarray((root[:, None] * Vt) @ P.T)
