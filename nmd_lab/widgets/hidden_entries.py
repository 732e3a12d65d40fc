"""The entries that a fit does not see, and the errors of models there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.typed_table import TypedTable
from nmd_lab.model.model import Model
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior
from nmd_lab.solver.state import State

from .background import REMEMBERED, error_at, in_sample


class HiddenEntries:
    """Entries that a fit does not see, to measure the error of its iterates there."""

    def __init__(
        self,
        truth: NDArray[np.floating],
        rows: NDArray[np.intp],
        columns: NDArray[np.intp],
        most: int = 100_000,
        seen: NDArray[np.floating] | None = None,
    ) -> None:
        self.count, self.sample = rows.size, ""  # words with the number that is used; empty for all
        self._seen = None if seen is None else _size(seen[~np.isnan(seen)])
        if self.count > most:
            self.sample = (
                f"error where hidden: of a sample of {most} of {self.count} hidden entries"
            )
        drawn = in_sample(self.count, most)
        self._at = rows[drawn], columns[drawn]
        self._truth = truth[self._at]
        self.is_mixed = False

    def in_units(self, error: float) -> float:
        """Return an error as the root mean square of differences, in the unit of the data."""
        return error if self.is_mixed else error * _size(self._truth)

    @property
    def sizes(self) -> dict[str, float]:
        """Factors of relative errors that give them the unit of the data, by their names."""
        if self.is_mixed or self._seen is None or not self.count:
            return {}
        size = self.in_units(1.0)
        return {"relative_error": self._seen, "held_out": size, REMEMBERED: size}

    def means(self, seen: NDArray[np.floating]) -> NDArray[Any]:
        """Return the mean of what is seen of the column of each entry."""
        counts = np.count_nonzero(~np.isnan(seen), axis=0)
        return np.asarray((np.nansum(seen, axis=0) / np.maximum(counts, 1))[self._at[1]])

    def predicted(self, model: State | Decomposition | Posterior) -> NDArray[Any]:
        """Return the predictions of a model at the entries."""
        if isinstance(model, Posterior):
            return np.asarray(model.predict(entries_at(*self._at)))
        return np.asarray(model._fitted.at(*self._at))

    def of_table(
        self, table: TypedTable, predicted: NDArray[Any], units: Model, shape: tuple[int, int]
    ) -> tuple[float, float]:
        """Return the error of numbers in SD, and the fraction of classes that are right; or NaN."""
        is_number = np.array([not column.is_class for column in table.of_matrix])[self._at[1]]
        some = tuple(at[is_number] for at in self._at)
        off = units.in_units((self._truth - predicted)[is_number], *some)
        X, filled, right = np.full(shape, np.nan), np.full(shape, np.nan), []
        X[self._at], filled[self._at] = self._truth, predicted
        for column, where in table.blocks():
            rows = np.flatnonzero(~np.isnan(X[:, where]).any(axis=1))
            if column.is_class and rows.size:
                both = (column.nearest(each[np.ix_(rows, where)]) for each in (X, filled))
                right.append(np.equal(*both))
        numbers = float(np.sqrt(np.mean(np.square(off)))) if off.size else math.nan
        return numbers, float(np.mean(np.concatenate(right))) if right else math.nan

    def error_of_means(
        self,
        seen: NDArray[np.floating],
        state: State | Decomposition,
        within: NDArray[np.bool_] | None = None,
    ) -> float:
        """Return the error of the mean of what is seen of each column; `within` as of `error`."""
        return self._error(self.means(seen), state, within)

    def error(self, state: State | Decomposition, within: NDArray[np.bool_] | None = None) -> float:
        """Return the error of f(WH) at the entries, or at those of them that a mask has."""
        self.is_mixed = state._fitted.model.is_mixed
        return self._error(self.predicted(state), state, within)

    def _error(self, predicted: NDArray[Any], state: Any, within: Any) -> float:
        model, truth, at = state._fitted.model, self._truth, self._at
        if within is not None:
            some = within[at]
            truth, predicted, at = truth[some], predicted[some], (at[0][some], at[1][some])
        error = error_at(model, truth, predicted, *at)
        is_whole = within is None or model.is_mixed
        return error if is_whole else error * _size(truth) / _size(self._truth)


def _size(x: NDArray[np.floating]) -> float:
    """Return the root mean square; 1 if all is zero."""
    return float(np.sqrt(np.mean(np.square(x)))) or 1.0 if x.size else 1.0
