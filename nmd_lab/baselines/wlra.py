"""Weighted low-rank approximation by alternating least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._checks import check_number, check_rank
from nmd_lab._threads import one_thread
from nmd_lab.data.observations import observe
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Nonlinearity, as_nonlinearity
from nmd_lab.result.decomposition import Decomposition

from ._residuals import Entries, solve_rows
from ._run import Run
from ._start import first_factors


@one_thread()
def wlra(
    X: Any,
    rank: int,
    *,
    mask: ArrayLike | None = None,
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
    """Minimise Σ w_ij (X - WH)_ij² / 2 + alpha/2 (‖W‖² + ‖H‖²) over W and H in turn.

    With H fixed each row of W has a small weighted least-squares problem of its own, which is
    solved exactly; then each column of H.  An iteration is one turn of both.

    Parameters
    ----------
    X, mask, weights, dtype
        As for `complete`; without weights an observed entry counts once.
    rank : int
        Number of components, from 1 to min(m, n).
    nonlinearity : str or Nonlinearity, default "identity"
        Applied to the predictions of the linear fit, whose steps do not see it; for example
        ``nmd.MinMax(0, 1)`` clips.  The history is that of f(WH).
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors, of which H alone counts; "svd" are those of X with its holes filled by
        the mean.
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
    alpha : float, default 0
        Ridge.

    Returns
    -------
    Decomposition
        The fit.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense.

    Notes
    -----
    The problem is that of N. Srebro and T. Jaakkola, "Weighted low-rank approximations", 2003, and
    N. Gillis and F. Glineur, "Low-rank matrix approximation with weights or missing data is
    NP-hard", 2011; alternating least squares is its usual local method.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.baselines import wlra
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[0, 2] = 7.0
    >>> trust = np.where(X == 7, 1e-6, 1.0)
    >>> wlra(X, 1, weights=trust).predict(0, 2).round(3)
    array([4.])
    """
    f = as_nonlinearity(nonlinearity)
    observations = observe(X, mask=mask, weights=weights, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    alpha = check_number("alpha", alpha, 0)
    run = Run(observations, f, Frobenius(), max_iter=max_iter, tol=tol, time_limit=time_limit,
              callback=callback, alpha=alpha)  # fmt: skip
    W, H = first_factors(observations, rank, init, random_state)
    by_rows = Entries.of(observations)
    by_columns = by_rows.T
    while run.goes_on(W, H):
        W = solve_rows(by_rows, H.T, alpha)
        H = np.ascontiguousarray(solve_rows(by_columns, W, alpha).T)
    remembered = {"init": init, "random_state": random_state, "alpha": alpha}
    return run.result(method="wlra", **remembered)
