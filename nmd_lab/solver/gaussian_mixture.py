"""A mixture of Gaussians with full covariances, for rows with many missing entries.

The observed entries o of a row have noise of known variances v_o around those of z, which has one
of K Gaussians::

    z ~ N(μ_k, Σ_k) with probability π_k,      x_o = z_o + N(0, v_o)

The expectation maximisation (EM) of μ, Σ and π needs the sums of E z, E z zᵀ and probabilities,
whose U, V and y are those of `observed_gaussian`.  Consecutive rows with the same observed entries
share U and V.  Each covariance shrinks towards the average one, in place of a prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import cached_kernel, compile_inner
from nmd_lab._runtime.machine import map_ranges

from .observed_gaussian import condition, factorise, project, put_observed, solve_row

LEAST_PROBABILITY = 1e-3
"""Probability of a group below which it does not contribute to a row."""

SHRINKAGE = 16
"""Rows that the average covariance counts for in that of each group."""

FIRST_ROUNDS, ROUNDS = 4, 8
"""Rounds of EM with one group, and with all of them."""

CENTRE_ROUNDS = 10
"""Rounds of k-means on the rows that one Gaussian completes."""

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@compile_inner
def equal_patterns(x, v, before, v_before):  # type: ignore[no-untyped-def]
    """Return whether two rows have the same observed entries, with the same variances."""
    for j in range(x.size):
        if math.isnan(x[j]) != math.isnan(before[j]) or v[j] != v_before[j]:
            return False
    return True


@compile_inner
def workspace_of(n_groups, d):  # type: ignore[no-untyped-def]
    """Return arrays for U, V, y, log |U|, probabilities, positions, and which groups have V."""
    U, V, y = np.empty((n_groups, d, d)), np.empty((n_groups, d, d)), np.empty((n_groups, d))
    positions, has_V = np.empty(d, np.int64), np.zeros(n_groups, np.bool_)
    return U, V, y, np.empty(n_groups), np.empty(n_groups), positions, has_V


@compile_inner
def factorise_groups(x, variance, covariances, workspace):  # type: ignore[no-untyped-def]
    """Factorise all groups for the observed entries of a row, and return their positions."""
    U, _, _, halves, _, positions, has_V = workspace
    n = put_observed(x, positions)
    for k in range(halves.size):
        halves[k] = factorise(covariances[k], positions[:n], variance, U[k])
        has_V[k] = False
    return positions[:n]


@compile_inner
def weigh_groups(x, mixture, columns, workspace):  # type: ignore[no-untyped-def]
    """Put the probabilities of the groups of a row, and their V, y, into the workspace.

    Return the log-likelihood of the row.
    """
    log_weights, means, covariances = mixture
    U, V, y, halves, probabilities, _, has_V = workspace
    for k in range(halves.size):
        length = solve_row(U[k], x, means[k], columns, y[k])
        probabilities[k] = log_weights[k] - halves[k] - 0.5 * length
    best = probabilities.max()
    evidence = best + math.log(np.exp(probabilities - best).sum())
    for k in range(halves.size):
        r = math.exp(probabilities[k] - evidence)
        probabilities[k] = r if r >= LEAST_PROBABILITY else 0.0
        if probabilities[k] > 0 and not has_V[k]:
            project(U[k], covariances[k], columns, V[k])
            has_V[k] = True
    return evidence - 0.5 * math.log(2 * math.pi) * columns.size


def learn_rows(X, variance, mixture, sums):  # type: ignore[no-untyped-def]
    """Add the sums of EM over some rows, and return their log-likelihood."""
    _, means, covariances = mixture
    counts, linear, squares, explained = sums
    n_groups, d = means.shape
    workspace = workspace_of(n_groups, d)
    _, V, y, _, probabilities, columns, _ = workspace
    of_pattern, here, total = np.zeros(n_groups), np.empty(d), 0.0
    for i in range(X.shape[0] + 1):
        last = i == X.shape[0]
        if i == 0 or last or not equal_patterns(X[i], variance[i], X[i - 1], variance[i - 1]):
            for k in range(n_groups):
                if of_pattern[k] > 0:
                    rows = V[k, : columns.size]
                    explained[k] += of_pattern[k] * np.dot(rows.T, rows)
                    of_pattern[k] = 0.0
            if last:
                break
            columns = factorise_groups(X[i], variance[i], covariances, workspace)
        total += weigh_groups(X[i], mixture, columns, workspace)
        for k in range(n_groups):
            r = probabilities[k]
            if r == 0:
                continue
            of_pattern[k] += r
            counts[k] += r
            here[:] = means[k]
            for a in range(columns.size):
                for j in range(d):
                    here[j] += y[k, a] * V[k, a, j]
            for j in range(d):
                linear[k, j] += r * here[j]
                for b in range(d):
                    squares[k, j, b] += r * here[j] * here[b]
    return total


def predict_rows(X, variance, mixture, out):  # type: ignore[no-untyped-def]
    """Put the means and variances of z of some rows into `out`."""
    _, means, covariances = mixture
    n_groups, d = means.shape
    workspace = workspace_of(n_groups, d)
    _, V, y, _, probabilities, columns, _ = workspace
    centre, spread, sums = np.empty(d), np.empty(d), np.empty((2, d))
    for i in range(X.shape[0]):
        if i == 0 or not equal_patterns(X[i], variance[i], X[i - 1], variance[i - 1]):
            columns = factorise_groups(X[i], variance[i], covariances, workspace)
        weigh_groups(X[i], mixture, columns, workspace)
        sums[:] = 0.0
        n = columns.size
        for k in range(n_groups):
            if probabilities[k] > 0:
                condition(means[k], covariances[k], V[k, :n], y[k, :n], centre, spread)
                sums[0] += probabilities[k] * centre
                sums[1] += probabilities[k] * (spread + centre**2)
        sums /= probabilities.sum()
        out[0][i] = sums[0]
        out[1][i] = np.maximum(sums[1] - sums[0] ** 2, 0.0)


@dataclass(frozen=True)
class GaussianMixture:
    """The groups: probabilities (K,), means (K, d) and covariances (K, d, d)."""

    weights: Array
    means: Array
    covariances: Array

    def predict(self, X: Array, variance: Array) -> tuple[Array, Array]:
        """Return the means and variances of z, both (n, d), given the observed entries."""
        mean, spread = np.empty_like(X), np.empty_like(X)
        predict = cached_kernel(predict_rows, "predict_rows_of_mixture")

        def predict_range(rows: slice) -> None:
            predict(X[rows], variance[rows], self._terms, (mean[rows], spread[rows]))

        map_ranges(predict_range, len(X))
        return mean, spread

    def improve(self, X: Array, variance: Array) -> tuple[GaussianMixture, float]:
        """Return the mixture after a round of EM, and the log-likelihood before it."""
        K, d = self.means.shape
        learn = cached_kernel(learn_rows, "learn_rows_of_mixture")

        def add_range(rows: slice) -> tuple[Any, ...]:
            sums = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d)), np.zeros((K, d, d))
            return *sums, learn(X[rows], variance[rows], self._terms, sums)

        parts = map_ranges(add_range, len(X))
        counts, linear, squares, explained, total = (sum(each) for each in zip(*parts, strict=True))
        squares += counts[:, None, None] * self.covariances - explained
        return mixture_of_sums(counts, linear, squares), float(total)

    def noise(self, n: int) -> float:
        """Return the variance of independent noise in z, as n rows show it.

        It is the smallest median of the eigenvalues of a group, whose expectation over samples is
        corrected.
        """
        d, counts = self.means.shape[1], n * self.weights
        bias = 1 - np.minimum(d / (3 * counts), 1 / 3)
        medians = np.median(np.linalg.eigvalsh(self.covariances), axis=1) / bias
        return float(medians[counts >= min(2 * d, counts.max())].min())

    @property
    def _terms(self) -> tuple[Array, Array, Array]:
        """Logarithms of the probabilities, means and covariances."""
        return np.log(self.weights), self.means, self.covariances


def mixture_of_sums(counts: Array, linear: Array, squares: Array) -> GaussianMixture:
    """Return the mixture with these sums of probabilities, z and z zᵀ, without empty groups."""
    full = counts >= min(1.0, counts.max())
    counts, linear, squares = counts[full], linear[full], squares[full]
    means = linear / counts[:, None]
    scatter = squares - linear[:, :, None] * means[:, None, :]
    average = scatter.sum(axis=0) / counts.sum()
    covariances = (scatter + SHRINKAGE * average) / (counts + SHRINKAGE)[:, None, None]
    return GaussianMixture(counts / counts.sum(), means, covariances)


def fit_mixture(
    X: Array, variance: Array, first: GaussianMixture, groups: int, rng: np.random.Generator
) -> GaussianMixture:
    """Return a mixture of at most so many groups, by EM from k-means of completed rows."""
    mixture = first
    for _ in range(FIRST_ROUNDS):
        mixture, _ = mixture.improve(X, variance)
    if groups == 1:
        return mixture
    completed, _ = mixture.predict(X, variance)
    centres = completed[rng.choice(len(X), min(groups, len(X)), replace=False)]
    for _ in range(CENTRE_ROUNDS):
        distances = np.sum(centres**2, axis=1) - 2 * completed @ centres.T
        labels = np.argmin(distances, axis=1)[:, None] == np.arange(len(centres))
        counts = labels.sum(axis=0, dtype=float)
        centres = labels.T @ completed / np.maximum(counts, 1)[:, None]
    linear = labels.T @ completed
    squares = np.stack([completed[each].T @ completed[each] for each in labels.T])
    mixture = mixture_of_sums(counts, linear, squares)
    for _ in range(ROUNDS):
        mixture, _ = mixture.improve(X, variance)
    return mixture
