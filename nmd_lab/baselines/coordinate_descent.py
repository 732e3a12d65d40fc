"""Coordinate descent for ReLU-NMD: the direct problem, one entry of a factor at a time."""

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
    mask: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    init: Any = "svd",
    max_iter: int = 200,
    tol: float = 1e-9,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
) -> Decomposition:
    """Decompose X ≈ max(0, WH), minimising ‖X - max(0, WH)‖² over one entry after another.

    As a function of one entry of W or H the objective is quadratic between breakpoints; sorted,
    they give its global minimiser.  The objective never rises.

    Parameters
    ----------
    X, mask, dtype
        As for `complete`; X may be negative somewhere.
    rank : int
        Number of components, from 1 to min(m, n).
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors.
    max_iter : int, default 200
        Most iterations; each changes all entries of W and H once and takes O(mn rank log(mn)).
    tol : float, default 1e-9
        Ends the iteration when the objective changes by at most this share of it; 0 never does.
    time_limit : float, optional
        Seconds.
    callback : callable, optional
        Called with each `Iterate`; a true value ends the iteration.
    random_state : int, Generator or None
        Seed of a random start.

    Returns
    -------
    Decomposition
        The last iterate, which is the best.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense.

    Notes
    -----
    A. Awari, H. Nguyen, S. Wertz, A. Vandaele, N. Gillis, "Coordinate descent algorithm for
    nonlinear matrix decomposition with the ReLU function" (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.baselines import coordinate_descent
    >>> angles = np.arange(12.0)
    >>> X = np.maximum(0, np.cos(angles[:, None] - angles))
    >>> coordinate_descent(X, 2).relative_error < 0.01
    True
    """
    return descend(
        ReLU(),
        X,
        rank,
        mask=mask,
        dtype=dtype,
        init=init,
        max_iter=max_iter,
        tol=tol,
        time_limit=time_limit,
        callback=callback,
        random_state=random_state,
        method="coordinate_descent",
    )
