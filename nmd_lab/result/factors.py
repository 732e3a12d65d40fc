"""The base of a fit: its fields as plain matrices, predictions, errors on data, and new rows.

No function of new rows forms the m x n matrix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import GivenLimits
from nmd_lab.data.labels import COMPONENT, Labels, any_frame, index_labels, is_frame
from nmd_lab.data.matching import dense_like, is_default
from nmd_lab.data.typed_table import TypedColumn, plain_label
from nmd_lab.model.column_model import NO_LIMIT_MODEL, LimitModel
from nmd_lab.model.fitted_values import FittedValues, Offsets, RowModel
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity

from .entries import (
    Entries,
    Unknown,
    check_unknown,
    compared_entries,
    data_to_fill,
    entries_of,
    filled_frame,
    values_at,
)
from .fitted import Fitted, Positions
from .fold_in import fold_in, fold_in_blocks, is_dask_array


class Factors(Fitted):
    """The fields of a fit, which `Decomposition` documents."""

    W: xr.DataArray
    H: xr.DataArray
    nonlinearity: Nonlinearity
    loss: Loss
    history: xr.Dataset
    offsets: Offsets

    _owner = "the fit"

    @property
    def rank(self) -> int:
        """Number of components.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> fit = nmd.decompose(digits, 5, "relu", random_state=0)
        >>> fit.rank
        5
        """
        return self.W.sizes[COMPONENT]

    @property
    def _fitted(self) -> FittedValues:
        """f(WH) at positions."""
        return FittedValues(*self._factors, self.offsets, self._model)

    @property
    def _factors(self) -> tuple[FloatArray, FloatArray]:
        """W (m, rank) and H (rank, n) as plain matrices."""
        return self.W.values.reshape(-1, self.rank), self.H.values.reshape(self.rank, -1)

    @any_frame
    def predict(
        self,
        rows: Any,
        columns: ArrayLike | None = None,
        *,
        without: ArrayLike = (),
        unknown: Unknown = "error",
    ) -> Any:
        """Return f(WH) at rows and columns, by label or position, or at the entries of test data.

        Parameters
        ----------
        rows, columns, unknown
            See `Posterior.predict`.
        without : int or array_like of int, optional
            Numbers of components that are left out of WH.

        Returns
        -------
        ndarray, 1-D, or the type of the test data
            One prediction for each pair of row and column, or for each observed entry of test data.

        Raises
        ------
        KeyError, TypeError, ValueError
            See `Posterior.predict`.
        IndexError
            If a position lies outside X, or there is no such component.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> from sklearn.datasets import load_wine
        >>> wine = load_wine(as_frame=True).data
        >>> fit = nmd.complete(wine, 3, alpha=0.1, random_state=0)
        >>> bool(12 < fit.predict(0, "alcohol")[0] < 15)
        True
        >>> fit.predict(0, ["alcohol", "ash"], without=[0, 1]).shape
        (2,)
        """
        entries = entries_of(self._labels, rows, columns, unknown, self._owner)
        return entries.back(self._expected(entries, without))

    def score(
        self, X: Any, *, observed: ArrayLike | None = None, weights: ArrayLike | None = None
    ) -> float:
        """Return the fraction of X that f(WH) explains, for example of held-out entries.

        Parameters
        ----------
        X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
            Data of the fit, or other data: of the same shape, or with labels that the fit has, in
            any order.  Entries that a sparse matrix does not store are missing.
        observed : array_like of bool, optional
            True where an entry counts.  By default all observed entries.
        weights : array_like, optional
            Weights of the entries, >= 0.

        Returns
        -------
        float
            1 - ‖X - f(WH)‖² / ‖X‖² over the observed entries, as the estimators have it: higher is
            better, 1 is perfect, a prediction of 0 everywhere has the score 0.  For the error in
            the units of X see `nmd_lab.metrics.rmse`, with ``fit.predict(X)``, and
            `nmd_lab.compare`.

        Raises
        ------
        ValueError, TypeError
            If X is invalid, or its shape or labels are not those of the fit.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> train, test = nmd.split_observed(digits, 0.1, random_state=0)
        >>> 0.8 < nmd.complete(train, 5, alpha=1, random_state=0).score(test) < 1
        True
        """
        x, y, w = compared_entries(self, X, observed, weights)
        error, size = float(np.sum(w * np.square(x - y))), float(np.sum(w * np.square(x)))
        return 1.0 - error / size if size > 0 else float(error == 0)

    @any_frame
    def impute(self, X: Any) -> Any:
        """Return X with its missing cells filled, each by what suits its column.

        Parameters
        ----------
        X : array_like, masked array, DataFrame or DataArray
            Data with missing entries, of the shape of the fitted data or with labels that they
            have.

        Returns
        -------
        same type as X, or ndarray for a masked array
            Observed entries are kept.  A missing number becomes its prediction, a missing boolean,
            level or category the most probable one.  A DataFrame keeps its dtypes; predictions of
            whole numbers ("Int64") are rounded.

        Raises
        ------
        ValueError, TypeError
            If X is sparse, or has another shape or other labels.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
        >>> fit = nmd.complete(train, 3, loss={}, alpha=0.1, random_state=0)
        >>> filled = fit.impute(train)
        >>> (
        ...     bool(filled.notna().all(axis=None)),
        ...     bool((filled[train.notna()] == train).any(axis=None)),
        ... )
        (True, True)
        """
        data = data_to_fill(self._labels, X)
        model, labels = self._fitted.block(data.rows, data.columns), data.observations.labels
        if not is_frame(X):
            x = data.observations.to_array()
            return dense_like(X, labels, np.where(np.isnan(x), model.astype(x.dtype), x))

        def missing(column: TypedColumn, at: NDArray[np.intp]) -> FloatArray:
            if column.kind == "number":
                return model[:, at[0]].astype(np.float64)
            shares, _ = self._class_shares(column.name, column, data.columns[at], data.rows)
            return np.asarray(shares.argmax(axis=1).astype(np.float64))

        return filled_frame(X, labels, missing)

    def _returned(self, name: str) -> float:
        """Return a number of the history, at the iteration of W and H."""
        at = np.flatnonzero(self.history.iteration.values == self.parameters["iteration"])
        return float(self.history[name].values[at[0] if at.size else -1])

    def _expected(self, entries: Entries, without: ArrayLike = ()) -> FloatArray:
        """Return f(WH) at each entry, without some components."""
        return values_at(self._fitted.without(without), entries)

    def _matrix(self) -> FloatArray:
        """Return f(WH)."""
        return self._fitted.block()

    def _ranked_by(self, by: str, row: int) -> NDArray[np.floating]:
        """Return f(WH) in a row."""
        if by != "mean":
            raise ValueError(f"by={by!r} needs the intervals of a posterior: use nmd_lab.sample().")
        n = self._shape[1]
        return self._fitted.at(np.full(n, row), np.arange(n))

    def _class_shares(
        self, column: Any, typed: TypedColumn | None, positions: Positions, rows: Positions
    ) -> tuple[FloatArray, list[Any]]:
        """Return the probability of each class of a column in some rows, and the classes."""
        loss: Any = self._loss_at(int(positions[0]))
        linear = self._fitted.linear(rows, positions).astype(np.float64)
        t = self._model.modelled(linear, 0, positions)
        if typed is not None and typed.has_indicators:
            return _softmax(t), typed.classes
        if loss.classes == "two":
            return _softmax(np.hstack([-t, t]) / 2), [loss.parameters[0], 1.0]
        if loss.classes == "ordered":
            shares = loss.probabilities(t[:, 0])
            return shares, list(loss.parameters[: shares.shape[1]])
        raise ValueError(
            f"column={column!r} has the loss {loss.name!r}, which gives classes no "
            "probability: name one with the loss 'logistic' or 'ordinal'."
        )

    def _loss_at(self, column: int) -> Loss:
        """Return the loss of a column of the matrix."""
        kind = self._model.of_column(column)
        if kind is None:
            raise ValueError(
                "The fit has a loss for each entry, so that a column has no probabilities: give "
                "the loss by column."
            )
        return kind.loss

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


def _softmax(t: FloatArray) -> FloatArray:
    """Return fractions that are proportional to exp(t) in each row."""
    shares: FloatArray = np.exp(t - t.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


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
