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
from typing import Any, NamedTuple

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.kernels.envelope import symmetric
from nmd_lab.kernels.products import singular_factors
from nmd_lab.kernels.row_steps import penalty_of
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import Iterate

from .constrained import DivergenceDescent, kind_of_descent, violation
from .lbfgs import Descent, Pairs, Point, Preconditioner, descend, memory_allows, pairs_for

DENSE, SPARSE, ENTRY, NUMBER, INVERSE, PRODUCT = 0.05, 0.3, 2.5, 16.0, 0.65, 0.25
"""Nanoseconds of each kind of operation: one multiplication and addition in a dense product, and in
a loop over a sparse pattern; T-update of one entry; vector operations of a quasi-Newton step, for
each number in the factors; inverse of a matrix, for each of its numbers times its size; product of
such a matrix with a vector, for each of its numbers."""


class PassCosts(NamedTuple):
    """Costs in iterations of Algorithm 1.

    Attributes
    ----------
    evaluation : float
        One evaluation of the augmented Lagrangian, with the quasi-Newton step that leads to it.
    update : float
        An update of the multipliers, in addition.
    preconditioner : float
        Computing the preconditioner.
    start : float
        Start of a refinement.
    """

    evaluation: float
    update: float
    preconditioner: float
    start: float


def pass_costs(problem: Problem, width: int, *, one_matrix: bool) -> PassCosts:
    """Return the costs for a problem."""
    entries, lines = problem.observations.n_stored, sum(problem.observations.shape)
    step = SPARSE if problem.observations.pattern is not None else DENSE
    one_pass = entries * (3 * width * step + ENTRY)
    iteration = one_pass
    if problem.observed_only:  # a least-squares problem for each row and column
        iteration += entries * width * (width + 2) * step + lines * width**3 * INVERSE
    evaluation = one_pass + lines * width * (NUMBER + width * PRODUCT)
    preconditioner = lines * width**2 * PRODUCT
    if not one_matrix:
        preconditioner += lines * width**3 * INVERSE
        preconditioner += entries * (width * (width + 2) * step + 2 * ENTRY)
    start = entries * 4 * ENTRY
    costs = (evaluation, entries * ENTRY, preconditioner, start)
    return PassCosts(*(cost / iteration for cost in costs))


