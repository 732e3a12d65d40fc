"""Draws of the hyperparameters: mean and precision of the rows of a factor, and noise levels.

The formulas are those of Bayesian probabilistic matrix factorisation (R. Salakhutdinov and A. Mnih,
2008): a Normal-Wishart prior, which is conjugate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Doubles = NDArray[np.float64]


class RowPrior(NamedTuple):
    """The Gaussian prior of the rows of a factor.

    Attributes
    ----------
    mean : ndarray (d,)
        Mean of a row.
    precision : ndarray (d, d)
        Inverse of its covariance.
    """

    mean: Doubles
    precision: Doubles


def draw_row_prior(
    rows: NDArray[np.floating], units: Doubles, strength: float, rng: np.random.Generator
) -> RowPrior:
    """Return a draw of mean and precision, given the rows of a factor."""
    scaled = rows.astype(np.float64) / units
    m, d = scaled.shape
    average = scaled.mean(axis=0) if m else np.zeros(d)
    centred = scaled - average
    total = strength + m
    inverse_scale = np.eye(d) + centred.T @ centred
    inverse_scale += (strength * m / total) * np.outer(average, average)
    # With L Lᵀ = inverse_scale and Bartlett's A, the precision L⁻ᵀ A Aᵀ L⁻¹ has the Wishart law.
    L, A = np.linalg.cholesky(inverse_scale), _bartlett(d, d + m, rng)
    root = solve_triangular(L, A, lower=True, trans="T")
    normal: Doubles = rng.standard_normal((d,))
    deviation = L @ solve_triangular(A, normal, lower=True, trans="T")
    mean = m / total * average + deviation / np.sqrt(total)
    return RowPrior(mean * units, (root @ root.T) / np.outer(units, units))


def _bartlett(d: int, degrees: float, rng: np.random.Generator) -> Doubles:
    """Return a lower triangular A; A Aᵀ has the Wishart law of scale 1 (M. S. Bartlett, 1933)."""
    A: Doubles = np.tril(rng.standard_normal((d, d)), -1)
    A[np.diag_indices(d)] = np.sqrt(rng.chisquare(degrees - np.arange(d)))
    return A


def draw_precision(shape: float, rate: float, rng: np.random.Generator) -> float:
    """Return a draw from a Gamma distribution of this shape and rate."""
    return float(rng.gamma(shape)) / rate
