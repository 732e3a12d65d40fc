"""A mixture of Gaussians with full covariances, for rows with many missing entries.

The observed entries o of a row have noise of known variances v_o around those of z, which has one
of K Gaussians::

    z ~ N(μ_k, Σ_k) with probability π_k,      x_o = z_o + N(0, v_o)

The expectation maximisation (EM) of μ, Σ and π needs the sums of E z, E z zᵀ and probabilities,
with U, V and y as below.  Consecutive rows with the same observed entries
share U and V.  Each covariance shrinks towards the average one, in place of a prior.

The observed entries o of a row z ~ N(μ, Σ) have noise of known variances v_o::

    x_o = z_o + N(0, v_o)

With A = Σ_oo + diag(v_o) = Uᵀ U, y = U⁻ᵀ (x_o - μ_o) and V = U⁻ᵀ Σ_o:

    log p(x_o) = -½ yᵀ y - log |U| + constant,      E z = μ + Vᵀ y,      cov z = Σ - Vᵀ V.

With few missing entries m and one variance v, the inverse A = (Σ + vI)⁻¹ is cheaper.  With
r = x - μ, which is 0 where x is missing, A_mm = Uᵀ U, y = -U⁻ᵀ A_m: r and V = U⁻ᵀ (I - vA)_m:

    log p(x_o) = -½ (rᵀ A r - yᵀ y) + ½ log |A| - log |U| + constant,
    E z = μ + r - vA r + Vᵀ y,      cov z = vI - v² A + Vᵀ V.

Everywhere below, `matrix` is A if the missing entries are few, and Σ otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import cached_kernel, compile_inner, pasted
from nmd_lab._runtime.machine import map_ranges


@compile_inner
def list_smaller_pattern(x, variance, common, positions):  # type: ignore[no-untyped-def]
    """List the observed positions of a row, or the missing ones if they are fewer.

    Return their number, and whether they are the missing ones: if all observed entries have the
    common variance, with which A is formed.
    """
    missing, can_invert = 0, True
    for j in range(x.size):
        if math.isnan(x[j]):
            missing += 1
        elif variance[j] != common:
            can_invert = False
    few, n = can_invert and 2 * missing < x.size, 0
    for j in range(x.size):
        if math.isnan(x[j]) == few:
            positions[n] = j
            n += 1
    return n, few


@compile_inner
def invert(matrix):  # type: ignore[no-untyped-def]
    """Overwrite a positive definite matrix with its inverse, by elimination without pivoting."""
    d = matrix.shape[0]
    for k in range(d):
        scale = 1.0 / matrix[k, k]
        matrix[k, k] = 1.0
        for j in range(d):
            matrix[k, j] *= scale
        for i in range(d):
            if i != k:
                factor = matrix[i, k]
                matrix[i, k] = 0.0
                for j in range(d):
                    matrix[i, j] -= factor * matrix[k, j]


@compile_inner
def factorise(matrix, columns, few, variance, U):  # type: ignore[no-untyped-def]
    """Put the factor of A_mm or of Σ_oo + diag(v_o) into `U`, and return log |U|."""
    n = columns.size
    for a in range(n):
        for b in range(a, n):
            U[a, b] = matrix[columns[a], columns[b]]
        if not few:
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
def solve_row(x, mean, few, matrix, U, columns, r, g, y):  # type: ignore[no-untyped-def]
    """Put r, with zeros where x is missing, g = r or -A r, and y into place.

    Return the squared length of the observed entries.
    """
    n, length, sign = columns.size, 0.0, -1.0 if few else 1.0
    for j in range(x.size):
        r[j] = g[j] = 0.0 if math.isnan(x[j]) else x[j] - mean[j]
    if few:
        for j in range(x.size):
            g[j] = 0.0
            for i in range(x.size):
                g[j] -= matrix[j, i] * r[i]
            length -= r[j] * g[j]
    for a in range(n):
        y[a] = g[columns[a]]
    for a in range(n):
        y[a] /= U[a, a]
        length += sign * y[a] * y[a]
        for b in range(a + 1, n):
            y[b] -= y[a] * U[a, b]
    return length


@compile_inner
def project(U, matrix, columns, few, v, V):  # type: ignore[no-untyped-def]
    """Put V into `V`."""
    n, d = columns.size, matrix.shape[0]
    scale = -v if few else 1.0
    for a in range(n):
        for j in range(d):
            V[a, j] = scale * matrix[columns[a], j]
        if few:
            V[a, columns[a]] += 1.0
    for a in range(n):
        for j in range(d):
            V[a, j] /= U[a, a]
        for b in range(a + 1, n):
            factor = U[a, b]
            for j in range(d):
                V[b, j] -= factor * V[a, j]


@compile_inner
def put_mean(mean, r, g, few, v, n, V, y, centre):  # type: ignore[no-untyped-def]
    """Put E z into `centre`; the first `n` rows of V and entries of y count."""
    for j in range(mean.size):
        centre[j] = mean[j] + r[j] + v * g[j] if few else mean[j]
    for a in range(n):
        for j in range(mean.size):
            centre[j] += y[a] * V[a, j]


@compile_inner
def put_variances(matrix, few, v, n, V, spread):  # type: ignore[no-untyped-def]
    """Put the variances of the entries of z into `spread`."""
    sign = 1.0 if few else -1.0
    for j in range(spread.size):
        spread[j] = v - v * v * matrix[j, j] if few else matrix[j, j]
        for a in range(n):
            spread[j] += sign * V[a, j] * V[a, j]


SHRINKAGE = 16
"""Rows that the average covariance counts for in that of each group."""

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@compile_inner
def equal_patterns(x, v, before, v_before):  # type: ignore[no-untyped-def]
    """Return whether two rows have the same observed entries, with the same variances."""
    for j in range(x.size):
        if math.isnan(x[j]) != math.isnan(before[j]) or v[j] != v_before[j]:
            return False
    return True


@pasted
def factorise_groups(x, variance, mixture, workspace):  # type: ignore[no-untyped-def]
    """Factorise all groups for a row; return positions, and whether they are the missing ones."""
    _, _, covariances, inverses, log_sizes, common = mixture
    U, _, _, _, _, halves, _, positions, has_V = workspace
    n, few = list_smaller_pattern(x, variance, common, positions)
    for k in range(halves.size):
        matrix = inverses[k] if few else covariances[k]
        halves[k] = factorise(matrix, positions[:n], few, variance, U[k])
        if few:
            halves[k] += log_sizes[k]
        has_V[k] = False
    return positions[:n], few


@pasted
def weigh_groups(x, mixture, columns, few, workspace):  # type: ignore[no-untyped-def]
    """Put the probabilities of the groups of a row, and their V, y, r, g, into the workspace.

    Return the log-likelihood of the row.
    """
    log_weights, means, covariances, inverses, _, common = mixture
    U, V, y, r, g, halves, probabilities, _, has_V = workspace
    best, total = -math.inf, 0.0
    for k in range(halves.size):
        matrix = inverses[k] if few else covariances[k]
        length = solve_row(x, means[k], few, matrix, U[k], columns, r[k], g[k], y[k])
        probabilities[k] = log_weights[k] - halves[k] - 0.5 * length
        best = max(best, probabilities[k])
    for k in range(halves.size):
        total += math.exp(probabilities[k] - best)
    evidence = best + math.log(total)
    for k in range(halves.size):
        p = math.exp(probabilities[k] - evidence)
        probabilities[k] = p if p >= 1e-3 else 0.0  # the group does not contribute
        if probabilities[k] > 0 and not has_V[k]:
            matrix = inverses[k] if few else covariances[k]
            project(U[k], matrix, columns, few, common, V[k])
            has_V[k] = True
    observed = x.size - columns.size if few else columns.size
    return evidence - 0.5 * math.log(2 * math.pi) * observed


@pasted
def add_covariance(weight, matrix, few, v, rows, product, out):  # type: ignore[no-untyped-def]
    """Add cov z times a weight to `out`; `rows` are those of V."""
    np.dot(rows.T, rows, product)
    scale = -v * v if few else 1.0
    sign = 1.0 if few else -1.0
    for j in range(out.shape[0]):
        for b in range(out.shape[0]):
            out[j, b] += weight * (scale * matrix[j, b] + sign * product[j, b])
        if few:
            out[j, j] += weight * v


def pass_over_rows(X, variance, mixture, workspace, sums, out):  # type: ignore[no-untyped-def]
    """Put the means and variances of z of some rows into `out`, or add the sums of EM over them.

    Which of both is done shows from the size of `out`.  Return the log-likelihood of the rows.
    """
    _, means, covariances, inverses, _, common = mixture
    counts, linear, squares = sums
    n_groups, d = means.shape
    _, V, y, r, g, _, probabilities, columns, _ = workspace[0]
    of_pattern, product, here, spread, mean, square = workspace[1]
    log_likelihood, few = 0.0, False
    predicts = out[0].size > 0
    for i in range(X.shape[0] + 1):
        last = i == X.shape[0]
        if i == 0 or last or not equal_patterns(X[i], variance[i], X[i - 1], variance[i - 1]):
            for k in range(n_groups):
                if of_pattern[k] > 0:
                    matrix, rows = inverses[k] if few else covariances[k], V[k, : columns.size]
                    add_covariance(of_pattern[k], matrix, few, common, rows, product, squares[k])
                    of_pattern[k] = 0.0
            if last:
                break
            columns, few = factorise_groups(X[i], variance[i], mixture, workspace[0])
        log_likelihood += weigh_groups(X[i], mixture, columns, few, workspace[0])
        n, total = columns.size, 0.0
        for j in range(d):
            mean[j] = square[j] = 0.0
        for k in range(n_groups):
            p = probabilities[k]
            if p == 0:
                continue
            put_mean(means[k], r[k], g[k], few, common, n, V[k], y[k], here)
            total += p
            if predicts:
                matrix = inverses[k] if few else covariances[k]
                put_variances(matrix, few, common, n, V[k], spread)
                for j in range(d):
                    mean[j] += p * here[j]
                    square[j] += p * (spread[j] + here[j] ** 2)
                continue
            of_pattern[k] += p
            counts[k] += p
            for j in range(d):
                linear[k, j] += p * here[j]
                for b in range(d):
                    squares[k, j, b] += p * here[j] * here[b]
        if predicts:
            for j in range(d):
                mean[j] /= total
                out[0][i, j] = mean[j]
                out[1][i, j] = max(square[j] / total - mean[j] ** 2, 0.0)
    return log_likelihood


@dataclass(frozen=True)
class GaussianMixture:
    """The groups: probabilities (K,), means (K, d) and covariances (K, d, d)."""

    weights: Array
    means: Array
    covariances: Array

    def predict(self, X: Array, variance: Array) -> tuple[Array, Array]:
        """Return the means and variances of z, both (n, d), given the observed entries."""
        out = np.empty_like(X), np.empty_like(X)
        self._pass(X, variance, out)
        return out

    def improve(self, X: Array, variance: Array) -> tuple[GaussianMixture, float]:
        """Return the mixture after a round of EM, and the log-likelihood before it."""
        nothing = np.empty((0, 0))
        parts = self._pass(X, variance, (nothing, nothing))
        counts, linear, squares, total = (sum(each) for each in zip(*parts, strict=True))
        return mixture_of_sums(counts, linear, squares), float(total)

    def _pass(self, X: Array, variance: Array, out: tuple[Array, Array]) -> list[tuple[Any, ...]]:
        """Return the sums of EM and the log-likelihood of each range of rows, or predict them."""
        K, d = self.means.shape
        kernel = cached_kernel(pass_over_rows, "pass_of_mixture")
        terms = self._terms(variance)

        def work(rows: slice) -> tuple[Any, ...]:
            sums = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
            there = out[0][rows], out[1][rows]
            return *sums, kernel(X[rows], variance[rows], terms, self._workspace(), sums, there)

        return map_ranges(work, len(X))

    def _workspace(self) -> tuple[Any, ...]:
        """Return room for U, V, y, r, g, log |U|, probabilities and positions, and for sums."""
        K, d = self.means.shape
        of_groups = np.empty((K, d, d)), np.empty((K, d, d)), *np.empty((3, K, d))
        numbers = np.empty(K), np.empty(K), np.empty(d, np.int64), np.zeros(K, np.bool_)
        return (*of_groups, *numbers), (np.zeros(K), np.empty((d, d)), *np.empty((4, d)))

    def noise(self, n: int) -> float:
        """Return the variance of independent noise in z, as n rows show it.

        It is the smallest median of the eigenvalues of a group, whose expectation over samples is
        corrected.
        """
        d, counts = self.means.shape[1], n * self.weights
        bias = 1 - np.minimum(d / (3 * counts), 1 / 3)
        medians = np.median(np.linalg.eigvalsh(self.covariances), axis=1) / bias
        return float(medians[counts >= min(2 * d, counts.max())].min())

    def _terms(self, variance: Array) -> tuple[Any, ...]:
        """Return logarithms of the probabilities, means, covariances, and A, -½ log |A|, v.

        The common variance v of entries is the smallest one.
        """
        common = float(variance.min())
        of_all = self.covariances + common * np.eye(self.means.shape[1])
        half = 0.5 * np.linalg.slogdet(of_all)[1]
        first = np.log(self.weights), self.means, self.covariances
        return *first, np.linalg.inv(of_all), half, common


def mixture_of_sums(counts: Array, linear: Array, squares: Array) -> GaussianMixture:
    """Return the mixture with these sums of probabilities, z and z zᵀ, without empty groups."""
    full = counts >= min(1.0, counts.max())
    counts, linear, squares = counts[full], linear[full], squares[full]
    means = linear / counts[:, None]
    scatter = squares - linear[:, :, None] * means[:, None, :]
    average = scatter.sum(axis=0) / counts.sum()
    covariances = (scatter + SHRINKAGE * average) / (counts + SHRINKAGE)[:, None, None]
    return GaussianMixture(counts / counts.sum(), means, covariances)


def smooth_group(X: Array, offsets: NDArray[np.intp], noise: float) -> GaussianMixture:
    """Return one group of rows X whose correlation decreases with the distance of pixels.

    `offsets` (pixel, dimension) are their places, and `noise` is the smallest variance.
    """
    distances = np.sqrt(np.sum((offsets[:, None] - offsets) ** 2, axis=-1))
    # Over 8 pixels, the correlation decreases by a factor of e.
    mean, covariance = np.full(len(offsets), np.nanmean(X)), np.exp(-distances / 8.0)
    covariance *= max(float(np.nanvar(X)), noise)
    return GaussianMixture(np.ones(1), mean[None], covariance[None])


def fit_mixture(
    X: Array,
    variance: Array,
    first: GaussianMixture,
    groups: int,
    rng: np.random.Generator,
    tell: Callable[[float], None] = lambda share: None,
) -> GaussianMixture:
    """Return a mixture of at most so many groups, by EM from k-means of completed rows.

    `tell` is called before each round, with 0: no prediction is made there.
    """
    mixture = first
    for _ in range(4):  # rounds of EM with one group
        tell(0.0)
        mixture, _ = mixture.improve(X, variance)
    if groups == 1:
        return mixture
    completed, _ = mixture.predict(X, variance)
    centres = completed[rng.choice(len(X), min(groups, len(X)), replace=False)]
    for _ in range(10):  # rounds of k-means
        distances = np.sum(centres**2, axis=1) - 2 * completed @ centres.T
        labels = np.argmin(distances, axis=1)[:, None] == np.arange(len(centres))
        counts = labels.sum(axis=0, dtype=float)
        centres = labels.T @ completed / np.maximum(counts, 1)[:, None]
    linear = labels.T @ completed
    squares = np.stack([completed[each].T @ completed[each] for each in labels.T])
    mixture = mixture_of_sums(counts, linear, squares)
    for _ in range(8):  # rounds of EM with all of them
        tell(0.0)
        mixture, _ = mixture.improve(X, variance)
    return mixture
