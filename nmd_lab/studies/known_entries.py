"""The known entries of X, and matrices in which only some of them are left."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nmd_lab.data.dense import observe_dense
from nmd_lab.data.labels import Labels, is_frame
from nmd_lab.data.pictures import Picture, picture_of
from nmd_lab.data.sparse import SparseObservations, observe_sparse
from nmd_lab.result.decomposition import Decomposition

CHUNK = 1 << 18
"""Entries of a sparse matrix that are predicted at once."""


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of X, entry by entry in the order of rows.

    Attributes
    ----------
    rows, columns : ndarray of int
        Where the entries are.
    values : ndarray of float
        The entries.
    shape : (int, int)
        Number of rows and columns.
    labels : Labels
        The dimensions and coordinates of X.
    form : {"plain", "labelled", "sparse", "labelled sparse"}
        What training matrices are: arrays, DataArrays, scipy.sparse arrays or SparseObservations.
    clean : ndarray or None
        The truth at `clean_entries`, if the user gave it.
    clean_entries : ndarray of int or None
        Flat positions in the matrix.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: NDArray[np.floating]
    shape: tuple[int, int]
    labels: Labels
    form: str
    clean: NDArray[np.floating] | None = None
    clean_entries: NDArray[np.intp] | None = field(default=None)

    @property
    def is_sparse(self) -> bool:
        """Whether the matrix is never formed as a whole."""
        return self.form.endswith("sparse")

    @property
    def size(self) -> int:
        """Number of known entries."""
        return self.values.size

    def matrix(self, values: NDArray[np.floating], kept: NDArray[np.bool_]) -> Any:
        """Return X with the given values at the known entries that are kept, and holes elsewhere.

        Parameters
        ----------
        values : ndarray (size,)
            One for each known entry.
        kept : ndarray of bool (size,)
            Which of them the matrix holds.
        """
        rows, columns = self.rows[kept], self.columns[kept]
        if self.is_sparse:
            starts = np.searchsorted(rows, np.arange(self.shape[0] + 1))
            small: Any = np.int32 if max(*self.shape, rows.size) < 2**31 else np.int64
            indptr, indices = starts.astype(small), columns.astype(small)
            observations = SparseObservations(values[kept], None, indptr, indices, self.labels)
            return observations.to_csr() if self.form == "sparse" else observations
        matrix = np.full(self.shape, np.nan, dtype=values.dtype)
        matrix[rows, columns] = values[kept]
        return self.labels.label(matrix) if self.form == "labelled" else matrix

    def predictions(self, fit: Decomposition) -> tuple[Any, Any]:
        """Return a fit's values at the known entries, and where the truth is given (or None)."""
        if self.is_sparse:
            parts = [slice(first, first + CHUNK) for first in range(0, self.size, CHUNK)]
            predicted = [fit.predict(self.rows[part], self.columns[part]) for part in parts]
            return np.concatenate(predicted), None
        model = fit.labels.flatten(fit.reconstruct().values)
        truth = None if self.clean_entries is None else model.ravel()[self.clean_entries]
        return model[self.rows, self.columns], truth

    def fingerprint(self) -> str:
        """Return a hash of everything that decides the results."""
        digest = hashlib.sha256(f"{self.shape} {self.form}".encode())
        for array in (self.rows, self.columns, self.values, self.clean, self.clean_entries):
            if array is not None:
                digest.update(f"{array.dtype} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()


def known_entries(
    X: Any,
    *,
    mask: ArrayLike | None = None,
    clean: Any = None,
    sample_dims: str | Sequence[str] | None = None,
) -> Known:
    """Read off what is known of X.

    Parameters
    ----------
    X : array_like, scipy.sparse matrix, pandas.DataFrame or xarray.DataArray (m, n)
        NaN, masked entries and the absent ones of a sparse matrix are missing.
    mask : array_like of bool (m, n), optional
        True where X is observed.
    clean : array_like (m, n), optional
        The truth behind X; NaN where it is unknown.
    sample_dims : str or sequence of str, optional
        The dimensions of a DataArray that make the rows.

    Raises
    ------
    ValueError, TypeError
        If X, `mask` or `clean` makes no sense.
    """
    if sparse.issparse(X) or isinstance(X, SparseObservations):
        if clean is not None or sample_dims is not None:
            name = "clean" if clean is not None else "sample_dims"
            raise TypeError(f"{name} is given beside a sparse X: leave it out, or use a dense X.")
        return _sparse_entries(X, mask)
    observations = observe_dense(X, mask=mask, sample_dims=sample_dims)
    labels, values = observations.labels, observations.values
    seen = np.ones(values.shape, bool) if observations.weights is None else observations.weights > 0
    rows, columns = np.nonzero(seen)
    labelled = isinstance(X, xr.DataArray) or is_frame(X)
    truth, entries = (None, None) if clean is None else _clean_entries(clean, X, labels)
    return Known(
        rows,
        columns,
        values[seen],
        observations.shape,
        labels,
        "labelled" if labelled else "plain",
        truth,
        entries,
    )


def _sparse_entries(X: Any, mask: Any) -> Known:
    observations = observe_sparse(X, mask=mask)
    if observations.weights is not None:
        raise ValueError("X has weights, which a study does not know: leave them out.")
    return Known(
        observations.rows.astype(np.intp),
        observations.indices.astype(np.intp),
        observations.values,
        observations.shape,
        observations.labels,
        "sparse" if sparse.issparse(X) else "labelled sparse",
    )


def _clean_entries(
    clean: Any, X: Any, labels: Labels
) -> tuple[NDArray[np.floating], NDArray[np.intp]]:
    """Return the known part of the truth, and where it is."""
    if isinstance(clean, xr.DataArray) and isinstance(X, xr.DataArray):
        if set(clean.dims) != set(X.dims):
            raise ValueError(f"clean has the dimensions {clean.dims}: X has {X.dims}.")
        clean = clean.transpose(*X.dims)
    truth = np.asarray(clean)
    if truth.dtype.kind not in "buif" or truth.shape != labels.shape:
        raise ValueError(
            f"clean has dtype {truth.dtype} and shape {truth.shape}: give real numbers in the "
            f"shape of X, {labels.shape}."
        )
    flat = labels.flatten(truth).astype(float).ravel()
    entries = np.flatnonzero(np.isfinite(flat))
    if not entries.size:
        raise ValueError("clean holds no finite number: give the truth behind X, or leave it out.")
    return flat[entries], entries


def picture_of_rows(known: Known, shape: tuple[int, int] | None) -> Picture | None:
    """Return how a row makes a picture, by its shape or its labels; None if it makes none."""
    labels = known.labels
    row = labels.label(np.broadcast_to(0.0, known.shape)).isel(dict.fromkeys(labels.rows, 0))
    return picture_of(row, shape)
