"""The memory that a fit needs, by what its engine keeps beside the data."""

from __future__ import annotations

from nmd_lab._memory import refuse_above
from nmd_lab.data.base import Observations

from .initialization import svd_memory
from .options import Options
from .problem import Problem
from .refinement.lbfgs import MOST_PAIRS, pairs_for
from .refinement.plan import RefinementPlan, memory_allows
from .side_by_side import side_by_side
from .storage import BLOCK_ENTRIES
from .zeros.tiles import ENTRIES

STREAMED_ARRAYS = 4  # arrays of the size of X that must fit, or data in files are read by blocks


def needed_memory(problem: Problem, rank: int, options: Options, plan: RefinementPlan) -> int:
    """Return the bytes that a fit allocates beside its data."""
    init = options.init if isinstance(options.init, str) else "random"
    if plan.descends:
        needed, init = _of_descents(problem, rank), "randomized"
    else:
        starts = side_by_side(problem, options, options.n_init - 1)
        needed = starts * _of_iteration(problem, rank, plan)
    if init == "random" or problem.observations.scratch is not None:
        return needed
    # the first start is computed before T and U are there
    return max(needed, svd_memory(problem.observations, rank, "svd" if init == "auto" else init))


def _of_iteration(problem: Problem, rank: int, plan: RefinementPlan) -> int:
    """Return the bytes of Algorithm 1 with its refinements."""
    observations, width = problem.observations, rank + problem.offset_columns.width
    stored = observations.n_stored if observations.scratch is None else 0  # or they lie in files
    factors = sum(observations.shape) * width
    # T and U; S, its values by columns and two patterns, or the WH before; that of a refinement
    arrays = 2 + (3 if problem.observed_only else problem.sparse) + bool(plan)
    vectors = 8 + (2 * MOST_PAIRS + 12 if plan else 0)
    if plan and memory_allows(factors * width, stored):
        vectors += 2 * width  # the preconditioner
    blocks = 2 * min(BLOCK_ENTRIES, stored) * max(problem.threads, 1)
    return (arrays * stored + vectors * factors + blocks) * observations.dtype.itemsize


def _of_descents(problem: Problem, rank: int) -> int:
    """Return the bytes of descents: stored entries, vectors of the factors, tiles and patterns."""
    observations = problem.observations
    stored, factors = observations.values.size, sum(observations.shape) * rank
    vectors = 2 * pairs_for(factors) + 14 + 2 * problem.threads
    numbers = 2 * stored + vectors * factors + ENTRIES * problem.threads
    return numbers * observations.dtype.itemsize + 32 * stored  # positions, and what sorts them


def check_memory(problem: Problem, rank: int, options: Options, plan: RefinementPlan) -> None:
    """Raise MemoryError if a fit needs more than is free; workers have memory of their own."""
    if problem.observations.elsewhere is None:
        needed = needed_memory(problem, rank, options, plan)
        refuse_fit(problem.observations, needed, options.compute.memory_limit)


def refuse_fit(observations: Observations, needed: int, limit: float | None = None) -> None:
    """Raise MemoryError if so many bytes beside the data are not free."""
    remedy = "give a share of {share:.0%} of its rows, dtype='float32', a memmap or a SparseStore"
    if observations.scratch is not None:
        remedy = "give a smaller rank, or n_init=1"
    refuse_above(needed, f"a fit of X of shape {observations.shape}", remedy, limit)
