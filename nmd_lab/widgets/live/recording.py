"""What is kept of the iterates of one fit, written by its thread and read by others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.run import VALIDATION
from nmd_lab.solver.state import State

from .held_out import is_measured

Measure = Callable[[State | Decomposition], float]

# Numbers of a state that are kept for each iteration
CURVES = ("iteration", "relative_error", "primal_residual", "dual_residual")


class Snapshots:
    """The iterates at multiples of a stride, with the first and the last one.

    The stride doubles whenever too many are kept.
    """

    def __init__(self, most: int = 60, least: int = 6, memory: int = 1 << 26) -> None:
        self._most, self._least, self._memory = most, least, memory
        self._states: dict[int, State] = {}
        self._last: State | None = None
        self._stride = 1

    def add(self, state: State) -> None:
        """Take the next iterate."""
        self._last = state
        if self._states and state.iteration % self._stride:
            return
        # A new dict, since another thread may be reading the old one
        states = self._states | {state.iteration: state}
        size = state.W_aug.nbytes + state.H_aug.nbytes
        if len(states) >= max(self._least, min(self._most, self._memory // size)):
            self._stride *= 2
            first = next(iter(states))
            states = {i: s for i, s in states.items() if i % self._stride == 0 or i == first}
        self._states = states

    @property
    def iterations(self) -> list[int]:
        """The iterations that can be asked for, in order."""
        stored, last = list(self._states), self._last
        return stored if last is None or last.iteration in stored else [*stored, last.iteration]

    def __getitem__(self, iteration: int) -> State:
        last = self._last
        if last is not None and iteration == last.iteration:
            return last
        return self._states[iteration]

    def __len__(self) -> int:
        return len(self.iterations)


class Recording:
    """The iterates of one fit: curves of all, held-out errors, and snapshots of some.

    With `remembers`, the fit begins at one that has seen held-out entries.
    """

    def __init__(self, measure: Measure | None = None, *, remembers: bool = False) -> None:
        self.of_result: float | None = None  # held-out error of the result, an earlier iterate
        self.remembers = remembers
        self.snapshots = Snapshots()
        self.state: State | None = None  # last iterate
        self._measure = measure
        self._lock = threading.Lock()
        self._curves: dict[str, list[float]] = {name: [] for name in CURVES}
        self._held_out: dict[int, float] = {}

    def again(self) -> Recording:
        """Return an empty recording with the same measure."""
        return Recording(self._measure)

    def read(self, history: Any) -> None:
        """Take the history of a fit that was made elsewhere."""
        self._curves = {str(name): history[name].values.tolist() for name in history.variables}
        errors = self._curves.get(VALIDATION, [])
        self._held_out = dict(zip(history.iteration.values.tolist(), errors, strict=False))

    @property
    def measures(self) -> bool:
        """Whether held-out errors are relative ones, measured here and not by the fit."""
        return self._measure is not None

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
        if validation is None and self._measure is not None and is_measured(state.iteration):
            validation = self._measure(state)
        with self._lock:
            for name, numbers in self._curves.items():
                numbers.append(getattr(state, name))
            if validation is not None:
                self._held_out[state.iteration] = validation
        self.snapshots.add(state)
        self.state = state

    def end(self, result: Decomposition) -> None:
        """Measure the held-out errors of the last iterate and of the result."""
        if self._measure is None:
            self.of_result = self._held_out.get(result.parameters["iteration"])
            return
        self.of_result, state = self._measure(result), self.state
        if state is None or state.iteration in self._held_out:
            return
        error = self._measure(state)
        with self._lock:
            self._held_out[state.iteration] = error
