"""Priors and draws of hyperparameters: of noise levels, and of rows of W and columns of H.

Rows of W and columns of H are Gaussian with an unknown mean and precision matrix, which have a
Normal-Wishart prior.  Offsets belong to them: the offset of a row is one more component of its
vector.  The precisions of the noise have Gamma priors, in units of the data, which count for one or
two observations.  The formulas are those of Bayesian probabilistic matrix factorisation
(R. Salakhutdinov and A. Mnih, 2008).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dtrtrs

Doubles = NDArray[np.float64]
Numbers = float | NDArray[np.floating]


def draw_precision(shape: Numbers, rate: Numbers, rng: np.random.Generator) -> Doubles:
    """Return draws from Gamma distributions of these shapes and rates."""
    drawn: Doubles = rng.gamma(shape) / np.asarray(rate)
    return drawn


@dataclass(frozen=True)
class Prior:
    """Scales of the priors.

    Attributes
    ----------
    spread : float
        Standard deviation of T, > 0.
    spread_of_X : float or array_like (n_kinds,)
        Standard deviation of X, > 0, for the noise after f, of all entries or of each kind.
    share : float
        Unit of T in the priors of W and H, as a share of its spread.  A component has the square
        root of this unit, an offset the unit itself.
    strength : float
        Number of rows that the prior of their mean counts for.
    noise_shape : float
        Shape of the Gamma priors of the noise.
    noise_rate : float
        Their rate, in units of the variance of the data (of their spread for the L1 loss).
    most_precise : float
        Largest precision of T in units of its variance, so that a copy of a column has some noise.
    """

    spread: float
    spread_of_X: ArrayLike
    share: float = 0.25
    strength: float = 2.0
    noise_shape: float = 1.0
    noise_rate: float = 0.01
    most_precise: float = math.inf

    @property
    def spreads_of_X(self) -> NDArray[np.float64]:
        """Standard deviation of X of each kind."""
        return np.atleast_1d(np.asarray(self.spread_of_X, dtype=np.float64))

    def units(self, rank: int, offset: bool) -> NDArray[np.float64]:
        """Return the unit of each component of a row, and that of its offset if it has one."""
        unit = self.share * self.spread
        units = np.full(rank + offset, math.sqrt(unit))
        if offset:
            units[-1] = unit
        return units


class RowPrior(NamedTuple):
    """The prior of the rows of a factor: a mixture of Gaussians, one for each group of rows.

    Attributes
    ----------
    mean : ndarray (n_groups, d)
        Mean of a row of each group.
    precision : ndarray (n_groups, d, d)
        Inverse of its covariance.
    shares : ndarray (n_groups,)
        Probability of each group.
    """

    mean: Doubles
    precision: Doubles
    shares: Doubles = np.ones(1)

    @property
    def linear(self) -> Doubles:
        """Precision times mean of each group."""
        products: Doubles = np.matmul(self.precision, self.mean[:, :, None])[:, :, 0]
        return products

    @property
    def log_weights(self) -> Doubles:
        """Logarithm of the density of each group at zero times its share, up to a constant."""
        log_determinants = np.linalg.slogdet(self.precision)[1]
        squares = np.einsum("ca,ca->c", self.linear, self.mean)
        weights: Doubles = np.log(self.shares) + 0.5 * (log_determinants - squares)
        return weights


NO_PRIOR = RowPrior(np.empty((1, 0)), np.empty((1, 0, 0)))
"""Prior of rows that have no components."""


def draw_row_prior(
    rows: NDArray[np.floating], units: Doubles, strength: float, rng: np.random.Generator
) -> RowPrior:
    """Return a draw of mean and precision of a single group, given the rows of a factor."""
    scaled = rows.astype(np.float64) / units
    m, d = scaled.shape
    average = scaled.mean(axis=0) if m else np.zeros(d)
    centred = scaled - average
    total = strength + m
    inverse_scale = np.eye(d) + centred.T @ centred
    inverse_scale += (strength * m / total) * np.outer(average, average)
    precision, deviation = draw_wishart(inverse_scale, d + m, rng)
    mean = m / total * average + deviation / np.sqrt(total)
    return RowPrior((mean * units)[None], (precision / np.outer(units, units))[None])


def draw_wishart(
    inverse_scale: Doubles, degrees: float, rng: np.random.Generator
) -> tuple[Doubles, Doubles]:
    """Return a precision matrix of the Wishart law, and a draw from N(0, precision⁻¹)."""
    # With L Lᵀ = inverse_scale and Bartlett's A, the precision L⁻ᵀ A Aᵀ L⁻¹ has the Wishart law.
    d = inverse_scale.shape[0]
    L, A = np.linalg.cholesky(inverse_scale), _bartlett(d, degrees, rng)
    root = _solved_transposed(L, A)
    normal: Doubles = rng.standard_normal((d,))
    deviation: Doubles = L @ _solved_transposed(A, normal)
    precision: Doubles = root @ root.T
    return precision, deviation


def _solved_transposed(L: NDArray[np.floating], b: Doubles) -> Doubles:
    """Return L⁻ᵀ b for a lower triangle; scipy.linalg's function takes ten times as long here."""
    solved: Doubles = dtrtrs(L, b, lower=1, trans=1)[0]
    return solved


def _bartlett(d: int, degrees: float, rng: np.random.Generator) -> Doubles:
    """Return a lower triangular A; A Aᵀ has the Wishart law of scale 1 (M. S. Bartlett, 1933)."""
    A: Doubles = np.tril(rng.standard_normal((d, d)), -1)
    A[np.diag_indices(d)] = np.sqrt(rng.chisquare(degrees - np.arange(d)))
    return A
