"""Our own fits as the comparisons call them: with the paper's settings, and by default."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import nmd_lab as nmd

Array = NDArray[np.float64]

MODELS = ("relu", "square", "minmax", "modulus")
LOSSES = ("frobenius", "l1", "kl")
SIGN = {"frobenius": "Frobenius", "l1": "ℓ1", "kl": "KL"}
NAME = {"relu": "ReLU", "square": "Square", "minmax": "MinMax", "modulus": "Modulus"}


def paper_settings(rho: str | float = "paper", **more: Any) -> dict[str, Any]:
    """Return the options that make `decompose` the paper's Algorithm 1 with its printed ρ rule.

    The T-updates are ours all the same: three of the printed ones are wrong.
    """
    return {
        "init": "svd",
        "solver": nmd.ADMM(rho=rho, epsilon=1e-6, refine=False, homotopy=False, polish=False),
        "tol": 0.0,
        "compute": nmd.Compute(threads=1),
        "progress": False,
    } | more


def default_settings(**more: Any) -> dict[str, Any]:
    """Return what "by default" means: one thread, silence, and as many iterations as the others."""
    return {"compute": nmd.Compute(threads=1), "progress": False, "tol": 1e-10} | more


SETTINGS = {"paper": paper_settings, "default": default_settings}
"""The two ways in which every experiment runs our method."""


HELD_OUT = 20_260  # keeps these draws apart from those that made the data from the same seed


def zero_filled_start(X: Array, rank: int) -> tuple[Array, Array]:
    """Return the paper's start: W = U √Σ and H = √Σ Vᵀ of X with zeros where it is missing."""
    U, sizes, Vt = np.linalg.svd(np.nan_to_num(X), full_matrices=False)
    roots = np.sqrt(sizes[:rank])
    return U[:, :rank] * roots, roots[:, None] * Vt[:rank]


def choose_alpha(
    X: Array,
    rank: int,
    nonlinearity: Any,
    loss: Any,
    alphas: tuple[float, ...],
    *,
    seed: int,
    share: float = 0.1,
    folds: int = 1,
    **options: Any,
) -> float:
    """Return the ridge whose fits are nearest to entries of X that they did not see.

    Parameters
    ----------
    X : ndarray (m, n)
        The training data, NaN where missing.
    rank, nonlinearity, loss
        The model; nearest is meant in the loss's sense.
    alphas : tuple of float
        What to try.
    seed : int
        Chooses the held-out entries.
    share : float, default 0.1
        Of the training entries, how many are held out.
    folds : int, default 1
        How often that is repeated, with other entries.
    **options
        Of `complete`.
    """
    errors = np.zeros(len(alphas))
    for fold in range(folds):
        rng = np.random.default_rng([HELD_OUT, seed, fold])
        held_out = ~np.isnan(X) & (rng.random(X.shape) < share)
        train = np.where(held_out, np.nan, X)
        for k, alpha in enumerate(alphas):
            fit = nmd.complete(train, rank, nonlinearity, loss, alpha=alpha, **options)
            model = fit.reconstruct().values
            errors[k] += nmd.metrics.relative_error(X, model, loss=loss, observed=held_out)
    return alphas[int(np.argmin(errors))]


def resampled(fit: nmd.Decomposition, grid: Array, score: str = "relative_error") -> Array:
    """Return the lowest score so far at each time of a grid, NaN before the first iteration."""
    seconds = fit.history.seconds.values
    lowest = np.minimum.accumulate(fit.history[score].values)
    at = np.searchsorted(seconds, grid, side="right") - 1
    return np.where(at >= 0, lowest[np.maximum(at, 0)], np.nan)
