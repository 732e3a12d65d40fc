"""Coordinate descent for X ≈ max(0, WH)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from nmd_lab.model.nonlinearities import ReLU
from nmd_lab.result.decomposition import Decomposition

from ._coordinate_kernels import descend


def coordinate_descent(
    X: Any,
    rank: int,
    *,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    init: Any = "svd",
    max_iter: int = 200,
    tol: float = 1e-9,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
) -> Decomposition:
    """Minimise ‖X - max(0, WH)‖² over one entry of W or H at a time.

    As a function of one entry the objective is piecewise quadratic. Its global minimiser follows
    from the sorted breakpoints. The objective never increases.

    Parameters
    ----------
    X, observed, dtype
        As for `nmd_lab.complete`. X may have negative entries.
    rank : int
        Number of components, from 1 to min(m, n).
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors, or how to make them. "svd" is the truncated singular value decomposition
        of X with missing entries replaced by the mean.
    max_iter : int, default 200
        Largest number of iterations. One iteration updates all entries of W and H once, in
        O(mn rank log(mn)) time.
    tol : float, default 1e-9
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
        The last iterate, which has the lowest objective.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.

    Notes
    -----
    A. Awari, H. Nguyen, S. Wertz, A. Vandaele, N. Gillis, "Coordinate descent algorithm for
    nonlinear matrix decomposition with the ReLU function" (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.methods import coordinate_descent
    >>> angles = np.arange(12.0)
    >>> X = np.maximum(0, np.cos(angles[:, None] - angles))
    >>> coordinate_descent(X, 2).relative_error < 0.01
    True
    """
    return descend(
        ReLU(),
        X,
        rank,
        observed=observed,
        dtype=dtype,
        init=init,
        max_iter=max_iter,
        tol=tol,
        time_limit=time_limit,
        callback=callback,
        random_state=random_state,
        method="coordinate_descent",
    )
