"""The base of a fit: its fields as plain matrices, its predictions, and its errors on data."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab.data.any_frame import any_frame
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import COMPONENT, is_frame
from nmd_lab.data.matching import dense_like
from nmd_lab.data.typed_table import TypedColumn
from nmd_lab.model.fitted_values import FittedValues, Offsets
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity

from .entries import (
    Entries,
    Unknown,
    compared_entries,
    data_to_fill,
    entries_of,
    filled_frame,
    values_at,
)
from .fitted import Fitted, Positions


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


def _softmax(t: FloatArray) -> FloatArray:
    """Return fractions that are proportional to exp(t) in each row."""
    shares: FloatArray = np.exp(t - t.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares
