"""What is kept of the iterates of one fit, written by its thread and read by others."""

from __future__ import annotations

import threading
from collections.abc import Callable

from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.state import State

from .held_out import is_measured
from .snapshots import Snapshots

Measure = Callable[[State | Decomposition], float]

CURVES = ("iteration", "relative_error", "primal_residual", "dual_residual")
"""Numbers of a state that are kept for each iteration."""


class Recording:
    """The iterates of one fit: curves of all, held-out errors, and snapshots of some.

    Attributes
    ----------
    snapshots : Snapshots
        Iterates that can be looked at again.
    state : State or None
        Last iterate.
    of_result : float or None
        Held-out error of the result, which may be an earlier iterate than the last.
    remembers : bool
        Whether the fit begins at one that has seen held-out entries.
    """

    def __init__(self, measure: Measure | None = None, *, remembers: bool = False) -> None:
        self.of_result: float | None = None
        self.remembers = remembers
        self.snapshots = Snapshots()
        self.state: State | None = None
        self._measure = measure
        self._lock = threading.Lock()
        self._curves: dict[str, list[float]] = {name: [] for name in CURVES}
        self._held_out: dict[int, float] = {}

    def again(self) -> Recording:
        """Return an empty recording with the same measure."""
        return Recording(self._measure)

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
