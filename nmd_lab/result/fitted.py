"""The common face of a fit and a posterior: a fit is one draw of W and H, without noise."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import xarray as xr

from nmd_lab._runtime.html import Summary
from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.labels import Labels
from nmd_lab.data.patches import from_patches
from nmd_lab.model.model import Model

from . import netcdf
from .predict import class_probabilities, matrix, top


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Fitted(ABC):
    """The fields and methods that a fit and a posterior have in common."""

    stop_reason: StopReason
    parameters: dict[str, Any] = field(default_factory=dict)
    _labels: Labels
    _model: Model

    _owner: ClassVar[str] = "the fit"

    def __post_init__(self) -> None:
        """Convert a string `stop_reason` to a `StopReason`."""
        object.__setattr__(self, "stop_reason", StopReason.of(self.stop_reason))

    @property
    @abstractmethod
    def rank(self) -> int:
        """Number of components."""

    @property
    def _shape(self) -> tuple[int, int]:
        """Number of rows and columns of X."""
        return self._labels.matrix_shape

    @property
    def nonlinearity(self) -> Any:
        """Nonlinearity f; for a mixed table, a sequence with that of each column."""
        return self._model.shown[0]

    @property
    def loss(self) -> Any:
        """Loss d, likewise."""
        return self._model.shown[1]

    _values: ClassVar[Any]  # `FittedValues` or `Draws`, which all predictions are computed from
    _to_dataset: ClassVar[Callable[[Any], xr.Dataset]]  # all fields, with plain values as JSON
    _formula: ClassVar[Callable[[Any], str]]  # the model
    _facts: ClassVar[Callable[[Any], dict[str, str]]]  # names and texts of details
    _in_short: ClassVar[Callable[[Any], Summary]]  # what notebooks show

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        return self._in_short().html()

    def __repr__(self) -> str:
        """Return a few lines."""
        lines = [self._formula(), *(f"{name}: {text}" for name, text in self._facts().items())]
        return f"<nmd_lab.{type(self).__name__}>  " + "\n  ".join(lines)

    def reconstruct(self) -> xr.DataArray:
        """Return the prediction of each entry, with the dimensions, labels and name of X.

        Returns
        -------
        xarray.DataArray
            The values of `predict` at all entries.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> posterior.reconstruct().sizes
        Frozen({'row': 178, 'column': 13})
        """
        return self._labels.label(matrix(self._values))

    def picture(self, like: Any = None) -> Any:
        """Return the image of a fit of its patches: the mean of all predictions of a pixel.

        Parameters
        ----------
        like : array_like or DataArray, optional
            Image with the type, dtype and coordinates of the result, by default a DataArray.

        Returns
        -------
        picture : array or DataArray
            The image whose `patches` are the rows of X.

        Raises
        ------
        TypeError
            If X is no matrix of patches.

        See Also
        --------
        patches : The matrix of an image.
        from_patches : The same for any matrix, with weights.

        Examples
        --------
        >>> import numpy as np
        >>> import nmd_lab as nmd
        >>> from sklearn.datasets import load_sample_image
        >>> photo = load_sample_image("flower.jpg")[:64, :64].mean(axis=2) / 255
        >>> fit = nmd.decompose(nmd.patches(photo), 4, "identity", random_state=0)
        >>> bool(np.abs(fit.picture() - photo).mean() < 0.01)
        True
        """
        return from_patches(self.reconstruct(), like)

    def top(self, row: Any, k: int = 10, *, by: str = "mean", exclude: Any = None) -> xr.DataArray:
        """Return the k columns with the largest predictions in one or several rows, best first.

        Parameters
        ----------
        row : label, int or array_like
            Labels or positions of the rows, by the rule of `predict`.
        k : int, default 10
            Number of columns.
        by : {"mean", "lower", "upper"}, default "mean"
            Numbers that are compared: the prediction, or, of a posterior, the lower or upper end of
            the 90 % interval of E f(T) (`predict_interval` with ``noise=False``).  "lower" is for
            columns that are good with a high probability, "upper" for those that may turn out to
            be.
        exclude : sparse matrix, SparseObservations, DataFrame, DataArray or array_like, optional
            Columns to leave out, because their entries in the row are known: a sparse matrix (its
            stored entries), dense data of the shape of X (entries that are True, or not NaN), or
            labels or positions of columns.  Data with labels may have some of the rows and columns
            only.  A Series has the labels of columns as its index, such as the ratings of one
            person; it holds for all rows.

        Returns
        -------
        xarray.DataArray
            For one row: the compared numbers with the labels of their columns, and the label of the
            row.  The coordinate `position` has the positions of the columns.  For several rows:
            the numbers along the rows and `place` (1 is best), with the labels of the columns as
            coordinates.  Where fewer than k columns are left, the rest is NaN, with position -1.

        Raises
        ------
        KeyError
            If X had no such row or column label; the message names them.
        IndexError, TypeError, ValueError
            If another argument is invalid.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> table = nmd.datasets.make_ratings(60, 40, 700, random_state=0)
        >>> ratings = nmd.observations_from_table(table)
        >>> posterior = nmd.sample(ratings, 2, draws=50, random_state=0)
        >>> surest = posterior.top(0, k=3, by="lower", exclude=ratings)
        >>> bool((surest.diff(surest.dims[0]) <= 0).all())
        True
        """
        return top(self, row, k, by, exclude)

    def probabilities(self, column: Any, rows: Any = None) -> Any:
        """Return the probability of each class of a column, for all rows or some.

        Parameters
        ----------
        column : label or int
            Label or position of a column of X whose loss is "logistic" or "ordinal" (of a
            posterior: an ordinal column), or label of a binary, ordinal or categorical column of a
            DataFrame.
        rows : label, int or array_like, optional
            Labels or positions of rows, by the rule of `predict`; by default all.

        Returns
        -------
        pandas.DataFrame (n_rows, n_classes)
            Probabilities, of a posterior over all draws, with the row labels of X.  The columns are
            False and True for booleans, the values of X for other binary data, the ordered or
            other categories.  Those of a row have the sum 1; a class that X does not show has 0.

        Raises
        ------
        KeyError, IndexError
            If X has no such column.
        ValueError
            If the column holds numbers.

        Notes
        -----
        A column of more than two categories has an indicator for each of them.  Their odds (of a
        posterior their probabilities) are divided by the sum.

        Examples
        --------
        >>> import pandas as pd, nmd_lab as nmd
        >>> from sklearn.datasets import load_wine
        >>> wine = load_wine(as_frame=True).frame.astype({"target": "category"})
        >>> fit = nmd.complete(wine, 3, alpha=0.1, random_state=0)
        >>> fit.probabilities("target", rows=[0, 177]).idxmax(axis=1).tolist()
        [0, 2]
        """
        return class_probabilities(self, column, rows)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one NetCDF file; if this fails, an older file of that name is not damaged.

        Parameters
        ----------
        path : path-like
            Path of the file, for example "fit.nc"; `nmd_lab.load` reads it.

        Raises
        ------
        ImportError
            If h5netcdf is missing.
        OSError
            If the file cannot be written.
        TypeError
            If a coordinate has values that a file cannot store, such as Python objects.

        Examples
        --------
        >>> import tempfile, nmd_lab as nmd
        >>> from sklearn.datasets import load_wine
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     posterior.save(f"{folder}/wine.nc")
        ...     nmd.load(f"{folder}/wine.nc").draws.identical(posterior.draws)
        True
        """
        netcdf.write(self._to_dataset(), path)
