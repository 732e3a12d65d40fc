"""A mixture of Gaussians with full covariances, for rows with many missing entries.

The observed entries o of a row have noise of known variances v_o around those of z, which has one
of K Gaussians::

    z ~ N(μ_k, Σ_k) with probability π_k,      x_o = z_o + N(0, v_o)

With A = Σ_oo + diag(v_o) = Uᵀ U, y = U⁻ᵀ (x_o - μ_o) and V = U⁻ᵀ Σ_o: of a group,

    log p(x_o) = -½ yᵀ y - log |U| + constant,      E z = μ + Vᵀ y,      cov z = Σ - Vᵀ V,

and the expectation maximisation (EM) of μ, Σ and π needs their sums alone.  Consecutive rows with
the same observed entries share U and V.  An observed entry that is left out is predicted from the
others by T = U⁻ᵀ, which is (U - V_o) / v_o: with p_j = Σ_a T_aj², its mean is x_j - (Tᵀ y)_j / p_j
and its variance 1 / p_j.

Each covariance shrinks towards the average one, in place of a prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import cached_kernel, compile_inner
from nmd_lab._runtime.machine import all_threads

CHUNKS = 8
"""Parts of the rows that have sums of their own; sums do not depend on the number of threads."""

LEAST_PROBABILITY = 1e-3
"""Probability of a group below which it does not contribute to a row."""

MAX_EXPONENT = 300.0
"""Logarithm of the largest ratio of the probabilities of a group without and with an entry."""

SHRINKAGE = 16
"""Rows that the average covariance counts for in that of each group."""

FIRST_ROUNDS, ROUNDS = 4, 8
"""Rounds of EM with one group, and with all of them."""

CENTRE_ROUNDS = 10
"""Rounds of k-means on the rows that one Gaussian completes."""

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@compile_inner
def factorise(covariance, columns, variance, U):  # type: ignore[no-untyped-def]
    """Put the upper Cholesky factor of the observed entries into `U`; return half log |A|."""
    n = columns.size
    for a in range(n):
        for b in range(a, n):
            U[a, b] = covariance[columns[a], columns[b]]
        U[a, a] += variance[columns[a]]
    half = 0.0
    for a in range(n):
        pivot = math.sqrt(U[a, a])
        half += math.log(pivot)
        for b in range(a, n):
            U[a, b] /= pivot
        for c in range(a + 1, n):
            factor = U[a, c]
            for b in range(c, n):
                U[c, b] -= factor * U[a, b]
    return half


@compile_inner
def solve_row(U, x, mean, columns, y):  # type: ignore[no-untyped-def]
    """Put U⁻ᵀ (x - μ) of the observed entries into `y`, and return its squared length."""
    n, square = columns.size, 0.0
    for a in range(n):
        y[a] = x[columns[a]] - mean[columns[a]]
    for a in range(n):
        y[a] /= U[a, a]
        square += y[a] * y[a]
        for b in range(a + 1, n):
            y[b] -= y[a] * U[a, b]
    return square


@compile_inner
def project(U, covariance, columns, V):  # type: ignore[no-untyped-def]
    """Put U⁻ᵀ Σ_o: into `V`."""
    n, d = columns.size, covariance.shape[0]
    for a in range(n):
        for j in range(d):
            V[a, j] = covariance[columns[a], j]
    for a in range(n):
        for j in range(d):
            V[a, j] /= U[a, a]
        for b in range(a + 1, n):
            factor = U[a, b]
            for j in range(d):
                V[b, j] -= factor * V[a, j]


@compile_inner
def equal_patterns(x, v, before, v_before):  # type: ignore[no-untyped-def]
    """Return whether two rows have the same observed entries, with the same variances."""
    for j in range(x.size):
        if math.isnan(x[j]) != math.isnan(before[j]) or v[j] != v_before[j]:
            return False
    return True


@compile_inner
def predict_left_out(x, columns, variance, left_out, factors, r, moments):  # type: ignore[no-untyped-def]
    """Add the moments of entries that are left out; the group has its probability without each."""
    n = columns.size
    weight, mean, square = moments
    U, V, y = factors
    for b in range(n):
        if not left_out[columns[b]]:
            continue
        j, precision, shift = columns[b], 0.0, 0.0
        for a in range(n):
            t = ((U[a, b] if a <= b else 0.0) - V[a, j]) / variance[j]
            precision += t * t
            shift += t * y[a]
        left = x[j] - shift / precision
        w = r * math.exp(min(0.5 * shift * shift / precision, MAX_EXPONENT)) / math.sqrt(precision)
        weight[j] += w
        mean[j] += w * left
        square[j] += w * (1.0 / precision - variance[j] + left * left)


def visit_rows(X, variance, mixture, left_out, sums, out):  # type: ignore[no-untyped-def]
    """Add the sums of EM over some rows, or put the means and variances of z into `out`.

    Return the log-likelihood of the rows.
    """
    log_weights, means, covariances = mixture
    counts, linear, squares, explained = sums
    n_groups, d = means.shape
    learn = counts.size > 0
    U, V = np.empty((n_groups, d, d)), np.empty((n_groups, d, d))
    y, halves, scores = np.empty((n_groups, d)), np.empty(n_groups), np.empty(n_groups)
    has_V, of_pattern = np.zeros(n_groups, np.bool_), np.zeros(n_groups)
    mean, square, weight, here = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    positions = np.empty(d, np.int64)
    columns, total = positions[:0], 0.0
    for i in range(X.shape[0] + 1):
        last = i == X.shape[0]
        if i == 0 or last or not equal_patterns(X[i], variance[i], X[i - 1], variance[i - 1]):
            for k in range(n_groups):
                if learn and has_V[k]:
                    rows = V[k, : columns.size]
                    explained[k] += of_pattern[k] * np.dot(rows.T, rows)
                has_V[k], of_pattern[k] = False, 0.0
            if last:
                break
            n = 0
            for j in range(d):
                if not math.isnan(X[i, j]):
                    positions[n] = j
                    n += 1
            columns = positions[:n]
            for k in range(n_groups):
                halves[k] = factorise(covariances[k], columns, variance[i], U[k])
        for k in range(n_groups):
            length = solve_row(U[k], X[i], means[k], columns, y[k])
            scores[k] = log_weights[k] - halves[k] - 0.5 * length
        best = scores.max()
        evidence = best + math.log(np.exp(scores - best).sum())
        total += evidence - 0.5 * math.log(2 * math.pi) * columns.size
        mean[:], square[:], weight[:] = 0.0, 0.0, 0.0
        for k in range(n_groups):
            r = math.exp(scores[k] - evidence)
            if r < LEAST_PROBABILITY:
                continue
            if not has_V[k]:
                project(U[k], covariances[k], columns, V[k])
                has_V[k] = True
            of_pattern[k] += r
            for j in range(d):
                here[j] = means[k, j]
            for a in range(columns.size):
                for j in range(d):
                    here[j] += y[k, a] * V[k, a, j]
            if learn:
                counts[k] += r
                for j in range(d):
                    linear[k, j] += r * here[j]
                    for b in range(d):
                        squares[k, j, b] += r * here[j] * here[b]
                continue
            for j in range(d):
                if not left_out[i, j]:
                    spread = covariances[k, j, j]
                    for a in range(columns.size):
                        spread -= V[k, a, j] * V[k, a, j]
                    weight[j] += r
                    mean[j] += r * here[j]
                    square[j] += r * (spread + here[j] * here[j])
            moments = weight, mean, square
            predict_left_out(
                X[i], columns, variance[i], left_out[i], (U[k], V[k], y[k]), r, moments
            )
        if not learn:
            for j in range(d):
                centre = mean[j] / weight[j]
                out[0][i, j] = centre
                out[1][i, j] = max(square[j] / weight[j] - centre * centre, 0.0)
    return total


@dataclass(frozen=True)
class GaussianMixture:
    """The groups: probabilities (K,), means (K, d) and covariances (K, d, d)."""

    weights: Array
    means: Array
    covariances: Array

    def predict(self, X: Array, variance: Array, left_out: Mask) -> tuple[Array, Array]:
        """Return the means and variances of z, both (n, d), given the observed entries of the row.

        Where `left_out` is True they are given the other entries.
        """
        mean, spread = np.empty_like(X), np.empty_like(X)
        none = np.empty(0), np.empty((0, 0)), np.empty((0, 0, 0)), np.empty((0, 0, 0))

        def predict_chunk(rows: slice) -> None:
            self._visit(X[rows], variance[rows], left_out[rows], none, (mean[rows], spread[rows]))

        in_chunks(predict_chunk, len(X))
        return mean, spread

    def improve(self, X: Array, variance: Array) -> tuple[GaussianMixture, float]:
        """Return the mixture after a round of EM, and the log-likelihood before it."""
        (K, d), nothing = self.means.shape, np.zeros_like(X, dtype=bool)
        none = np.empty((0, 0)), np.empty((0, 0))

        def add_chunk(rows: slice) -> tuple[Any, ...]:
            sums = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d)), np.zeros((K, d, d))
            return *sums, self._visit(X[rows], variance[rows], nothing[rows], sums, none)

        parts = in_chunks(add_chunk, len(X))
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

    def _visit(self, X: Array, variance: Array, left_out: Mask, sums: Any, out: Any) -> float:
        """Visit some rows by the compiled kernel."""
        mixture = np.log(self.weights), self.means, self.covariances
        visit = cached_kernel(visit_rows, "visit_rows_of_mixture")
        return float(visit(X, variance, mixture, left_out, sums, out))


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
    completed, _ = mixture.predict(X, variance, np.zeros_like(X, dtype=bool))
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


def in_chunks(work: Callable[[slice], Any], n_rows: int) -> list[Any]:
    """Return the results of some work on ranges of rows, several at a time."""
    ends = np.linspace(0, n_rows, CHUNKS + 1).astype(int)
    ranges = [slice(begin, end) for begin, end in pairwise(ends)]
    with ThreadPoolExecutor(all_threads()) as pool:
        return list(pool.map(work, ranges))
