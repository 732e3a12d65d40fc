"""The matrix of an explorer: the original, with noise, and what is left of it with holes."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab import datasets
from nmd_lab.data.dense import observe_dense
from nmd_lab.data.pictures import Picture, picture_of
from nmd_lab.data.split import split_observed

from .code import call
from .images import thin

NOISES = ("none", "gaussian", "salt_and_pepper", "poisson")
PICTURES = 9
"""Rows that are shown as pictures at a time."""


def corrupted(X: Any, values: dict[str, Any]) -> tuple[Any, Any]:
    """Return X with noise, and that with holes.

    Parameters
    ----------
    X : matrix
        The original.
    values : dict
        "noise", "level", "missing" and "seed".

    Raises
    ------
    ValueError
        If one of them makes no sense.
    """
    noisy, seed = X, int(values["seed"])
    if values["noise"] != "none":
        noisy = getattr(datasets, values["noise"])(X, values["level"], random_state=seed)
    if values["missing"] == 0:
        return noisy, noisy
    return noisy, split_observed(noisy, float(values["missing"]), seed)[0]


def corrupting_code(values: dict[str, Any]) -> tuple[str, str]:
    """Return the code of `corrupted`, and the name of what the fit sees."""
    lines, name, seed = "", "X", int(values["seed"])
    if values["noise"] != "none":
        made = call(
            f"nmd.datasets.{values['noise']}", name, repr(values["level"]), random_state=seed
        )
        lines, name = f"noisy = {made}\n", "noisy"
    if values["missing"] > 0:
        split = call("nmd.split_observed", name, repr(float(values["missing"])), random_state=seed)
        lines, name = f"{lines}seen, held_out = {split}\n", "seen"
    return lines, name


class Data:
    """A matrix in the three forms that are compared, as plain arrays with NaN for holes.

    Parameters
    ----------
    X : matrix
        The original.
    values : dict
        As for `corrupted`.
    shape : (int, int) or None
        Height and width of the picture that each row is.
    """

    def __init__(self, X: Any, values: dict[str, Any], shape: tuple[int, int] | None) -> None:
        noisy, self.seen = corrupted(X, values)
        self.original, self.noisy, self.observed = (
            _plain(matrix) for matrix in (X, noisy, self.seen)
        )
        row = X[0] if isinstance(X, xr.DataArray) else xr.DataArray(np.zeros(self.shape[1]))
        self.picture: Picture | None = picture_of(row, shape)
        self.is_picture = isinstance(X, xr.DataArray) and X.dims == ("y", "x")
        hidden = np.isnan(self.observed) & ~np.isnan(self.original)
        self.hidden = np.nonzero(hidden)
        self.has_holes = bool(np.isnan(self.observed).any())

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        m, n = self.original.shape
        return m, n

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and largest original value."""
        return float(np.nanmin(self.original)), float(np.nanmax(self.original))

    def default_rows(self) -> NDArray[np.intp]:
        """Return rows from all over the matrix."""
        count = min(PICTURES, self.shape[0])
        return np.unique(np.linspace(0, self.shape[0] - 1, count).astype(np.intp))

    def window(self, rows: NDArray[np.intp] | None) -> tuple[Any, Any]:
        """Return which rows and columns are looked at: some as pictures, or a thinned whole."""
        if rows is not None and self.picture is not None:
            return rows, slice(None)
        m, n = self.shape
        steps = (max(1, -(-m // 320)), max(1, -(-n // 320)))
        return slice(None, None, steps[0]), slice(None, None, steps[1])

    def pictures(self, part: NDArray[np.floating]) -> list[NDArray[np.floating]]:
        """Return what a window of a matrix looks like: a picture for each row, or one."""
        if self.picture is not None:
            return [thin(self.picture(row)) for row in part]
        return [part]


def _plain(matrix: Any) -> NDArray[np.floating]:
    """Return a matrix as an array of floats with NaN where nothing is known."""
    observations = observe_dense(matrix)
    if observations.weights is None:
        return observations.values
    return np.where(observations.weights > 0, observations.values, np.nan)
