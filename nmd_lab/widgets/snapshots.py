"""Some of the states of a run, evenly spaced, in a bounded amount of memory."""

from __future__ import annotations

from nmd_lab.admm import State

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
        self._stride = 1

    def add(self, state: State) -> None:
        """Take the next state; the first and the last are always kept."""
        states = dict(self._states)  # a new one: others may be looking at the old
        last = next(reversed(states), 1)
        if last % self._stride and last > 1:
            del states[last]
        states[state.iteration] = state
        size = state.left.nbytes + state.right.nbytes
        if len(states) > max(LEAST, min(MOST, BYTES // size)):
            self._stride *= 2
            ends = (next(iter(states)), state.iteration)
            states = {i: s for i, s in states.items() if i % self._stride == 0 or i in ends}
        self._states = states

    @property
    def iterations(self) -> list[int]:
        """Which iterations are there."""
        return list(self._states)

    def __getitem__(self, iteration: int) -> State:
        return self._states[iteration]

    def __len__(self) -> int:
        return len(self._states)
