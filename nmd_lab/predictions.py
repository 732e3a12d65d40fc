"""Predictions of a fit at single entries, by position or by label, and the best of a row.

Nothing here forms the m x n matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .labels import COMPONENT
from .observations import FloatArray
from .sparse_observations import SparseObservations

if TYPE_CHECKING:
    from .decomposition import Decomposition

PAIRS_AT_ONCE = 1 << 18


def predict(fit: Decomposition, rows: ArrayLike, columns: ArrayLike) -> FloatArray:
    """Return f(WH) at positions; see `Decomposition.predict`."""
    i, j = np.broadcast_arrays(np.atleast_1d(rows), np.atleast_1d(columns))
    return _at_positions(
        fit, _checked("rows", i.ravel(), fit.shape[0]), _checked("columns", j.ravel(), fit.shape[1])
    )


def predict_labels(fit: Decomposition, rows: ArrayLike, columns: ArrayLike) -> FloatArray:
    """Return f(WH) at labels; see `Decomposition.predict_labels`."""
    i, j = np.broadcast_arrays(
        positions_of(fit, "rows", rows), positions_of(fit, "columns", columns)
    )
    return _at_positions(fit, i.ravel(), j.ravel())


def positions_of(fit: Decomposition, line: str, labels: Any) -> NDArray[np.intp]:
    """Return the positions of row or column labels.

    Parameters
    ----------
    fit : Decomposition
        Whose labels.
    line : {"rows", "columns"}
        Which of them.
    labels : array_like
        Some labels, or a single one.

    Raises
    ------
    KeyError
        If there is no such label; it names the first.
    ValueError
        If the rows or columns have no labels, or more than one dimension of them.
    """
    dims = fit.labels.rows if line == "rows" else fit.labels.columns
    indexes = fit.labels.coords.indexes
    if len(dims) != 1 or dims[0] not in indexes:
        raise ValueError(f"{line} have no labels of one dimension: use positions, predict().")
    index: Any = indexes[dims[0]]
    wanted = [labels] if np.ndim(labels) == 0 else list(np.asarray(labels).ravel())
    found: NDArray[np.intp] = index.get_indexer(wanted)
    if np.any(found < 0):
        missing = wanted[int(np.argmax(found < 0))]
        raise KeyError(f"{line} has no label {missing!r}: the fit was made without it.")
    return found.reshape(np.shape(labels) or (1,))


def top(fit: Decomposition, row: Any, k: int, exclude: Any) -> xr.DataArray:
    """Return the best columns of a row; see `Decomposition.top`."""
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
    if isinstance(exclude, SparseObservations):
        return exclude.indices[exclude.indptr[row] : exclude.indptr[row + 1]]
    if sparse.issparse(exclude):
        matrix: Any = exclude
        if matrix.shape != shape:
            raise ValueError(f"exclude has shape {matrix.shape}: give it the shape of X, {shape}.")
        csr = matrix.tocsr()
        return np.asarray(csr.indices[csr.indptr[row] : csr.indptr[row + 1]])
    given = np.asarray(exclude)
    if given.shape == shape:
        line = given[row]
        return np.flatnonzero(line if line.dtype == bool else ~np.isnan(line))
    return _checked("exclude", given.ravel(), shape[1])


def _checked(name: str, positions: NDArray[Any], size: int) -> NDArray[np.intp]:
    """Return positions counted from 0, if they are inside."""
    if positions.size == 0:
        return np.empty(0, dtype=np.intp)
    if positions.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {positions.dtype}: give integer positions.")
    if not -size <= positions.min() <= positions.max() < size:
        raise IndexError(f"{name} holds a position outside X: there are {size} of them.")
    return np.where(positions < 0, positions + size, positions).astype(np.intp)


def _at_positions(fit: Decomposition, i: NDArray[np.intp], j: NDArray[np.intp]) -> FloatArray:
    """Return f(WH) at checked positions, a share at a time."""
    W, H = fit.factors
    out = np.empty(i.size, dtype=W.dtype)
    for start in range(0, i.size, PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        rows, columns = fit.offsets_at(i[part], j[part])
        products = np.einsum("pk,kp->p", W[i[part]], H[:, j[part]])
        out[part] = fit.nonlinearity(products + rows + columns)
    return out
