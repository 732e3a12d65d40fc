"""Iterates of a run, evenly spaced, in a bounded amount of memory."""

from __future__ import annotations

from nmd_lab.solver.state import State


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
