"""What an algorithm is to the loop: a start, a step, and the iterate of a state.

A fit steps towards the best factors, a chain (`solver/sampler/chain.py`) draws from a posterior.  A
state is a dataclass of arrays, numbers, random generators and containers of them: all that the
next step depends on.  An engine itself holds nothing but what can be computed again from a problem
and a state, such as memory for the passes over the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.problem import Problem

P_contra = TypeVar("P_contra", contravariant=True)
"""Problem of an engine."""

B_contra = TypeVar("B_contra", contravariant=True)
"""What it begins with."""

S = TypeVar("S")
"""Its state."""

I_co = TypeVar("I_co", covariant=True)
"""Its iterate."""


@dataclass(frozen=True)
class Iterate:
    """What a state says of a fit, in the units of the problem.  Later steps do not change it.

    Attributes
    ----------
    W_aug, H_aug : ndarray (m, rank + ...) and (rank + ..., n)
        Factors extended by the offsets (`OffsetColumns`); f is applied to ``W_aug @ H_aug``.
    objective : float
        Weighted loss of f(WH) on the observed entries, plus the ridge of factors and offsets.
    relative_error : float
        Relative error of f(WH), as the loss defines it.
    primal_residual, dual_residual, penalty : float
        ‖T - WH‖, the dual residual, and ρ.
    relative_residual : float
        Larger of ‖T - WH‖ and ‖T - T_previous‖ over the norm of the starting T.
    """

    W_aug: FloatArray
    H_aug: FloatArray
    objective: float
    relative_error: float
    primal_residual: float
    dual_residual: float
    penalty: float
    relative_residual: float

    @property
    def is_finite(self) -> bool:
        """Whether objective and residuals are finite."""
        return math.isfinite(self.objective + self.primal_residual + self.dual_residual)


class Engine(Protocol[P_contra, B_contra, S, I_co]):
    """An algorithm."""

    def init(self, problem: P_contra, start: B_contra) -> S:
        """Return the state before the first step."""

    def step(self, problem: P_contra, state: S) -> S:
        """Return the state after one iteration; the one before must not be used again."""

    def iterate(self, problem: P_contra, state: S) -> I_co:
        """Return what is recorded of a state; later steps do not change it."""

    def status(self, state: S) -> StopReason | None:
        """Return why no further step would help, which the engine alone can know, or None."""


FitEngine = Engine[Problem, Start, S, Iterate]
"""An algorithm of a fit; its iterates are the best factors, and the numbers to record."""


def iterates(
    engine: Engine[P_contra, B_contra, S, I_co], problem: P_contra, start: B_contra
) -> Iterator[I_co]:
    """Yield the iterates from a start, without end."""
    state = engine.init(problem, start)
    while True:
        state = engine.step(problem, state)
        yield engine.iterate(problem, state)
