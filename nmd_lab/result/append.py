"""A fit with more rows: new rows of W beside those of the fit, with their labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.data.matching import is_default, plain_label

from .factors import Factors
from .lookup import Unknown
from .predictions import Predictions


class Appending(Predictions):
    """What adds rows to a result."""

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
        >>> import pandas as pd, nmd_lab as nmd
        >>> X = pd.DataFrame([[1.0, 2.0], [2.0, 4.0]], index=["ann", "bo"], columns=["p", "q"])
        >>> fit = nmd.complete(X, 1, alpha=0, random_state=0)
        >>> fit.append(pd.Series({"p": 3.0}, name="cy")).predict("cy", "q").round(6)
        array([6.])
        """
        if len(self.labels.rows) > 1:
            raise ValueError(
                f"the rows have the dimensions {self.labels.rows}: append() needs rows of one."
            )
        W = rows
        if not _are_factors(self, rows):
            limits: dict[str, Any] = {"at_most": at_most, "at_least": at_least, "upper": upper}
            W = self.fold_in(rows, observed=observed, weights=weights, unknown=unknown, **limits)
        matrix, offsets = _checked_rows(self, W)
        labels = _with_rows(self.labels, W)
        own_W, H = self.factors
        labelled_W, labelled_H = labels.label_factors(
            np.concatenate([own_W, matrix.astype(own_W.dtype)]), H
        )
        more = int(self.parameters.get("appended_rows", 0)) + len(matrix)
        extended = replace(
            cast(Any, self),
            W=labelled_W,
            H=labelled_H,
            labels=labels,
            offsets=self.offsets._replace(rows=offsets),
            parameters={**self.parameters, "appended_rows": more},
        )
        return cast(Self, extended)


def _are_factors(fit: Factors, rows: Any) -> bool:
    """Return whether rows are those of W, which have components instead of columns."""
    return isinstance(rows, xr.DataArray) and COMPONENT in rows.dims


def _checked_rows(
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


def _with_rows(labels: Labels, W: xr.DataArray) -> Labels:
    """Return the labels of a fit with those of new rows of W."""
    (dim,), (new_dim,) = labels.rows, [str(dim) for dim in W.dims if dim != COMPONENT]
    axis, k = labels.dims.index(dim), W.sizes[new_dim]
    m = labels.shape[axis]
    along = {name: c for name, c in labels.coords.coords.items() if dim in c.dims}
    coords = labels.coords.drop_vars(list(along))
    index = labels.coords.indexes.get(dim)
    if index is not None:
        coords = coords.assign_coords(_index_coords(dim, _more_labels(dim, index, new_dim, W)))
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


def _index_coords(dim: str, index: Any) -> Any:
    """Return the coordinates of a pandas.Index along a dimension."""
    if index.nlevels > 1:
        return xr.Coordinates.from_pandas_multiindex(index, dim)
    return {dim: index.rename(dim)}


def _missing(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Return so many values that stand for a missing one beside these values."""
    if values.dtype.kind in "mM":
        return np.full(size, "NaT", dtype=values.dtype)
    if values.dtype.kind in "iubf":
        return np.full(size, np.nan)
    is_text = values.dtype.kind in "UT" or all(isinstance(value, str) for value in values)
    return np.full(size, "" if is_text else None, dtype=object)
