"""`inpaint` fills the missing pixels of an image, and removes its noise, by patches.

It has the groups of their patches, or f(WH), and takes the averages of all predictions of a pixel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from nmd_lab._runtime.checks import (
    as_generator,
    check_integer,
    check_word,
    errors_about,
    is_auto,
    new_stream,
)
from nmd_lab._runtime.machine import one_thread
from nmd_lab.api.fits import complete
from nmd_lab.api.messages import warn
from nmd_lab.api.posteriors import sample
from nmd_lab.data.entries import as_booleans
from nmd_lab.data.labels import plain_array
from nmd_lab.data.patches import (
    CHANNELS,
    Grid,
    Size,
    dims_of,
    from_patches,
    grid_of,
    in_form_of,
    patches,
)
from nmd_lab.warnings import NMDWarning

from . import similar_patches as similar
from .mixture import GaussianMixture, fit_mixture, smooth_group

NOISE = 1e-5
"""Variance of the noise of seen pixels that are not cleaned, in units of the squared range."""

Array = NDArray[np.float64]
Positions = NDArray[np.intp]
Tell = Callable[[float, Array | None], None]
"""Hears which part of the work is done, often, and at times the picture so far; an error that it
raises ends the work."""


@dataclass(frozen=True)
class Plan:
    """How a picture is filled.

    Attributes
    ----------
    groups, passes : int
        Groups that are learned at most, and times that similar patches improve the estimate.
    denoise : bool
        Whether seen pixels are cleaned.
    photon : float
        Value of one photon count; 0 if there are no counts.
    mixture : GaussianMixture or None
        Groups that are known already; then no pixels are held out, and only patches with missing
        pixels are predicted.
    tell : callable
        Function of the share of the work that is done, and of the mean so far.
    """

    groups: int
    passes: int
    denoise: bool = False
    photon: float = 0.0
    mixture: GaussianMixture | None = None
    tell: Tell = lambda share, mean: None

    def step(self, k: int, mean: Array | None = None) -> Callable[[float], None]:
        """Tell that a step begins (0: groups, then the passes, and a last one).

        Return a function that tells the share of it that is done.
        """
        steps = self.passes + 2
        self.tell(k / steps, mean)
        return lambda share: self.tell((k + share) / steps, None)


def fill_by_groups(
    pixels: Array, grid: Grid, plan: Plan, rng: np.random.Generator, counts: bool = False
) -> tuple[Array, Array, dict[str, Any]]:
    """Return the mean and standard deviation of each pixel, and the groups, the largest first.

    Farther than a patch from seen pixels, the standard deviation rises to that of the picture.
    """
    low, span = _range(pixels, counts)
    deep = np.clip(
        distance_to_seen(pixels, grid) / max(grid.size[axis] for axis in grid.space) - 1, 0, 1
    )
    unknown = deep * np.nanstd(pixels)

    def tell(share: float, mean: Array | None) -> None:
        plan.tell(share, None if mean is None else low + span * mean)

    units = replace(plan, photon=1 / span if counts else 0.0, tell=tell)
    mean, std, mixture = _fill((pixels - low) / span, grid, units, rng)
    order = np.argsort(-mixture.weights, kind="stable")
    covariances = span**2 * mixture.covariances[order]
    found = {
        "group_weight": ("group", mixture.weights[order]),
        "group_mean": (("group", "pixel"), low + span * mixture.means[order]),
        "group_covariance": (("group", "pixel", "pixel_"), covariances),
    }
    return low + span * mean, np.maximum(span * std, unknown), found


def refill(
    pixels: Array, box: tuple[slice, ...], grid: Grid, groups: xr.Dataset, tell: Tell
) -> Array:
    """Return the mean of the pixels in a box, by groups that are known and patches nearby.

    Pixels outside of the box best have estimates, so that only patches of the box are predicted.
    """
    low, span = _range(pixels)
    weights, means, covariances = (groups[f"group_{x}"] for x in ("weight", "mean", "covariance"))
    mixture = GaussianMixture(
        weights.to_numpy(), (means.to_numpy() - low) / span, covariances.to_numpy() / span**2
    )
    lengths = zip(box, grid.size, grid.shape, strict=True)
    around = [slice(max(s.start - 3 * n, 0), min(s.stop + 3 * n, m)) for s, n, m in lengths]
    near = (pixels[tuple(around)] - low) / span
    plan = Plan(len(weights), 1, mixture=mixture, tell=tell)
    mean, _, _ = _fill(near, replace(grid, shape=near.shape), plan, np.random.default_rng(0))
    inside = zip(box, around, strict=True)
    inner: Array = mean[tuple(slice(s.start - a.start, s.stop - a.start) for s, a in inside)]
    return low + span * inner


def _range(pixels: Array, counts: bool = False) -> tuple[float, float]:
    """Return the smallest seen pixel, 0 for counts, and the difference of the largest from it."""
    low = 0.0 if counts else float(np.nanmin(pixels))
    return low, float(np.nanmax(pixels)) - low or 1.0


def distance_to_seen(pixels: Array, grid: Grid) -> NDArray[np.int32]:
    """Return how many pixels away the nearest one is that is seen in a channel."""
    channels = tuple({*range(pixels.ndim)} - {*grid.space})
    missing = np.asarray(np.isnan(pixels).all(axis=channels, keepdims=True))
    distance: Any = ndimage.distance_transform_cdt(missing, "chessboard")
    return np.asarray(distance)


def _fill(
    units: Array, grid: Grid, plan: Plan, rng: np.random.Generator
) -> tuple[Array, Array, GaussianMixture]:
    """Return the mean and standard deviation of each pixel of a picture from 0 to 1, and groups.

    Without pixels that are held out, the standard deviations are those of the groups, whose errors
    are larger.
    """
    may_hold_out = not plan.denoise and plan.mixture is None
    held_out = similar.held_out_pixels(units, grid, rng) & may_hold_out
    training = np.where(held_out, np.nan, units)
    seen, variance, of_groups, mixture = _by_groups(training, grid, plan, rng)
    known = ~np.isnan(training) & (not plan.denoise)
    estimate = of_groups
    for k in range(1, plan.passes + 1):
        tell = plan.step(k, estimate[0])
        if plan.photon:
            # A tenth of a photon is the smallest mean number in a variance.
            variance = NOISE + plan.photon * np.maximum(estimate[0], plan.photon * 0.1)
        before, estimate = estimate, similar.by_similar(seen, variance, known, grid, estimate, tell)
        share = similar.weight_of(units[held_out], before[0][held_out], estimate[0][held_out])
        estimate = similar.between(before, estimate, share)
    if held_out.sum() < similar.MIN_PIXELS:
        return estimate[0], of_groups[1], mixture
    tell = plan.step(plan.passes + 1, estimate[0])
    factor = similar.factor_of(estimate, units, held_out)
    seen, known = np.where(held_out, units, seen), known | held_out
    after = similar.by_similar(seen, variance, known, grid, before, tell)
    mean, std = similar.between(before, after, share)
    return mean, std * factor(std), mixture


def _by_groups(
    units: Array, grid: Grid, plan: Plan, rng: np.random.Generator
) -> tuple[Array, Array, similar.Estimate, GaussianMixture]:
    """Return the pixels with coarse ones, the variances of their noise, an estimate and groups."""
    variance = np.full(units.shape, NOISE + plan.photon * np.nanmean(units))
    mixture, tell = plan.mixture, plan.step(0)
    if mixture is None:
        places = _training_places(units, grid, rng)
        X = units.reshape(-1)[places]
        start = smooth_group(X, grid.offsets, NOISE)
        if plan.denoise and not plan.photon:
            few = fit_mixture(X, np.full_like(X, NOISE), start, 6, rng, tell)  # groups
            variance += few.noise(len(X))
    seen, variance = _with_coarse(units, variance, grid, plan, rng)
    if mixture is None:
        mixture = fit_mixture(X, variance.reshape(-1)[places], start, plan.groups, rng, tell)
    flat, n = (seen.reshape(-1), variance.reshape(-1)), len(grid.corners)

    def found() -> Iterator[tuple[Positions, Array, Array]]:
        for rows, at in grid.blocks():
            tell(rows.start / n)
            some = at if plan.mixture is None else at[np.isnan(units.reshape(-1)[at]).any(axis=1)]
            if len(some):
                yield some, *mixture.predict(*(each[some] for each in flat))

    return seen, variance, similar.average(grid, found()), mixture


def _training_places(units: Array, grid: Grid, rng: np.random.Generator) -> Positions:
    """Return the positions (patch, pixel) of the patches from which the groups learn.

    Where a regular pattern of missing pixels has the period of the grid, as the colours of a sensor
    have, they begin at any pixel, so that each of their entries is seen in some.  Patches without a
    missing pixel are preferred if there are enough: they share their factorisation.
    """
    missing = np.isnan(units).reshape(-1)
    dense = replace(grid, step=tuple(1 if a in grid.space else n for a, n in enumerate(grid.step)))
    for each in (grid, dense):
        n = len(each.corners)
        places = each.positions(np.sort(rng.choice(n, min(20_000, n), replace=False)))
        if (~missing[places]).mean(axis=0).min() > 0.01:  # each entry is seen in some
            break
    n_missing = missing[places].sum(axis=1)
    complete = places[n_missing == 0]
    # The groups learn from complete patches alone if there are enough.
    places = complete if len(complete) >= 2000 else places[n_missing < places.shape[1]]
    some = rng.choice(len(places), min(5000, len(places)), replace=False)
    return np.asarray(places[np.sort(some)])


def _with_coarse(
    units: Array, variance: Array, grid: Grid, plan: Plan, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the pixels and their noise, with those of half the resolution far from seen ones."""
    far = distance_to_seen(units, grid) > min(grid.size[axis] for axis in grid.space) // 2
    half = tuple(-(-n // 2) if a in grid.space else n for a, n in enumerate(units.shape))
    if not far.any() or any(n < each for n, each in zip(half, grid.size, strict=True)):
        return units, variance
    pairs = dict.fromkeys([grid.dims[axis] for axis in grid.space], 2)
    coarse = xr.DataArray(units, dims=grid.dims).coarsen(pairs, boundary="pad").mean().to_numpy()
    # A picture of half the resolution needs fewer groups.
    coarsely = Plan(min(plan.groups, 4), 1, tell=lambda *_: plan.tell(0.0, None))
    mean, std, _ = _fill(coarse, replace(grid, shape=half), coarsely, rng)
    for axis in grid.space:
        inside = np.arange(units.shape[axis]) // 2
        mean, std = (np.take(each, inside, axis) for each in (mean, std))
    detail = np.nanmean((units - mean) ** 2)
    return np.where(far, mean, units), np.where(far, std**2 + detail, variance)


def fill_by_factors(
    pixels: Array, grid: Grid, method: str, rng: np.random.Generator, **options: Any
) -> tuple[Array, Array]:
    """Return the mean and standard deviation of each pixel by f(WH) of the patches."""
    held_out = similar.held_out_pixels(pixels, grid, rng)
    like = xr.DataArray(np.where(held_out, np.nan, pixels), dims=grid.dims)
    size, step = (tuple(each[axis] for axis in grid.space) for each in (grid.size, grid.step))
    X = patches(like, size, step)
    rank = min(32, *X.shape)  # of which the ridge, or the prior, removes some components
    with errors_about("picture"):
        if method == "sample":
            fit: Any = sample(X, rank, random_state=rng, **options)
            weights = 1 / np.maximum(fit.uncertainty(noise=False), similar.MIN_VARIANCE) ** 2
        else:
            fit = complete(X, rank, random_state=rng, **options)
            weights = xr.ones_like(X)
    mean = from_patches(fit.reconstruct(), like, weights).to_numpy()
    std = 1 / np.sqrt(from_patches(weights, like).to_numpy())
    return mean, std * similar.factor_of((mean, std), pixels, held_out)(std)


GROUPS = 12
"""Groups of patches."""

PASSES = {"sample": 3, "complete": 1}
"""Times that similar patches improve the estimate."""

SIZES = {(2, False): 8, (2, True): 5, (3, False): 4, (3, True): 3}
"""Pixels of a patch along each dimension, by their number and whether there are channels."""


def inpaint(
    picture: Any,
    observed: ArrayLike | None = None,
    *,
    method: Literal["sample", "complete"] = "sample",
    size: Literal["auto"] | Size = "auto",
    step: Literal["auto"] | Size = "auto",
    nonlinearity: Any = "auto",
    loss: Any = "frobenius",
    groups: Literal["auto"] | int = "auto",
    draws: int = 100,
    denoise: bool = False,
    random_state: Any = None,
) -> xr.Dataset:
    """Fill the missing pixels of an image from its patches, with standard deviations.

    Overlapping patches are the rows of a matrix.  Each belongs to one of several groups, and those
    of a group have a Gaussian distribution with a full covariance [1]_.  The groups are learned
    from the seen pixels alone by expectation maximisation.  A pixel is the average of its
    predictions in all patches, weighted by their precisions.  The patches of each place are then
    predicted again, by the Gaussian of similar patches nearby [2]_.

    Parameters
    ----------
    picture : array_like or DataArray
        Grey image (y, x), colour image (y, x, channel) or stack (z, y, x), as for `patches`, of
        any range and dtype.  NaN is missing.
    observed : array_like of bool, optional
        Where pixels are seen, (y, x) for all channels or in the shape of the image; False is
        missing.
    method : {"sample", "complete"}, default "sample"
        "sample" is nearer to the truth.  "complete" is faster: it has fewer patches (`step`), and
        predicts by similar patches once in place of three times.  With a nonlinearity or a loss,
        the call of this name fits the matrix of patches.
    size : "auto", int or tuple of int, default "auto"
        Pixels of a patch along each dimension but the channels.  "auto": 8, for colour 5 and for
        a stack 4.
    step : "auto", int or tuple of int, default "auto"
        Pixels from one patch to the next.  "auto": 2, or 4 for "complete".
    nonlinearity : str, Nonlinearity, default "auto"
        Nonlinearity f of all patches, as for `sample`; by default there is none.
    loss : str or Loss, default "frobenius"
        Loss, as for `sample`, for example "kl" for photon counts.
    groups : "auto" or int, default "auto"
        Upper bound for the number of groups of patches.  "auto": 12, and 1 with a nonlinearity or
        a loss.
    draws : int, default 100
        Draws of `sample` with a nonlinearity or a loss.
    denoise : bool, default False
        Whether seen pixels are cleaned of their noise, too.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    xarray.Dataset
        ``picture`` with the dtype and coordinates of the input, and ``std``, the standard
        deviation of each pixel in its unit, 0 where it was seen and not cleaned.  The intervals
        ``picture ± 1.645 std`` cover 90 % of held-out pixels; of a cleaned image,
        ``std`` is that of the groups, and somewhat too large.  From one to two patches inside a
        hole it rises to that of the image.  The groups, the largest first, have
        ``group_weight``, ``group_mean`` and ``group_covariance``.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, or all pixels are missing; this is checked before any work.

    Warns
    -----
    NMDWarning
        If a missing region is wider than two patches, so that its inner pixels are uncertain.

    See Also
    --------
    patches : The matrix for fits and studies of your own.

    Notes
    -----
    A region wider than a patch is first filled in an image of half the resolution, whose pixels
    count as observations with their standard deviation.  Some seen pixels are held out until the
    last step: they choose how far the similar patches move the estimate, and scale ``std``.

    References
    ----------
    .. [1] G. Yu, G. Sapiro and S. Mallat, "Solving inverse problems with piecewise linear
       estimators: from Gaussian mixture models to structured sparsity", IEEE Transactions on Image
       Processing 21, 2481-2499, 2012.
    .. [2] C. Aguerrebere, A. Almansa, J. Delon, Y. Gousseau and P. Musé, "A Bayesian hyperprior
       approach for joint image denoising and interpolation", IEEE Transactions on Computational
       Imaging 3, 633-646, 2017.

    Examples
    --------
    A photograph with 60 % of its pixels missing:

    >>> import numpy as np
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_sample_image
    >>> photo = load_sample_image("china.jpg")[100:164, 200:264].mean(axis=2)
    >>> seen = np.random.default_rng(0).random(photo.shape) > 0.6
    >>> filled = nmd.inpaint(photo, seen, random_state=0)
    >>> error = np.abs(filled["picture"] - photo).values[~seen]
    >>> covered = error < 1.645 * filled["std"].values[~seen]
    >>> bool(0.8 < covered.mean() < 0.97)
    True
    """
    check_word("method", method, ["sample", "complete"])
    rng = new_stream(as_generator(random_state))
    pixels, seen = seen_pixels(picture, observed)
    grid = default_grid(picture, method, size, step)
    of_loss = getattr(loss, "name", loss)
    counts, linear = of_loss == "kl", getattr(nonlinearity, "name", nonlinearity)
    gaussian = of_loss in ("kl", "frobenius") and linear in ("auto", "identity")
    n_groups = (GROUPS if gaussian else 1) if is_auto(groups) else groups
    n_groups = check_integer("groups", n_groups, 1)
    visible = np.where(seen, pixels, np.nan)
    more: dict[str, Any] = {}
    if sentence := guess_in_words(visible, grid):
        warn({NMDWarning: sentence}, stacklevel=2)
    if gaussian:
        if counts and np.nanmin(visible) < 0:
            raise ValueError("picture has negative pixels: give counts, or another loss.")
        with one_thread():
            plan = Plan(n_groups, PASSES[method], denoise)
            mean, std, more = fill_by_groups(visible, grid, plan, rng, counts)
    else:
        options = {"draws": draws, "groups": n_groups} if method == "sample" else {}
        options |= {"nonlinearity": nonlinearity, "loss": loss}
        mean, std = fill_by_factors(visible, grid, method, rng, **options)
    return filled_dataset(picture, seen & (not denoise), mean, std, more)


def default_grid(
    picture: Any, method: str, size: Literal["auto"] | Size = "auto", step: Any = "auto"
) -> Grid:
    """Return the places of the patches of a picture."""
    shape, dims = np.shape(picture), dims_of(picture)
    space = [n for n, dim in zip(shape, dims, strict=True) if dim not in CHANNELS]
    width: Any = size
    if is_auto(size):
        width = tuple(min(SIZES[len(space), len(shape) > len(space)], n) for n in space)
    if is_auto(step):
        parts = 4 if method == "sample" else 2
        step = tuple(-(-int(each) // parts) for each in np.broadcast_to(width, len(space)))
    return grid_of(picture, width, step)


def guess_in_words(visible: Array, grid: Grid) -> str:
    """Return a sentence if a missing region is so wide that its inner pixels are a guess."""
    wide, patch = 2 * int(distance_to_seen(visible, grid).max()) - 1, max(grid.size)
    if wide <= 2 * patch:  # patches at its edge reach its middle
        return ""
    return (
        f"A missing region is about {wide} pixels wide, and patches {patch}: inside, its pixels "
        "are uncertain."
    )


def filled_dataset(
    picture: Any, unchanged: NDArray[np.bool_], mean: Array, std: Array, groups: dict[str, Any]
) -> xr.Dataset:
    """Return the picture, its standard deviations and the groups; some pixels are unchanged."""
    dims = dims_of(picture)
    labelled = picture if hasattr(picture, "dims") else xr.DataArray(np.asarray(picture), dims=dims)
    filled = in_form_of(labelled, np.where(unchanged, plain_array(picture), mean))
    spread = labelled.copy(data=np.where(unchanged, 0.0, std))
    return xr.Dataset({"picture": filled, "std": spread, **groups})


def seen_pixels(picture: Any, observed: ArrayLike | None) -> tuple[Array, NDArray[np.bool_]]:
    """Return the pixels as numbers, and which of them are seen."""
    try:
        pixels = plain_array(picture).astype(float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"picture is a {type(picture).__name__}: give numbers.") from error
    seen = ~np.isnan(pixels)
    if observed is not None:
        mask, dims = plain_array(observed), dims_of(picture)
        channels = tuple(axis for axis, dim in enumerate(dims) if dim in CHANNELS)
        if mask.ndim == pixels.ndim - len(channels):
            mask = np.expand_dims(mask, channels)
        one = tuple(1 if axis in channels else n for axis, n in enumerate(pixels.shape))
        if mask.shape not in (pixels.shape, one):
            raise ValueError(
                f"observed has shape {np.shape(observed)}: give it the shape of the image, "
                f"{pixels.shape}."
            )
        seen &= as_booleans(mask)
    if not seen.any():
        raise ValueError("picture has no seen pixel: give some that are not NaN.")
    if np.isinf(pixels[seen]).any():
        raise ValueError("picture has infinite pixels: replace them by NaN.")
    return pixels, seen
