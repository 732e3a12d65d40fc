"""Patches of an image: overlapping windows as the rows of a matrix, and the way back.

A patch has one entry for each of its pixels and channels.  The last patches of an axis end at its
border, so that every pixel is in a patch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from nmd_lab._runtime.checks import check_integer

from .labels import plain_array

CHANNELS = {"channel", "band", "color", "colour", "rgb"}
"""Names of a dimension whose entries are all in one patch."""

MAX_CHANNELS = 4
"""Length of the last axis of an array that is still one of channels: red, green, blue, opacity."""

CORNER = "patch_"
"""Beginning of the coordinates that have the first pixel of a patch."""

Positions = NDArray[np.intp]
Size = int | tuple[int, ...]


def patches(picture: Any, size: Size = 8, step: Size = 2) -> xr.DataArray:
    """Return the overlapping patches of an image as the rows of a matrix.

    Neighbouring pixels and repeated texture make this matrix nearly low-rank, and that of a
    image's own rows and columns is not.  `decompose`, `complete`, `sample` and `Study` take it.

    Parameters
    ----------
    picture : array_like or DataArray
        Grey image (y, x), colour image (y, x, channel), or a stack of images (z, y, x), with
        channels as the last axis if there are any.  The last of three axes has channels if it has
        at most 4 entries.  In a DataArray, a dimension named channel, band, color, colour or rgb
        has them.  Missing pixels are NaN.
    size : int or tuple of int, default 8
        Pixels of a patch along each dimension but the channels, for example ``(1, 8, 8)`` for the
        frames of a film.
    step : int or tuple of int, default 2
        Pixels from one patch to the next, at most `size`.

    Returns
    -------
    DataArray (patch, pixel)
        Entries of the dtype of the image.  The coordinates ``patch_y`` and ``patch_x`` have the
        position of the first pixel of each patch, and ``y`` and ``x`` the place in it.

    Raises
    ------
    ValueError, TypeError
        If the image has another number of dimensions, the size exceeds it, or the step exceeds
        the size.

    See Also
    --------
    from_patches : The way back.
    inpaint : Missing pixels of an image in one call.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_sample_image
    >>> photo = load_sample_image("china.jpg")[:64, :64]
    >>> windows = nmd.patches(photo, size=8, step=4)
    >>> windows.shape
    (225, 192)
    >>> bool((nmd.from_patches(windows, like=photo) == photo).all())
    True
    """
    grid = grid_of(picture, size, step)
    corners, offsets = grid.corners, grid.offsets
    windows = sliding_window_view(plain_array(picture), grid.size)
    entries = windows[tuple(corners.T)].reshape(len(corners), -1)
    coords = {f"{CORNER}{dim}": ("patch", at) for dim, at in zip(grid.dims, corners.T, strict=True)}
    coords |= {dim: ("pixel", at) for dim, at in zip(grid.dims, offsets.T, strict=True)}
    return xr.DataArray(entries, dims=("patch", "pixel"), coords=coords, name="patches")


def from_patches(values: xr.DataArray, like: Any = None, weights: ArrayLike | None = None) -> Any:
    """Return the image of some patches: the weighted average of all entries of a pixel.

    Parameters
    ----------
    values : DataArray (patch, pixel)
        Patches with the coordinates of `patches`, as fits and posteriors of them predict.  Entries
        that are NaN do not count.
    like : array_like or DataArray, optional
        Image with the shape, type, dtype, coordinates and name of the result.  By default it is a
        DataArray with the dimensions of `patches`, and the pixels that these patches have.
    weights : array_like (patch, pixel) or (patch, 1), optional
        Weights >= 0, best the inverse variances of the entries; by default all are equal.

    Returns
    -------
    picture : array or DataArray
        Pixels without an entry are NaN.  For a dtype of integers, averages are rounded.

    Raises
    ------
    ValueError, TypeError
        If `values` have no such coordinates or belong to another image, or a weight is negative.

    See Also
    --------
    patches : The patches of an image.

    Examples
    --------
    A photograph from a low-rank approximation of its patches:

    >>> import numpy as np
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_sample_image
    >>> photo = load_sample_image("flower.jpg")[:64, :64].mean(axis=2) / 255
    >>> fit = nmd.decompose(nmd.patches(photo), 4, "identity", random_state=0)
    >>> approximation = nmd.from_patches(fit.reconstruct(), like=photo)
    >>> bool(np.abs(approximation - photo).mean() < 0.01)
    True
    """
    if like is None:
        like = _picture_of(values)
    dims, shape = dims_of(like), np.shape(like)
    corners, offsets = _places(values, dims)
    if np.any(corners.max(axis=0) + offsets.max(axis=0) >= shape):
        raise ValueError(f"values has patches beyond like, whose shape is {shape}: give its own.")
    entries = values.transpose("patch", "pixel").to_numpy()
    w = np.ones((1, 1)) if weights is None else plain_array(weights).astype(float)
    if w.ndim != 2 or any(n not in (1, m) for n, m in zip(w.shape, entries.shape, strict=True)):
        raise ValueError(f"weights has the shape {w.shape}: give {entries.shape}, as values has.")
    if not np.all(w >= 0):
        raise ValueError("weights has negative numbers or NaN: give weights >= 0.")
    w = np.broadcast_to(w, entries.shape)
    average = Average(shape, entries.dtype)
    for block, places in _blocks(corners, offsets, shape):
        average.add(places, entries[block], w[block])
    return in_form_of(like, average.result())


def in_form_of(like: Any, pixels: NDArray[Any]) -> Any:
    """Return pixels with the type, dtype and labels of a picture; integers are rounded."""
    dtype = np.asarray(like).dtype
    if dtype.kind == "f":
        pixels = pixels.astype(dtype, copy=False)
    elif pixels.dtype != dtype and not np.isnan(pixels).any():
        if dtype.kind in "iu":
            ends = np.iinfo(dtype)
            pixels = np.clip(np.rint(pixels), ends.min, ends.max)
        elif dtype.kind == "b":
            pixels = pixels > 0.5
        pixels = pixels.astype(dtype)
    return like.copy(data=pixels) if isinstance(like, xr.DataArray) else pixels


class Average:
    """The running weighted average of the entries of each pixel, exact if they are all equal."""

    def __init__(self, shape: tuple[int, ...], dtype: Any = float) -> None:
        """Begin without an entry."""
        pixels = int(np.prod(shape))
        self.shape = shape
        self.first = np.zeros(pixels, dtype)  # an entry; the sums are those of differences from it
        self.sum, self.weight = np.zeros(pixels), np.zeros(pixels)

    def add(self, places: Positions, entries: NDArray[Any], weights: NDArray[Any]) -> None:
        """Add the entries of some patches."""
        usable = (weights > 0) & ~np.isnan(entries)
        at, entry, weight = places[usable], entries[usable], weights[usable]
        new = self.weight[at] == 0
        self.first[at[new]] = entry[new]
        np.add.at(self.sum, at, weight * (entry.astype(float) - self.first[at].astype(float)))
        np.add.at(self.weight, at, weight)

    def result(self) -> NDArray[Any]:
        """Return the averages in the shape of the picture, NaN where there is no entry."""
        none = self.weight == 0
        if not self.sum.any() and not none.any():
            return self.first.reshape(self.shape)
        mean = self.first + self.sum / np.where(none, 1.0, self.weight)
        return np.where(none, np.nan, mean).reshape(self.shape)


@dataclass(frozen=True)
class Grid:
    """The places of all patches in a picture, by dimension."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    size: tuple[int, ...]
    step: tuple[int, ...]

    @property
    def space(self) -> list[int]:
        """Axes but those of channels."""
        return [axis for axis, dim in enumerate(self.dims) if dim not in CHANNELS]

    @property
    def corners(self) -> Positions:
        """Positions (patch, dimension) of the first pixel of each patch."""
        lengths = zip(self.shape, self.size, self.step, strict=True)
        starts = [np.union1d(np.arange(0, n - each, by), n - each) for n, each, by in lengths]
        return np.stack(np.meshgrid(*starts, indexing="ij"), axis=-1).reshape(-1, len(starts))

    @property
    def offsets(self) -> Positions:
        """Places (pixel, dimension) of the pixels in a patch."""
        return np.indices(self.size).reshape(len(self.size), -1).T

    def positions(self, chosen: Positions) -> Positions:
        """Return the positions of the pixels of some patches in the flat picture."""
        return next(_blocks(self.corners[chosen], self.offsets, self.shape, sys.maxsize))[1]

    def blocks(self) -> Iterator[tuple[slice, Positions]]:
        """Yield ranges of patches with the positions of their pixels in the flat picture."""
        return _blocks(self.corners, self.offsets, self.shape)


