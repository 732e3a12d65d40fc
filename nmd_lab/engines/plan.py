"""The choice of the refinements that run between the iterations of Algorithm 1.

The costs of a pass are counts of operations with a time for each kind, never a measured time: the
same fit must do the same steps each time.  The times are those of one core; only their ratios
matter.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from nmd_lab.devices import HOST
from nmd_lab.problem.problem import Problem
from nmd_lab.request.options import Options
from nmd_lab.request.settings import is_automatic

from .constrained import kind_of_descent
from .lbfgs import MAX_PAIRS

N_TREND_ITERATIONS = 50  # iterations from which the present rate of decrease is estimated


def exact_for(tol: float) -> float:
    """Return the relative residual at or below which a run ends."""
    return min(tol, 1e-10)


def reaches(lowest: Sequence[float], objective: float, iterations: int) -> bool:
    """Return whether so many more iterations, at the recent rate, would reach an objective.

    `lowest` has the lowest objective after each iteration; a few of them determine no rate.
    """
    if len(lowest) <= N_TREND_ITERATIONS:
        return True
    decrease = (lowest[-N_TREND_ITERATIONS - 1] - lowest[-1]) / N_TREND_ITERATIONS
    return lowest[-1] - iterations * decrease <= objective


@dataclass(frozen=True)
class RefinementPlan:
    """The refinements of a fit.

    Attributes
    ----------
    fitted : float
        Relative residual at or below which nothing is left to refine.
    refine, homotopy, polish : bool or str
        Refinements between the iterations of Algorithm 1; see `stages`.
    engine : {"admm", "constrained", "implicit zeros"}
        What does the iterations.
    few_stored : bool
        Whether few entries are stored and all others are zeros, of which Algorithm 1 would store T
        and U.
    tol : float
        Tolerance of descents.
    """

    fitted: float
    refine: bool = False
    homotopy: str | bool = False
    polish: bool = False
    engine: Literal["admm", "constrained", "implicit zeros"] = "admm"
    few_stored: bool = False
    tol: float = 0.0

    @property
    def window(self) -> int | None:
        """Window of the stopping rule for the gain, endless for descents, which end by themselves.

        None stands for the usual one.
        """
        return sys.maxsize - 1 if self.engine == "implicit zeros" else None

    def __bool__(self) -> bool:
        """Return whether there is any refinement."""
        return bool(self.refine or self.homotopy or self.polish)


MAX_KEPT_NUMBERS = 1 << 22  # numbers that refinements may always keep, 32 MiB of doubles


def memory_allows(numbers: int, stored: int) -> bool:
    """Return whether refinements may keep an array, given its size and that of the data."""
    return numbers <= max(4 * stored, MAX_KEPT_NUMBERS)


def make_plan(problem: Problem, rank: int, options: Options) -> RefinementPlan:
    """Return the refinements of a fit.

    "auto" means no refinements in each of these cases:

    - a fixed ρ, or the paper's rule;
    - given factors, ``tol=0`` and a `rho` other than "auto", since this is Algorithm 1 alone;
    - Identity + Frobenius on the observed entries, which is alternating least squares;
    - a memory of the quasi-Newton steps that is too large (`memory_allows`);
    - constraints on the factors, which quasi-Newton steps would break;
    - rows on the workers of a cluster;
    - sparse data whose absent entries are zeros, if descents take the place of Algorithm 1;
    - a sparse matrix with so many stored entries that a second pass takes too long.
    """
    model, observations = problem.model, problem.observations
    fitted = exact_for(options.tol) / 100
    if observations.remote:
        return RefinementPlan(fitted)
    m, n = observations.shape
    suits = problem.has_tiles and not model.learns and is_automatic(options.solver)
    few_stored = suits and problem.reference > 0 and observations.values.size < 0.3 * m * n
    if problem.is_constrained:
        is_allowed = options.solver.refine and options.solver.rho == "auto"
        is_allowed &= problem.device is HOST
        descends = is_allowed and kind_of_descent(problem) is not None
        return RefinementPlan(
            fitted, engine="constrained" if descends else "admm", few_stored=few_stored
        )
    if few_stored:
        return RefinementPlan(fitted, engine="implicit zeros", few_stored=True, tol=options.tol)
    adaptive = math.isfinite(problem.rule.factor) and not problem.rule.projected
    least_squares = model.is_least_squares and problem.observed_only
    stored = observations.n_stored if observations.scratch is None else 0  # it may be on disk
    small = memory_allows(2 * MAX_PAIRS * (m + n) * rank, stored)
    small &= not (problem.sparse and stored > MAX_KEPT_NUMBERS)
    plain = options.tol == 0 and options.solver.rho != "auto" and not isinstance(options.init, str)
    auto = adaptive and small and not least_squares and not plain
    refine = auto and options.solver.refine
    homotopy = options.solver.homotopy
    if homotopy == "auto" and not (refine and model.with_wider_bounds(1.0)):
        homotopy = False
    polish = auto if options.solver.polish == "auto" else bool(options.solver.polish)
    return RefinementPlan(fitted, refine, homotopy, polish)


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
