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
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from nmd_lab.checkpoint.place import NOWHERE, Place
from nmd_lab.data.base import FloatArray
from nmd_lab.model.proximal import make_pair
from nmd_lab.solver.constraints.optimality import constrained_optimality
from nmd_lab.solver.executors.observations import ClusterObservations
from nmd_lab.solver.executors.optimality import optimality_on_cluster
from nmd_lab.solver.problem import Problem

from .lagrangian import Candidate, Lagrangian
from .lbfgs import descend


class PenaltyGrowth(NamedTuple):
    """The penalties of the stages.

    Attributes
    ----------
    first : float
        ρ of the first stage, in units of the natural penalty.
    factor : float
        Growth of ρ from stage to stage.
    """

    first: float
    factor: float


class Patience(NamedTuple):
    """When a refinement ends.

    Attributes
    ----------
    stages : int
        Number of stages over which the progress is measured.
    decrease : float
        Relative decrease of the objective over these stages, at or below which it ends.
    counted_from : float
        ρ from which stages count, in units of the natural penalty.  At a smaller one, a descent may
        raise the objective.
    """

    stages: int
    decrease: float
    counted_from: float = 0.0


class DescentRule(NamedTuple):
    """When a descent at one ρ ends.

    Attributes
    ----------
    steps : int
        Number of steps over which the decrease is measured.
    decrease : float
        Relative decrease of the objective at or below which the descent ends.
    """

    steps: int
    decrease: float


@dataclass(frozen=True)
class StageOptions:
    """Constants of the refinements; penalties are in units of the natural penalty.

    Attributes
    ----------
    quick, slow : PenaltyGrowth
        Penalties on the way to the nearest minimum, and to a better one.
    stage : DescentRule
        End of a stage.
    remember_from : float
        Smallest ρ at which a stage keeps the L-BFGS memory of the stage before, if the loss is
        smooth.  For a smaller ρ or a loss with a kink, the function changes too much.
    patience : Patience
        End of a refinement.
    homotopy_widths : tuple of float
        Distances by which the homotopy moves the bounds of f, in units of the interval.
    homotopy_stages : int
        Number of stages of each width.
    nearly_exact : float
        Relative error at or below which an exact fit is tried.
    exact : float
        ρ for that trial.  It is so small that L has a gradient even far out on a flat piece.
    exact_descent : DescentRule
        End of that trial.
    polish : float
        ρ of a polish.  It is so large that L is close to the objective.
    polish_descent : DescentRule
        End of a polish.
    polish_passes : int
        Largest number of passes over the data in the descent at that ρ.
    optimality_penalties : tuple of float
        Penalties for which the first-order conditions are checked.
    """

    quick: PenaltyGrowth = PenaltyGrowth(0.3, 1.6)
    slow: PenaltyGrowth = PenaltyGrowth(0.1, 1.2)
    stage: DescentRule = DescentRule(3, 1e-2)
    remember_from: float = 1.0
    patience: Patience = Patience(20, 1e-4)
    homotopy_widths: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125)
    homotopy_stages: int = 3
    nearly_exact: float = 0.02
    exact: float = 1e-6
    exact_descent: DescentRule = DescentRule(20, 0.05)
    polish: float = 1e4
    polish_descent: DescentRule = DescentRule(20, 1e-10)
    polish_passes: int = 300
    optimality_penalties: tuple[float, ...] = tuple(10.0**k for k in range(7))


STAGES = StageOptions()


def refine(
    problem: Problem,
    W_aug: FloatArray,
    H_aug: FloatArray,
    growth: PenaltyGrowth = STAGES.slow,
    patience: Patience = STAGES.patience,
    *,
    place: Place = NOWHERE,
) -> Iterator[Candidate]:
    """Descend from given factors while ρ grows.

    Parameters
    ----------
    problem : Problem
        Problem to solve.
    W_aug, H_aug : ndarray (m, rank + ...) and (rank + ..., n)
        Starting factors, extended by the offsets.
    growth : PenaltyGrowth
        Penalties of the stages.
    patience : Patience
        When there is no more progress.
    place : Place, optional
        Where the refinement stands: at the beginning of a stage.

    Yields
    ------
    Candidate
        Factors after each pass over the data, until there is no progress.
    """
    function = Lagrangian(problem, W_aug, H_aug)
    penalty, update_from = growth.first * function.natural, 0.0
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
        if penalty < STAGES.remember_from * function.natural or not problem.pair.loss.smooth:
            function.pairs.clear()
        yield from _descent(function, penalty, STAGES.stage, update_from)
        if penalty >= patience.counted_from * function.natural:
            reached.append(function.lowest)
        penalty, update_from = growth.factor * penalty, penalty
        if try_exact and function.relative_error <= STAGES.nearly_exact:
            try_exact, update_from = False, 0.0
            function.forget()
            yield from _descent(function, STAGES.exact * function.natural, STAGES.exact_descent)
            function.forget()


