"""Dense data that lie in files, and are read by blocks of rows.

A `numpy.memmap` of floats in C order is used as it is.  Everything else (another type or order, a
zarr array, a dataset of HDF5, a DataArray that xarray has not loaded) is copied block by block into
a file of the working folder, once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import DTypeLike

from nmd_lab._files import FileArray, FileMatrix, Scratch

from ._entry_weights import EntryWeights
from ._masks_and_weights import infinity_error
from .base import BLOCK, float_dtype
from .dense_observations import DenseObservations
from .labels import Labels, labels_of
from .store import SparseStore


def is_stored(X: Any) -> bool:
    """Return whether X is a matrix in files that have not been read."""
    if isinstance(X, SparseStore):
        return True
    if isinstance(X, np.memmap):
        return X.ndim == 2 and X.dtype.kind in "buif"
    if isinstance(X, xr.DataArray):
        return X.ndim >= 2 and not X.variable._in_memory and X.dtype.kind in "buif"
    module = type(X).__module__.partition(".")[0]
    return module in ("h5py", "zarr") and getattr(X, "ndim", 0) == 2 and X.dtype.kind in "buif"


def observe_stored(
    X: Any,
    scratch: Scratch,
    *,
    observed: Any = None,
    weights: Any = None,
    dtype: DTypeLike | None = None,
    sample_dims: Any = None,
    may_be_empty: bool = False,
) -> DenseObservations:
    """Return the observations of a matrix in a file, without reading it as a whole."""
    labels = labels_of(X, sample_dims) if isinstance(X, xr.DataArray) else Labels.plain(X.shape)
    if X.size == 0:
        raise ValueError(f"X has shape {X.shape}, which holds no entry: give a larger matrix.")
    stored = _matrix(X, labels, dtype, scratch)
    for name, array in (("observed", observed), ("weights", weights)):
        if array is not None and np.shape(array) != stored.shape:
            raise ValueError(
                f"{name} has shape {np.shape(array)}, and X {stored.shape}: give one of that shape."
            )
    bits, n_seen = _seen(stored, observed, weights)
    if not (n_seen or may_be_empty):
        raise ValueError("X has no observed entry: check observed=, weights= and the NaN in X.")
    floats = None
    if weights is not None:
        floats = _matrix(weights, Labels.plain(stored.shape), stored.dtype, scratch).ravel()
    stored_weights = None
    if n_seen < stored.size or floats is not None:
        seen = None if n_seen == stored.size and weights is None else bits
        stored_weights = EntryWeights.from_bits(seen, floats, stored.shape)
    return DenseObservations(stored, stored_weights, labels, scratch=scratch)  # type: ignore[arg-type]


def _matrix(X: Any, labels: Labels, dtype: DTypeLike | None, scratch: Scratch) -> FileMatrix:
    """Return a matrix of floats in C order that is read by rows."""
    wanted = float_dtype(X, dtype)
    if isinstance(X, np.memmap) and X.dtype == wanted and X.flags.c_contiguous and X.mode != "c":
        return _mapped(X)
    m, n = labels.matrix_shape
    out = scratch.zeros(m * n, wanted)
    rows = max(1, BLOCK // n)
    for first in range(0, m, rows):
        last = min(first + rows, m)
        with np.errstate(over="ignore"):  # what overflows is found later
            out[first * n : last * n] = _rows(X, labels, first, last).ravel()
    return FileMatrix(out, (m, n))


def _rows(X: Any, labels: Labels, first: int, last: int) -> Any:
    """Return a range of rows as an array."""
    if not isinstance(X, xr.DataArray):
        return np.asarray(X[first:last])
    if len(labels.rows) == 1:
        block = X.isel({labels.rows[0]: slice(first, last)})
        return block.transpose(*labels.rows, *labels.columns).values.reshape(last - first, -1)
    sizes = [X.sizes[dim] for dim in labels.rows]
    places = np.unravel_index(np.arange(first, last), sizes)
    one_by_one = [
        X.isel(dict(zip(labels.rows, map(int, place), strict=True)))
        .transpose(*labels.columns)
        .values.ravel()
        for place in zip(*places, strict=True)
    ]
    return np.stack(one_by_one)


def _mapped(X: np.memmap) -> FileMatrix:
    """Return a memmap as it is."""
    mapping: Any = X._mmap  # type: ignore[attr-defined]
    base = np.frombuffer(mapping, np.uint8)
    start = X.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    m, n = X.shape
    flat = np.asarray(X).reshape(-1)
    return FileMatrix(FileArray(flat.view(np.ndarray), mapping, start), (m, n))


def _seen(stored: FileMatrix, observed: Any, weights: Any) -> tuple[Any, int]:
    """Return the mask of the observed entries in bits, and their number."""
    m, n = stored.shape
    rows = max(1, BLOCK // n) * 8 if n % 8 else max(1, BLOCK // n)  # whole bytes
    bits, n_seen = np.zeros(-(-m * n // 8), np.uint8), 0
    for first in range(0, m, rows):
        block = slice(first, min(first + rows, m))
        x = stored[block]
        seen = ~np.isnan(x)
        if observed is not None:
            observed_block = np.asarray(observed[block])
            if observed_block.dtype != bool:
                raise TypeError(f"observed has dtype {observed_block.dtype}: give booleans.")
            seen &= observed_block
        if weights is not None:
            weights_block = np.asarray(weights[block])
            if not np.all(np.isfinite(weights_block)) or np.any(weights_block < 0):
                raise ValueError("weights are not all finite and >= 0: give such numbers.")
            seen &= weights_block > 0
        if np.any(np.isinf(x) & seen):
            i, j = np.argwhere(np.isinf(x) & seen)[0]
            raise infinity_error(first + i, j)
        packed = np.packbits(seen)
        begin = first * n // 8
        bits[begin : begin + packed.size] = packed
        n_seen += int(np.count_nonzero(seen))
    return bits, n_seen
