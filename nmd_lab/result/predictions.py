"""Predictions of a fit at single entries, W for new rows, and a fit with these rows in it.

None of these functions forms the m x n matrix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, cast, overload

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.masks import GivenLimits
from nmd_lab.model.fitted_values import RowModel
from nmd_lab.model.kind import NO_LIMIT_MODEL, LimitModel
from nmd_lab.model.model import make_model

from .entries import Unknown, check_unknown, entries_of, values_at
from .factors import Factors
from .fold_in import are_factors, checked_rows, fold_in, fold_in_blocks, is_dask_array, with_rows


class Predictions(Factors):
    """Predictions of a fitted model, at single entries and for new rows."""

    @property
    def model(self) -> RowModel:
        """The parts of the fit that determine W for new rows."""
        alpha = self.parameters.get("alpha", 0.0)
        offset_alpha = self.parameters.get("offset_alpha", alpha)
        extra = self.parameters.get("constraint_ridges", (0.0, 0.0))[0]
        _, H = self.factors
        smallest = self.parameters.get("smallest_value", NO_LIMIT_MODEL.smallest)
        limits = LimitModel(float(smallest), float(self.parameters.get("limit_noise", 0.0)))
        model = self.kinds or make_model(self.nonlinearity, self.loss)
        return RowModel(
            model.with_limits(limits),
            H,
            self.offsets,
            alpha=float(alpha + extra),
            offset_alpha=float(offset_alpha),
            epsilon=float(self.parameters.get("epsilon", 0.0)),
            constraint=self.parameters.get("w_constraint"),
            absent_are_zeros=bool(self.parameters.get("absent_are_zeros", False)),
        )

    @overload
    def predict(
        self, rows: Any, columns: ArrayLike, *, without: ArrayLike = (), unknown: Unknown = "error"
    ) -> FloatArray: ...

    @overload
    def predict(
        self,
        rows: Any,
        columns: None = None,
        *,
        without: ArrayLike = (),
        unknown: Unknown = "error",
    ) -> Any: ...

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
        rows : label, int or array_like
            Labels or positions of rows; see the notes.  Or, without `columns`, test data: an array
            with NaN, masked array, DataFrame, DataArray, scipy.sparse matrix or SparseObservations
            of the shape of X, or with labels that X has, in any order.
        columns : label, int or array_like, optional
            Labels or positions of columns.  They broadcast with the rows.
        without : int or array_like of int, optional
            Numbers of components that are left out of WH.
        unknown : {"error", "offsets"}, default "error"
            What is done with labels that X did not have.  "error": a sentence names them.
            "offsets": the prediction is f of the offsets that there are: f(mean + c_j) in an
            unknown row, f(mean + b_i) in an unknown column, f(mean) for both; f(0) without offsets.

        Returns
        -------
        ndarray, 1-D, or the type of the test data
            One prediction for each pair of row and column.  For test data: a prediction at each of
            their observed entries, in their own type, shape and labels; NaN, or no stored entry,
            where they have none.

        Raises
        ------
        KeyError
            If X had no such labels; the message names them.
        IndexError
            If a position lies outside X, or there is no such component.
        TypeError
            If something else than a position is given where X has no labels.
        ValueError
            If a label occurs more than once in X, or if the test data have another shape than X, or
            a label that X does not have.

        Notes
        -----
        What takes rows or columns takes labels or positions, by one rule.  An integer is a position
        from 0, where negative ones count from the end, and all else is a label: text, a date, or a
        tuple of the levels of a `pandas.MultiIndex`.  But where the labels of X are integers, an
        integer is a label, as for ``.loc``; only the labels 0, 1, 2, ... of a table that was given
        none are positions at the same time.

        Examples
        --------
        >>> import numpy as np, pandas as pd, nmd_lab as nmd
        >>> fit = nmd.decompose(np.eye(4), 3, "relu", random_state=0)
        >>> fit.predict([0, 1], [0, 2]).shape
        (2,)
        >>> X = pd.DataFrame([[1.0, 2.0], [2.0, 4.0]], index=["ann", "bo"], columns=["p", "q"])
        >>> fit = nmd.complete(X, 1, alpha=0, random_state=0)
        >>> fit.predict("bo", ["p", "q"]).round(6), fit.predict(-1, 0).round(6)
        (array([2., 4.]), array([2.]))
        >>> fit.predict(pd.DataFrame({"q": [5.0]}, index=["bo"])).round(6)
              q
        bo  4.0
        >>> fit.predict("bo", "q", without=0)
        array([0.])
        """
        entries = entries_of(self.labels, rows, columns, unknown)
        return entries.back(values_at(self.fitted.without(without), entries))

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
        >>> fit = nmd.decompose(np.outer([1.0, 2.0, 3.0], [1.0, 2.0]), 1, random_state=0)
        >>> w = fit.fold_in([[5.0, np.nan]])
        >>> (w.values @ fit.H.values).round(6)
        array([[ 5., 10.]])
        """
        check_unknown(unknown)
        limits = GivenLimits(at_most, at_least, upper)
        if is_dask_array(X):
            if observed is not None or weights is not None or limits:
                raise ValueError("X is an array of Dask: give NaN where an entry is missing.")
            return fold_in_blocks(self.model, X)
        arguments = {"observed": observed, "weights": weights, "limits": limits}
        return fold_in(self.labels, self.model, X, unknown, **arguments)


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
        if not are_factors(self, rows):
            limits: dict[str, Any] = {"at_most": at_most, "at_least": at_least, "upper": upper}
            W = self.fold_in(rows, observed=observed, weights=weights, unknown=unknown, **limits)
        matrix, offsets = checked_rows(self, W)
        labels = with_rows(self.labels, W)
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
