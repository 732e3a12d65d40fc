"""The error of the iterates at held-out entries: at which iterations it is measured, and how."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.model.model import Model
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.held_out import HeldOut
from nmd_lab.solver.state import State

EVERY_UP_TO = 20  # up to here each iteration is measured
REMEMBERED = "remembered"  # key of the held-out errors of iterates that still remember the entries
GROWTH = 1.05  # ratio of later measured iterations: about every 5 %


def is_measured(iteration: int) -> bool:
    """Return whether the error of an iteration is measured.

    >>> [k for k in range(1, 40) if is_measured(k)][17:]
    [18, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29, 31, 32, 34, 36, 37, 39]
    """
    if iteration <= EVERY_UP_TO:
        return True
    step = math.log(GROWTH)
    return math.floor(math.log(iteration) / step) > math.floor(math.log(iteration - 1) / step)


def lowest(held_out: Mapping[int, float]) -> tuple[int, float] | None:
    """Return the iteration of the lowest finite error, and the error; None if there is none.

    >>> lowest({1: 0.5, 2: 0.3, 3: 0.4})
    (2, 0.3)
    """
    finite = [(error, iteration) for iteration, error in held_out.items() if math.isfinite(error)]
    if not finite:
        return None
    error, iteration = min(finite)
    return iteration, error


class HiddenEntries:
    """Entries that a fit does not see, to measure the error of its iterates there.

    Attributes
    ----------
    sample : str
        Words that say how many entries are used; empty if all are.
    """

    def __init__(
        self,
        truth: NDArray[np.floating],
        rows: NDArray[np.intp],
        columns: NDArray[np.intp],
        most: int = 100_000,
        seen: NDArray[np.floating] | None = None,
    ) -> None:
        n_hidden = rows.size
        self._seen = None if seen is None else _size(seen[~np.isnan(seen)])
        if rows.size > most:
            drawn = np.random.default_rng(0).choice(rows.size, most, replace=False)
            drawn.sort()
            rows, columns = rows[drawn], columns[drawn]
        self.sample = ""
        if rows.size < n_hidden:
            self.sample = f" (a sample of {rows.size} of {n_hidden} hidden entries)"
        self._truth, self._at = truth[rows, columns], (rows, columns)
        self.is_mixed = False

    def in_units(self, error: float) -> float:
        """Return an error as the root mean square of differences, in the unit of the data."""
        return error if self.is_mixed else error * _size(self._truth)

    @property
    def sizes(self) -> dict[str, float]:
        """Factors of relative errors that give them the unit of the data, by their names."""
        if self.is_mixed or self._seen is None:
            return {}
        size = self.in_units(1.0)
        return {"relative_error": self._seen, "held_out": size, REMEMBERED: size}

    @property
    def words(self) -> str:
        """Say what the error in the unit of the data is."""
        return "column deviations off where hidden" if self.is_mixed else "off where hidden"

    def error_of_means(self, seen: NDArray[np.floating], state: State | Decomposition) -> float:
        """Return the error of the mean of what is seen of each column."""
        counts = np.count_nonzero(~np.isnan(seen), axis=0)
        means = np.nansum(seen, axis=0) / np.maximum(counts, 1)
        return error_at(state.fitted.model, self._truth, means[self._at[1]], *self._at)

    def error(self, state: State | Decomposition, within: NDArray[np.bool_] | None = None) -> float:
        """Return the error of f(WH) at the entries, or at those of them that a mask has."""
        fitted, truth, at = state.fitted, self._truth, self._at
        self.is_mixed = fitted.model.which is not None
        if within is not None:
            some = within[at]
            truth, at = truth[some], (at[0][some], at[1][some])
        error = error_at(fitted.model, truth, fitted.at(*at), *at)
        return (
            error if within is None or self.is_mixed else error * _size(truth) / _size(self._truth)
        )


def _size(x: NDArray[np.floating]) -> float:
    """Return the root mean square; 1 without entries."""
    return float(np.sqrt(np.mean(np.square(x)))) if x.size else 1.0


def error_of_means(entries: SparseObservations, hidden: HeldOut) -> float:
    """Return the RMSE at hidden entries of the means of what is seen of columns, or else of all."""
    n, (_, columns) = entries.shape[1], hidden.positions
    counts = np.bincount(entries.indices, minlength=n) - np.bincount(columns, minlength=n)
    sums = np.bincount(entries.indices, entries.values, n) - np.bincount(columns, hidden.values, n)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum() / max(counts.sum(), 1))
    return float(np.sqrt(np.average((hidden.values - means[columns]) ** 2, weights=hidden.weights)))


def error_at(
    model: Model,
    truth: NDArray[np.floating],
    fitted: NDArray[np.floating],
    rows: NDArray[np.integer],
    columns: NDArray[np.integer],
) -> float:
    """Return the relative error (Frobenius) at entries.

    Columns of a mixed table have units of their own.  Their error is that of the library at
    held-out entries (`nmd_lab.solver.held_out`), which is about 1 for the best constants.
    """
    if model.which is None:
        return relative(truth, fitted)
    errors = model.in_units(truth - fitted, rows, columns)
    return float(np.sqrt(np.mean(np.square(errors)))) if errors.size else float("nan")


def relative(truth: NDArray[np.floating], model: NDArray[np.floating]) -> float:
    """Return ‖truth - model‖ / ‖truth‖, NaN if the truth is empty or zero."""
    size = float(np.linalg.norm(truth))
    return float(np.linalg.norm(truth - model)) / size if size else float("nan")
