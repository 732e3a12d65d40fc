"""What a pass of a refinement costs, in iterations of Algorithm 1.

The costs are counts of operations with a time for each kind, never a measured time: the same fit
must do the same steps each time.  The times are those of one core; only their ratios matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from nmd_lab.solver.problem import Problem


@dataclass(frozen=True)
class OperationTimes:
    """Nanoseconds of each kind of operation.

    Attributes
    ----------
    dense, sparse : float
        One multiplication and addition in a dense product, and in a loop over a sparse pattern.
    entry : float
        T-update of one entry.
    number : float
        Vector operations of a quasi-Newton step, for each number in the factors.
    inverse : float
        Inverse of a matrix, for each of its numbers times its size.
    product : float
        Product of such a matrix with a vector, for each of its numbers.
    """

    dense: float = 0.05
    sparse: float = 0.3
    entry: float = 2.5
    number: float = 16.0
    inverse: float = 0.65
    product: float = 0.25


TIMES = OperationTimes()


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
    step = TIMES.sparse if problem.observations.pattern is not None else TIMES.dense
    one_pass = entries * (3 * width * step + TIMES.entry)
    iteration = one_pass
    if problem.observed_only:  # a least-squares problem for each row and column
        iteration += entries * width * (width + 2) * step + lines * width**3 * TIMES.inverse
    evaluation = one_pass + lines * width * (TIMES.number + width * TIMES.product)
    preconditioner = lines * width**2 * TIMES.product
    if not one_matrix:
        preconditioner += lines * width**3 * TIMES.inverse
        preconditioner += entries * (width * (width + 2) * step + 2 * TIMES.entry)
    start = entries * 4 * TIMES.entry
    costs = (evaluation, entries * TIMES.entry, preconditioner, start)
    return PassCosts(*(cost / iteration for cost in costs))
