"""Priors and draws of hyperparameters: of rows of W and columns of H, of groups of rows, of noise.

Rows of W and columns of H are Gaussian with an unknown mean and precision matrix, which have a
Normal-Wishart prior.  Offsets belong to them: the offset of a row is one more component of its
vector.  The precisions of the noise have Gamma priors, in units of the data, which count for one or
two observations.  The formulas are those of Bayesian probabilistic matrix factorisation
(R. Salakhutdinov and A. Mnih, 2008).

With groups, the prior of the rows of W is a mixture of Gaussians with one H.  Each row i has a
label c with probability π_c, and then w_i ~ N(m_c, Λ_c⁻¹), so that a row is predicted from others
of its group.  The number C of groups is an upper bound, since groups without rows keep small
shares.

    π ~ Dirichlet(1/C, ..., 1/C)
    Λ_c ~ Wishart(ν, (νS)⁻¹)      the groups share S ~ Wishart(d, I), from which each may differ
    m_c ~ N(0, (κ Λ_c)⁻¹)         κ ~ Gamma(1/2, 1/2)

A larger ν says that all groups have the same spread; it is drawn from a grid, with m_c and Λ_c
integrated out.  Labels are drawn together with the rows, by `row_draws`.  The mixture is that of
Z. Ghahramani and G. E. Hinton, "The EM algorithm for mixtures of factor analyzers", 1996, and the
prior of its shares that of S. Frühwirth-Schnatter and G. Malsiner-Walli, "From here to infinity",
Advances in Data Analysis and Classification 13, 2019.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.vq import kmeans2
from scipy.special import multigammaln

from nmd_lab.data.entries import FloatArray

Doubles = NDArray[np.float64]

FREEDOM = 2.0 * 1.5 ** np.arange(16)
"""Values of ν - d: from groups of their own spread to groups of one spread."""

SWEEPS_PER_LABEL_DRAW = 4
"""Sweeps from one draw of labels, shares, S, κ and ν to the next: labels take a Cholesky factor for
each group.  Between them, means and precisions of the groups that have rows are drawn."""

UNLABELLED = -1
"""Label of a row whose group is to be drawn."""

MIN_SHARE = 1e-300
"""Smallest share of a group."""


@dataclass(frozen=True)
class Prior:
    """Scales of the priors.

    Attributes
    ----------
    spread : float
        Standard deviation of T, > 0.
    spreads_of_X : ndarray (n_kinds,)
        Standard deviation of X of each kind, > 0, for the noise after f.
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
    spreads_of_X: Doubles
    share: float = 0.25
    strength: float = 2.0
    noise_shape: float = 1.0
    noise_rate: float = 0.01
    most_precise: float = math.inf

    def units(self, rank: int, offset: int) -> NDArray[np.float64]:
        """Return the unit of each component of a row, and that of its offset if it has one."""
        unit = self.share * self.spread
        return np.repeat([math.sqrt(unit), unit], [rank, offset])


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
    phi : ndarray (d,) or None
        Autoregression of each component of rows in order, which have no groups.
    """

    mean: Doubles
    precision: Doubles
    shares: Doubles = np.ones(1)
    phi: Doubles | None = None

    @property
    def gaussians(self) -> tuple[Doubles, Doubles, Doubles]:
        """Precision times mean of each group, its precision, and its log-weight.

        That is the logarithm of its density at zero times its share, up to a constant.
        """
        linear = np.matmul(self.precision, self.mean[:, :, None])[:, :, 0]
        log_determinants = np.linalg.slogdet(self.precision)[1]
        squares = np.einsum("ca,ca->c", linear, self.mean)
        return linear, self.precision, np.log(self.shares) + 0.5 * (log_determinants - squares)

    @classmethod
    def first(cls, number: int, d: int) -> RowPrior:
        """Return so many groups of d components before the first draw."""
        shares = np.full(number, 1 / number)
        return cls(np.zeros((number, d)), np.tile(np.eye(d), (number, 1, 1)), shares)

    def padded(self, number: int) -> RowPrior:
        """Return the prior with so many groups; those that are added repeat others without rows."""
        places = np.arange(number)
        at = places % self.shares.size
        shares = np.where(places == at, self.shares[at], MIN_SHARE)
        return self._replace(mean=self.mean[at], precision=self.precision[at], shares=shares)


def draw_wishart(
    inverse_scales: Doubles, degrees: ArrayLike, rng: np.random.Generator
) -> tuple[Doubles, Doubles]:
    """Return precisions (n, d, d) of Wishart distributions, and draws of N(0, precision⁻¹).

    With L Lᵀ = inverse_scale and a lower triangular A for which A Aᵀ is Wishart of scale 1
    (M. S. Bartlett, 1933), the precision L⁻ᵀ A Aᵀ L⁻¹ is Wishart.
    """
    n, d, _ = inverse_scales.shape
    freedom = np.asarray(degrees, dtype=np.float64)[..., None] - np.arange(d)
    A, noise = np.tril(rng.standard_normal((n, d, d)), -1), rng.standard_normal((n, d, 1))
    A[:, np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(freedom, (n, d)))
    roots = np.linalg.solve(np.linalg.cholesky(inverse_scales).transpose(0, 2, 1), A)
    transposed = roots.transpose(0, 2, 1)
    return roots @ transposed, np.asarray(np.linalg.solve(transposed, noise)[:, :, 0])


@dataclass
class Groups:
    """The groups of the rows, with what their Gaussians have in common.

    Attributes
    ----------
    labels : ndarray of int (m,)
        Group of each row.
    scale : ndarray (d, d)
        S, the common covariance.
    strength : float
        κ, which says how far the means are from one another.
    freedom : float
        ν, which says how far the covariances are from one another.
    """

    labels: NDArray[np.int64]
    scale: Doubles
    strength: float = 0.1
    freedom: float = math.nan

    @classmethod
    def apart(cls, labels: NDArray[np.int64], variances: Doubles, strength: float) -> Groups:
        """Return groups that have nothing in common but these variances, which stay as they are."""
        return cls(labels, np.diag(variances) / variances.size, strength, variances.size)


def first_groups(
    rows: FloatArray, columns: FloatArray, units: Doubles, number: int, rng: np.random.Generator
) -> Groups:
    """Return groups to begin with: k-means of the rows of WH, given the components of both."""
    rank = columns.shape[1]
    gram = columns.T.astype(np.float64) @ columns
    # A component has some size, so that the factor exists
    root = np.linalg.cholesky(gram + 1e-9 * (np.trace(gram) + 1) * np.eye(rank))
    points = rows[:, :rank] @ root  # as far from one another as the rows of WH
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):  # rows may be the same
        warnings.simplefilter("ignore", UserWarning)  # a group may be empty
        _, labels = kmeans2(points, min(number, len(points)), 20, minit="++", seed=rng)
    spreads = rows.std(axis=0, dtype=np.float64)
    return Groups(labels.astype(np.int64), np.diag(0.5 * spreads**2 + 1e-3 * units**2))


def draw_prior(
    groups: Groups,
    prior: RowPrior,
    rows: FloatArray,
    sweep: int,
    rng: np.random.Generator,
    units: float | Doubles = 1.0,
) -> RowPrior:
    """Return the next draw of the prior.

    Several groups share S, κ and ν, which are overwritten every few sweeps, when shares are drawn.
    """
    number, d = prior.mean.shape
    if number == 1 or (sweep > 1 and sweep % SWEEPS_PER_LABEL_DRAW):
        return draw_used_priors(groups, prior, rows, rng)
    counts = np.bincount(groups.labels, minlength=number)
    shares = np.maximum(rng.dirichlet(1 / number + counts), MIN_SHARE)
    used, empty = np.flatnonzero(counts), np.flatnonzero(counts == 0)
    moments = _moments(rows, groups)
    groups.freedom = nu = _draw_freedom(groups.scale, moments, rng)
    means, precisions = np.empty((number, d)), np.empty((number, d, d))
    means[used], precisions[used] = _draw_gaussians(groups, moments, rng)
    of_prior = np.diag(np.broadcast_to(units, d) ** -2.0)
    sum_of_precisions = of_prior + nu * precisions[used].sum(axis=0)
    groups.scale = draw_wishart(sum_of_precisions[None], d + nu * used.size, rng)[0][0]
    distances = np.einsum("ca,cab,cb->", means[used], precisions[used], means[used])
    groups.strength = rng.gamma(0.5 + 0.5 * used.size * d) / (0.5 + 0.5 * distances)
    of_empty = np.broadcast_to(nu * groups.scale, (empty.size, d, d))
    precisions[empty], deviations = draw_wishart(of_empty, nu, rng)
    means[empty] = deviations / np.sqrt(groups.strength)
    return RowPrior(means, precisions, shares)


def draw_used_priors(
    groups: Groups, prior: RowPrior, rows: FloatArray, rng: np.random.Generator
) -> RowPrior:
    """Return a prior with a draw of mean and precision of each group that has rows."""
    used, means, precisions = np.unique(groups.labels), prior.mean.copy(), prior.precision.copy()
    means[used], precisions[used] = _draw_gaussians(groups, _moments(rows, groups), rng)
    return prior._replace(mean=means, precision=precisions)


Moments = tuple[NDArray[np.integer], Doubles, Doubles]
"""Number of the rows of each group that has some, their mean, and their sum of squares with it."""


def _draw_gaussians(
    groups: Groups, moments: Moments, rng: np.random.Generator
) -> tuple[Doubles, Doubles]:
    """Return a draw of mean and precision of each group that has rows, given their moments."""
    counts, averages, squares = moments
    total, nu = (groups.strength + counts)[:, None], groups.freedom
    precisions, deviations = draw_wishart(nu * groups.scale + squares, nu + counts, rng)
    return counts[:, None] / total * averages + deviations / np.sqrt(total), precisions


def _moments(rows: FloatArray, groups: Groups) -> Moments:
    """Return the moments of the rows of each group that has some."""
    counts = np.bincount(groups.labels)
    counts = counts[counts > 0]
    ends, order = np.cumsum(counts), np.argsort(groups.labels, kind="stable")
    rows = rows[order].astype(np.float64)
    averages = np.add.reduceat(rows, ends - counts) / counts[:, None]
    rows -= np.repeat(averages, counts, axis=0)
    squares = np.stack([centred.T @ centred for centred in np.split(rows, ends[:-1])])
    weights = groups.strength * counts / (groups.strength + counts)
    of_averages = weights[:, None, None] * averages[:, :, None] * averages[:, None]
    return counts, averages, squares + of_averages


def _draw_freedom(scale: Doubles, moments: Moments, rng: np.random.Generator) -> float:
    """Return a draw of ν, given the rows of each group, with m_c and Λ_c integrated out."""
    (counts, _, squares), d = moments, scale.shape[0]
    nu = (d + FREEDOM)[:, None]
    inverse = np.linalg.inv(np.linalg.cholesky(scale))
    spreads = np.linalg.eigvalsh(inverse @ squares @ inverse.T)  # |ν S + Q| = |S| ∏ (ν + spread)
    log_determinant = np.linalg.slogdet(scale)[1]
    before = nu * (d * np.log(nu) + log_determinant)
    after = (nu + counts) * (log_determinant + np.log(nu[..., None] + spreads).sum(axis=-1))
    ratios = multigammaln((nu + counts) / 2, d) - multigammaln(nu / 2, d)
    logs = (0.5 * (before - after) + ratios).sum(axis=1)
    return float(nu[np.argmax(logs + rng.gumbel(size=logs.size)), 0])
