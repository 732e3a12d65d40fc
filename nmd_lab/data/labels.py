"""Labels: taken off at the door, put back on results.

Inside the library a problem is a plain m x n matrix.  `labels_of` reads the names and coordinates
off an input, and which of its dimensions make the rows; `Labels` flattens arrays of the input's
shape to the matrix, and gives results the input's dimensions, coordinates and name again.

>>> import numpy as np, xarray as xr
>>> X = xr.DataArray(np.zeros((5, 2, 3)), dims=("time", "lat", "lon"))
>>> labels = labels_of(X, sample_dims="time")
>>> labels.flatten(X.values).shape
(5, 6)
>>> labels.label(np.zeros((5, 6))).dims
('time', 'lat', 'lon')
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

COMPONENT = "component"
"""Dimension of results, which X cannot have."""

RESULT_ATTRIBUTE = "nmd_lab"
"""Attribute of Datasets and files that hold a result; its value is a description in JSON."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The dimensions, coordinates and name of X.

    Attributes
    ----------
    dims, shape : tuple of str, tuple of int
        The dimensions of X in its own order, and their sizes.
    rows : tuple of str
        The dimensions that make the rows of the matrix; the others make its columns.
    coords : xarray.Dataset
        The coordinates of X.
    name : str or None
        The name of X.
    attrs : dict
        The attributes of X, such as its units.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    rows: tuple[str, ...]
    coords: xr.Dataset = field(default_factory=xr.Dataset)
    name: str | None = None
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The dimensions that make the columns of the matrix."""
        return tuple(dim for dim in self.dims if dim not in self.rows)

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """Number of rows and columns of the matrix."""
        return self._size(self.rows), self._size(self.columns)

    def flatten(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array of the shape of X as the m x n matrix."""
        order = [self.dims.index(dim) for dim in (*self.rows, *self.columns)]
        return array.transpose(order).reshape(self._size(self.rows), self._size(self.columns))

    def label(self, matrix: NDArray[Any]) -> xr.DataArray:
        """Return an m x n matrix with the dimensions, coordinates, name and attributes of X."""
        dims = (*self.rows, *self.columns)
        values = matrix.reshape(self._shape(dims))
        labelled = xr.DataArray(values, dims=dims, coords=self._along(*dims), name=self.name)
        return labelled.transpose(*self.dims).assign_attrs(self.attrs)

    def align(self, X: xr.DataArray) -> NDArray[Any]:
        """Return the values of X in the order of these labels; by position if X has other dims.

        Raises
        ------
        ValueError
            If X has another shape or other labels.
        """
        if set(X.dims) == set(self.dims):
            X = X.transpose(*self.dims)
            for dim, mine in self.coords.indexes.items():
                index = X.indexes.get(dim)
                if dim not in X.dims or index is None or index.equals(mine):
                    continue
                order = index.get_indexer(mine) if index.is_unique else np.array([-1])
                if np.any(order < 0):
                    raise ValueError(f"X has other labels along {dim!r}: select those of the fit.")
                X = X.isel({dim: order})
        if X.shape != self.shape:
            raise ValueError(f"X has shape {X.shape}: give the shape of the fit, {self.shape}.")
        values: NDArray[Any] = X.values
        return values

    def label_factors(self, W: NDArray[Any], H: NDArray[Any]) -> tuple[xr.DataArray, xr.DataArray]:
        """Return W (*rows, component) and H (component, *columns) with their part of the labels."""
        rank = W.shape[1]
        labelled_H = xr.DataArray(
            H.reshape(rank, *self._shape(self.columns)),
            dims=(COMPONENT, *self.columns),
            coords=self._along(*self.columns),
            name="H",
        )
        labelled_H = labelled_H.assign_coords({COMPONENT: np.arange(rank)})
        return self.label_rows(W), labelled_H

    def label_rows(self, W: NDArray[Any]) -> xr.DataArray:
        """Return W (*rows, component) with its part of the labels."""
        rank = W.shape[1]
        labelled = xr.DataArray(
            W.reshape(*self._shape(self.rows), rank),
            dims=(*self.rows, COMPONENT),
            coords=self._along(*self.rows),
            name="W",
        )
        return labelled.assign_coords({COMPONENT: np.arange(rank)})

    def order_of_columns(self, other: Labels) -> NDArray[Any]:
        """Return for each of these columns its position among another's, by label or position.

        Raises
        ------
        ValueError
            If both have labels and they differ.
        """
        columns, theirs = self.columns, other.columns
        shape = other._shape(theirs)
        positions = np.arange(math.prod(shape)).reshape(shape)
        grid = xr.DataArray(positions, dims=theirs, coords=other._along(*theirs))
        coords = xr.Dataset().assign_coords(self._along(*columns))
        mine = Labels(columns, self._shape(columns), (), coords)
        return mine.align(grid).ravel()

    def rename(self, names: Mapping[str, str]) -> Labels:
        """Return these labels with other names, from old to new."""
        known = {*self.coords.variables, *self.coords.dims}
        coords = self.coords.rename({old: new for old, new in names.items() if old in known})
        dims, rows = (tuple(names.get(d, d) for d in dims) for dims in (self.dims, self.rows))
        return Labels(dims, self.shape, rows, coords, self.name, self.attrs)

    def clashes(self, taken: Collection[str]) -> dict[str, str]:
        """Return names that are taken, or that no file can hold, and free ones in their place."""
        names = {*self.dims, *map(str, self.coords.coords)}
        renamed: dict[str, str] = {}
        for old in sorted(name for name in names if name in taken or "/" in name):
            new = old.replace("/", "_") if "/" in old else f"X_{old}"
            while new in {*taken, *names, *renamed.values()}:
                new += "_"
            renamed[old] = new
        return renamed

    def _along(self, *dims: str) -> xr.Coordinates:
        """Return the coordinates that live on some of the given dimensions only."""
        other = [name for name, c in self.coords.coords.items() if not set(c.dims) <= set(dims)]
        return self.coords.drop_vars(other).coords

    def _shape(self, dims: Sequence[str]) -> tuple[int, ...]:
        return tuple(self.shape[self.dims.index(dim)] for dim in dims)

    def _size(self, dims: Sequence[str]) -> int:
        return math.prod(self._shape(dims))


