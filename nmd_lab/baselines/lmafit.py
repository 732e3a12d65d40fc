"""LMaFit: low-rank matrix fitting by successive over-relaxation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse

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

SLOW = 0.7
"""A step that leaves more than this share of the residual asks for more relaxation."""


@one_thread()
def lmafit(
    X: Any,
    rank: int,
    *,
    mask: ArrayLike | None = None,
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
    """Complete X by WH of a fixed rank, by LMaFit.

    The problem is to minimise ‖Z - WH‖² over W, H and the filled matrix Z, which is X on Ω.  An
    iteration moves W, H and Z in turn, from ω times the residual S on Ω instead of S itself; ω
    grows as long as the residual shrinks slowly, and falls back to 1 when it does not shrink.
    Z is kept as WH + S, so that sparse data stay sparse.

    Parameters
    ----------
    X, mask, dtype
        As for `complete`.
    rank : int
        Number of components, from 1 to min(m, n).
    nonlinearity : str or Nonlinearity, default "identity"
        Applied to the predictions of the linear fit, whose steps do not see it; for example
        ``nmd.MinMax(0, 1)`` clips.  The history is that of f(WH).
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
    increment : float, default 1
        By how much ω grows at first, >= 0; with 0 there is no over-relaxation.

    Returns
    -------
    Decomposition
        With orthonormal columns in W.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense.

    Notes
    -----
    Z. Wen, W. Yin and Y. Zhang, "Solving a low-rank factorization model for matrix completion by
    a nonlinear successive over-relaxation algorithm", 2012; without its estimation of the rank.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.baselines import lmafit
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[0, 2] = np.nan
    >>> lmafit(X, 1).predict(0, 2).round(3)
    array([4.])
    """
    f = as_nonlinearity(nonlinearity)
    increment = check_number("increment", increment, 0)
    observations = observe(X, mask=mask, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    run = Run(observations, f, Frobenius(), max_iter=max_iter, tol=tol, time_limit=time_limit,
              callback=callback)  # fmt: skip
    W, H = first_factors(observations, rank, init, random_state)
    entries = Entries.of(observations)
    S, omega, growth = entries.residual(W, H), 1.0, increment
    while run.goes_on(W, H):
        before = _square(S)
        moved = _step(entries, W, H, S, omega)
        # Too much relaxation may end in standing still, which is not convergence.
        if omega > 1 and _square(moved[2]) >= (1 - tol) * before:
            omega, growth = 1.0, 0.1 * max(growth, omega - 1)
            moved = _step(entries, W, H, S, omega)
        W, H, S = moved
        if _square(S) > SLOW**2 * before:
            growth = max(growth, 0.25 * (omega - 1))
            omega += growth
    remembered = {"init": init, "random_state": random_state, "increment": increment}
    return run.result(method="lmafit", **remembered)


def _step(
    entries: Entries, W: FloatArray, H: FloatArray, S: sparse.csr_array, omega: float
) -> tuple[FloatArray, FloatArray, sparse.csr_array]:
    """Return the next W, H and residual, from WH + ωS in the place of Z."""
    Q, _ = np.linalg.qr(W @ (H @ H.T) + omega * (S @ H.T))
    H = (Q.T @ W) @ H + omega * (S.T @ Q).T
    return Q, H, entries.residual(Q, H)


def _square(S: sparse.csr_array) -> float:
    """Return the squared Frobenius norm of a residual."""
    return float(np.sum(np.square(S.data), dtype=np.float64))
