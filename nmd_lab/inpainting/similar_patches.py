"""Predictions of patches by the Gaussian of those that are most like them nearby, and averages.

An estimate ẑ of a picture has variances s.  For the patch at a corner, the nearest ones of ẑ within
a window give a Gaussian of this place::

    μ = mean ẑ,      Σ = cov ẑ + SPREAD · diag(mean s)

The most similar of these patches are predicted from their observed entries by it, as in
`observed_gaussian`.  This is the Bayesian step of M. Lebrun, A. Buades and J.-M. Morel ("A nonlocal
Bayesian image denoising algorithm", SIAM Journal on Imaging Sciences 6, 2013), with missing pixels
as in C. Aguerrebere, A. Almansa, J. Delon, Y. Gousseau and P. Musé ("A Bayesian hyperprior approach
for joint image denoising and interpolation", IEEE Transactions on Computational Imaging 3, 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import cached_kernel, compile_inner
from nmd_lab._runtime.machine import map_ranges
from nmd_lab.data.patches import Average, Grid

from .mixture import (
    factorise,
    invert,
    list_smaller_pattern,
    project,
    put_mean,
    put_variances,
    solve_row,
)

N_SIMILAR, N_PREDICTED = 60, 8
"""Patches from which a Gaussian is learned, and those that it predicts."""

SPREAD = 0.3
"""Fraction of the variances of the estimate that the covariance has."""

N_CORNERS = 2000
"""Corners that are handled at a time."""

MIN_PIXELS = 20
"""Number of held-out pixels from which a scale is estimated."""

MIN_VARIANCE = 1e-8
"""Smallest variance, by which precisions are finite."""

Array = NDArray[np.float64]
Positions = NDArray[np.intp]
Mask = NDArray[np.bool_]
Estimate = tuple[Array, Array]
"""Mean and standard deviation of each pixel."""


@compile_inner
def nearest_patches(estimate, corner, places, chosen, distances):  # type: ignore[no-untyped-def]
    """Put the most similar patches of a window into `chosen`; return their number."""
    strides, last, window, within = places
    base, count = 0, 0
    for axis in range(corner.size):
        base += corner[axis] * strides[axis]
    for c in range(window.shape[0]):
        inside, at = True, 0
        for axis in range(corner.size):
            position = corner[axis] + window[c, axis]
            inside = inside and 0 <= position <= last[axis]
            at += position * strides[axis]
        if not inside:
            continue
        distance = 0.0
        for j in within:
            difference = estimate[at + j] - estimate[base + j]
            distance += difference * difference
        if count == chosen.size and distance >= distances[count - 1]:
            continue
        count = min(count + 1, chosen.size)
        i = count - 1
        while i > 0 and distances[i - 1] > distance:
            chosen[i], distances[i] = chosen[i - 1], distances[i - 1]
            i -= 1
        chosen[i], distances[i] = at, distance
    return count


@compile_inner
def learn_gaussian(guess, chosen, n, within, Z, mean, variance, covariance):  # type: ignore[no-untyped-def]
    """Put the mean and the covariance of the first `n` chosen patches into place."""
    estimate, spread = guess
    d = within.size
    for j in range(d):
        mean[j] = variance[j] = 0.0
    for i in range(n):
        for j in range(d):
            Z[i, j] = estimate[chosen[i] + within[j]]
            mean[j] += Z[i, j] / n
            variance[j] += SPREAD * spread[chosen[i] + within[j]] / n
    root = math.sqrt(n)
    for i in range(n):
        for j in range(d):
            Z[i, j] = (Z[i, j] - mean[j]) / root
    np.dot(Z[:n].T, Z[:n], covariance)
    for j in range(d):
        covariance[j, j] += variance[j]


def predict_similar(pixels, guess, corners, places, out):  # type: ignore[no-untyped-def]
    """Put the corners, means and variances of the patches like those at some corners into `out`."""
    within = places[3]
    at, means, variances = out
    d, common = within.size, pixels[1][0]
    for noise in pixels[1]:
        common = min(common, noise)
    chosen, distances = np.empty(N_SIMILAR, np.int64), np.empty(N_SIMILAR)
    Z, U, V = np.empty((N_SIMILAR, d)), np.empty((d, d)), np.empty((d, d))
    covariance, inverse = np.empty((d, d)), np.empty((d, d))
    mean, y, positions = np.empty(d), np.empty(d), np.empty(d, np.int64)
    x, v, r, g = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    for c in range(corners.shape[0]):
        count = nearest_patches(guess[0], corners[c], places, chosen, distances)
        learn_gaussian(guess, chosen, count, within, Z, mean, r, covariance)
        inverted = False
        for i in range(min(N_PREDICTED, count)):
            for j in range(d):
                x[j], v[j] = pixels[0][chosen[i] + within[j]], pixels[1][chosen[i] + within[j]]
            n, few = list_smaller_pattern(x, v, common, positions)
            if few and not inverted:
                for j in range(d):
                    for b in range(d):
                        inverse[j, b] = covariance[j, b]
                    inverse[j, j] += common
                invert(inverse)
                inverted = True
            matrix = inverse if few else covariance
            factorise(matrix, positions[:n], few, v, U)
            project(U, matrix, positions[:n], few, common, V)
            solve_row(x, mean, few, matrix, U, positions[:n], r, g, y)
            at[c, i] = chosen[i]
            put_mean(mean, r, g, few, common, n, V, y, means[c, i])
            put_variances(matrix, few, common, n, V, variances[c, i])


def window_of(last: Positions) -> Positions:
    """Return differences (patch, dimension) of the corners of a window."""
    free = last > 0
    most = 441  # patches of a window
    width = int(most ** (1 / max(free.sum(), 1)) + 1e-9) // 2
    ranges = [np.arange(-width, width + 1) if each else np.zeros(1, int) for each in free]
    return np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, free.size)


def predict_alike(
    pixels: tuple[Array, Array],
    guess: tuple[Array, Array],
    corners: Positions,
    places: tuple[Positions, ...],
    tell: Callable[[float], None],
) -> Iterator[tuple[Positions, Array, Array]]:
    """Yield positions, means and variances (patch, pixel) of patches like those at corners.

    The flat `pixels` are values and the variances of their noise, those of `guess` the means
    and variances of the estimate; `places` the strides of the picture, the last corner, the window
    and the positions of the pixels of a patch.  `tell` is called with the share that is done.
    """
    predict = cached_kernel(predict_similar, "predict_similar_patches")
    within = places[3]
    for begin in range(0, len(corners), N_CORNERS):
        tell(begin / len(corners))
        block = corners[begin : begin + N_CORNERS]
        shape = len(block), N_PREDICTED
        out = np.full(shape, -1), *np.empty((2, *shape, within.size))

        def work(rows: slice, block: Positions = block, out: Any = out) -> None:
            predict(pixels, guess, block[rows], places, tuple(each[rows] for each in out))

        map_ranges(work, len(block))
        there = out[0] >= 0
        yield out[0][there][:, None] + within, out[1][there], out[2][there]


def average(grid: Grid, found: Iterable[tuple[Positions, Array, Array]]) -> Estimate:
    """Return averages of predictions at some positions, weighted by their precisions.

    Pixels without a prediction are NaN.
    """
    total, precision = Average(grid.shape), Average(grid.shape)
    for places, mean, variance in found:
        weights = 1 / np.maximum(variance, MIN_VARIANCE)
        total.add(places, mean, weights)
        precision.add(places, weights, np.ones_like(weights))
    return total.result(), 1 / np.sqrt(precision.result())


def by_similar(
    seen: Array,
    variance: Array,
    known: Mask,
    grid: Grid,
    estimate: Estimate,
    tell: Callable[[float], None],
) -> Estimate:
    """Return predictions by similar patches of an estimate; `known` pixels are as they are seen."""
    mean, std = estimate
    guess = np.where(known, seen, mean).reshape(-1), np.where(known, 0.0, std**2).reshape(-1)
    grid = replace(grid, step=tuple(-(-n // 2) for n in grid.size))
    strides = np.array(seen.strides) // seen.itemsize
    last = np.subtract(grid.shape, grid.size)
    places = strides, last, window_of(last), grid.offsets @ strides
    corners = grid.corners
    corners = corners[~known.reshape(-1)[grid.positions(np.arange(len(corners)))].all(axis=1)]
    pixels = seen.reshape(-1), variance.reshape(-1)
    found = predict_alike(pixels, guess, corners, places, tell)
    new, new_std = average(grid, found)
    return np.where(np.isnan(new), mean, new), np.where(np.isnan(new), std, new_std)


def weight_of(truth: Array, before: Array, after: Array) -> float:
    """Return the weight of the second of two predictions, by least squares of their average."""
    if truth.size < MIN_PIXELS:
        return 1.0
    change = after - before
    size = max(float(change @ change), MIN_VARIANCE)
    return float(np.clip(change @ (truth - before) / size, 0, 1))


def between(before: Estimate, after: Estimate, share: float) -> Estimate:
    """Return the average of two estimates, with the weight of the second."""
    mean, std = ((1 - share) * old + share * new for old, new in zip(before, after, strict=True))
    return mean, std


def held_out_pixels(units: Array, grid: Grid, rng: np.random.Generator) -> Mask:
    """Return which seen pixels are held out, with all their channels; none of very few."""
    seen = ~np.isnan(units)
    # Few of a large picture, and of a smaller one the fraction that makes 400 of them.
    most = 0.2
    fraction = (most * seen.sum() >= MIN_PIXELS) * min(max(0.02, 400 / seen.sum()), most)
    one = [n if axis in grid.space else 1 for axis, n in enumerate(units.shape)]
    return np.asarray(seen & (rng.random(one) < fraction))


def factor_of(estimate: Estimate, truth: Array, held_out: Mask) -> Callable[[Array], Array]:
    """Return a function of standard deviations: factors by which intervals cover held-out pixels.

    Factors change with the standard deviation, since smooth and textured parts differ.
    """
    if held_out.sum() < MIN_PIXELS:
        return np.ones_like
    mean, std = (each[held_out] for each in estimate)
    size = np.abs(truth[held_out] - mean)
    # Parts of about 150 pixels have like deviations.
    alike = np.array_split(np.argsort(std), max(std.size // 150, 1))
    middle = np.log([np.median(std[some]) for some in alike])
    # The ends of intervals of 90 %, in standard deviations.
    factors: Any = [np.quantile(size[some] / std[some], 0.9) / 1.645 for some in alike]
    logs = np.log(np.maximum(factors, MIN_VARIANCE))
    return lambda std: np.exp(np.interp(np.log(std), middle, logs))
