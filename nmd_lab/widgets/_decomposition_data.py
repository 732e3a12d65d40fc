"""The matrix of an explorer, before and after noise is added and entries are removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab import datasets
from nmd_lab.data.dense import observe_dense
from nmd_lab.data.pictures import Picture, picture_of
from nmd_lab.data.split import split_observed

from ._images import stride, thin
from .code import call

Array = NDArray[np.floating]

NOISES = ("none", "gaussian", "salt_and_pepper", "poisson")
"""Kinds of noise: functions of `nmd_lab.datasets`, or none."""


def corrupted(X: Any, values: Mapping[str, Any]) -> Any:
    """Return X with noise added and with entries removed.

    Parameters
    ----------
    X : matrix
        Original data.
    values : mapping
        Settings "noise", "level", "missing" and "seed".

    Raises
    ------
    ValueError
        If one of the settings is wrong.
    """
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

    Parameters
    ----------
    X : matrix
        Original data.
    values : mapping
        Settings as for `corrupted`.
    picture_shape : (int, int) or None
        Height and width of the picture that each row is; None: as the labels of X say.

    Attributes
    ----------
    seen : matrix
        Matrix that the fit gets, with the labels of X.
    original, observed : ndarray (m, n)
        X and `seen` as arrays, NaN where an entry is missing.
    hidden : (ndarray, ndarray)
        Rows and columns of the entries that are missing in `observed` only.
    picture : Picture or None
        Layout of a row as a picture, if the rows are pictures.
    is_picture : bool
        Whether the whole matrix is one picture.
    has_holes : bool
        Whether any entry is missing.
    """

    def __init__(
        self, X: Any, values: Mapping[str, Any], picture_shape: tuple[int, int] | None
    ) -> None:
        self.seen = corrupted(X, values)
        self.original = observe_dense(X).to_array()
        self.observed = observe_dense(self.seen).to_array()
        row = X[0] if isinstance(X, xr.DataArray) else xr.DataArray(np.zeros(self.shape[1]))
        self.picture: Picture | None = picture_of(row, picture_shape)
        self.is_picture = isinstance(X, xr.DataArray) and X.dims == ("y", "x")
        self.hidden = np.nonzero(np.isnan(self.observed) & ~np.isnan(self.original))
        self.has_holes = bool(np.isnan(self.observed).any())

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        m, n = self.original.shape
        return m, n

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest original value."""
        return float(np.nanmin(self.original)), float(np.nanmax(self.original))

    def default_rows(self, count: int = 9) -> NDArray[np.intp]:
        """Return at most `count` evenly spaced rows."""
        count = min(count, self.shape[0])
        return np.unique(np.linspace(0, self.shape[0] - 1, count).astype(np.intp))

    def window(self, rows: NDArray[np.intp] | None) -> tuple[Any, Any]:
        """Return the indices of the rows and columns that are shown.

        Parameters
        ----------
        rows : ndarray of int or None
            Rows that are asked for; None: evenly spaced rows if they are pictures, and otherwise
            the whole matrix, thinned out.
        """
        if rows is None and self.picture is not None:
            rows = self.default_rows()
        m, n = self.shape
        every_row, every_column = slice(None, None, stride(m)), slice(None, None, stride(n))
        return (
            every_row if rows is None else rows,
            every_column if self.picture is None else slice(None),
        )

    def pictures(self, window: Array) -> list[Array]:
        """Return what is shown of a window: a picture for each row, or the window as one."""
        if self.picture is not None:
            return [thin(self.picture(row)) for row in window]
        return [window]
