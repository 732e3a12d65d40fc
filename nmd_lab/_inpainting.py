"""Pictures by patches: the groups of their patches, or f(WH), and averages of all predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import ndimage

from ._runtime.checks import errors_about
from .data.patches import Average, Grid, from_patches, patches
from .fit import complete
from .sampling import sample
from .solver.gaussian_mixture import GaussianMixture, fit_mixture

NOISE = 1e-5
"""Variance of the noise of seen pixels that are not cleaned, in units of the squared range."""

TRAINING = 5000
"""Patches from which the groups learn."""

NOISE_GROUPS = 6
"""Groups from which the noise is estimated before it is removed."""

COUNT_PASSES = 3
"""Fits of photon counts: the variance of each is the mean of the one before."""

LEAST_COUNT = 0.1
"""Smallest mean number of photons in a variance."""

SMOOTHNESS = 8.0
"""Pixels over which the correlation of the first covariance decreases by a factor of e."""

HELD_OUT, ENOUGH, MOST = 0.05, 400, 0.2
"""Fraction of the seen pixels that the groups do not learn from, or the fraction for `ENOUGH` of
them if it is larger and below `MOST`.  Their predictions scale the intervals."""

FEWEST, OF_A_GROUP = 20, 150
"""Number of such pixels from which a scale is estimated, and of those with like deviations."""

LEVEL, ENDS = 0.9, 1.645
"""Probability of the intervals that are scaled, and their ends in standard deviations."""

TINY = 1e-8
"""Smallest variance, by which precisions are finite."""

RANK = 32
"""Components of the patches with a nonlinearity or a loss."""

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def fill_by_groups(
    pixels: Array, grid: Grid, groups: int, rng: np.random.Generator, denoise: bool, counts: bool
) -> tuple[Array, Array, dict[str, Any]]:
    """Return the mean and standard deviation of each pixel, and the groups; NaN is missing."""
    low = 0.0 if counts else float(np.nanmin(pixels))
    span = float(np.nanmax(pixels)) - low or 1.0
    units, photon = (pixels - low) / span, 1 / span if counts else 0.0
    mean, std, mixture = _fill(units, grid, groups, rng, denoise, photon)
    found = {
        "group_weight": ("group", mixture.weights),
        "group_mean": (("group", "pixel"), low + span * mixture.means),
        "group_covariance": (("group", "pixel", "pixel_"), span**2 * mixture.covariances),
    }
    return low + span * mean, span * std, found


def distance_to_seen(pixels: Array, grid: Grid) -> NDArray[np.int32]:
    """Return how many pixels away the nearest one is that is seen in a channel."""
    channels = tuple({*range(pixels.ndim)} - {*grid.space})
    missing = np.asarray(np.isnan(pixels).all(axis=channels, keepdims=True))
    distance: Any = ndimage.distance_transform_cdt(missing, "chessboard")
    return np.asarray(distance)


def _fill(
    units: Array, grid: Grid, groups: int, rng: np.random.Generator, denoise: bool, photon: float
) -> tuple[Array, Array, GaussianMixture]:
    """Return the mean and standard deviation of each pixel of a picture from 0 to 1, and groups.

    `photon` is the value of one count, 0 if there are no counts.
    """
    held_out = _held_out(units, rng) & (not denoise)
    training = np.where(held_out, np.nan, units)
    n = len(grid.corners)
    places = grid.positions(np.sort(rng.choice(n, min(TRAINING, n), replace=False)))
    places = places[~np.isnan(training.reshape(-1)[places]).all(axis=1)]
    X = training.reshape(-1)[places]
    start = _first(X, grid)
    variance = np.full(units.shape, NOISE + photon * np.nanmean(units))
    if denoise and not photon:
        few = fit_mixture(X, np.full_like(X, NOISE), start, NOISE_GROUPS, rng)
        variance += few.noise(len(X))
    seen, variance = _with_coarse(units, variance, grid, groups, rng)
    for _ in range(COUNT_PASSES if photon else 1):
        mixture = fit_mixture(X, variance.reshape(-1)[places], start, groups, rng)
        mean, std = _average(seen, variance, held_out, grid, mixture)
        variance = NOISE + photon * np.maximum(mean, photon * LEAST_COUNT)
    return mean, _scaled(std, units - mean, held_out), mixture


def _with_coarse(
    units: Array, variance: Array, grid: Grid, groups: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the pixels and their noise, with those of half the resolution far from seen ones."""
    far = distance_to_seen(units, grid) > min(grid.size[axis] for axis in grid.space) // 2
    half = tuple(-(-n // 2) if a in grid.space else n for a, n in enumerate(units.shape))
    if not far.any() or any(n < each for n, each in zip(half, grid.size, strict=True)):
        return units, variance
    sums, counts = np.nan_to_num(units), (~np.isnan(units)).astype(float)
    for axis in grid.space:
        pairs = np.arange(0, units.shape[axis], 2)
        sums, counts = (np.add.reduceat(each, pairs, axis) for each in (sums, counts))
    coarse = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    mean, std, _ = _fill(coarse, replace(grid, shape=half), groups, rng, False, 0.0)
    for axis in grid.space:
        inside = np.arange(units.shape[axis]) // 2
        mean, std = (np.take(each, inside, axis) for each in (mean, std))
    detail = np.nanmean((units - mean) ** 2)
    return np.where(far, mean, units), np.where(far, std**2 + detail, variance)


def _average(
    units: Array, variance: Array, left_out: Mask, grid: Grid, mixture: GaussianMixture
) -> tuple[Array, Array]:
    """Return the averages of the predictions of all patches, weighted by their precisions."""
    total, precision = Average(grid.shape), Average(grid.shape)
    X, noise, left = units.reshape(-1), variance.reshape(-1), left_out.reshape(-1)
    for _, places in grid.blocks():
        mean, spread = mixture.predict(X[places], noise[places], left[places])
        weights = 1 / np.maximum(spread, TINY)
        total.add(places, mean, weights)
        precision.add(places, weights, np.ones_like(weights))
    return total.result(), 1 / np.sqrt(precision.result())


def _held_out(units: Array, rng: np.random.Generator) -> Mask:
    """Return which seen pixels are held out."""
    seen = ~np.isnan(units)
    fraction = min(max(HELD_OUT, ENOUGH / seen.sum()), MOST)
    return np.asarray(seen & (rng.random(units.shape) < fraction))


def _scaled(std: Array, error: Array, held_out: Mask) -> Array:
    """Return standard deviations whose intervals cover the pixels that were held out.

    The factor changes with the standard deviation, since smooth and textured parts differ.
    """
    if held_out.sum() < FEWEST:
        return std
    spread, size = std[held_out], np.abs(error)[held_out]
    alike = np.array_split(np.argsort(spread), max(spread.size // OF_A_GROUP, 1))
    middle = np.log([np.median(spread[some]) for some in alike])
    factors = [np.quantile(size[some] / spread[some], LEVEL) / ENDS for some in alike]
    log_factor = np.interp(np.log(std), middle, np.log(np.maximum(factors, TINY)))
    return np.asarray(std * np.exp(log_factor))


def fill_by_factors(
    pixels: Array, grid: Grid, method: str, rng: np.random.Generator, **options: Any
) -> tuple[Array, Array]:
    """Return the mean and standard deviation of each pixel by f(WH) of the patches."""
    held_out = _held_out(pixels, rng)
    like = xr.DataArray(np.where(held_out, np.nan, pixels), dims=grid.dims)
    size, step = (tuple(each[axis] for axis in grid.space) for each in (grid.size, grid.step))
    X = patches(like, size, step)
    rank = min(RANK, *X.shape)
    with errors_about("picture"):
        if method == "sample":
            fit: Any = sample(X, rank, random_state=rng, **options)
            weights = 1 / np.maximum(fit.uncertainty(noise=False), TINY) ** 2
        else:
            fit = complete(X, rank, random_state=rng, **options)
            weights = xr.ones_like(X)
    mean = from_patches(fit.reconstruct(), like, weights).to_numpy()
    std = 1 / np.sqrt(from_patches(weights, like).to_numpy())
    return mean, _scaled(std, pixels - mean, held_out)


def _first(X: Array, grid: Grid) -> GaussianMixture:
    """Return one group whose correlation decreases with the distance of pixels."""
    offsets = grid.offsets
    distances = np.sqrt(np.sum((offsets[:, None] - offsets) ** 2, axis=-1))
    mean, covariance = np.full(len(offsets), np.nanmean(X)), np.exp(-distances / SMOOTHNESS)
    covariance *= max(float(np.nanvar(X)), NOISE)
    return GaussianMixture(np.ones(1), mean[None], covariance[None])
