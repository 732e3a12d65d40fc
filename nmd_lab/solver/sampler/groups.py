"""Groups of rows: the prior of the rows of W is a mixture of Gaussians with one H.

Each row i has a label c with probability π_c, and then w_i ~ N(m_c, Λ_c⁻¹), so that a row is
predicted from others of its group.  The number C of groups is an upper bound, since groups without
rows keep small shares.

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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import multigammaln

from .hyperparameters import Doubles, RowPrior, draw_wishart

FREEDOM = 2.0 * 1.5 ** np.arange(16)
"""Values of ν - d: from groups of their own spread to groups of one spread."""

EVERY = 4
"""Sweeps from one draw of the labels to the next; a draw takes a Cholesky factor for each group."""

UNKNOWN = -1
"""Label of a row whose group is to be drawn."""

SMALLEST = 1e-300
"""Smallest share of a group."""


@dataclass
class Groups:
    """The groups of the rows, with what their Gaussians have in common.

    Attributes
    ----------
    labels : ndarray of int (m,)
        Group of each row.
    scale : ndarray (d, d)
        S, the common covariance, in units of the prior.
    strength : float
        κ, which says how far the means are from one another.
    """

    labels: NDArray[np.int64]
    scale: Doubles
    strength: float = 0.1


def first_groups(
    rows: NDArray[np.floating], units: Doubles, number: int, rng: np.random.Generator
) -> Groups:
    """Return groups to begin with: the rows that are nearest to each of some rows."""
    scaled = rows.astype(np.float64) / units
    spreads = scaled.std(axis=0)
    white = scaled / np.where(spreads > 0, spreads, 1)
    m, d = scaled.shape
    centres = white[rng.choice(m, min(number, m), replace=False)]
    labels = cdist(white, centres).argmin(axis=1).astype(np.int64)
    return Groups(labels, 0.5 * np.diag(np.square(spreads)) + 1e-3 * np.eye(d))


def draw_group_priors(
    groups: Groups,
    number: int,
    rows: NDArray[np.floating],
    units: Doubles,
    rng: np.random.Generator,
) -> RowPrior:
    """Return a draw of share, mean and precision of each group; S and κ are overwritten."""
    scaled = rows.astype(np.float64) / units
    d = scaled.shape[1]
    counts = np.bincount(groups.labels, minlength=number)
    shares = np.maximum(rng.dirichlet(1 / number + counts), SMALLEST)
    averages, squares = _moments(scaled, groups, counts)
    used, empty = np.flatnonzero(counts), np.flatnonzero(counts == 0)
    nu = _draw_freedom(groups.scale, squares[used], counts[used], rng)
    means, precisions = np.zeros((number, d)), np.zeros((number, d, d))
    for c in used:
        total = groups.strength + counts[c]
        precisions[c], deviation = draw_wishart(nu * groups.scale + squares[c], nu + counts[c], rng)
        means[c] = counts[c] / total * averages[c] + deviation / np.sqrt(total)
    sum_of_precisions = precisions[used].sum(axis=0)
    groups.scale, _ = draw_wishart(np.eye(d) + nu * sum_of_precisions, d + nu * used.size, rng)
    distances = np.einsum("ca,cab,cb->", means[used], precisions[used], means[used])
    groups.strength = rng.gamma(0.5 + 0.5 * used.size * d) / (0.5 + 0.5 * distances)
    for c in empty:
        precisions[c], deviation = draw_wishart(nu * groups.scale, nu, rng)
        means[c] = deviation / np.sqrt(groups.strength)
    return RowPrior(means * units, precisions / np.outer(units, units), shares)


def _moments(
    scaled: Doubles, groups: Groups, counts: NDArray[np.integer]
) -> tuple[Doubles, Doubles]:
    """Return the mean of the rows of each group, and their sum of squares with that of the mean."""
    d = scaled.shape[1]
    averages, squares = np.zeros((counts.size, d)), np.zeros((counts.size, d, d))
    for c in np.flatnonzero(counts):
        rows = scaled[groups.labels == c]
        averages[c] = rows.mean(axis=0)
        centred = rows - averages[c]
        weight = groups.strength * counts[c] / (groups.strength + counts[c])
        squares[c] = centred.T @ centred + weight * np.outer(averages[c], averages[c])
    return averages, squares


def _draw_freedom(
    scale: Doubles, squares: Doubles, counts: NDArray[np.integer], rng: np.random.Generator
) -> float:
    """Return a draw of ν, given the rows of each group, with m_c and Λ_c integrated out."""
    d = scale.shape[0]
    nu = (d + FREEDOM)[:, None]
    inverse = np.linalg.inv(np.linalg.cholesky(scale))
    spreads = np.linalg.eigvalsh(inverse @ squares @ inverse.T)  # |ν S + Q| = |S| ∏ (ν + spread)
    log_determinant = np.linalg.slogdet(scale)[1]
    before = nu * (d * np.log(nu) + log_determinant)
    after = (nu + counts) * (log_determinant + np.log(nu[..., None] + spreads).sum(axis=-1))
    ratios = multigammaln((nu + counts) / 2, d) - multigammaln(nu / 2, d)
    logs = (0.5 * (before - after) + ratios).sum(axis=1)
    weights = np.exp(logs - logs.max())
    return float(rng.choice(nu[:, 0], p=weights / weights.sum()))
