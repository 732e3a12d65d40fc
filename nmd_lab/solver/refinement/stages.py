"""Refinements: quasi-Newton steps on the augmented Lagrangian with T eliminated.

Algorithm 1 takes one least-squares step in W and in H between two updates of the multipliers U.
Here quasi-Newton steps replace the least-squares steps, and ρ grows from stage to stage.  A small ρ
avoids flat pieces and poor minima of the objective.  A large ρ converges to the minimum that was
found.  A step costs as much as an iteration.

`refine` does this, `refine_with_homotopy` does it after a homotopy in the interval of f, and
`polish` descends on the objective itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from nmd_lab.checkpoint.place import NOWHERE, Place
from nmd_lab.data.base import FloatArray
from nmd_lab.model.proximal import make_pair
from nmd_lab.solver.constraints.optimality import constrained_optimality
from nmd_lab.solver.problem import Problem

from .lagrangian import Candidate, Lagrangian
from .lbfgs import descend

# All ρ are in units of the natural penalty.  The end of a descent is a number of steps and the
# relative decrease of the objective in them, at or below which it ends.
QUICK = (0.3, 1.6)  # first ρ and its growth from stage to stage, to the nearest minimum
SLOW = (0.1, 1.2)  # the same to a better minimum, since a small ρ avoids poor ones
PATIENCE = (20, 1e-4, 0.0)  # stages, their least relative decrease, and ρ from which they count
STAGE_END = (3, 1e-2)  # of a stage
REMEMBER_FROM = 1.0  # least ρ with the L-BFGS memory of the stage before; L changes too much below
HOMOTOPY_WIDTHS = (1.0, 0.5, 0.25, 0.125)  # moves of the bounds of f, in lengths of its interval
HOMOTOPY_STAGES = 3  # stages of each of these widths
NEARLY_EXACT = 0.02  # relative error at or below which an exact fit is tried
EXACT = 1e-6  # ρ for that trial, so small that L has a gradient far out on a flat piece
EXACT_END = (20, 0.05)  # of that trial, which goes on only while the objective falls fast
POLISH = 1e4  # ρ of a polish, so large that L is close to the objective
POLISH_END = (20, 1e-10)  # of a polish, which goes as far as rounding allows
POLISH_PASSES = 300  # most passes over the data in a descent at that ρ
OPTIMALITY_PENALTIES = tuple(10.0**k for k in range(7))  # ρ at which KKT conditions are checked


def refine(
    problem: Problem,
    W_aug: FloatArray,
    H_aug: FloatArray,
    growth: tuple[float, float] = SLOW,
    patience: tuple[int, float, float] = PATIENCE,
    *,
    place: Place = NOWHERE,
) -> Iterator[Candidate]:
    """Descend from given factors while ρ grows."""
    function = Lagrangian(problem, W_aug, H_aug)
    (first, factor), (_, _, counted_from) = growth, patience
    penalty, update_from = first * function.natural, 0.0
    reached: list[float] = []
    try_exact = True
    if place.goes_on:
        kept = place.take()
        penalty, update_from, reached, try_exact = kept["numbers"]
        function.restore(kept["function"])
    while _is_progress(reached, patience):
        if place.kept:
            numbers = (penalty, update_from, list(reached), try_exact)
            place.mark(partial(dict, numbers=numbers, function=function.kept()))
        if penalty < REMEMBER_FROM * function.natural or not problem.pair.loss.smooth:
            function.pairs.clear()
        yield from _descent(function, penalty, STAGE_END, update_from)
        if penalty >= counted_from * function.natural:
            reached.append(function.lowest)
        penalty, update_from = factor * penalty, penalty
        if try_exact and function.relative_error <= NEARLY_EXACT:
            try_exact, update_from = False, 0.0
            function.forget()
            yield from _descent(function, EXACT * function.natural, EXACT_END)
            function.forget()


def _is_progress(reached: list[float], patience: tuple[int, float, float]) -> bool:
    """Return whether the last stages have lowered the objective enough for another stage."""
    stages, decrease, _ = patience
    if len(reached) <= stages:
        return True
    return reached[-stages - 1] - reached[-1] > decrease * reached[-1]


def refine_with_homotopy(
    problem: Problem, W_aug: FloatArray, H_aug: FloatArray, *, place: Place = NOWHERE
) -> Iterator[Candidate]:
    """Refine after a homotopy, in which the interval of f shrinks to its true size."""
    f, loss = problem.pair.nonlinearity, problem.pair.loss
    widths = () if place.goes_on else HOMOTOPY_WIDTHS  # it goes on behind them
    first, factor = SLOW
    for width in widths:
        wider = f.with_wider_bounds(width, loss.domain)
        assert wider is not None
        function = Lagrangian(replace(problem, pair=make_pair(wider, loss)), W_aug, H_aug)
        penalty, update_from = first * function.natural, 0.0
        for _ in range(HOMOTOPY_STAGES):
            for candidate in _descent(function, penalty, STAGE_END, update_from):
                yield candidate._replace(objective=math.inf)
            penalty, update_from = factor * penalty, penalty
        W_aug, H_aug = function.candidate.W_aug, function.candidate.H_aug
    yield from refine(problem, W_aug, H_aug, place=place)


def polish(
    problem: Problem, W_aug: FloatArray, H_aug: FloatArray, *, place: Place = NOWHERE
) -> Iterator[Candidate]:
    """Descend on the objective itself, as far as rounding allows.

    A problem with an exact fit has the same solutions at every ρ.  Descent therefore first tries a
    very small ρ, which gives the easier function, as long as the objective falls fast.  Then, for a
    smooth loss, it takes a large ρ.
    """
    function = Lagrangian(problem, W_aug, H_aug)
    function.point(POLISH * function.natural)
    yield function.candidate
    if function.relative_error <= NEARLY_EXACT:
        yield from _descent(function, EXACT * function.natural, EXACT_END)
        function.x = function.best
        function.forget()
    if problem.pair.loss.smooth:
        polishing = _descent(function, POLISH * function.natural, POLISH_END)
        yield from islice(polishing, POLISH_PASSES)


def _descent(
    function: Lagrangian, penalty: float, end: tuple[int, float], update_from: float = 0.0
) -> Iterator[Candidate]:
    """Descend at one ρ, until the objective falls too little in a number of steps."""
    period, decrease = end
    start = function.point(penalty, update_from)
    yield function.candidate
    earlier, steps = function.lowest, 0
    for point in descend(function.evaluate, function.preconditioner_at, start, function.pairs):
        yield function.candidate
        if not point.accepted:
            continue
        function.x, steps = point.x, steps + 1
        if steps % period == 0:
            if earlier - function.lowest <= decrease * abs(function.lowest):
                return
            earlier = function.lowest


def optimality(problem: Problem, W_aug: FloatArray, H_aug: FloatArray) -> float:
    """Return the distance of some factors from the first-order (KKT) conditions.

    With T from the T-update at WH and Λ = ρ(T - WH), the condition on T holds.  The remaining
    conditions are Λ Hᵀ = alpha W, Wᵀ Λ = alpha H and T = WH.  The distance is the largest of their
    relative violations, for that of several ρ at which it is smallest.
    """
    if (elsewhere := problem.observations.elsewhere) is not None:
        return elsewhere.optimality(problem, W_aug, H_aug, OPTIMALITY_PENALTIES)
    if problem.is_constrained:
        return constrained_optimality(problem, W_aug, H_aug, OPTIMALITY_PENALTIES)
    function = Lagrangian(problem, W_aug, H_aug)
    return min(function.violation(rho * function.natural) for rho in OPTIMALITY_PENALTIES)
