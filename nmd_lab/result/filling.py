"""Probabilities of classes, and data with their holes filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import Labels, is_frame
from nmd_lab.data.matching import MatchedData, dense_like, match_data
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.typed_table import TypedColumn, table_of
from nmd_lab.model.loss import Loss

from .draws import ALL, NUMBERS, DrawnFactors, FittedDraws
from .entries import positions_of
from .factors import Factors
from .mixture import Array
from .predictive import level_masses, level_shares

TINY = np.finfo(np.float64).tiny
"""What a category has at least, so that the probabilities of all can be divided by their sum."""


class Filling(Factors):
    """What a result says about missing entries, in the kind of each column."""

    def probabilities(self, column: Any, rows: Any = None) -> Any:
        """Return the probability of each class of a column, for all rows or some.

        Parameters
        ----------
        column : label or int
            Label or position of a column of X whose loss is "logistic" or "ordinal", or label of a
            column of a DataFrame that holds booleans, ordered levels or categories.
        rows : label, int or array_like, optional
            Labels or positions of rows, by the rule of `predict`; by default all.

        Returns
        -------
        pandas.DataFrame (n_rows, n_classes)
            Probabilities, with the row labels of X.  Its columns are False and True for booleans,
            the values of X for other binary data, the levels or the categories.  Those of a row
            have the sum 1.

        Raises
        ------
        KeyError, IndexError
            If X has no such column.
        ValueError
            If the column holds numbers.

        Notes
        -----
        A column of more than two categories has an indicator for each of them.  Their odds
        p / (1 - p) are divided by the sum.

        Examples
        --------
        >>> import numpy as np, pandas as pd, nmd_lab as nmd
        >>> size = np.arange(12.0)
        >>> X = pd.DataFrame({"size": size, "weight": 2 * size + 1, "adult": size > 5})
        >>> fit = nmd.complete(X, 1, alpha=0.1, random_state=0)
        >>> fit.probabilities("adult").idxmax(axis=1).iloc[[0, -1]].tolist()
        [False, True]
        """
        typed, positions = typed_column(self.labels, column)
        loss: Any = self._loss_at(int(positions[0]))
        at = rows_at(self.labels, rows)
        t = self._scores(at, positions)
        if typed is not None and typed.has_indicators:
            p = np.exp(t - t.max(axis=1, keepdims=True))
            p, classes = p / p.sum(axis=1, keepdims=True), typed.classes
        elif loss.classes == "two":
            two = np.hstack([-t, t]) / 2
            p = np.exp(two - two.max(axis=1, keepdims=True))
            p = p / p.sum(axis=1, keepdims=True)
            classes = [loss.parameters[0], 1.0] if typed is None else typed.classes
        elif loss.classes == "ordered":
            p = loss.probabilities(t[:, 0])
            classes = list(loss.parameters[: p.shape[1]]) if typed is None else typed.classes
        else:
            raise ValueError(
                f"column={column!r} has the loss {loss.name!r}, which gives classes no "
                "probability: name one with the loss 'logistic' or 'ordinal'."
            )
        return class_table(self.labels, p, classes, at)

    def impute(self, X: Any) -> Any:
        """Return X with its holes filled, each by what suits its column.

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
        >>> import numpy as np, nmd_lab as nmd
        >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
        >>> X[2, 2] = np.nan
        >>> nmd.complete(X, 1, alpha=0, random_state=0).impute(X)[2].round(6)
        array([ 3.,  6., 12.])
        """
        data = data_to_fill(self.labels, X)
        model = self.fitted.block(data.rows, data.columns)
        if is_frame(X):
            return self._filled_frame(X, model, data)
        x = data.observations.to_array()
        filled = np.where(np.isnan(x), model.astype(x.dtype), x)
        return dense_like(X, data.observations.labels, filled)

    def _filled_frame(self, frame: Any, model: FloatArray, data: Any) -> Any:
        """Return a DataFrame with its holes filled."""

        def missing(column: TypedColumn, at: NDArray[np.intp]) -> FloatArray:
            if column.kind == "number":
                return model[:, at[0]].astype(np.float64)
            p = self.probabilities(column.name).to_numpy()[data.rows]
            most_probable: FloatArray = p.argmax(axis=1).astype(np.float64)
            return most_probable

        return filled_frame(frame, data.observations.labels, missing)

    def _loss_at(self, column: int) -> Loss:
        """Return the loss of a column of the matrix."""
        model = self.kinds
        if model is None or model.which is None:
            return self.loss
        if model.which.ndim == 2:
            raise ValueError(
                "The fit has a loss for each entry, so that a column has no probabilities: give "
                "the loss by column."
            )
        loss: Loss = model.kinds[model.which[column]].loss
        return loss

    def _scores(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> FloatArray:
        """Return the modelled values of log-odds or ordinal scores of some rows and columns."""
        t = self.fitted.linear(rows, columns).astype(np.float64)
        return self.nonlinearity(t) if self.kinds is None else self.kinds.modelled(t, 0, columns)


def typed_column(labels: Labels, column: Any) -> tuple[TypedColumn | None, NDArray[np.intp]]:
    """Return the typed column of a label, and its columns of the matrix."""
    if labels.table is not None:
        for typed, positions in labels.table.blocks():
            if typed.name == column and typed.is_class:
                return typed, positions
    return None, positions_of(labels, "columns", [column], name="column")


def rows_at(labels: Labels, rows: Any) -> NDArray[np.intp]:
    """Return the positions of some rows, or of all, as a flat array."""
    return (
        np.arange(labels.matrix_shape[0])
        if rows is None
        else positions_of(labels, "rows", rows).ravel()
    )


def class_table(labels: Labels, p: FloatArray, classes: list[Any], at: NDArray[np.intp]) -> Any:
    """Return the probabilities of classes (rows, n_classes) as a DataFrame with labels."""
    import pandas as pd

    rows = labels.flat(labels.rows)
    index = labels.coords.indexes.get(labels.rows[0]) if rows.ndim == 1 else None
    index = pd.Index(rows) if index is None or len(index) != len(rows) else index
    return pd.DataFrame(p, index=index[at], columns=classes)


def filled_frame(
    frame: Any, labels: Labels, missing: Callable[[TypedColumn, NDArray[np.intp]], FloatArray]
) -> Any:
    """Return a DataFrame with its holes filled by a function of a column.

    It returns a value for each row: a number, or the position of a level or category.
    """
    table = labels.table or table_of(frame, numbers_too=True)
    assert table is not None
    filled = frame.copy()
    for k, (column, at) in enumerate(table.blocks()):
        series = frame.iloc[:, k]
        if series.isna().any():
            filled.isetitem(k, column.filled(series, missing(column, at)))
    return filled


def data_to_fill(labels: Labels, X: Any, owner: str = "the fit") -> MatchedData:
    """Return dense data with the positions of their rows and columns in a result."""
    refuse_sparse(X)
    return match_data(labels, X, owner=owner)


def refuse_sparse(X: Any) -> None:
    """Raise ValueError for data whose holes cannot be filled."""
    if is_sparse(X):
        raise ValueError("X is sparse, and with its holes filled would not be: give dense data.")


class PosteriorClasses(DrawnFactors):
    """What a posterior says of columns of booleans, ordered levels and categories."""

    def probabilities(self, column: Any, rows: Any = None) -> Any:
        """Return the probability of each class of a column, for all rows or some.

        Parameters
        ----------
        column : label or int
            Label or position of a column of ordered levels, or label of a column of a DataFrame
            that holds booleans, ordered levels or categories.
        rows : label, int or array_like, optional
            Labels or positions of rows, by the rule of `Decomposition.predict`; by default all.

        Returns
        -------
        pandas.DataFrame (n_rows, n_classes)
            Probabilities, as `Decomposition.probabilities` has them, over all draws.

        Raises
        ------
        KeyError, IndexError
            If X has no such column.
        ValueError
            If the column holds numbers.

        Notes
        -----
        A column of more than two categories has an indicator for each of them.  Their
        probabilities are divided by the sum.

        Examples
        --------
        >>> import numpy as np, pandas as pd, nmd_lab as nmd
        >>> size = np.arange(30.0)
        >>> X = pd.DataFrame({"size": size, "weight": 2 * size + 1, "adult": size > 14})
        >>> posterior = nmd.sample(X, 1, draws=50, random_state=0)
        >>> posterior.probabilities("adult", rows=[0, -1]).idxmax(axis=1).tolist()
        [False, True]
        """
        typed, positions = typed_column(self.labels, column)
        first = int(positions[0])
        if (self.noise if self.kinds is None else self.noise[first]) != "ordinal":
            raise ValueError(
                f"column={column!r} holds numbers, which have no classes: use "
                "probability(..., above=)."
            )
        classes = list(self.fitted.noise_of(first).levels or ()) if typed is None else typed.classes
        at = rows_at(self.labels, rows)
        return class_table(self.labels, mean_shares(self.fitted, at, positions), classes, at)


def mean_shares(
    fitted: FittedDraws, rows: NDArray[np.integer], positions: NDArray[np.integer]
) -> Array:
    """Return the probability of each class over all draws (rows, classes)."""
    cuts = fitted.noise_of(int(positions[0])).cuts
    assert cuts is not None
    step = max(NUMBERS // (fitted.n_draws * max(cuts.shape[1] + 1, positions.size)), 1)
    blocks = (rows[start : start + step] for start in range(0, max(rows.size, 1), step))
    return np.concatenate([_mean_shares(fitted, b, positions, cuts) for b in blocks])


def _mean_shares(
    fitted: FittedDraws, rows: NDArray[np.integer], positions: NDArray[np.integer], cuts: Array
) -> Array:
    """Return the probability of each class over all draws, of a block of rows."""
    if _has_indicators(fitted, int(positions[0])):
        indicated: Array = class_shares(fitted, rows, positions).mean(axis=0)
        return indicated
    return level_shares(cuts, fitted.linear_at(rows, np.repeat(positions, rows.size)))


def class_shares(
    fitted: FittedDraws,
    rows: NDArray[np.integer],
    positions: NDArray[np.integer],
    draws: slice = ALL,
) -> Array:
    """Return the probability of each class in each draw (draws, rows, classes)."""
    i, j = np.repeat(rows, positions.size), np.tile(positions, rows.size)
    v = fitted.linear_at(i, j, draws)
    v = v.reshape(len(v), rows.size, positions.size)
    cuts = [fitted.noise_of(int(position)).cuts for position in positions]
    if not _has_indicators(fitted, int(positions[0])):
        assert cuts[0] is not None
        return np.moveaxis(level_masses(cuts[0][draws], v[:, :, 0]), 0, -1)
    v -= np.concatenate([each[draws] for each in cuts if each is not None], axis=1)[:, None]
    shares: Array = ndtr(v) + TINY
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


def _has_indicators(fitted: FittedDraws, position: int) -> bool:
    """Return whether a column of X is one of the indicators of categories."""
    table = fitted.labels.table
    return table is not None and table.of_matrix[position].has_indicators


def draw_classes(
    fitted: FittedDraws,
    rows: NDArray[np.integer],
    positions: NDArray[np.integer],
    draw: int,
    rng: np.random.Generator,
) -> Array:
    """Return the position of a class for each row, from one draw."""
    shares = class_shares(fitted, rows, positions, slice(draw, draw + 1))[0]
    below = np.cumsum(shares, axis=1)[:, :-1]
    chosen: Array = np.sum(below < rng.random((rows.size, 1)), axis=1).astype(np.float64)
    return chosen
