"""A matrix with hidden entries, at which models are compared, and whether it is a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.data.folds import split_observed
from nmd_lab.data.inputs import observe_dense
from nmd_lab.data.labels import Picture, picture_of, plain_array
from nmd_lab.data.patches import CHANNELS
from nmd_lab.data.typed_table import TypedTable

from .background import MAX_JUDGED, Judged, in_sample
from .pictures import Paint

Array = NDArray[Any]
NO_PICTURE = (0, 0)  # layout of rows that are no pictures, whatever their labels
MAX_MEASURED = 100_000  # held-out entries at which iterates are measured, at most
FEWEST = 40  # entries of a matrix of which some are hidden
MIN_SIDE, MAX_RATIO = 48, 4.0  # pixels along a side, and ratio of the sides, of a photograph
MAX_DIFFERENCE = 0.6  # of neighbouring pixels of a photograph, relative to that of any two


class Given(NamedTuple):
    """What the user gave, as a matrix."""

    matrix: Any  # the matrix
    channels: int = 1  # neighbouring columns that make a pixel: 3 for a picture in colours
    code: str = ""  # what makes the matrix, after the name ``images``; empty if given as it is


def as_matrix(X: Any) -> Given:
    """Return X as a matrix: colours side by side, all but the first dimension stacked."""
    if isinstance(X, xr.DataArray) and X.ndim > 2:
        dims = tuple(map(str, X.dims[1:]))
        return Given(X.stack(pixel=dims), code=f".stack(pixel={dims!r})")
    if not isinstance(X, np.ndarray) or X.ndim != 3:
        return Given(X)
    if X.shape[2] not in (3, 4):
        raise ValueError(
            f"X has the shape {X.shape}: give an image (height, width, 3), or images as rows, "
            f"explore(X.reshape(len(X), -1), shape={X.shape[1:]})."
        )
    return Given(X[..., :3].reshape(len(X), -1), 3, "[..., :3].reshape(len(images), -1)")


class MatrixData:
    """A matrix as arrays with NaN where an entry is missing, and what of it a fit gets."""

    def __init__(
        self,
        X: Any,
        values: Mapping[str, Any],
        layout: tuple[int, int] | None,
        channels: int,
        paint: Paint,
        table: TypedTable | None = None,
    ) -> None:
        observations = observe_dense(X)
        self.labels, self.original = observations.labels, observations.to_array()
        if table is not None:  # of numbers in units of their own
            self.labels = replace(self.labels, table=table)
        share = float(values["missing"])
        split = X if share == 0 else split_observed(X, share, int(values["seed"]))[0]
        self.seen = split  # what the fit gets, with the labels of X
        self.observed, self.mask = observe_dense(self.seen).to_array(), None
        if paint.n_painted:
            self.seen = X
            self.mask = paint.mask(~np.isnan(self.observed))  # what the fit sees of it
            self.observed = np.where(self.mask, observe_dense(self.seen).to_array(), np.nan)
        row = X[0] if isinstance(X, xr.DataArray) else xr.DataArray(np.zeros(self.shape[1]))
        is_plain = channels > 1 or layout == NO_PICTURE
        self.picture: Picture | None = None if is_plain else picture_of(row, layout)
        self.channels, self.values, self.paint = channels, dict(values), paint
        # Rows and columns of the entries that only the fit misses
        self.hidden = np.nonzero(np.isnan(self.observed) & ~np.isnan(self.original))
        self.hides = self.hidden[0].size > 0
        self.has_holes = bool(np.isnan(self.observed).any())
        self.has_missing = bool(np.isnan(self.original).any())

    @property
    def has_gaps(self) -> bool:
        """Whether entries of a matrix that is no picture are missing in the data."""
        return self.picture is None and self.has_missing

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        m, n = self.original.shape
        return m, n

    @cached_property
    def judged(self) -> Judged:
        """Some of the held-out entries, or of those that are seen if there are none."""
        entries, most = (
            (self.hidden, MAX_MEASURED)
            if self.hides
            else (np.nonzero(~np.isnan(self.observed)), MAX_JUDGED)
        )
        rows, columns = (each[in_sample(each.size, most)] for each in entries)
        where = "held out" if self.hides else "where seen"
        return Judged(self.original[rows, columns], rows, columns, where)

    @cached_property
    def unit(self) -> float:
        """What relative errors are multiplied by: nothing hidden leaves them relative."""
        if not self.hides or self.labels.table is not None:
            return 1.0
        return float(np.sqrt(np.nanmean(np.square(self.observed)))) or 1.0

    @cached_property
    def is_constant(self) -> bool:
        """Whether no column has two values, so that there is nothing to be guessed."""
        return not np.any(np.fmax.reduce(self.original) > np.fmin.reduce(self.original))

    @cached_property
    def scale(self) -> tuple[float, float]:
        """The ends of the grey scale: of a matrix, few large entries do not take all of it."""
        low, high = map(float, np.nanpercentile(self.original, (1, 99)))
        return self.limits if self.picture is not None or low == high else (low, high)

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest original value."""
        return float(np.nanmin(self.original)), float(np.nanmax(self.original))


