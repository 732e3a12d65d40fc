"""Refinements: quasi-Newton steps on the augmented Lagrangian with T eliminated.

Algorithm 1 takes one least-squares step in W and in H between two updates of the multipliers U.
Here quasi-Newton steps replace the least-squares steps, and ρ grows from stage to stage.  A small ρ
avoids flat pieces and poor minima of the objective.  A large ρ converges to the minimum that was
found.  A step costs as much as an iteration.

"refine" does this, "homotopy" does it after a homotopy in the interval of f, and "polish" descends
on the objective itself.  Each is a sequence of stages, and each stage is a descent at one ρ.  Where
a refinement stands is a `Refinement`, which `Refiner.step` moves on by one pass over the data.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace
from functools import singledispatch

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import Iterate

from .constrained_descents import DivergenceDescent, kind_of_descent, violation
from .lagrangian import Lagrangian, Variables, balanced
from .lbfgs import Descent, descend

# All ρ are in units of the natural penalty.  The end of a descent is a number of steps and the
# relative decrease of the objective in them, at or below which it ends.
QUICK = (0.3, 1.6)  # first ρ and its growth from stage to stage, to the nearest minimum
SLOW = (0.1, 1.2)  # the same to a better minimum, since a small ρ avoids poor ones
PATIENCE = (20, 1e-4, 0.0)  # stages, their least relative decrease, and ρ from which they count
STAGE_END = (3, 1e-2)  # of a stage
HOMOTOPY_WIDTHS = (1.0, 0.5, 0.25, 0.125)  # moves of the bounds of f, in lengths of its interval
NEARLY_EXACT = 0.02  # relative error at or below which an exact fit is tried
EXACT = 1e-6  # ρ for that trial, so small that L has a gradient far out on a flat piece
EXACT_END = (20, 0.05)  # of that trial, which continues only while the objective falls fast
POLISH = 1e4  # ρ of a polish, so large that L is close to the objective
OPTIMALITY_PENALTIES = tuple(10.0**k for k in range(7))  # ρ at which KKT conditions are checked


@dataclass
class Stage:
    """A descent at one ρ, until the objective falls too little in a number of steps.

    Attributes
    ----------
    penalty, update_from : float
        ρ, and that of the stage before, from which the multipliers are updated.
    end : tuple of int and float
        Number of steps, and the relative decrease in them at or below which the stage ends.
    most, passes : int
        Largest number of passes, and passes so far.
    descent : Descent or None
        The descent; None before the first pass.
    earlier, steps : float, int
        Lowest objective before the present number of steps, and all steps so far.
    over : bool
        Whether the objective has fallen too little.
    """

    penalty: float
    end: tuple[int, float] = STAGE_END
    update_from: float = 0.0
    most: int = sys.maxsize
    passes: int = 0
    descent: Descent | None = None
    earlier: float = math.inf
    steps: int = 0
    over: bool = False

    def step(self, function: Lagrangian) -> Iterate | None:
        """Do one pass, and return its factors; None at the end."""
        if self.over or self.passes >= self.most:
            return None
        if self.descent is None:
            self.descent = Descent(function.point(self.penalty, self.update_from))
            self.earlier = function.state.lowest
        else:
            pairs = function.state.pairs
            point = descend(self.descent, function.evaluate, function.preconditioner_at, pairs)
            if point is None:
                return None
            if point.accepted:
                self._accept(point.x, function.state)
        self.passes += 1
        return function.state.candidate

    def _accept(self, x: FloatArray, state: Variables) -> None:
        """Continue from a point, or end there."""
        state.x, self.steps = x, self.steps + 1
        period, decrease = self.end
        if self.steps % period == 0:
            self.over = self.earlier - state.lowest <= decrease * abs(state.lowest)
            self.earlier = state.lowest


@dataclass
class Refinement:
    """Where a refinement stands.

    Attributes
    ----------
    kind : {"refine", "homotopy", "polish"}
        Its stages.
    state : Variables
        Factors, multipliers and preconditioner.
    growth, patience : tuple
        First ρ and its growth, and the stages without progress that end a refinement.
    phase : str
        What the present stage is for.
    stage : Stage or None
        The present stage.
    penalty, update_from : float
        ρ of the next stage, and of the one before it.
    reached : list of float
        Lowest objective after each stage that counts.
    width, narrowed : int
        Number of the width of a homotopy, and stages of it so far.
    """

    kind: str
    state: Variables
    growth: tuple[float, float] = SLOW
    patience: tuple[int, float, float] = PATIENCE
    phase: str = ""
    stage: Stage | None = None
    penalty: float = 0.0
    update_from: float = 0.0
    reached: list[float] = field(default_factory=list)
    tries_exact: bool = True
    width: int = len(HOMOTOPY_WIDTHS)
    narrowed: int = 0


class Refiner:
    """Moves refinements on, one at a time."""

    def __init__(self) -> None:
        self._function: Lagrangian | None = None

    def begin(
        self,
        problem: Problem,
        kind: str,
        W_aug: FloatArray,
        H_aug: FloatArray,
        growth: tuple[float, float] = SLOW,
        patience: tuple[int, float, float] = PATIENCE,
    ) -> Refinement:
        """Return a refinement that begins at some factors."""
        width = 0 if kind == "homotopy" else len(HOMOTOPY_WIDTHS)
        function = self._begin(_widened(problem, width), W_aug, H_aug)
        first = growth[0] * function.natural
        return Refinement(kind, function.state, growth, patience, penalty=first, width=width)

    def step(self, problem: Problem, job: Refinement) -> Iterate | None:
        """Do one pass over the data, and return its factors; None at the end."""
        while True:
            function = self._function_of(problem, job)
            if job.stage is not None and (candidate := job.stage.step(function)) is not None:
                wide = job.width < len(HOMOTOPY_WIDTHS)  # the objective is that of another f
                return replace(candidate, objective=math.inf) if wide else candidate
            if job.width < len(HOMOTOPY_WIDTHS):
                job.stage = self._next_of_homotopy(problem, job, function)
                continue
            following = _next_of_polish if job.kind == "polish" else _next_of_refinement
            job.stage = following(problem, job, function)
            if job.stage is None:
                self._function = None  # its memory is free for the next one
                return None

    def _begin(self, problem: Problem, W_aug: FloatArray, H_aug: FloatArray) -> Lagrangian:
        """Return the function of another refinement."""
        self._function = None
        self._function = Lagrangian(problem, W_aug, H_aug)
        return self._function

    def _function_of(self, problem: Problem, job: Refinement) -> Lagrangian:
        """Return the function that a refinement descends on."""
        if self._function is None or self._function.state is not job.state:
            self._function = None
            factors = job.state.W_aug, job.state.H_aug
            self._function = Lagrangian(_widened(problem, job.width), *factors, job.state)
        return self._function

    def _next_of_homotopy(
        self, problem: Problem, job: Refinement, function: Lagrangian
    ) -> Stage | None:
        """Return the next stage of a width; None where another width begins."""
        if job.narrowed < 3:
            job.narrowed += 1
            stage = Stage(job.penalty, STAGE_END, job.update_from)
            job.penalty, job.update_from = job.growth[1] * job.penalty, job.penalty
            return stage
        last = function.state.candidate
        job.width, job.narrowed = job.width + 1, 0
        function = self._begin(_widened(problem, job.width), last.W_aug, last.H_aug)
        job.state, job.update_from = function.state, 0.0
        job.penalty = job.growth[0] * function.natural
        return None


def _widened(problem: Problem, width: int) -> Problem:
    """Return the problem with the interval of f in a homotopy; the problem itself after it."""
    if width == len(HOMOTOPY_WIDTHS):
        return problem
    wider = problem.model.with_wider_bounds(HOMOTOPY_WIDTHS[width])
    assert wider is not None
    return replace(problem, model=wider)


def _next_of_refinement(problem: Problem, job: Refinement, function: Lagrangian) -> Stage | None:
    """Return the next stage, with a larger ρ; None if the last ones have gained too little.

    Where the fit is nearly exact, a stage with a very small ρ comes between, once.
    """
    state, unit = function.state, function.natural
    if job.phase == "stage":
        if job.penalty >= job.patience[2] * unit:
            job.reached.append(state.lowest)
        job.penalty, job.update_from = job.growth[1] * job.penalty, job.penalty
        if job.tries_exact and state.candidate.relative_error <= NEARLY_EXACT:
            job.tries_exact, job.update_from, job.phase = False, 0.0, "exact"
            function.forget()
            return Stage(EXACT * unit, EXACT_END)
    elif job.phase == "exact":
        function.forget()
    reached, (stages, decrease, _) = job.reached, job.patience
    if len(reached) > stages and not reached[-stages - 1] - reached[-1] > decrease * reached[-1]:
        return None
    if job.penalty < unit or not problem.model.smooth:  # where L changes too much to remember it
        state.pairs.clear()
    job.phase = "stage"
    return Stage(job.penalty, STAGE_END, job.update_from)


def _next_of_polish(problem: Problem, job: Refinement, function: Lagrangian) -> Stage | None:
    """Return the next stage of a descent on the objective itself, as far as rounding allows.

    A problem with an exact fit has the same solutions at every ρ.  The first stage only looks at
    the factors.  The second tries a very small ρ, which gives the easier function, as long as the
    objective falls fast.  The last takes a large ρ, for a smooth loss.
    """
    state, unit = function.state, function.natural
    if job.phase == "":
        job.phase = "look"
        return Stage(POLISH * unit, most=1)
    if job.phase == "look" and state.candidate.relative_error <= NEARLY_EXACT:
        job.phase = "exact"
        return Stage(EXACT * unit, EXACT_END)
    if job.phase == "exact":
        state.x = state.best
        function.forget()
    if job.phase == "last" or not problem.model.smooth:
        return None
    job.phase = "last"
    return Stage(POLISH * unit, (20, 1e-10), most=300)  # which goes as far as rounding allows


@singledispatch
def optimality(
    observations: Observations, problem: Problem, W_aug: FloatArray, H_aug: FloatArray
) -> float:
    """Return the distance of some factors from the first-order (KKT) conditions.

    With T from the T-update at WH and Λ = ρ(T - WH), the condition on T holds.  The remaining
    conditions are Λ Hᵀ = alpha W, Wᵀ Λ = alpha H and T = WH.  The distance is the largest of their
    relative violations, for that of several ρ at which it is smallest.  For constrained factors a
    step of a proximal gradient iteration takes the place of the gradient.
    """
    columns, width = problem.offset_columns, W_aug.shape[1]
    solved_W, solved_H = problem.solved(W_aug)
    rank = width - columns.width
    alphas, constrained = problem.alphas(rank), problem.constrained_columns(rank)
    if not problem.is_constrained:
        W_aug, H_aug = balanced(W_aug, H_aug, columns.components(width))
    factors = W_aug[:, solved_W], H_aug[solved_H].T
    if problem.is_constrained and kind_of_descent(problem) == "divergence":
        slopes = DivergenceDescent(problem, width).gradients(W_aug, H_aug)
        return violation(factors, slopes, alphas, constrained, 2 * problem.reference)
    ridge = 0.0
    if not problem.is_constrained:
        squares = (np.square(each, dtype=np.float64).sum(axis=0) for each in factors)
        ridge = 0.5 * sum(float(a @ s) for a, s in zip(alphas, squares, strict=True))
    envelope, lowest = problem.envelope(), math.inf
    for units in OPTIMALITY_PENALTIES:
        result = envelope.evaluate(W_aug, H_aug, units * problem.penalty_scale)
        slopes = result.gradient_W[:, solved_W], result.gradient_H[solved_H].T
        size = 2 * max(result.data_term + ridge, problem.reference)
        of_factors = violation(factors, slopes, alphas, constrained, size)
        lowest = min(lowest, max(of_factors, result.primal / problem.norm_of_initial_T))
    return lowest