def labels_of(X: Any, sample_dims: str | Sequence[str] | None = None) -> Labels:
    """Read the labels off an input.

    Parameters
    ----------
    X : array_like, scipy.sparse matrix, pandas.DataFrame or xarray.DataArray
        Only a DataArray may have more than two dimensions.
    sample_dims : str or sequence of str, optional
        The dimensions of a DataArray that make the rows; by default the first of two.

    Raises
    ------
    ValueError, TypeError
        If X is no matrix and `sample_dims` does not make it one.
    """
    if isinstance(X, xr.DataArray):
        return _array_labels(X, sample_dims)
    if sample_dims is not None:
        raise TypeError(
            f"sample_dims={sample_dims!r} names dimensions, but X is a {type(X).__name__}: give "
            "an xarray.DataArray, or leave it out."
        )
    shape = np.shape(X)
    if len(shape) != 2:
        raise ValueError(f"X has {len(shape)} dimensions: give a matrix with rows and columns.")
    if is_frame(X):
        return _frame_labels(X)
    return Labels(("row", "column"), shape, ("row",))


def is_frame(X: Any) -> bool:
    """Return whether X is a pandas DataFrame, without importing pandas for it."""
    return hasattr(X, "to_numpy") and hasattr(X, "columns") and hasattr(X, "index")


def _array_labels(X: xr.DataArray, sample_dims: str | Sequence[str] | None) -> Labels:
    dims = tuple(map(str, X.dims))
    if sample_dims is None:
        if len(dims) != 2:
            raise ValueError(
                f"X has the dimensions {dims}: say with sample_dims= which of them make the rows."
            )
        rows: tuple[str, ...] = dims[:1]
    else:
        rows = (sample_dims,) if isinstance(sample_dims, str) else tuple(sample_dims)
        if not (set(rows) < set(dims) and 0 < len(rows) == len(set(rows))):
            raise ValueError(
                f"sample_dims={sample_dims!r} does not split X: give some, not all, of {dims}."
            )
    if len(set(dims)) < len(dims):
        raise ValueError(f"X has the dimensions {dims}, one of them twice: rename it.")
    coords = X.coords.to_dataset().copy(deep=True)
    coords = coords.rename({name: str(name) for name in {*coords.coords, *coords.dims}})
    _refuse_component((*dims, *map(str, coords.coords)))
    name = None if X.name is None else str(X.name)
    return Labels(dims, X.shape, rows, coords, name, dict(X.attrs))


def _frame_labels(frame: Any) -> Labels:
    coords = xr.Dataset()
    row, found = _index_labels(frame.index, "row", taken=())
    coords = coords.assign_coords(found)
    column, found = _index_labels(frame.columns, "column", taken=coords.coords)
    coords = coords.assign_coords(found)
    _refuse_component(coords.coords)
    return Labels((row, column), frame.shape, (row,), coords)


def _index_labels(index: Any, line: str, taken: Collection[Any]) -> tuple[str, Any]:
    """Return the dimension that a pandas index labels, and its coordinates.

    A name that is taken gets the line appended: a correlation matrix has rows named "gene" and
    columns named "gene", which become "gene_column".
    """

    def free(name: Any, default: str) -> str:
        name = default if name is None else str(name)
        return f"{name}_{line}" if name in taken else name

    if index.nlevels == 1:
        dim = free(index.name, line)
        return dim, {dim: index.rename(dim)}
    taken = {*taken, line}
    levels = [free(name, f"{line}_level_{i}") for i, name in enumerate(index.names)]
    return line, xr.Coordinates.from_pandas_multiindex(index.set_names(levels), line)


def _refuse_component(names: Any) -> None:
    if COMPONENT in names:
        raise ValueError(f"X has a label {COMPONENT!r}, which results use: rename it.")
