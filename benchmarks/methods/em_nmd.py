"""EM for ReLU-NMD: expectation and maximisation for a censored Gaussian model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.special import erfcx

from nmd_lab._runtime.checks import check_share
from nmd_lab._runtime.machine import one_thread
from nmd_lab.data.entries import FloatArray
from nmd_lab.result.decomposition import Decomposition

from ._latent import LatentProblem, least_squares_step


@one_thread()
def em_nmd(
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
    momentum: float = 0.9,
) -> Decomposition:
    """Decompose X ≈ max(0, WH) by expectation maximisation (EM).

    The model is X = max(0, Z), where Z is normal with mean Θ = WH and variance σ². The E-step
    takes the conditional expectation of Z, that of a truncated normal variable where X = 0. The
    M-step updates W and H by one least-squares step, and σ² by the expected mean square of Z - WH.

    Parameters
    ----------
    X, rank, observed, dtype, init, max_iter, tol, time_limit, callback, random_state
        As for `anmd`.
    momentum : float, default 0.9
        Extrapolation of Θ in the direction of its last change, from 0 (plain EM) to 1.

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
    L. K. Saul, "A nonlinear matrix decomposition for mining the zeros of sparse data" (2022). The
    M-step there is a truncated SVD. One least-squares step increases the likelihood too, at a tenth
    of the cost.

    Examples
    --------
    X has full rank, but it is the ReLU of a matrix of rank 2.

    >>> import numpy as np
    >>> from benchmarks.methods import em_nmd
    >>> rng = np.random.default_rng(0)
    >>> X = np.maximum(rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)), 0)
    >>> em_nmd(X, 2).relative_error < 1e-3
    True
    """
    check_share("momentum", momentum, one=True)
    problem = LatentProblem(X, rank, observed, dtype, init, random_state)
    W, H = problem.W, problem.H
    run = problem.run(max_iter=max_iter, tol=tol, time_limit=time_limit, callback=callback)
    WH = theta = W @ H
    sigma = _root_mean_square(problem.closest(theta) - theta) or 1.0
    rounding = _root_mean_square(problem.observations.values) * float(np.finfo(W.dtype).eps)
    while run.record(W, H):
        Z, variance = posterior(problem, theta, sigma)
        W, H = least_squares_step(Z, H)
        previous, WH = WH, W @ H
        theta = WH + momentum * (WH - previous)
        noise = float(np.sqrt(np.mean(np.square(Z - WH) + variance)))
        sigma = max(noise, rounding, float(np.finfo(W.dtype).tiny))
    return run.result(method="em_nmd", init=init, random_state=random_state, momentum=momentum)


def posterior(
    problem: LatentProblem, theta: FloatArray, sigma: float
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of Z ~ N(Θ, σ²), given the observed X = max(0, Z).

    Where X = 0 they are Θ - σh and σ²(1 + ah - h²), with a = Θ/σ and h = φ(a) / Φ(-a).
    """
    a = theta / theta.dtype.type(sigma)
    hazard = np.sqrt(2 / np.pi, dtype=a.dtype) / erfcx(a / np.sqrt(2, dtype=a.dtype))
    mean = theta - theta.dtype.type(sigma) * hazard
    relative_variance = np.clip(1 + (a - hazard) * hazard, 0, 1)  # rounding matters for large a
    missing = np.isinf(problem.ceiling)
    np.copyto(mean, theta, where=missing)
    np.copyto(relative_variance, 1, where=missing)
    np.copyto(mean, problem.observations.values, where=problem.positive)
    np.copyto(relative_variance, 0, where=problem.positive)
    return mean, relative_variance * theta.dtype.type(sigma * sigma)


def _root_mean_square(A: FloatArray) -> float:
    """Return the root mean square of the entries."""
    return float(np.sqrt(np.mean(np.square(A))))
