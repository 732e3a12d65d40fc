"""Lower objectives than the iteration finds by itself: quasi-Newton steps with T eliminated.

Algorithm 1 takes one least-squares step in W and in H between two updates of the multipliers U.
Here quasi-Newton steps on the augmented Lagrangian (`nmd_lab.solver.refinement.moreau_envelope`) take their place, and ρ,
small at first, grows from stage to stage: a small ρ sees past the flat pieces and the poor minima
of f(WH), a large one settles in the minimum that was found.  A step costs as much as an iteration.

`refine` does that, `widened` does it after a homotopy in the interval of f, and `polish` goes down
on the objective itself from where one stands.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from nmd_lab.data.base import FloatArray
from nmd_lab.model.proximal import make_pair
from nmd_lab.solver.admm import Problem

from .lagrangian import Candidate, Lagrangian
from .lbfgs import descend


class Pace(NamedTuple):
    """ρ of the first stage in units of the natural penalty, and its growth from stage to stage."""

    first: float
    growth: float


QUICK_PACE, SLOW_PACE = Pace(0.3, 1.6), Pace(0.1, 1.2)
"""For the nearest minimum, and for a better one."""

EVERY, ENOUGH = 3, 1e-2
"""A stage ends when EVERY steps lower the objective by no more than this share of it."""

KEEP = 1.0
"""ρ, in units of the natural penalty, from which a stage goes on with the memory of the last one if
the loss is smooth; below it, and at kinks, the function changes too much."""

STAGES, PROGRESS = 20, 1e-4
"""A refinement ends when STAGES stages lower the objective by no more than this share of it."""

WIDTHS, WIDE_STAGES = (1.0, 0.5, 0.25, 0.125), 3
"""How far the homotopy moves the bounds of f apart, in units of their distance, and the stages of
each width."""

NEARLY, EXACT = 0.02, 1e-6
"""Relative error below which it is tried whether the data can be fitted exactly, and ρ of that try
in units of the natural penalty: so small that even an entry far out on a flat piece is pulled."""

POLISH = 1e4
"""ρ of a polish, in units of the natural penalty: so large that L is the objective."""

LONGEST = 300
"""Most passes of a polish, after which refinements have their turn again."""

CERTIFYING = tuple(10.0**k for k in range(7))
"""ρ, in units of the natural penalty, for which the optimality of a point is looked at."""

PASSES, FAST, SLOW = 20, 0.05, 1e-10
"""Longer descents go on while PASSES steps lower the objective by more than this share of it: FAST
at the very small penalty, SLOW at the large one."""


def refine(
    problem: Problem, left: FloatArray, right: FloatArray, pace: Pace = SLOW_PACE
) -> Iterator[Candidate]:
    """Go down from some factors while ρ grows.

    Parameters
    ----------
    problem : Problem
        What is to be solved.
    left, right : ndarray (m, rank + ...), (rank + ..., n)
        The factors with the offsets beside them.
    pace : Pace
        Where ρ begins, and how fast it grows.

    Yields
    ------
    Candidate
        After each pass over the data, until nothing is gained any more.
    """
    function = Lagrangian(problem, left, right)
    penalty, update_from = pace.first * function.natural, 0.0
    reached: list[float] = []
    maybe_exact = True
    while len(reached) <= STAGES or reached[-STAGES - 1] - reached[-1] > PROGRESS * reached[-1]:
        if penalty < KEEP * function.natural or not problem.pair.loss.smooth:
            function.pairs.clear()
        yield from _descent(function, penalty, EVERY, ENOUGH, update_from)
        reached.append(function.lowest)
        penalty, update_from = pace.growth * penalty, penalty
        if maybe_exact and function.relative_error <= NEARLY:
            maybe_exact, update_from = False, 0.0
            function.forget()
            yield from _descent(function, EXACT * function.natural, PASSES, FAST)
            function.forget()


def widened(problem: Problem, left: FloatArray, right: FloatArray) -> Iterator[Candidate]:
    """Refine after a homotopy: f's interval begins wide and shrinks to what it is.

    Parameters
    ----------
    problem, left, right
        As for `refine`; the nonlinearity has to have a `widened` form.

    Yields
    ------
    Candidate
        After each pass over the data; while f is widened its objective is infinite.
    """
    f, loss = problem.pair.nonlinearity, problem.pair.loss
    for width in WIDTHS:
        wide = f.widened(width, loss.domain)
        assert wide is not None
        function = Lagrangian(replace(problem, pair=make_pair(wide, loss)), left, right)
        penalty, update_from = SLOW_PACE.first * function.natural, 0.0
        for _ in range(WIDE_STAGES):
            for candidate in _descent(function, penalty, EVERY, ENOUGH, update_from):
                yield candidate._replace(objective=math.inf)
            penalty, update_from = SLOW_PACE.growth * penalty, penalty
        left, right = function.candidate.left, function.candidate.right
    yield from refine(problem, left, right)


def polish(problem: Problem, left: FloatArray, right: FloatArray) -> Iterator[Candidate]:
    """Go down on the objective itself, as far as rounding lets it.

    A problem that can be fitted exactly has the same solutions at every ρ: as long as the objective
    falls fast at a very small ρ, which makes the easier function, descent stays there.  A loss
    with a kink is not descended on in any other way.

    Parameters
    ----------
    problem, left, right
        As for `refine`.

    Yields
    ------
    Candidate
        After each pass over the data.
    """
    function = Lagrangian(problem, left, right)
    function.point(POLISH * function.natural)
    yield function.candidate
    if function.relative_error <= NEARLY:
        yield from _descent(function, EXACT * function.natural, PASSES, FAST)
        function.x = function.best
        function.forget()
    if problem.pair.loss.smooth:
        polishing = _descent(function, POLISH * function.natural, PASSES, SLOW)
        yield from islice(polishing, LONGEST)


def _descent(
    function: Lagrangian, penalty: float, every: int, enough: float, update_from: float = 0.0
) -> Iterator[Candidate]:
    """Descend under one ρ while every so many steps lower the objective by enough of it."""
    start = function.point(penalty, update_from)
    yield function.candidate
    mark, steps = function.lowest, 0
    for point in descend(function.evaluate, function.metric_at, start, function.pairs):
        yield function.candidate
        if not point.accepted:
            continue
        function.x, steps = point.x, steps + 1
        if steps % every == 0:
            if mark - function.lowest <= enough * abs(function.lowest):
                return
            mark = function.lowest


def optimality(problem: Problem, left: FloatArray, right: FloatArray) -> float:
    """Return how far some factors are from meeting the first-order (KKT) conditions.

    With T from the T-update at WH and Λ = ρ(T - WH), which makes T optimal for its own part, the
    conditions that are left are Λ Hᵀ = alpha W, Wᵀ Λ = alpha H and T = WH.  Returned is the larger
    of their violations, each free of units, for the most favourable of several ρ.

    Parameters
    ----------
    problem : Problem
        What was to be solved.
    left, right : ndarray
        The factors with the offsets beside them.

    Returns
    -------
    float
        0 at a stationary point.
    """
    function = Lagrangian(problem, left, right)
    return min(function.violation(penalty * function.natural) for penalty in CERTIFYING)
