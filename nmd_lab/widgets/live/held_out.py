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
    """Entries that a fit does not see, to measure the error of its iterates there."""

    def __init__(
        self,
        truth: NDArray[np.floating],
        rows: NDArray[np.intp],
        columns: NDArray[np.intp],
        most: int = 100_000,
    ) -> None:
        n_hidden, self.sample = rows.size, ""  # words that say how many are used; empty for all
        if n_hidden > most:
            drawn = np.random.default_rng(0).choice(n_hidden, most, replace=False)
            drawn.sort()
            rows, columns = rows[drawn], columns[drawn]
            self.sample = f" (a sample of {most} of {n_hidden} hidden entries)"
        self._truth, self._at = truth[rows, columns], (rows, columns)
        self._mixed = False

    def in_units(self, error: float) -> float:
        """Return an error as the root mean square of differences, in the unit of the data."""
        scale = float(np.sqrt(np.mean(np.square(self._truth)))) if self._truth.size else 1.0
        return error if self._mixed else error * scale

    @property
    def words(self) -> str:
        """Say what the error in the unit of the data is."""
        return "column deviations off where hidden" if self._mixed else "off where hidden"

    def error_of_means(self, seen: NDArray[np.floating], state: State | Decomposition) -> float:
        """Return the error of the mean of what is seen of each column."""
        counts = np.count_nonzero(~np.isnan(seen), axis=0)
        means = np.nansum(seen, axis=0) / np.maximum(counts, 1)
        return error_at(state.fitted.model, self._truth, means[self._at[1]], *self._at)

    def error(self, state: State | Decomposition) -> float:
        """Return the error of f(WH) at the entries."""
        fitted = state.fitted
        self._mixed = fitted.model.which is not None
        return error_at(fitted.model, self._truth, fitted.at(*self._at), *self._at)


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