def _is_progress(reached: list[float], patience: Patience) -> bool:
    """Return whether the last stages have lowered the objective enough for another stage."""
    if len(reached) <= patience.stages:
        return True
    return reached[-patience.stages - 1] - reached[-1] > patience.decrease * reached[-1]


def refine_with_homotopy(
    problem: Problem, W_aug: FloatArray, H_aug: FloatArray, *, place: Place = NOWHERE
) -> Iterator[Candidate]:
    """Refine after a homotopy, in which the interval of f shrinks to its true size.

    Parameters
    ----------
    problem, W_aug, H_aug, place
        As for `refine`, and the place is also at the beginning of the homotopy; the nonlinearity
        needs a wider form (`Nonlinearity.with_wider_bounds`).

    Yields
    ------
    Candidate
        Factors after each pass over the data.  Their objective is infinite during the homotopy.
    """
    f, loss = problem.pair.nonlinearity, problem.pair.loss
    widths = () if place.goes_on else STAGES.homotopy_widths  # it goes on behind them
    for width in widths:
        wider = f.with_wider_bounds(width, loss.domain)
        assert wider is not None
        function = Lagrangian(replace(problem, pair=make_pair(wider, loss)), W_aug, H_aug)
        penalty, update_from = STAGES.slow.first * function.natural, 0.0
        for _ in range(STAGES.homotopy_stages):
            for candidate in _descent(function, penalty, STAGES.stage, update_from):
                yield candidate._replace(objective=math.inf)
            penalty, update_from = STAGES.slow.factor * penalty, penalty
        W_aug, H_aug = function.candidate.W_aug, function.candidate.H_aug
    yield from refine(problem, W_aug, H_aug, place=place)


def polish(
    problem: Problem, W_aug: FloatArray, H_aug: FloatArray, *, place: Place = NOWHERE
) -> Iterator[Candidate]:
    """Descend on the objective itself, as far as rounding allows.

    A problem with an exact fit has the same solutions at every ρ.  Descent therefore first tries a
    very small ρ, which gives the easier function, as long as the objective falls fast.  Then, for a
    smooth loss, it takes a large ρ.

    Parameters
    ----------
    problem, W_aug, H_aug
        As for `refine`.
    place : Place, optional
        Where the polish stands: at its beginning.

    Yields
    ------
    Candidate
        Factors after each pass over the data.
    """
    function = Lagrangian(problem, W_aug, H_aug)
    function.point(STAGES.polish * function.natural)
    yield function.candidate
    if function.relative_error <= STAGES.nearly_exact:
        yield from _descent(function, STAGES.exact * function.natural, STAGES.exact_descent)
        function.x = function.best
        function.forget()
    if problem.pair.loss.smooth:
        polishing = _descent(function, STAGES.polish * function.natural, STAGES.polish_descent)
        yield from islice(polishing, STAGES.polish_passes)


def _descent(
    function: Lagrangian, penalty: float, rule: DescentRule, update_from: float = 0.0
) -> Iterator[Candidate]:
    """Descend at one ρ, until the rule ends the descent."""
    start = function.point(penalty, update_from)
    yield function.candidate
    earlier, steps = function.lowest, 0
    for point in descend(function.evaluate, function.preconditioner_at, start, function.pairs):
        yield function.candidate
        if not point.accepted:
            continue
        function.x, steps = point.x, steps + 1
        if steps % rule.steps == 0:
            if earlier - function.lowest <= rule.decrease * abs(function.lowest):
                return
            earlier = function.lowest


def optimality(problem: Problem, W_aug: FloatArray, H_aug: FloatArray) -> float:
    """Return the distance of some factors from the first-order (KKT) conditions.

    With T from the T-update at WH and Λ = ρ(T - WH), the condition on T holds.  The remaining
    conditions are Λ Hᵀ = alpha W, Wᵀ Λ = alpha H and T = WH.  The distance is the largest of their
    relative violations, for that of several ρ at which it is smallest.

    Parameters
    ----------
    problem : Problem
        Problem that was solved.
    W_aug, H_aug : ndarray (m, rank + ...) and (rank + ..., n)
        Factors extended by the offsets.

    Returns
    -------
    float
        0 at a stationary point.
    """
    if isinstance(problem.observations, ClusterObservations):
        own: Any = W_aug
        return optimality_on_cluster(problem, own, H_aug, STAGES.optimality_penalties)
    if problem.is_constrained:
        return constrained_optimality(problem, W_aug, H_aug, STAGES.optimality_penalties)
    function = Lagrangian(problem, W_aug, H_aug)
    return min(function.violation(rho * function.natural) for rho in STAGES.optimality_penalties)