class Lagrangian:
    """The augmented Lagrangian of a problem as a function of one flat vector.

    Attributes
    ----------
    state : Variables
        All that changes.

    `state` is that of an earlier function of the problem, if it continues from there.
    """

    def __init__(
        self, problem: Problem, W_aug: FloatArray, H_aug: FloatArray, state: Variables | None = None
    ) -> None:
        observations, width = problem.observations, W_aug.shape[1]
        m, n = observations.shape
        self.problem, self.envelope = problem, problem.envelope()
        rank = width - problem.offset_columns.width
        self.alphas = problem.alphas(rank)
        self.solved_W, self.solved_H = problem.offset_columns.solved(rank)
        self.rank, self.W_shape = width, (m, self.solved_W.stop - self.solved_W.start)
        self.density = observations.n_observed / (m * n)
        stored = self.envelope.size if observations.scratch is None else 0
        self.one_matrix = not memory_allows((m + n) * width**2, stored)
        self.costs = pass_costs(problem, width, one_matrix=self.one_matrix)
        if state is None:
            components = problem.offset_columns.components(width)
            self.state = self._variables(*balanced(W_aug, H_aug, components))
        else:
            self.state = state
            if state.U is not None:
                state.U = self.envelope.U = self.envelope.device.put(state.U)

    def _variables(self, W_aug: FloatArray, H_aug: FloatArray) -> Variables:
        """Return the variables with which a descent begins at some factors."""
        x = _flat(W_aug[:, self.solved_W], H_aug[self.solved_H])
        candidate = Iterate(W_aug, H_aug)
        return Variables(
            *(W_aug, H_aug, x, candidate, Pairs(maxlen=pairs_for(x.size)), x),
            U=self.envelope.U,
            cost=self.costs.start,
        )

    def point(self, penalty: float, update_from: float = 0.0) -> Point:
        """Set ρ and return the starting point; `update_from` as for `MoreauEnvelope.evaluate`."""
        self.state.penalty = penalty
        return Point(self.state.x, *self.evaluate(self.state.x, update_from))

    def forget(self) -> None:
        """Reset multipliers, L-BFGS memory and preconditioner, for a very different ρ."""
        self.envelope.forget()
        self.state.U, self.state.inverses = self.envelope.U, None
        self.state.pairs.clear()

    def evaluate(self, x: FloatArray, update_from: float = 0.0) -> tuple[float, FloatArray]:
        """Return value and gradient at x, which becomes the candidate."""
        state, problem = self.state, self.problem
        W_aug, H_aug = self._with_offsets(x)
        result = self.envelope.evaluate(W_aug, H_aug, state.penalty, update_from)
        state.U = self.envelope.U
        ridge, slope = self._ridge(x)
        state.cost += self.costs.evaluation
        state.cost += self.costs.update if update_from else 0.0
        gradient = _flat(result.gradient_W[:, self.solved_W], result.gradient_H[self.solved_H])
        gradient = gradient + slope
        state.candidate = Iterate(
            W_aug=W_aug,
            H_aug=H_aug,
            objective=result.data_term + ridge,
            relative_error=problem.model.relative_error(result.data_term, problem.reference),
            primal_residual=result.primal,
            dual_residual=float(np.linalg.norm(gradient)),
            penalty=state.penalty,
        )
        if state.candidate.objective < state.lowest:
            state.lowest, state.best = state.candidate.objective, x
        return result.value + ridge, gradient

    def _ridge(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient of the ridge at x."""
        W_alphas, H_alphas = self.alphas
        W, H = self._factors(x)
        slope = _flat(W_alphas.astype(x.dtype) * W, H_alphas.astype(x.dtype)[:, None] * H)
        return 0.5 * float(np.sum(slope * x, dtype=np.float64)), slope

    def preconditioner_at(self, x: FloatArray) -> Preconditioner:
        """Return the preconditioner, computed again at x if the last one is too old."""
        state, rank = self.state, self.rank
        old = state.uses >= max(20, rank)  # to which the cost of the next one is proportional
        grown = state.penalty > 2 * state.computed_for
        if state.inverses is None or old or (grown and state.uses >= rank):
            state.inverses = None  # so that their memory is free for the new ones
            state.inverses = self._inverses_at(x)
            state.uses, state.computed_for = 0, state.penalty
        state.uses += 1
        return self._precondition

    def _precondition(self, gradient: FloatArray) -> FloatArray:
        """Return the step of a gradient."""
        assert self.state.inverses is not None
        inverse_W, inverse_H = self.state.inverses
        gradient_W, gradient_H = self._factors(gradient)
        return _flat(
            np.matmul(inverse_W, gradient_W[:, :, None])[:, :, 0],
            np.matmul(inverse_H, gradient_H.T[:, :, None])[:, :, 0].T,
        )

    def _inverses_at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the matrices of the preconditioner at x, for rows and for columns.

        It has one matrix for each row and column, or, if these need too much memory, one for all
        rows and one for all columns.
        """
        self.state.cost += self.costs.preconditioner
        W_aug, H_aug = self._with_offsets(x)
        partners = H_aug[self.solved_W], W_aug[:, self.solved_H].T
        normals: list[FloatArray | None] = [None, None]
        if not self.one_matrix:
            normals = [*self.envelope.normal_matrices(W_aug, H_aug, self.state.penalty)]
        terms = zip((self.solved_W, self.solved_H), partners, self.alphas, strict=True)
        # Those of the rows leave memory for the inverses of the columns.
        rows, columns = (self._inverses(normals.pop(0), *each) for each in terms)
        return rows, columns

    def _factors(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        size = self.W_shape[0] * self.W_shape[1]
        return x[:size].reshape(self.W_shape), x[size:].reshape(-1, self.state.H_aug.shape[1])

    def _with_offsets(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        W_aug, H_aug = self.state.W_aug.copy(), self.state.H_aug.copy()
        W_aug[:, self.solved_W], H_aug[self.solved_H] = self._factors(x)
        return W_aug, H_aug

    def _inverses(
        self, normal: FloatArray | None, solved: slice, partners: FloatArray, alphas: FloatArray
    ) -> FloatArray:
        """Return an inverse for each of the normal matrices, or one if there are none."""
        gram = partners @ partners.T
        # of an entry at which the Lagrangian is flat, relative to ρ
        weight = self.density if self.one_matrix else 0.01
        share = self.state.penalty * weight
        ridge = alphas + 1e-10 * share * float(np.trace(gram)) + 1e-300
        flat = share * gram
        count = 1 if normal is None else len(normal)
        inverses = np.empty((count, *gram.shape), gram.dtype)
        size = 256  # matrices at a time, which bounds the temporary arrays
        for first in range(0, count, size):  # in double precision
            block = slice(first, first + size)
            total = flat
            if normal is not None:
                matrices = symmetric(normal[block], self.rank)
                total = matrices[:, solved, solved] + flat
            total = (total + ridge * np.eye(len(gram))).astype(np.float64, copy=False)
            inverses[block] = 0.5 * np.linalg.inv(total)
        return inverses


def balanced(
    W_aug: FloatArray, H_aug: FloatArray, components: slice
) -> tuple[FloatArray, FloatArray]:
    """Return factors of the same product in which W and H have the same Gram matrix."""
    W_aug, H_aug = W_aug.copy(), H_aug.copy()
    factors = W_aug[:, components], H_aug[components]
    W_aug[:, components], H_aug[components], _ = singular_factors(*factors)
    return W_aug, H_aug


def _flat(W: FloatArray, H: FloatArray) -> FloatArray:
    return np.concatenate([W.ravel(), H.ravel()])


@dataclass
class Variables:
    """All that evaluations of L and descents on it change.

    Attributes
    ----------
    W_aug, H_aug : ndarray (m, rank + ...) and (rank + ..., n)
        Factors of the beginning, with the columns that no descent changes.
    x : ndarray (size,)
        Point from which the next descent starts.
    candidate : Iterate
        Factors of the last evaluation; its dual residual is the norm of the gradient of L.
    pairs : Pairs
        L-BFGS memory.
    best, lowest : ndarray (size,), float
        Point of lowest objective so far, and that objective.
    penalty : float
        ρ.
    U : array (n_stored,) on the device, or None
        Multipliers of the stored entries.
    inverses, computed_for, uses : tuple of ndarray or None, float, int
        The preconditioner, its ρ, and how often it was used.
    cost : float
        Work that is not accounted for yet, in iterations of Algorithm 1.
    """

    W_aug: FloatArray
    H_aug: FloatArray
    x: FloatArray
    candidate: Iterate
    pairs: Pairs
    best: FloatArray
    lowest: float = math.inf
    penalty: float = math.nan
    U: Any = None
    inverses: tuple[FloatArray, FloatArray] | None = None
    computed_for: float = math.nan
    uses: int = 0
    cost: float = 0.0


# All ρ are in units of the natural penalty, `Problem.penalty_scale`.  The end of a descent is a
# number of steps and the relative decrease of the objective in them, at or below which it ends.
QUICK = (0.3, 1.6)  # first ρ and its growth from stage to stage, to the nearest minimum
SLOW = (0.1, 1.2)  # the same to a better minimum, since a small ρ avoids poor ones
HOMOTOPY_WIDTHS = (1.0, 0.5, 0.25, 0.125)  # moves of the bounds of f, in lengths of its interval
NEARLY_EXACT = 0.02  # relative error at or below which an exact fit is tried
EXACT = 1e-6  # ρ for that trial, so small that L has a gradient far out on a flat piece
EXACT_END = (20, 0.05)  # of that trial, which continues only while the objective falls fast
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
    end: tuple[int, float] = (3, 1e-2)
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
    growth: tuple[float, float]
    patience: tuple[int, float, float]
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
        at: Iterate,
        growth: tuple[float, float] = SLOW,
        # stages, their least relative decrease, and ρ from which they count
        patience: tuple[int, float, float] = (20, 1e-4, 0.0),
    ) -> Refinement:
        """Return a refinement that begins at the factors of an iterate."""
        width = 0 if kind == "homotopy" else len(HOMOTOPY_WIDTHS)
        function = self._begin(_widened(problem, width), at.W_aug, at.H_aug)
        first = growth[0] * problem.penalty_scale
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

    def _begin(self, problem: Problem, *about: Any) -> Lagrangian:
        """Return the function of another refinement."""
        self._function = None  # its memory is free for the next one
        self._function = Lagrangian(problem, *about)
        return self._function

    def _function_of(self, problem: Problem, job: Refinement) -> Lagrangian:
        """Return the function that a refinement descends on."""
        function, state = self._function, job.state
        if function is None or function.state is not state:
            return self._begin(_widened(problem, job.width), state.W_aug, state.H_aug, state)
        return function

    def _next_of_homotopy(
        self, problem: Problem, job: Refinement, function: Lagrangian
    ) -> Stage | None:
        """Return the next stage of a width; None where another width begins."""
        if job.narrowed < 3:
            job.narrowed += 1
            stage = Stage(job.penalty, update_from=job.update_from)
            job.penalty, job.update_from = job.growth[1] * job.penalty, job.penalty
            return stage
        last = function.state.candidate
        job.width, job.narrowed = job.width + 1, 0
        function = self._begin(_widened(problem, job.width), last.W_aug, last.H_aug)
        job.state, job.update_from = function.state, 0.0
        job.penalty = job.growth[0] * problem.penalty_scale
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
    state, unit = function.state, problem.penalty_scale
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
    return Stage(job.penalty, update_from=job.update_from)


def _next_of_polish(problem: Problem, job: Refinement, function: Lagrangian) -> Stage | None:
    """Return the next stage of a descent on the objective itself, as far as rounding allows.

    A problem with an exact fit has the same solutions at every ρ.  The first stage only looks at
    the factors.  The second tries a very small ρ, which gives the easier function, as long as the
    objective falls fast.  The last takes a large ρ, for a smooth loss.
    """
    state, unit = function.state, problem.penalty_scale
    large = 1e4 * unit  # so that L is close to the objective
    if job.phase == "":
        job.phase = "look"
        return Stage(large, most=1)
    if job.phase == "look" and state.candidate.relative_error <= NEARLY_EXACT:
        job.phase = "exact"
        return Stage(EXACT * unit, EXACT_END)
    if job.phase == "exact":
        state.x = state.best
        function.forget()
    if job.phase == "last" or not problem.model.smooth:
        return None
    job.phase = "last"
    return Stage(large, (20, 1e-10), most=300)  # which goes as far as rounding allows


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
        ridge = sum(map(penalty_of, factors, problem.ridges(rank), constrained))
    envelope, lowest = problem.envelope(), math.inf
    for units in OPTIMALITY_PENALTIES:
        result = envelope.evaluate(W_aug, H_aug, units * problem.penalty_scale)
        slopes = result.gradient_W[:, solved_W], result.gradient_H[solved_H].T
        size = 2 * max(result.data_term + ridge, problem.reference)
        of_factors = violation(factors, slopes, alphas, constrained, size)
        lowest = min(lowest, max(of_factors, result.primal / problem.norm_of_initial_T))
    return lowest
