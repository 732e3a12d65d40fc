"""Predictions at single entries, the largest predictions of a row, and W for new rows.

None of these functions forms the m x n matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab.data.base import FloatArray
from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.data.sparse import is_sparse, stored_columns
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.model.offsets import Offsets

from .fold_in import FittedModel, fold_in


class Predictions:
    """Predictions of a fitted model, at single entries and for new rows.

    A subclass has the fields below; `Decomposition` documents them.
    """

    W: xr.DataArray
    H: xr.DataArray
    nonlinearity: Nonlinearity
    loss: Loss
    labels: Labels
    parameters: dict[str, Any]
    offsets: Offsets

    @property
    def rank(self) -> int:
        """Number of components."""
        return self.W.sizes[COMPONENT]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns of X."""
        return self.W.size // self.rank, self.H.size // self.rank

    @property
    def factors(self) -> tuple[FloatArray, FloatArray]:
        """W (m, rank) and H (rank, n) as plain matrices."""
        return self.W.values.reshape(-1, self.rank), self.H.values.reshape(self.rank, -1)

    @property
    def model(self) -> FittedModel:
        """The parts of the fit that determine W for new rows."""
        alpha, epsilon = (float(self.parameters.get(name, 0.0)) for name in ("alpha", "epsilon"))
        _, H = self.factors
        return FittedModel(
            self.nonlinearity, self.loss, H, self.offsets, self.labels, alpha, epsilon
        )

    def offsets_at(self, i: Any, j: Any) -> tuple[FloatArray, FloatArray]:
        """Return the offsets of rows i (mean included) and of columns j, which index arrays."""
        (m, n), dtype = self.shape, self.W.dtype
        rows = self.offsets.of_rows(m, dtype)[i] + dtype.type(self.offsets.mean)
        return rows, self.offsets.of_columns(n, dtype)[j]

    def predict(self, rows: ArrayLike, columns: ArrayLike) -> FloatArray:
        """Return f(WH) at the given positions, without forming the matrix.

        Parameters
        ----------
        rows, columns : array_like of int
            Positions, counted from 0; negative ones count from the end.  They broadcast.

        Returns
        -------
        ndarray, 1-D
            One prediction for each pair.

        Raises
        ------
        TypeError, IndexError
            If a position is not an integer, or lies outside X.

        Examples
        --------
        >>> import numpy as np, nmd_lab as nmd
        >>> fit = nmd.decompose(np.eye(4), 3, "relu", random_state=0)
        >>> fit.predict([0, 1], [0, 2]).shape
        (2,)
        """
        i, j = np.broadcast_arrays(np.atleast_1d(rows), np.atleast_1d(columns))
        m, n = self.shape
        return _at_positions(
            self, _checked("rows", i.ravel(), m), _checked("columns", j.ravel(), n)
        )

    def predict_labels(self, rows: ArrayLike, columns: ArrayLike) -> FloatArray:
        """Return f(WH) at the given labels, without forming the matrix.

        Parameters
        ----------
        rows, columns : array_like
            Row and column labels.  They broadcast.

        Returns
        -------
        ndarray, 1-D
            One prediction for each pair.

        Raises
        ------
        KeyError
            If X had no such label.  The message names the first one.
        ValueError
            If rows or columns have no labels, or one label more than once.

        Examples
        --------
        >>> import pandas as pd, nmd_lab as nmd
        >>> X = pd.DataFrame([[1.0, 2.0], [2.0, 4.0]], index=["ann", "bo"], columns=["p", "q"])
        >>> nmd.complete(X, 1, random_state=0).predict_labels("bo", ["p", "q"]).round(6)
        array([2., 4.])
        """
        i, j = np.broadcast_arrays(
            positions_of(self, "rows", rows), positions_of(self, "columns", columns)
        )
        return _at_positions(self, i.ravel(), j.ravel())

    def top(self, row: Any, k: int = 10, *, exclude: Any = None) -> xr.DataArray:
        """Return the k columns with the largest predictions in a row, best first.

        Parameters
        ----------
        row : int
            Position of the row.
        k : int, default 10
            Number of columns.
        exclude : scipy.sparse matrix, SparseObservations, array_like, optional
            Columns to leave out, because their entries in the row are known: a sparse matrix (its
            stored entries), an array of the shape of X (entries that are True, or not NaN), or
            positions of columns.

        Returns
        -------
        xarray.DataArray
            Predictions with the labels of their columns.  The coordinate `position` has the
            positions of the columns.

        Raises
        ------
        IndexError, TypeError, ValueError
            If an argument is invalid.

        Examples
        --------
        >>> import numpy as np, nmd_lab as nmd
        >>> fit = nmd.complete(np.outer([1.0, 2.0], [1.0, 3.0, 2.0]), 1, random_state=0)
        >>> fit.top(1, k=2).values.round(6), fit.top(1, k=2, exclude=[1]).position.values
        (array([6., 4.]), array([2, 0]))
        """
        return _top(self, row, k, exclude)

    def fold_in(
        self,
        X: Any,
        *,
        mask: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> xr.DataArray:
        """Return the rows of W for new rows of X, with H fixed.

        Each row of W minimises the part of the objective of its row of X.  It is computed by the
        same kind of iteration as the fit, from several starts, and does not depend on other rows.

        Parameters
        ----------
        X : array_like (k, n), scipy.sparse matrix, pandas.DataFrame or xarray.DataArray
            New rows.  NaN, masked entries and absent entries of a sparse matrix are missing.
            Columns with the labels of the fit may be in another order.
        mask : array_like of bool (k, n), optional
            True where X is observed.
        weights : array_like (k, n), optional
            Weights of the entries, >= 0.

        Returns
        -------
        xarray.DataArray (row, component)
            Rows of W with the row labels of X; 0 for rows without observed entries.  If the fit has
            row offsets, the coordinate `offset` has those of the new rows.

        Raises
        ------
        ValueError, TypeError
            If X is invalid, or its columns are not those of the fit.

        Examples
        --------
        >>> import numpy as np, nmd_lab as nmd
        >>> fit = nmd.decompose(np.outer([1.0, 2.0, 3.0], [1.0, 2.0]), 1, random_state=0)
        >>> w = fit.fold_in([[5.0, np.nan]])
        >>> (w.values @ fit.H.values).round(6)
        array([[ 5., 10.]])
        """
        return fold_in(self.model, X, mask=mask, weights=weights)


def positions_of(fit: Predictions, axis: str, labels: Any) -> NDArray[np.intp]:
    """Return the positions of row or column labels.

    Parameters
    ----------
    fit : Predictions
        Fit with the labels.
    axis : {"rows", "columns"}
        Axis of X that has the labels.
    labels : array_like
        Labels, or a single one.

    Raises
    ------
    KeyError
        If X had no such label.  The message names the first one.
    ValueError
        If the rows or columns have no labels, or labels of more than one dimension.
    """
    dims = fit.labels.rows if axis == "rows" else fit.labels.columns
    indexes = fit.labels.coords.indexes
    if len(dims) != 1 or dims[0] not in indexes:
        raise ValueError(f"{axis} have no labels of one dimension: use positions, predict().")
    index: Any = indexes[dims[0]]
    wanted = [labels] if np.ndim(labels) == 0 else list(np.asarray(labels).ravel())
    if not index.is_unique:
        twice = index[index.duplicated()][0]
        raise ValueError(
            f"{axis} has the label {twice!r} more than once: use positions, predict(), or fit X "
            "with other labels."
        )
    found: NDArray[np.intp] = index.get_indexer(wanted)
    if np.any(found < 0):
        missing = wanted[int(np.argmax(found < 0))]
        raise KeyError(f"{axis} has no label {missing!r}: the fit was made without it.")
    return found.reshape(np.shape(labels) or (1,))


def _top(fit: Predictions, row: Any, k: int, exclude: Any) -> xr.DataArray:
    """Return the k largest predictions of a row; see `Predictions.top`."""
    m, n = fit.shape
    position = int(_checked("row", np.atleast_1d(np.asarray(row)), m)[0])
    if not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k={k!r} is not a number of columns: give an integer >= 1.")
    columns = np.arange(n)
    scores = _at_positions(fit, np.full(n, position), columns)
    allowed = np.ones(n, dtype=bool)
    if exclude is not None:
        allowed[_columns_of(exclude, position, (m, n))] = False
    columns = columns[allowed]
    best = columns[np.argsort(-scores[columns], kind="stable")[:k]]
    template = fit.H.isel({COMPONENT: 0}, drop=True).stack(column_=fit.labels.columns)
    if len(fit.labels.columns) == 1:
        template = fit.H.isel({COMPONENT: 0}, drop=True)
    dim = str(template.dims[0])
    chosen = template.copy(data=scores).isel({dim: best}).rename(fit.labels.name or "prediction")
    return chosen.assign_coords(position=(dim, best)).assign_attrs(row=position)


def _columns_of(exclude: Any, row: int, shape: tuple[int, int]) -> NDArray[Any]:
    """Return the columns of a row that are known already."""
    if is_sparse(exclude):
        if exclude.shape != shape:
            raise ValueError(f"exclude has shape {exclude.shape}: give it the shape of X, {shape}.")
        return stored_columns(exclude, row)
    given = np.asarray(exclude)
    if given.shape == shape:
        entries = given[row]
        return np.flatnonzero(entries if entries.dtype == bool else ~np.isnan(entries))
    return _checked("exclude", given.ravel(), shape[1])


def _checked(name: str, positions: NDArray[Any], size: int) -> NDArray[np.intp]:
    """Return checked positions; negative ones are converted to positions from the start."""
    if positions.size == 0:
        return np.empty(0, dtype=np.intp)
    if positions.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {positions.dtype}: give integer positions.")
    if not -size <= positions.min() <= positions.max() < size:
        raise IndexError(f"{name} holds a position outside X: there are {size} of them.")
    return np.where(positions < 0, positions + size, positions).astype(np.intp)


def _at_positions(
    fit: Predictions, i: NDArray[np.intp], j: NDArray[np.intp], at_a_time: int = 1 << 18
) -> FloatArray:
    """Return f(WH) at checked positions, so many at a time."""
    W, H = fit.factors
    out = np.empty(i.size, dtype=W.dtype)
    for start in range(0, i.size, at_a_time):
        part = slice(start, start + at_a_time)
        rows, columns = fit.offsets_at(i[part], j[part])
        products = np.einsum("pk,kp->p", W[i[part]], H[:, j[part]])
        out[part] = fit.nonlinearity(products + rows + columns)
    return out
