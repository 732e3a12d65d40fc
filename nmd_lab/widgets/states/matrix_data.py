"""The matrix of an explorer, before and after noise is added and entries are removed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab import datasets
from nmd_lab.data.dense import observe_dense
from nmd_lab.data.pictures import Picture, picture_of
from nmd_lab.data.split import split_observed

from .brush import Paint
from .code import call
from .frame import Frame, frame_of

NOISES = ("none", "gaussian", "salt_and_pepper", "poisson")
"""Kinds of noise: functions of `nmd_lab.datasets`, or none."""


NO_PICTURE = (0, 0)  # layout of rows that are no pictures, whatever the labels say


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
            f"X has the shape {X.shape}: give a matrix, or a picture (height, width, 3)."
        )
    return Given(X[..., :3].reshape(len(X), -1), 3, "[..., :3].reshape(len(images), -1)")


def as_shape(text: str) -> tuple[int, int]:
    """Return the height and width that a text says.

    >>> as_shape("8 x 6")
    (8, 6)
    """
    sides = text.lower().replace("×", "x").replace(",", "x").strip("() ").split("x")
    if len(sides) != 2 or not all(side.strip().isdecimal() for side in sides):
        raise ValueError(
            f"shape={text!r} is no shape: give auto, none, or height x width, as 28 x 28."
        )
    height, width = (int(side) for side in sides)
    return height, width


def corrupted(X: Any, values: Mapping[str, Any]) -> Any:
    """Return X with noise added and with entries removed."""
    seed = int(values["seed"])
    if values["noise"] != "none":
        X = getattr(datasets, values["noise"])(X, values["level"], random_state=seed)
    if values["missing"] != 0:
        X, _ = split_observed(X, float(values["missing"]), seed)
    return X


def corrupting_code(values: Mapping[str, Any]) -> tuple[str, str]:
    """Return the code of `corrupted`, and the name of the matrix that the fit gets."""
    lines, name, seed = "", "X", int(values["seed"])
    if values["noise"] != "none":
        noisy = call(
            f"nmd.datasets.{values['noise']}", name, repr(values["level"]), random_state=seed
        )
        lines, name = f"noisy = {noisy}\n", "noisy"
    if values["missing"] > 0:
        split = call("nmd.split_observed", name, repr(float(values["missing"])), random_state=seed)
        lines, name = f"{lines}seen, held_out = {split}\n", "seen"
    return lines, name


class MatrixData:
    """A matrix, and what of it a fit gets.

    Attributes
    ----------
    seen : matrix
        Matrix that the fit gets, with the labels of X.
    observed : ndarray of bool (m, n) or None
        Entries of it that the fit sees; None without paint.
    original, observed : ndarray (m, n)
        X and what the fit sees as arrays, NaN where an entry is missing.
    hidden : (ndarray, ndarray)
        Rows and columns of the entries that are missing in `observed` only.
    labels : Labels
        Labels of X.
    picture : Picture or None
        Layout of a row as a picture, if the rows are pictures.
    has_holes : bool
        Whether any entry is missing.
    """

    def __init__(
        self,
        X: Any,
        values: Mapping[str, Any],
        layout: tuple[int, int] | None,
        channels: int = 1,
        paint: Paint | None = None,
    ) -> None:
        observations = observe_dense(X)
        self.labels, self.original = observations.labels, observations.to_array()
        self.seen = corrupted(X, values)
        self.observed, self.mask = observe_dense(self.seen).to_array(), None
        if paint is not None and paint.n_painted:
            self.seen = corrupted(X, {**values, "missing": 0})
            self.mask = paint.mask(~np.isnan(self.observed))
            self.observed = np.where(self.mask, observe_dense(self.seen).to_array(), np.nan)
        row = X[0] if isinstance(X, xr.DataArray) else xr.DataArray(np.zeros(self.shape[1]))
        self.picture: Picture | None = None
        if channels == 1 and layout != NO_PICTURE:
            self.picture = picture_of(row, layout)
        self.channels = channels
        self.hidden = np.nonzero(np.isnan(self.observed) & ~np.isnan(self.original))
        self.has_holes = bool(np.isnan(self.observed).any())

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        m, n = self.original.shape
        return m, n

    @cached_property
    def observed_limits(self) -> tuple[float, float]:
        """The smallest and the largest value that the fit sees."""
        return float(np.nanmin(self.observed)), float(np.nanmax(self.observed))

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest original value."""
        return float(np.nanmin(self.original)), float(np.nanmax(self.original))

    def frame(self, rows: NDArray[np.intp] | None = None) -> Frame:
        """Return what is shown: some rows if they are pictures, otherwise the whole matrix."""
        return frame_of(self.shape, self.picture, self.channels, rows)
