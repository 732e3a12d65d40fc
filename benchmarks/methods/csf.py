"""Component-wise square factorisation by coordinate descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from nmd_lab.model.nonlinearities import Square
from nmd_lab.result.decomposition import Decomposition

from ._coordinate_kernels import descend


def csf(
    X: Any,
    rank: int,
    *,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    init: Any = "svd",
    max_iter: int = 500,
    tol: float = 1e-9,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
) -> Decomposition:
    """Minimise ‖X - (WH)∘(WH)‖² over one entry of W or H at a time.

    As a function of one entry the objective is a quartic polynomial. Its global minimiser is a
    root of a cubic. The objective never increases.

    Parameters
    ----------
    X, rank, observed, dtype, tol, time_limit, callback, random_state
        As for `coordinate_descent`.
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors, or how to make them. "svd" is the truncated singular value decomposition
        of √X, a nonnegative matrix. If WH has both signs, "random" with several seeds works
        better.
    max_iter : int, default 500
        Largest number of iterations. One iteration updates all entries of W and H once, in
        O(mn rank) time.

    Returns
    -------
    Decomposition
        The last iterate, which has the lowest objective. Its nonlinearity is Square.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.

    Notes
    -----
    Lefebvre, Vandaele and Gillis, "Component-wise squared factorization" (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.methods import csf
    >>> root = np.outer([1.0, 2.0, 3.0], [1.0, 0.5, 2.0])
    >>> csf(root**2, 1).relative_error < 1e-6
    True
    """
    return descend(
        Square(),
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
        method="csf",
    )
