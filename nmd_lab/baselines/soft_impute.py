"""Soft-impute: completion with a nuclear-norm penalty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._runtime.checks import check_number, check_rank
from nmd_lab._runtime.machine import one_thread
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import observe
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.bounds import with_bounds
from nmd_lab.solver.lowrank import singular_factors
from nmd_lab.solver.storage import CsrStorage

from ._iterations import BaselineRun, first_factors


@one_thread()
def soft_impute(
    X: Any,
    rank: int,
    *,
    shrinkage: float = 1.0,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    nonlinearity: str | Nonlinearity = "identity",
    init: Any = "svd",
    max_iter: int = 500,
    tol: float = 1e-9,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
) -> Decomposition:
    """Complete X by a low-rank matrix with a penalty on its nuclear norm.

    The objective is Σ (X - WH)² / 2 over the observed entries plus λ times the nuclear norm of WH.
    This norm is the minimum of (‖W‖² + ‖H‖²) / 2 over all factors of WH. An iteration fills the
    missing entries with WH and takes a ridge regression for W, and then the same for H. The filled
    matrix is stored as WH plus a sparse residual, so sparse data stay sparse.

    If the solution has a smaller rank than `rank`, it solves the convex problem without a bound on
    the rank.

    Parameters
    ----------
    X, observed, dtype
        As for `nmd_lab.complete`.
    rank : int
        Largest rank of the model, from 1 to min(m, n).
    shrinkage : float, default 1
        Penalty λ, in the units of the singular values of X, which shrink by about λ.
    nonlinearity : str or Nonlinearity, default "identity"
        Nonlinearity f of the predictions, for example ``nmd.MinMax(0, 1)`` to clip them. The steps
        fit WH without f. The history is that of f(WH), and
        its objective includes the penalty.
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
        Function called with each `Iterate`. A true return value stops the run.
    random_state : int, Generator or None
        Seed of a random start.

    Returns
    -------
    Decomposition
        The fit with W = U √D and H = √D Vᵀ, in decreasing order of the singular values D of WH.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.

    Notes
    -----
    T. Hastie, R. Mazumder, J. D. Lee and R. Zadeh, "Matrix completion and low-rank SVD via fast
    alternating least squares", 2015 (softImpute-ALS).

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(300)
    >>> train, test = nmd.split_observed(digits, 0.3, random_state=0)
    >>> fit = nmd.baselines.soft_impute(train, 16, shrinkage=2.0)
    >>> bool(nmd.metrics.rmse(test.values, fit.predict(test).values) < 0.2)
    True
    """
    observations = observe(X, observed=observed, dtype=dtype)
    f = with_bounds(nonlinearity, observations)
    rank = check_rank(rank, observations.shape)
    shrinkage = check_number("shrinkage", shrinkage, 0)
    run = BaselineRun(
        observations,
        f,
        Frobenius(),
        max_iter=max_iter,
        tol=tol,
        time_limit=time_limit,
        callback=callback,
        alpha=shrinkage,
    )
    stored = observations.as_sparse()
    storage = CsrStorage(stored.shape, stored.indptr, stored.indices)

    def residual(W: FloatArray, H: FloatArray) -> Any:
        model = storage.all_products(np.ascontiguousarray(W), H)
        return stored.to_csr(stored.values - model)

    W, H, _ = singular_factors(*first_factors(observations, rank, init, random_state))
    while run.record(W, H):
        W = _ridge(W @ (H @ H.T) + residual(W, H) @ H.T, H, shrinkage)
        S = residual(W, H)
        H = _ridge(H.T @ (W.T @ W) + S.T @ W, W.T, shrinkage).T
        W, H, _ = singular_factors(W, H)
    return run.result(
        method="soft_impute", init=init, random_state=random_state, shrinkage=shrinkage
    )


def _ridge(products: FloatArray, factor: FloatArray, shrinkage: float) -> FloatArray:
    """Return the solutions of ridge regressions on a factor (rank, n), one for each row."""
    gram = factor @ factor.T
    rounding = np.finfo(gram.dtype).eps * max(float(np.trace(gram)), np.finfo(gram.dtype).tiny)
    gram[np.diag_indices_from(gram)] += shrinkage + rounding
    return np.asarray(np.linalg.solve(gram, products.T).T)
