"""What is kept of the iterates of one fit, and their errors at entries that it does not see."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.model.model import Model
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.held_out import HeldOut
from nmd_lab.solver.run import VALIDATION
from nmd_lab.solver.state import State

Measure = Callable[[State | Decomposition], float]

# Numbers of a state that are kept for each iteration
CURVES = ("iteration", "relative_error", "primal_residual", "dual_residual")
EVERY_UP_TO = 20  # up to here each iteration is measured
REMEMBERED = "remembered"  # key of the held-out errors of iterates that still remember the entries
GROWTH = 1.05  # ratio of later measured iterations: about every 5 %


class Snapshots:
    """The iterates at multiples of a stride, which grows with them, and the first and the last."""

    def __init__(self, most: int = 60, least: int = 6, memory: int = 1 << 26) -> None:
        self._most, self._least, self._memory = most, least, memory
        self._states: dict[int, State] = {}
        self._stride = 1

    def add(self, state: State) -> None:
        """Take the next iterate."""
        states = self._states | {state.iteration: state}
        ends = next(iter(states)), state.iteration
        most = self._memory // (state.W_aug.nbytes + state.H_aug.nbytes)
        if len(states) >= max(self._least, min(self._most, most)):
            self._stride *= 2
        # A new dict, since another thread may be reading the old one
        self._states = {i: s for i, s in states.items() if i % self._stride == 0 or i in ends}

    @property
    def iterations(self) -> list[int]:
        """The iterations that can be asked for, in order."""
        return list(self._states)

    def __getitem__(self, iteration: int) -> State:
        return self._states[iteration]


class Recording:
    """The iterates of one fit: curves of all, held-out errors, and snapshots of some."""

    def __init__(self, measure: Measure | None = None, *, remembers: bool = False) -> None:
        self.of_result: float | None = None  # held-out error of the result, an earlier iterate
        self.remembers = remembers  # whether the fit begins at one that has seen these entries
        self.snapshots = Snapshots()
        self.state: State | None = None  # last iterate
        self.measure = measure  # of the error at entries that are hidden from the fit, if any are
        self._lock = threading.Lock()
        self._curves: dict[str, list[float]] = {name: [] for name in CURVES}
        self._held_out: dict[int, float] = {}

    def read(self, history: Any) -> None:
        """Take the history of a fit that was made elsewhere."""
        self._curves = {str(name): history[name].values.tolist() for name in history.variables}
        errors = self._curves.get(VALIDATION, [])
        self._held_out = dict(zip(history.iteration.values.tolist(), errors, strict=False))

    @property
    def curves(self) -> dict[str, list[float]]:
        """A copy of the numbers of all iterations so far; empty before the first one."""
        with self._lock:
            return {name: list(numbers) for name, numbers in self._curves.items() if numbers}

    @property
    def held_out(self) -> dict[int, float]:
        """A copy of the held-out errors so far, by iteration."""
        with self._lock:
            return dict(self._held_out)

    def add(self, state: State, validation: float | None = None) -> None:
        """Take the next iterate."""
        if validation is None and self.measure is not None and is_measured(state.iteration):
            validation = self.measure(state)
        with self._lock:
            for name, numbers in self._curves.items():
                numbers.append(getattr(state, name))
            if validation is not None:
                self._held_out[state.iteration] = validation
        self.snapshots.add(state)
        self.state = state

    def end(self, result: Decomposition) -> None:
        """Measure the held-out errors of the last iterate and of the result."""
        state = self.state
        if self.measure is None:
            self.of_result = self._held_out.get(result.parameters["iteration"])
            return
        self.of_result = self.measure(result)
        if state is not None and state.iteration not in self._held_out:
            error = self.measure(state)
            with self._lock:
                self._held_out[state.iteration] = error


def in_sample(count: int, most: int) -> NDArray[np.bool_]:
    """Return which of so many things are in a random sample of at most so many, always the same."""
    drawn = np.zeros(count, dtype=bool)
    drawn[np.random.default_rng(0).choice(count, min(count, most), replace=False)] = True
    return drawn


def is_measured(iteration: int) -> bool:
    """Return whether the error of an iteration is measured.

    >>> [k for k in range(1, 40) if is_measured(k)][17:]
    [18, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29, 31, 32, 34, 36, 37, 39]
    """
    if iteration <= EVERY_UP_TO:
        return True
    step = math.log(GROWTH)
    return math.floor(math.log(iteration) / step) > math.floor(math.log(iteration - 1) / step)


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
        self.count, self.sample = rows.size, ""  # words that say how many are used; empty for all
        self._seen = None if seen is None else _size(seen[~np.isnan(seen)])
        if self.count > most:
            self.sample = f"held-out error: of a sample of {most} of {self.count} hidden entries"
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

    @property
    def words(self) -> str:
        """Say what the error in the unit of the data is."""
        what = ", numbers (in SD) and classes together" if self.is_mixed else ""
        return f"off where hidden{what}"

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
        is_whole = within is None or self.is_mixed
        return error if is_whole else error * _size(truth) / _size(self._truth)


def _size(x: NDArray[np.floating]) -> float:
    """Return the root mean square; 1 if all is zero."""
    return float(np.sqrt(np.mean(np.square(x)))) or 1.0 if x.size else 1.0


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
    """Return the relative error at entries; that of a mixed table in the units of its columns."""
    if model.which is not None:
        errors = model.in_units(truth - fitted, rows, columns)
        return float(np.sqrt(np.mean(np.square(errors)))) if errors.size else float("nan")
    size = float(np.linalg.norm(truth))
    return float(np.linalg.norm(truth - fitted)) / size if size else float("nan")
