"""The known entries of X, and matrices that hold some of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nmd_lab.data.labels import Labels, is_frame
from nmd_lab.data.observations import observe
from nmd_lab.data.pictures import Picture, picture_of
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior.posterior import Posterior


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
    clean : ndarray of float or None
        True values at `clean_positions`, if the user gave them.
    clean_positions : ndarray of int or None
        Flat positions in X of the true values.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: NDArray[np.floating]
    shape: tuple[int, int]
    labels: Labels
    form: str
    clean: NDArray[np.floating] | None = None
    clean_positions: NDArray[np.intp] | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether X is sparse, so that no dense matrix of its shape is ever made."""
        return self.form.endswith("sparse")

    @property
    def size(self) -> int:
        """Number of known entries."""
        return self.values.size

    def matrix(self, values: NDArray[np.floating], kept: NDArray[np.bool_]) -> Any:
        """Return X with new values, some of its entries being left out.

        Parameters
        ----------
        values : ndarray of float (size,)
            New values of the known entries.
        kept : ndarray of bool (size,)
            True for the entries that the matrix holds; the others are missing in it.
        """
        rows, columns = self.rows[kept], self.columns[kept]
        if self.is_sparse:
            starts = np.searchsorted(rows, np.arange(self.shape[0] + 1))
            index_type: Any = np.int32 if max(*self.shape, rows.size) < 2**31 else np.int64
            indptr, indices = starts.astype(index_type), columns.astype(index_type)
            observations = SparseObservations(values[kept], None, indptr, indices, self.labels)
            return observations.to_csr() if self.form == "sparse" else observations
        matrix = np.full(self.shape, np.nan, dtype=values.dtype)
        matrix[rows, columns] = values[kept]
        return self.labels.label(matrix) if self.form == "labelled" else matrix

    def tiny_matrix(self, *, with_missing: bool) -> Any:
        """Return a matrix of four rows whose type is that of the matrices that the fits get.

        Parameters
        ----------
        with_missing : bool
            Whether its last column is missing.
        """
        tiny = KnownEntries(
            rows=np.repeat(np.arange(4), 3),
            columns=np.tile(np.arange(3), 4),
            values=np.resize(self.values, 12),
            shape=(4, 4 if with_missing else 3),
            labels=Labels(("row", "column"), (4, 4), ("row",)),
            form="sparse" if self.is_sparse else "plain",
        )
        return tiny.matrix(tiny.values, np.ones(12, bool))

    def predictions(self, fit: Decomposition | Posterior, chunk: int = 1 << 18) -> tuple[Any, Any]:
        """Return the values of a fit at the known entries and at the clean ones.

        Parameters
        ----------
        fit : Decomposition or Posterior
            Fit of a matrix with the shape of X; of a posterior, the mean.
        chunk : int, default 262144
            Number of entries that are predicted at once, if X is sparse.

        Returns
        -------
        known : ndarray of float (size,)
            Values at the known entries.
        clean : ndarray of float or None
            Values at `clean_positions`, if there are any.
        """
        if self.is_sparse:
            slices = [slice(first, first + chunk) for first in range(0, self.size, chunk)]
            predicted = [fit.predict(self.rows[each], self.columns[each]) for each in slices]
            return np.concatenate(predicted), None
        if isinstance(fit, Posterior):  # which is slow at entries that nobody asks for
            at_known = fit.predict(self.rows, self.columns)
            if self.clean_positions is None:
                return at_known, None
            return at_known, fit.predict(*np.divmod(self.clean_positions, self.shape[1]))
        model = fit.labels.flatten(fit.reconstruct().values)
        clean = None if self.clean_positions is None else model.ravel()[self.clean_positions]
        return model[self.rows, self.columns], clean

    def fingerprint(self) -> str:
        """Return a hash of all that decides the results."""
        digest = hashlib.sha256(f"{self.shape} {self.form}".encode())
        for array in (self.rows, self.columns, self.values, self.clean, self.clean_positions):
            if array is not None:
                digest.update(f"{array.dtype} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()


def read_known_entries(
    X: Any,
    *,
    mask: ArrayLike | None = None,
    clean: Any = None,
    sample_dims: str | Sequence[str] | None = None,
) -> KnownEntries:
    """Return the known entries of X.

    Parameters
    ----------
    X : array_like, scipy.sparse matrix, pandas.DataFrame or xarray.DataArray (m, n)
        The data; NaN, masked entries and the absent entries of a sparse matrix are missing.
    mask : array_like of bool (m, n), optional
        True where X is observed.
    clean : array_like (m, n), optional
        True values behind X; NaN where they are unknown.
    sample_dims : str or sequence of str, optional
        Dimensions of a DataArray that make the rows.

    Raises
    ------
    ValueError, TypeError
        If X, `mask` or `clean` makes no sense.
    """
    if is_sparse(X) and (clean is not None or sample_dims is not None):
        name = "clean" if clean is not None else "sample_dims"
        raise TypeError(f"{name} does not go with a sparse X: leave it out, or use a dense X.")
    observations = observe(X, mask=mask, sample_dims=sample_dims)
    if is_sparse(X) and observations.weights is not None:
        raise ValueError("X has weights, which a study cannot use: leave them out.")
    rows, columns, values = observations.entries()
    labels = observations.labels
    clean_values, positions = (None, None) if clean is None else _read_clean(clean, X, labels)
    return KnownEntries(
        rows.astype(np.intp),
        columns.astype(np.intp),
        values,
        observations.shape,
        labels,
        _form(X),
        clean_values,
        positions,
    )


def _form(X: Any) -> str:
    """Return the `KnownEntries.form` of the data."""
    if is_sparse(X):
        return "sparse" if sparse.issparse(X) else "labelled sparse"
    return "labelled" if isinstance(X, xr.DataArray) or is_frame(X) else "plain"


def _read_clean(
    clean: Any, X: Any, labels: Labels
) -> tuple[NDArray[np.floating], NDArray[np.intp]]:
    """Return the finite true values and their flat positions."""
    if isinstance(clean, xr.DataArray) and isinstance(X, xr.DataArray):
        if set(clean.dims) != set(X.dims):
            raise ValueError(f"clean has the dimensions {clean.dims}: give those of X, {X.dims}.")
        clean = clean.transpose(*X.dims)
    array = np.asarray(clean)
    if array.dtype.kind not in "buif" or array.shape != labels.shape:
        raise ValueError(
            f"clean has dtype {array.dtype} and shape {array.shape}: give real numbers in the "
            f"shape of X, {labels.shape}."
        )
    flat = labels.flatten(array).astype(float).ravel()
    positions = np.flatnonzero(np.isfinite(flat))
    if not positions.size:
        raise ValueError(
            "clean holds no finite number: give the true values behind X, or leave it out."
        )
    return flat[positions], positions


def picture_of_rows(data: KnownEntries, shape: tuple[int, int] | None) -> Picture | None:
    """Return how a row of X makes a picture; None if it makes none.

    Parameters
    ----------
    data : KnownEntries
        The known entries of X.
    shape : (int, int) or None
        Height and width of the picture; None takes them from the labels.
    """
    labels = data.labels
    row = labels.label(np.broadcast_to(0.0, data.shape)).isel(dict.fromkeys(labels.rows, 0))
    return picture_of(row, shape)
