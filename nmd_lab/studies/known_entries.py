"""The known entries of X, and matrices that hold some of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from joblib import hash as hash_of
from numpy.typing import NDArray

from nmd_lab import _version
from nmd_lab.data.inputs import observe
from nmd_lab.data.labels import Picture, is_frame, picture_of
from nmd_lab.data.masks import NO_LIMITS, GivenLimits, dense_values
from nmd_lab.data.matching import like
from nmd_lab.data.observations import FloatArray, ObservedEntries, fingerprint
from nmd_lab.data.sparse import SparseObservations, is_sparse
from nmd_lab.data.typed_table import TypedColumn, TypedTable
from nmd_lab.data.units import Units, column_units, units_of_columns

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class KnownEntries:
    """The known entries of X.

    Attributes
    ----------
    X : ndarray, DataFrame, DataArray, scipy.sparse matrix or SparseObservations
        Data in the form that the fits get.
    observations : SparseObservations
        The entries row by row, with weights, limits, and the dimensions and coordinates of X.
    shape : (int, int) or None
        Height and width of the picture that each row is, if the user gave them.
    arguments : dict
        Arguments of a fit that belong to the data: `weights`, `sample_dims` and so on.
    """

    X: Any
    observations: SparseObservations
    shape: tuple[int, int] | None
    arguments: dict[str, Any]

    @cached_property
    def entries(self) -> ObservedEntries:
        """Rows, columns and values of the entries."""
        return self.observations.entries()

    @property
    def table(self) -> TypedTable | None:
        """Typed columns of X, None if all are numbers."""
        return self.observations.labels.table

    @property
    def classes(self) -> list[TypedColumn]:
        """Columns of booleans, levels and categories."""
        return [] if self.table is None else [each for each in self.table.columns if each.is_class]

    @cached_property
    def picture(self) -> Picture | None:
        """How a row of X makes a picture, by the given shape or by labels, if it makes one."""
        labels = self.observations.labels
        row = labels.label(np.broadcast_to(0.0, labels.matrix_shape))
        return picture_of(row.isel(dict.fromkeys(labels.rows, 0)), self.shape)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all that decides the results, the version of the library too."""
        kind = type(self.X).__name__, self.shape, self.arguments.get("sample_dims")
        columns = self.observations.shape[1] if self.table is None else self.table.describe()
        return str(hash_of((_version.__version__, kind, columns, fingerprint(self.observations))))

    @cached_property
    def exact(self) -> BoolArray:
        """Mask of the entries of which more than limits are known."""
        limits = self.observations.limits
        return np.ones(self.entries.values.size, bool) if limits is None else limits.codes == 0

    @cached_property
    def numbers(self) -> BoolArray:
        """Mask of those of them that are numbers, and no classes or levels."""
        table = self.table
        return self.exact if table is None else self.exact & ~table.of_classes[self.entries.columns]

    @cached_property
    def units(self) -> Units:
        """Mean and standard deviation of the column of each entry; 0 and 1 if all have one unit."""
        if self.table is None and not (is_frame(self.X) and units_of_columns(observe(self.X))):
            return Units(0.0, 1.0)
        return column_units(self.observations.select(self.exact)).at(self.entries.columns)

    def matrix(self, values: FloatArray, mask: BoolArray, *, encoded: bool = False) -> Any:
        """Return X with new values of the known entries, and only those where the mask is True.

        Encoded, a DataFrame has the columns of the matrix.
        """
        entries = self.observations.with_values(values).select(mask)
        return like(self.X, entries, entries.values if encoded else None)


def read_known_entries(
    X: Any, shape: tuple[int, int] | None = None, limits: GivenLimits = NO_LIMITS, **data: Any
) -> KnownEntries:
    """Return the known entries of X; the arguments are those of `Study`, `data` for `observe`."""
    if is_sparse(X) and data.get("sample_dims") is not None:
        raise TypeError("sample_dims does not go with a sparse X: leave it out.")
    observations = observe(X, limits=limits, **data)
    found = {name: v for name, v in (data | vars(limits)).items() if v is not None}
    found.pop("observed", None)
    if is_sparse(X) and found:
        X, found = observations, {}  # which have all
    elif (labels := observations.labels).table is not None and not is_sparse(X):
        found = {name: dense_values(name, v, X, labels) for name, v in found.items()}
    entries = KnownEntries(like(X, observations), observations.as_sparse(), shape, found)
    if shape is not None:
        _ = entries.picture  # a wrong shape is refused here
    return entries
