"""Some of the states of a run, evenly spaced, in a bounded amount of memory."""

from __future__ import annotations

from nmd_lab.solver.admm import State

MOST, LEAST = 60, 6
"""How many states are kept at most, and how many however large they are."""

BYTES = 1 << 26
"""Memory for the states."""


class Snapshots:
    """States of a run at multiples of a stride that doubles when they become too many.

    >>> snapshots = Snapshots()
    >>> snapshots.iterations
    []
    """

    def __init__(self) -> None:
        self._states: dict[int, State] = {}
        self._last: State | None = None
        self._stride = 1

    def add(self, state: State) -> None:
        """Take the next state; the first and the last are always kept."""
        self._last = state
        if self._states and state.iteration % self._stride:
            return
        states = self._states | {state.iteration: state}  # a new one: others may look at the old
        size = state.left.nbytes + state.right.nbytes
        if len(states) >= max(LEAST, min(MOST, BYTES // size)):
            self._stride *= 2
            first = next(iter(states))
            states = {i: s for i, s in states.items() if i % self._stride == 0 or i == first}
        self._states = states

    @property
    def iterations(self) -> list[int]:
        """Which iterations are there."""
        kept, last = list(self._states), self._last
        return kept if last is None or last.iteration in kept else [*kept, last.iteration]

    def __getitem__(self, iteration: int) -> State:
        last = self._last
        if last is not None and iteration == last.iteration:
            return last
        return self._states[iteration]

    def __len__(self) -> int:
        return len(self.iterations)
