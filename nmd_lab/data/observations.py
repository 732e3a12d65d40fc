"""What is observed, where, with which weights and labels.

Every accepted input ends here as one plain 2-D problem, and this is the only place that says what
NaN, a masked array's mask, `mask=` and a sparse zero mean:

* NaN, masked entries and entries with ``mask == False`` are missing, and the values under them
  have no influence;
* an entry of weight 0 is missing too;
* absent entries of a sparse matrix are zeros for `decompose` and missing for `complete`
  (`nmd_lab.data.sparse`).

Labels are taken off here too; `nmd_lab.data.labels` puts them back on results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from .labels import Labels, is_frame, labels_of

FloatArray = NDArray[np.floating]


@dataclass(frozen=True)
class Observations:
    """A dense, partly observed matrix.

    Attributes
    ----------
    values : ndarray (m, n)
        C-ordered float32 or float64; 0 where nothing is observed.
    weights : ndarray (m, n) or None
        None if every entry counts once; booleans (True = observed); or floats >= 0.
    labels : Labels
        What to put back on results.
    """

    values: FloatArray
    weights: NDArray[Any] | None
    labels: Labels

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        m, n = self.values.shape
        return m, n

    @property
    def n_observed(self) -> int:
        """Number of entries that count."""
        return self.values.size if self.weights is None else int(np.count_nonzero(self.weights))

    def observed(self) -> tuple[FloatArray, FloatArray]:
        """Return the values that count and their weights, flat, in double precision."""
        if self.weights is None:
            values = self.values.ravel().astype(np.float64, copy=False)
            return values, np.broadcast_to(1.0, values.size)
        seen = self.weights > 0
        return self.values[seen].astype(np.float64), self.weights[seen].astype(np.float64)

    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return how many entries each column (axis 0) or row (axis 1) has."""
        if self.weights is None:
            return np.full(self.shape[1 - axis], self.shape[axis])
        counts: NDArray[np.integer] = np.asarray(np.count_nonzero(self.weights, axis=axis))
        return counts

    def unobserved_lines(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows and the columns in which nothing is observed."""
        return np.flatnonzero(self.counts(1) == 0), np.flatnonzero(self.counts(0) == 0)


def observe(
    X: Any,
    *,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
) -> Observations:
    """Turn any dense input into `Observations`; never modify it.

    Parameters
    ----------
    X : array_like (m, n), masked array, pandas.DataFrame or xarray.DataArray
        The data.
    mask : array_like of bool (m, n), optional
        True = observed.
    weights : array_like (m, n), optional
        How much an entry counts, finite and >= 0.
    dtype : float32 or float64, optional
        By default float32 for float32 input and float64 otherwise.
    sample_dims : str or sequence of str, optional
        The dimensions of a DataArray that make the rows; by default the first of two.

    Raises
    ------
    TypeError, ValueError
        With the argument, the value and the remedy, if the input makes no sense.
    """
    if sparse.issparse(X):
        raise TypeError("X is a scipy.sparse matrix: only decompose() and complete() take one.")
    labels = labels_of(X, sample_dims)
    array, seen = (labels.flatten(part) for part in _array_and_mask(X))
    if array.size == 0:
        raise ValueError(f"X has shape {array.shape}, which holds no entry: give a larger matrix.")
    if mask is not None:
        seen = seen & _checked_mask(mask, X, labels)
    values = array.astype(float_dtype(array, dtype), order="C", copy=False)
    seen &= ~np.isnan(values)
    if np.any(np.isinf(values) & seen):
        row, column = np.argwhere(np.isinf(values) & seen)[0]
        raise ValueError(
            f"X holds an infinity at row {row}, column {column}: replace it, or hide it with mask=."
        )
    kept: NDArray[Any] = seen
    if weights is not None:
        kept = _checked_weights(weights, X, labels, values.dtype) * seen
    if not kept.any():
        raise ValueError("X has no observed entry: check mask=, weights= and the NaN in X.")
    if seen.all() and weights is None:
        return Observations(np.ascontiguousarray(values), None, labels)
    return Observations(np.where(kept > 0, values, values.dtype.type(0)), kept, labels)


def _array_and_mask(X: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the bare numbers and what a masked array says of them."""
    if isinstance(X, np.ma.MaskedArray):
        array, seen = X.data, ~np.ma.getmaskarray(X)
    else:
        if isinstance(X, xr.DataArray):
            array = X.values
        elif is_frame(X):
            array = X.to_numpy(dtype=_frame_dtype(X), na_value=np.nan)
        else:
            array = np.asarray(X)
        seen = np.ones(array.shape, dtype=bool)
    if array.dtype.kind not in "buif":
        raise TypeError(f"X has dtype {array.dtype}: convert it to real numbers, X.astype(float).")
    return array, seen


def _frame_dtype(frame: Any) -> type:
    """Return float32 for a frame of float32 only, float64 for other numbers; refuse the rest."""
    for name, dtype in frame.dtypes.items():
        if getattr(dtype, "kind", "O") not in "buif":
            raise TypeError(f"X has dtype {dtype} in column {name!r}: convert it to real numbers.")
    return np.float32 if all(str(t).lower() == "float32" for t in frame.dtypes) else np.float64


def float_dtype(array: NDArray[Any], dtype: DTypeLike | None) -> np.dtype[Any]:
    """Return the working precision."""
    if dtype is None:
        return np.dtype(np.float32 if array.dtype in (np.float16, np.float32) else np.float64)
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        wanted = np.dtype(object)
    if wanted not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype={dtype!r} is not supported: use 'float32' or 'float64'.")
    return wanted


def _aligned(name: str, other: Any, X: Any, labels: Labels) -> NDArray[Any]:
    """Return `other` as a matrix in the order of X, by label where both have labels."""
    if isinstance(other, xr.DataArray) and isinstance(X, xr.DataArray):
        if set(other.dims) != set(X.dims):
            raise ValueError(f"{name} has the dimensions {other.dims}: X has {X.dims}.")
        other = other.transpose(*X.dims).reindex_like(X)
    elif is_frame(other) and is_frame(X):
        other = other.reindex_like(X)
    array = np.asarray(other)
    if array.shape != labels.shape:
        raise ValueError(f"{name} has shape {array.shape}: give it the shape of X, {labels.shape}.")
    return labels.flatten(array)


def _checked_mask(mask: Any, X: Any, labels: Labels) -> NDArray[np.bool_]:
    array = _aligned("mask", mask, X, labels)
    if array.dtype != bool:
        if array.dtype.kind not in "buif" or not np.all((array == 0) | (array == 1)):
            raise TypeError(
                f"mask has dtype {array.dtype}: give booleans (or 0 and 1), True = observed."
            )
        array = array.astype(bool)
    return array


def _checked_weights(weights: Any, X: Any, labels: Labels, dtype: np.dtype[Any]) -> FloatArray:
    array = _aligned("weights", weights, X, labels)
    if array.dtype.kind not in "buif":
        raise TypeError(f"weights has dtype {array.dtype}: give real numbers >= 0.")
    if not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError("weights holds a negative or non-finite number: give numbers >= 0.")
    return np.ascontiguousarray(array, dtype=dtype)
