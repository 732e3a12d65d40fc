"""What an algorithm is to the loop: a start, a step, and the iterate of a state.

A fit steps towards the best factors, a chain (`sampler/chain.py`) draws from a posterior.  A
state is a dataclass of arrays, numbers, random generators and containers of them: all that the
next step depends on.  An engine itself holds nothing but what can be computed again from a problem
and a state, such as memory for the passes over the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from nmd_lab._runtime.progress import StopReason
from nmd_lab.problem.initialization import Start
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import Iterate


class FitEngine(Protocol):
    """An algorithm of a fit; its iterates are the best factors, and the numbers to record."""

    def init(self, problem: Problem, start: Start) -> Any:
        """Return the state before the first step."""

    def step(self, problem: Problem, state: Any) -> Any:
        """Return the state after one iteration; the one before must not be used again."""

    def iterate(self, problem: Problem, state: Any) -> Iterate:
        """Return what is recorded of a state; later steps do not change it."""

    def status(self, state: Any) -> StopReason | None:
        """Return why no further step would help, as the engine finds it, or None."""


def iterates(engine: FitEngine, problem: Problem, start: Start) -> Iterator[Iterate]:
    """Yield the iterates from a start, without end."""
    state = engine.init(problem, start)
    while True:
        state = engine.step(problem, state)
        yield engine.iterate(problem, state)
