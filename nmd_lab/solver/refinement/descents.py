"""Descents on the augmented Lagrangian, one after the other, without Algorithm 1.

This is the iteration for sparse data whose absent entries are zeros: Algorithm 1 would need T and U
at every entry.  The first two refinements (`nmd_lab.solver.refinement.stages`) begin at the start,
with different penalties, since a small ρ sometimes ends in a lower minimum and takes longer.  The
following ones begin at the best factors so far, each with a polish before it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from nmd_lab._stop_reason import StopReason
from nmd_lab.checkpoint.place import NOWHERE, Place
from nmd_lab.data.base import FloatArray
from nmd_lab.solver.admm import State
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.problem import Problem

from .lagrangian import Candidate
from .stages import polish, refine

# Pairs of the first ρ and its growth, for the refinements from the start, and for the later ones,
# in turn.  Without multipliers, the envelope of zeros is a multiple of a square at any ρ if their
# loss is a square, while a kink is smooth at a small ρ only.
OF_SQUARES = ((1.0, 1.6), (0.1, 1.2)), ((0.3, 1.6), (0.1, 1.2))  # if the loss of a zero is a square
OF_OTHERS = ((0.1, 1.2), (0.03, 1.2)), ((0.3, 1.2), (0.1, 1.2))  # for any other loss: a smaller ρ
PATIENCE = (6, 1e-2, 1.0)  # stages, their decrease, and ρ from which they count: it may rise below
WITHOUT_GAIN = 2  # refinements from the best factors in turn without gain that end a run
GAIN = 1e-7  # smallest relative decrease of the objective that is a gain


def descents(
    problem: Problem,
    start: Start,
    *,
    exact: float,
    tol: float = 0.0,
    place: Place = NOWHERE,
) -> Iterator[State]:
    """Iterate descents without end; an iteration is one pass over the data."""
    began = time.perf_counter()
    loss, reference = problem.pair.loss, problem.reference
    best: Candidate | None = None
    iteration = 0
    if place.goes_on:
        best, iteration = place.take()["here"]
    place.mark(lambda: {"here": (best, iteration)})
    for candidate, settled in _passes(problem, start, tol, place.inner("passes")):
        iteration += 1
        if best is None or candidate.objective < best.objective:
            best = candidate
        error, reason = loss.relative_error(best.data_term, reference), None
        if error <= exact:
            reason = f"converged: relative error at or below {exact:g}"
        elif settled:
            reason = (
                f"converged: {WITHOUT_GAIN} refinements in turn lowered the objective by "
                f"at most {max(tol, GAIN):g} of itself in 100 iterations"
            )
        yield State(
            iteration,
            *problem.offset_columns.split(best.W_aug, best.H_aug),
            W_aug=best.W_aug,
            H_aug=best.H_aug,
            objective=best.objective,
            relative_error=error,
            primal_residual=candidate.primal,
            dual_residual=candidate.slope,
            penalty=candidate.penalty,
            relative_residual=math.inf,
            stop_reason=None if reason is None else StopReason("converged", reason),
            seconds=time.perf_counter() - began,
        )


def _passes(
    problem: Problem, start: Start, tol: float, place: Place
) -> Iterator[tuple[Candidate, bool]]:
    """Yield the candidate of each pass, and whether the last refinements were without gain."""
    factors = problem.projected(start)
    best = Candidate(*factors, math.inf, math.inf, 0.0)
    square = problem.pair.loss.of_zero == "square"
    of_first, of_later = OF_SQUARES if square else OF_OTHERS
    number, passes, n_without_gain = 0, 0, 0
    before, begins_at = best.objective, factors
    if place.goes_on:
        best, number, passes, n_without_gain, before, begins_at = place.take()["here"]
    place.mark(lambda: {"here": (best, number, passes, n_without_gain, before, begins_at)})
    while True:
        first = number < len(of_first)
        growths = of_first if first else of_later
        growth = growths[number % len(growths)]
        for candidate in _descent(problem, begins_at, growth, first, place.inner("descent")):
            passes += 1
            if candidate.objective < best.objective:
                best = candidate
            yield candidate, n_without_gain >= WITHOUT_GAIN
        enough = max(GAIN, tol * passes / 100) * abs(best.objective)
        gained = before - best.objective > enough
        n_without_gain = 0 if gained or first else n_without_gain + 1
        number, passes, before = number + 1, 0, best.objective
        begins_at = factors if number < len(of_first) else best[:2]


def _descent(
    problem: Problem,
    begins_at: tuple[FloatArray, FloatArray],
    growth: tuple[float, float],
    first: bool,
    place: Place,
) -> Iterator[Candidate]:
    """Yield the candidates of one refinement, with a polish before it unless it is a first one."""

    def candidates() -> Iterator[Candidate]:
        if not first and not place.goes_on:
            yield from polish(problem, *begins_at)
        yield from refine(problem, *begins_at, growth, PATIENCE, place=place)

    return place.replay(candidates)
