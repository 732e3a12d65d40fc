"""The known entries of X, and matrices that hold some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from joblib import hash as hash_of
from numpy.typing import NDArray
from scipy import sparse

from nmd_lab._checks import errors_about
from nmd_lab.data.base import Observations
from nmd_lab.data.labels import Labels, is_frame
from nmd_lab.data.observations import observe
from nmd_lab.data.pictures import Picture, picture_of
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior.posterior import Posterior

CHUNK = 1 << 18  # entries of a sparse X that are predicted at once: 2 MB an array


@dataclass(frozen=True, eq=False)
class KnownEntries:
    """The known entries of X, row by row.

    Attributes
    ----------
    rows, columns : ndarray of int (size,)
        Positions of the entries.
    values : ndarray of float (size,)
        The entries.
    shape : (int, int)
        Number of rows and columns of X.
    labels : Labels
        Dimensions and coordinates of X.
    form : {"plain", "labelled", "sparse", "labelled sparse"}
        Type of the matrices that the fits get: array, DataArray, scipy.sparse array or
        SparseObservations.
    clean : tuple of ndarray or None
        Rows, columns and values of the true entries, if the user gave them.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: NDArray[np.floating]
    shape: tuple[int, int]
    labels: Labels
    form: str
    clean: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether X is sparse, so that no dense matrix of its shape is ever made."""
        return self.form.endswith("sparse")

    @property
    def size(self) -> int:
        """Number of known entries."""
        return self.values.size

    @property
    def fingerprint(self) -> str:
        """Hash of all that decides the results."""
        places = self.rows, self.columns
        return str(hash_of((self.shape, self.form, *places, self.values, self.clean)))

    def matrix(self, values: NDArray[np.floating], mask: NDArray[np.bool_]) -> Any:
        """Return X with new values of the known entries, and only those where the mask is True."""
        rows, columns = self.rows[mask], self.columns[mask]
        if self.is_sparse:
            starts = np.searchsorted(rows, np.arange(self.shape[0] + 1))
            index_type: Any = np.int32 if max(*self.shape, rows.size) < 2**31 else np.int64
            indptr, indices = starts.astype(index_type), columns.astype(index_type)
            observations = SparseObservations(values[mask], None, indptr, indices, self.labels)
            return observations.to_csr() if self.form == "sparse" else observations
        matrix = np.full(self.shape, np.nan, dtype=values.dtype)
        matrix[rows, columns] = values[mask]
        return self.labels.label(matrix) if self.form == "labelled" else matrix

    def predict(
        self, fit: Decomposition | Posterior, rows: NDArray[np.intp], columns: NDArray[np.intp]
    ) -> NDArray[np.floating]:
        """Return the values of a fit of X, or the means of a posterior, at some positions."""
        if isinstance(fit, Posterior):  # which is slow at entries that nobody asks for
            return np.asarray(fit.predict(rows, columns))
        if not self.is_sparse:
            return np.asarray(fit.labels.flatten(fit.reconstruct().values)[rows, columns])
        chunks = [slice(first, first + CHUNK) for first in range(0, rows.size, CHUNK)]
        return np.concatenate([fit.predict(rows[chunk], columns[chunk]) for chunk in chunks])

    def picture_of_rows(self, shape: tuple[int, int] | None) -> Picture | None:
        """Return how a row of X makes a picture, by shape or labels; None if it makes none."""
        labels = self.labels
        row = labels.label(np.broadcast_to(0.0, self.shape)).isel(dict.fromkeys(labels.rows, 0))
        return picture_of(row, shape)


def read_known_entries(
    X: Any, *, mask: Any = None, clean: Any = None, sample_dims: str | Sequence[str] | None = None
) -> KnownEntries:
    """Return the known entries of X; the arguments are those of `Study`."""
    if is_sparse(X) and sample_dims is not None:
        raise TypeError("sample_dims does not go with a sparse X: leave it out.")
    observations, truth = observe(X, mask=mask, sample_dims=sample_dims), None
    if is_sparse(X) and observations.weights is not None:
        raise ValueError("X has weights, which a study cannot use: leave them out.")
    form = "labelled" if isinstance(X, xr.DataArray) or is_frame(X) else "plain"
    if is_sparse(X):
        form = "sparse" if sparse.issparse(X) else "labelled sparse"
    if clean is not None:
        with errors_about("clean"):
            if isinstance(clean, xr.DataArray) and isinstance(X, xr.DataArray):
                clean = clean.transpose(*X.dims)
            true = observe(clean, sample_dims=sample_dims)
        if true.shape != observations.shape:
            raise ValueError(f"clean has the shape {true.shape}: give {observations.shape}.")
        rows, columns, values = _entries(true)
        truth = rows, columns, values.astype(float)
    shape, labels = observations.shape, observations.labels
    return KnownEntries(*_entries(observations), shape, labels, form, truth)


def _entries(observations: Observations) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return rows, columns and values of the observed entries."""
    rows, columns, values = observations.entries()
    return rows.astype(np.intp), columns.astype(np.intp), values
