"""New rows of a fit: W for them with H fixed, and the fit with these rows in it.

None of these functions forms the m x n matrix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab.data.frames import index_labels
from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.data.masks import GivenLimits
from nmd_lab.data.matching import is_default, plain_label
from nmd_lab.model.fitted_values import RowModel
from nmd_lab.model.kind import NO_LIMIT_MODEL, LimitModel

from .entries import Unknown, check_unknown
from .factors import Factors
from .fold_in import fold_in, fold_in_blocks, is_dask_array


class Appending(Factors):
    """New rows of a fit."""

    @property
    def _row_model(self) -> RowModel:
        """The parts of the fit that determine W for new rows."""
        alpha = self.parameters.get("alpha", 0.0)
        offset_alpha = self.parameters.get("offset_alpha", alpha)
        extra = self.parameters.get("constraint_ridges", (0.0, 0.0))[0]
        _, H = self._factors
        smallest = self.parameters.get("smallest_value", NO_LIMIT_MODEL.smallest)
        limits = LimitModel(float(smallest), float(self.parameters.get("limit_noise", 0.0)))
        return RowModel(
            self._model.with_limits(limits),
            H,
            self.offsets,
            alpha=float(alpha + extra),
            offset_alpha=float(offset_alpha),
            epsilon=float(self.parameters.get("epsilon", 0.0)),
            constraint=self.parameters.get("w_constraint"),
            absent_are_zeros=bool(self.parameters.get("absent_are_zeros", False)),
        )

    def fold_in(
        self,
        X: Any,
        *,
        observed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        at_most: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        unknown: Unknown = "error",
    ) -> xr.DataArray:
        """Return the rows of W for new rows of X, with H fixed.

        Each row of W minimises the part of the objective of its row of X.  It is computed by the
        same kind of iteration as the fit, from several starts, and does not depend on other rows.

        Parameters
        ----------
        X : array_like (k, n), Series, DataFrame, DataArray, scipy.sparse or SparseObservations
            New rows; a pandas.Series is one row.  NaN and masked entries are missing.  Absent
            entries of a sparse matrix are zeros for a fit of `decompose` to a sparse matrix, such
            as one of documents, and missing for any other.  Columns with labels may be some of
            those of the fit, in any order; the others are missing.  A Dask array gives a DataArray
            over a Dask array, which is computed block by block.
        observed : array_like of bool (k, n), optional
            True where X is observed.
        weights : array_like (k, n), optional
            Weights of the entries, >= 0.
        at_most, at_least, upper : array_like (k, n), optional
            Entries of which only limits are known, as for `nmd_lab.complete`; the noise is that of
            the fit.
        unknown : {"error", "offsets"}, default "error"
            What is done with rows without entries and with columns that the fit does not have.
            "error": a sentence names them.  "offsets": the row of W and its offset are 0, and
            unknown columns are left out.

        Returns
        -------
        xarray.DataArray (row, component)
            Rows of W with the row labels of X; 0 for rows of a Dask array without entries.  If the
            fit has row offsets, the coordinate `offset` has those of the new rows.  `append` takes
            them.

        Raises
        ------
        ValueError, TypeError
            If X is invalid, or has rows without entries or columns that the fit does not have.

        Examples
        --------
        >>> import numpy as np, nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> fit = nmd.complete(digits[:90], 5, alpha=1, random_state=0)
        >>> lower_half = digits[90:].where(np.arange(64) >= 32)
        >>> fit.fold_in(lower_half).sizes
        Frozen({'image': 10, 'component': 5})
        """
        check_unknown(unknown)
        limits = GivenLimits(at_most, at_least, upper)
        if is_dask_array(X):
            if observed is not None or weights is not None or limits:
                raise ValueError("X is an array of Dask: give NaN where an entry is missing.")
            return fold_in_blocks(self._row_model, X)
        arguments = {"observed": observed, "weights": weights, "limits": limits}
        return fold_in(self._labels, self._row_model, X, unknown, **arguments)

    def append(
        self,
        rows: Any,
        *,
        observed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        at_most: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        unknown: Unknown = "error",
    ) -> Self:
        """Return the fit with new rows in it, for predictions, rankings and saving.

        Parameters
        ----------
        rows : array_like (k, n), Series, DataFrame, DataArray, sparse data, or result of `fold_in`
            New rows of X, as for `fold_in`; or their rows of W, which `fold_in` returned.
        observed, weights, at_most, at_least, upper : array_like (k, n), optional
            As for `fold_in`, if `rows` are rows of X.
        unknown : {"error", "offsets"}, default "error"
            As for `fold_in`.

        Returns
        -------
        Decomposition
            Fit with the new rows after its own.  H, the other rows of W, history, objective and
            `relative_error` are those of this fit; ``parameters["appended_rows"]`` counts the new
            rows.  If the rows of the fit have labels, so do the new ones; where the fit was made
            without row labels, those of the new rows are not kept.

        Raises
        ------
        ValueError, TypeError
            If `fold_in` would refuse the rows; if a row label is in the fit already, or comes
            twice; if the fit has row labels and the new rows have none; or if several dimensions
            make the rows.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> fit = nmd.complete(wine[:150], 3, loss={}, alpha=0.1, random_state=0)
        >>> more = fit.append(wine[150:].assign(alcohol=float("nan")))
        >>> bool(12 < more.predict(177, "alcohol")[0] < 15)
        True
        """
        if len(self._labels.rows) > 1:
            raise ValueError(
                f"the rows have the dimensions {self._labels.rows}: append() needs rows of one."
            )
        W = rows
        if not (isinstance(rows, xr.DataArray) and COMPONENT in rows.dims):  # rows of X
            limits: dict[str, Any] = {"at_most": at_most, "at_least": at_least, "upper": upper}
            W = self.fold_in(rows, observed=observed, weights=weights, unknown=unknown, **limits)
        matrix, offsets = checked_rows(self, W)
        labels = with_rows(self._labels, W)
        own_W, H = self._factors
        labelled_W, labelled_H = labels.label_factors(
            np.concatenate([own_W, matrix.astype(own_W.dtype)]), H
        )
        more = int(self.parameters.get("appended_rows", 0)) + len(matrix)
        extended = replace(
            cast(Any, self),
            W=labelled_W,
            H=labelled_H,
            _labels=labels,
            offsets=self.offsets._replace(rows=offsets),
            parameters={**self.parameters, "appended_rows": more},
        )
        return cast(Self, extended)


def checked_rows(
    fit: Factors, W: xr.DataArray
) -> tuple[NDArray[np.floating], NDArray[np.floating] | None]:
    """Return new rows of W as a matrix, and all row offsets, None if the fit has none."""
    if W.ndim != 2 or W.sizes[COMPONENT] != fit.rank:
        raise ValueError(
            f"rows has the shape {dict(W.sizes)}: give rows of X, or what fold_in() of this fit "
            f"returned, with {fit.rank} components."
        )
    W = W.transpose(..., COMPONENT)
    if not np.all(np.isfinite(W.values)):
        raise ValueError("rows holds NaN or infinite weights: give what fold_in() returned.")
    if fit.offsets.rows is None:
        return W.values, None
    if "offset" not in W.coords:
        raise ValueError("rows has no coordinate 'offset': give what fold_in() returned.")
    new = W.coords["offset"].values.astype(fit.offsets.rows.dtype)
    return W.values, np.concatenate([fit.offsets.rows, new])


def with_rows(labels: Labels, W: xr.DataArray) -> Labels:
    """Return the labels of a fit with those of new rows of W."""
    (dim,), (new_dim,) = labels.rows, [str(dim) for dim in W.dims if dim != COMPONENT]
    axis, k = labels.dims.index(dim), W.sizes[new_dim]
    m = labels.shape[axis]
    along = {name: c for name, c in labels.coords.coords.items() if dim in c.dims}
    coords = labels.coords.drop_vars(list(along))
    index = labels.coords.indexes.get(dim)
    if index is not None:
        more = index_labels(_more_labels(dim, index, new_dim, W), dim, taken=())[1]
        coords = coords.assign_coords(more)
    for name, coordinate in along.items():
        if coordinate.dims == (dim,) and name not in coords.coords:
            new = W.coords[name].values if name in W.coords else _missing(coordinate.values, k)
            values = np.concatenate([coordinate.values, new])
            coords = coords.assign_coords({name: (dim, values, coordinate.attrs)})
    shape = (*labels.shape[:axis], m + k, *labels.shape[axis + 1 :])
    return replace(labels, shape=shape, coords=coords)


def _more_labels(dim: str, index: Any, new_dim: str, W: xr.DataArray) -> Any:
    """Return the row labels of a fit and of new rows, as one pandas.Index."""
    new, k = W.indexes.get(new_dim), W.sizes[new_dim]
    if new is None or is_default(new_dim, new):
        if not is_default(dim, index):
            raise ValueError(
                f"rows has no row labels, but the fit has labels along {dim!r}: give a DataFrame "
                "or a DataArray with labels of their own."
            )
        new = pd.RangeIndex(len(index), len(index) + k)
    if new.nlevels != index.nlevels:
        raise ValueError(
            f"rows has row labels of {new.nlevels} levels: give the {index.nlevels} of the fit."
        )
    repeated = new.isin(index) | new.duplicated()
    if repeated.any():
        label = new[int(np.argmax(repeated))]
        raise ValueError(
            f"rows has the row label {plain_label(label)!r}, which is there already: give each row "
            "a new one."
        )
    return index.append(new).set_names(index.names)


def _missing(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Return so many missing values, of the type of these values."""
    if values.dtype.kind in "mM":
        return np.full(size, "NaT", dtype=values.dtype)
    if values.dtype.kind in "iubf":
        return np.full(size, np.nan)
    is_text = values.dtype.kind in "UT" or all(isinstance(value, str) for value in values)
    return np.full(size, "" if is_text else None, dtype=object)
