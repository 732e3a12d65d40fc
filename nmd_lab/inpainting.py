"""`inpaint` fills the missing pixels of a picture, and removes its noise, by patches."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from ._inpainting import Plan, distance_to_seen, fill_by_factors, fill_by_groups
from ._messages import warn
from ._runtime.checks import as_generator, check_integer, check_word, is_auto, new_stream
from ._runtime.machine import one_thread
from .data.entries import as_booleans
from .data.labels import plain_array
from .data.patches import CHANNELS, Grid, Size, dims_of, grid_of, in_form_of
from .warnings import NMDWarning

GROUPS = 12
"""Groups of patches."""

PASSES = {"sample": 3, "complete": 1}
"""Times that similar patches improve the estimate."""

GUESS = 2
"""Width of a missing region, in those of a patch, above which its inner pixels are a guess."""

SIZES = {(2, False): 8, (2, True): 5, (3, False): 4, (3, True): 3}
"""Pixels of a patch along each dimension, by their number and whether there are channels."""

Array = NDArray[np.float64]


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
    """Fill the missing pixels of a picture from its patches, with standard deviations.

    Overlapping patches are the rows of a matrix.  Each belongs to one of several groups, and those
    of a group have a Gaussian distribution with a full covariance [1]_.  The groups are learned
    from the seen pixels alone by expectation maximisation.  A pixel is the average of its
    predictions in all patches, weighted by their precisions.  The patches of each place are then
    predicted again, by the Gaussian of similar patches nearby [2]_.

    Parameters
    ----------
    picture : array_like or DataArray
        Grey picture (y, x), colour picture (y, x, channel) or stack (z, y, x), as for `patches`, of
        any range and dtype.  NaN is missing.
    observed : array_like of bool, optional
        Where pixels are seen, (y, x) for all channels or in the shape of the picture; False is
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
        ``picture ± 1.645 std`` cover 90 % of seen pixels that were hidden; of a cleaned picture,
        ``std`` is that of the groups, and somewhat too large.  From one to two patches inside a
        hole it rises to that of the picture.  The groups, the largest first, have
        ``group_weight``, ``group_mean`` and ``group_covariance``.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, or all pixels are missing; this is checked before any work.

    Warns
    -----
    NMDWarning
        If a missing region is wider than two patches, so that its inner pixels are a guess.

    See Also
    --------
    patches : The matrix for fits and studies of your own.

    Notes
    -----
    A region wider than a patch is first filled in a picture of half the resolution, whose pixels
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
    if wide <= GUESS * patch:
        return ""
    return (
        f"A missing region is about {wide} pixels wide, and patches {patch}: inside, its pixels "
        "are a guess."
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
                f"observed has shape {np.shape(observed)}: give it the shape of the picture, "
                f"{pixels.shape}."
            )
        seen &= as_booleans(mask)
    if not seen.any():
        raise ValueError("picture has no seen pixel: give some that are not NaN.")
    if np.isinf(pixels[seen]).any():
        raise ValueError("picture has infinite pixels: replace them by NaN.")
    return pixels, seen