def is_small(X: Any) -> bool:
    """Return whether a matrix has too few entries to hide some, or one row or column alone."""
    try:
        shape = np.shape(X)
    except ValueError:  # of rows of unequal lengths, of which the library tells
        return False
    return min(shape, default=0) == 1 or math.prod(shape) < FEWEST


def guessed_shape(X: Array, most: float = 2.5, share: float = 0.75) -> tuple[int, int] | None:
    """Return the height and width of the pictures that rows seem to be, or None."""
    m, n = X.shape
    if n < 36 or m < 5:
        return None
    some = X[np.unique(np.linspace(0, m - 1, min(m, 200)).astype(int))]
    shuffled = np.random.default_rng(0).permutation(n)
    any_two = mean_difference(some, some[:, shuffled])
    best, shape = share, None
    for width in range(6, n // 6 + 1):
        height = n // width
        if n % width or max(height, width) > most * min(height, width):
            continue
        # Pixels one below the other are alike, more than those a column further left or right
        below, left, right = (
            mean_difference(some[:, :-lag], some[:, lag:]) / (any_two or 1.0)
            for lag in (width, width - 2, width + 2)
        )
        if below < best and below < 0.97 * min(left, right):
            best, shape = below, (height, width)
    return shape


def mean_difference(a: Array, b: Array) -> float:
    """Return the mean absolute difference of entries that are both there."""
    with np.errstate(all="ignore"):
        differences = np.abs(a - b)
    finite = differences[np.isfinite(differences)]
    return float(finite.mean()) if finite.size else 0.0


def is_photograph(X: Any) -> bool:
    """Return whether data are one picture: in colours, or with neighbouring pixels alike."""
    if type(X) not in (np.ndarray, xr.DataArray) or X.dtype.kind not in "fiu":
        return False
    sides = X.shape[:2]
    if X.ndim == 3:
        named = isinstance(X, np.ndarray) or X.dims[-1] in CHANNELS
        return named and X.shape[-1] in (3, 4) and min(sides) >= MIN_SIDE // 2
    if X.ndim != 2 or min(sides) < MIN_SIDE or max(sides) > MAX_RATIO * min(sides):
        return False
    pixels = plain_array(X).astype(float)
    return all(_are_alike(each) for each in (pixels, pixels.T))


def _are_alike(pixels: Array) -> bool:
    """Return whether rows are like the next ones, compared with any two."""
    other = np.random.default_rng(0).permutation(len(pixels))
    next_one = mean_difference(pixels[1:], pixels[:-1])
    return next_one < MAX_DIFFERENCE * mean_difference(pixels, pixels[other])