def grid_of(picture: Any, size: Size, step: Size) -> Grid:
    """Return the places of the patches of a picture."""
    dims, shape = dims_of(picture), np.shape(picture)
    space = [dim for dim in dims if dim not in CHANNELS]
    whole = dict(zip(dims, shape, strict=True))
    sizes = whole | _by_dim("size", size, space)
    steps = whole | _by_dim("step", step, space)
    for dim, length in whole.items():
        if sizes[dim] > length:
            remedy = tuple(min(sizes[each], whole[each]) for each in space)
            raise ValueError(
                f"size={size} exceeds the {length} pixels of {dim}: give size={remedy} or less."
            )
        if steps[dim] > sizes[dim]:
            raise ValueError(
                f"step={step} exceeds size={size}, so that some pixels are in no patch: give a "
                "step of at most the size."
            )
    return Grid(dims, shape, *(tuple(each[dim] for dim in dims) for each in (sizes, steps)))


def dims_of(picture: Any) -> tuple[str, ...]:
    """Return the dimensions of a picture; those of an array are (z,) y, x and channel."""
    shape = np.shape(picture)
    if isinstance(picture, xr.DataArray):
        dims = tuple(map(str, picture.dims))
    else:
        colour = len(shape) > 2 and shape[-1] <= MAX_CHANNELS
        dims = ("z", "y", "x")[3 - len(shape) + colour :] + ("channel",) * colour
    if len(dims) != len(shape) or not 2 <= len(set(dims) - CHANNELS) <= 3 or 0 in shape:
        raise ValueError(
            f"picture has the shape {shape}: give (y, x), (y, x, channel), (z, y, x) or "
            f"(z, y, x, channel), where the last axis has at most {MAX_CHANNELS} channels."
        )
    return dims


