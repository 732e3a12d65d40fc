"""The known entries of X, and matrices that hold some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from joblib import hash as hash_of
from numpy.typing import NDArray

from nmd_lab import _version
from nmd_lab.data.base import FloatArray, ObservedEntries
from nmd_lab.data.containers import like
from nmd_lab.data.labels import is_frame
from nmd_lab.data.observations import observe
from nmd_lab.data.pictures import Picture, picture_of
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.solver.support import features_of_data, refuse


@dataclass(frozen=True, eq=False)
class KnownEntries:
    """The known entries of X.

    Attributes
    ----------
    X : ndarray, DataArray, scipy.sparse matrix or SparseObservations
        Data in the form that the fits get.
    observations : SparseObservations
        The entries row by row, with the dimensions and coordinates of X.
    shape : (int, int) or None
        Height and width of the picture that each row is, if the user gave them.
    sample_dims : str or tuple of str, or None
        Dimensions that make the rows, if the user named them.
    """

    X: Any
    observations: SparseObservations
    shape: tuple[int, int] | None
    sample_dims: str | Sequence[str] | None

    @cached_property
    def entries(self) -> ObservedEntries:
        """Rows, columns and values of the entries."""
        return self.observations.entries()

    @cached_property
    def picture(self) -> Picture | None:
        """How a row of X makes a picture, by the given shape or by labels, if it makes one."""
        labels = self.observations.labels
        row = labels.label(np.broadcast_to(0.0, labels.matrix_shape))
        return picture_of(row.isel(dict.fromkeys(labels.rows, 0)), self.shape)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all that decides the results, the version of the library too."""
        kind = _version.__version__, type(self.X).__name__, self.shape, self.sample_dims
        return str(hash_of((kind, self.observations.shape, self.entries)))

    def matrix(self, values: FloatArray, mask: NDArray[np.bool_]) -> Any:
        """Return X with new values of the known entries, and only those where the mask is True."""
        return like(self.X, self.observations.with_values(values).select(mask))


def read_known_entries(
    X: Any, observed: Any, shape: tuple[int, int] | None, sample_dims: str | Sequence[str] | None
) -> KnownEntries:
    """Return the known entries of X; the arguments are those of `Study`."""
    if is_sparse(X) and sample_dims is not None:
        raise TypeError("sample_dims does not go with a sparse X: leave it out.")
    refuse(features_of_data(X) | {"study": "a Study"})
    observations = observe(X, observed=observed, sample_dims=sample_dims).as_sparse()
    if not is_sparse(X):
        is_labelled = isinstance(X, xr.DataArray) or is_frame(X)
        X = observations.to_array()
        X = observations.labels.label(X) if is_labelled else X
    entries = KnownEntries(X, observations, shape, sample_dims)
    if shape is not None:
        _ = entries.picture  # a wrong shape is refused here
    return entries
