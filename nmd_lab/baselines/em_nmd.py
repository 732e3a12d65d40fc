"""EM for ReLU-NMD: the zeros of X are noisy low-rank values that fell below zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.special import erfcx

from nmd_lab._checks import check_number
from nmd_lab._threads import one_thread
from nmd_lab.data.base import FloatArray
from nmd_lab.result.decomposition import Decomposition

from ._latent import LatentProblem, least_squares_step


@one_thread()
def em_nmd(
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
) -> Decomposition:
    """Decompose X ≈ max(0, WH) by expectation and maximisation.

    The model is X = max(0, Z) with Z normal around Θ = WH, all with one variance σ².  Given Θ
    and σ, the expected Z is that of a normal variable cut off at 0 where X = 0; given that, W and H
    are taken one least-squares step further (a whole truncated SVD costs ten times as much, and
    the likelihood rises either way) and σ² is the expected mean square of Z - WH.

    Parameters
    ----------
    X, rank, mask, dtype, init, max_iter, tol, time_limit, callback, random_state
        As for `anmd`.
    momentum : float, default 0.9
        How far Θ is moved on in the direction in which it changed, from 0 (plain EM) to 1.

    Returns
    -------
    Decomposition
        The iterate with the smallest ‖X - max(0, WH)‖.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense, for example if X has a negative entry.

    Notes
    -----
    L. K. Saul, "A nonlinear matrix decomposition for mining the zeros of sparse data" (2022).

    Examples
    --------
    Two components behind a ReLU explain what takes more without it.

    >>> import numpy as np
    >>> from nmd_lab.baselines import em_nmd
    >>> rng = np.random.default_rng(0)
    >>> X = np.maximum(rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)), 0)
    >>> em_nmd(X, 2).relative_error < 1e-3
    True
    """
    check_number("momentum", momentum, 0, 1)
    problem = LatentProblem(X, rank, mask, dtype, init, random_state)
    W, H = problem.W, problem.H
    run = problem.run(max_iter=max_iter, tol=tol, time_limit=time_limit, callback=callback)
    product = theta = W @ H
    sigma = _root_mean_square(problem.closest(theta) - theta) or 1.0
    smallest = _root_mean_square(problem.observations.values) * float(np.finfo(W.dtype).eps)
    while run.goes_on(W, H):
        Z, variance = posterior(problem, theta, sigma)
        W, H = least_squares_step(Z, H)
        last, product = product, W @ H
        theta = product + momentum * (product - last)
        noise = float(np.sqrt(np.mean(np.square(Z - product) + variance)))
        sigma = max(noise, smallest, float(np.finfo(W.dtype).tiny))
    return run.result(method="em_nmd", init=init, random_state=random_state, momentum=momentum)


def posterior(
    problem: LatentProblem, theta: FloatArray, sigma: float
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of every Z ~ N(Θ, σ²), given the X = max(0, Z) that is observed.

    Where X = 0, with a = Θ/σ and the ratio h = φ(a) / Φ(-a), they are Θ - σh and
    σ²(1 + ah - h²).
    """
    a = theta / theta.dtype.type(sigma)
    hazard = np.sqrt(2 / np.pi, dtype=a.dtype) / erfcx(a / np.sqrt(2, dtype=a.dtype))
    mean = theta - theta.dtype.type(sigma) * hazard
    share = np.clip(1 + (a - hazard) * hazard, 0, 1)  # rounding exceeds that for large a
    missing = np.isinf(problem.ceiling)
    np.copyto(mean, theta, where=missing)
    np.copyto(share, 1, where=missing)
    np.copyto(mean, problem.observations.values, where=problem.positive)
    np.copyto(share, 0, where=problem.positive)
    return mean, share * theta.dtype.type(sigma * sigma)


def _root_mean_square(A: FloatArray) -> float:
    """Return √(mean of A²)."""
    return float(np.sqrt(np.mean(np.square(A))))