def _picture_of(values: Any) -> xr.DataArray:
    """Return an empty picture of the size and dtype that labelled patches need."""
    names = map(str, getattr(values, "coords", ()))
    dims = tuple(name.removeprefix(CORNER) for name in names if name.startswith(CORNER))
    corners, offsets = _places(values, dims or ("y", "x"))
    shape = corners.max(axis=0) + offsets.max(axis=0) + 1
    return xr.DataArray(np.empty(shape, values.dtype), dims=dims)


def _by_dim(name: str, value: Any, space: list[str]) -> dict[str, int]:
    """Return a size or a step for each dimension of space."""
    values = tuple(value) if isinstance(value, tuple | list) else (value,) * len(space)
    if len(values) != len(space):
        raise ValueError(f"{name}={value} is not one number or one for each of {space}: give that.")
    return {dim: check_integer(name, each, 1) for dim, each in zip(space, values, strict=True)}


def _places(values: Any, dims: tuple[str, ...]) -> tuple[Positions, Positions]:
    """Return the first pixels of labelled patches, and the places of their pixels."""
    names = {*dims, *(f"{CORNER}{dim}" for dim in dims)}
    if not isinstance(values, xr.DataArray) or not names <= {*map(str, values.coords)}:
        raise TypeError(
            f"values is a {type(values).__name__} without the coordinates {sorted(names)}: give "
            "patches of the same kind of image, or a prediction of them, with their labels."
        )
    corners = np.stack([values.coords[f"{CORNER}{dim}"].to_numpy() for dim in dims], axis=1)
    return corners, np.stack([values.coords[dim].to_numpy() for dim in dims], axis=1)


def _blocks(
    corners: Positions, offsets: Positions, shape: tuple[int, ...], entries: int = 2**20
) -> Iterator[tuple[slice, Positions]]:
    """Yield ranges of patches with the positions of their pixels in the flat picture."""
    first, within = (np.ravel_multi_index(tuple(each.T), shape) for each in (corners, offsets))
    rows = max(entries // within.size, 1)
    for begin in range(0, first.size, rows):
        yield slice(begin, begin + rows), first[begin : begin + rows, None] + within
