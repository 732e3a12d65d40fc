"""The memory that a fit needs, and the refusal of one that does not fit."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from nmd_lab._memory import free_addresses, free_memory
from nmd_lab.data.base import Observations

from .executors.observations import ClusterObservations
from .initialization import svd_memory
from .options import Options
from .problem import Problem
from .refinement.lbfgs import MOST_PAIRS, pairs_for
from .refinement.plan import RefinementPlan, memory_allows
from .restarts import side_by_side
from .storage import BLOCK_ENTRIES, thread_shares
from .zeros.tiles import ENTRIES

LOG = logging.getLogger("nmd_lab")


@dataclass(frozen=True)
class MemoryOptions:
    """Limits of the check.

    Attributes
    ----------
    share : float
        Largest share of the free memory that a fit may take.
    """

    share: float = 0.9


MEMORY = MemoryOptions()


@dataclass(frozen=True)
class StreamingOptions:
    """Constants of the decision whether data in files are read by blocks.

    Attributes
    ----------
    arrays : int
        Number of arrays of the size of X that must fit into memory, or else they are.
    """

    arrays: int = 4


STREAMING = StreamingOptions()


def needed_memory(problem: Problem, rank: int, options: Options, plan: RefinementPlan) -> int:
    """Return the bytes that a fit allocates after its data are prepared.

    Counted are T, U and what the iteration keeps beside them, the array of a refinement, factors,
    quasi-Newton memory and preconditioner, the buffers of the threads, and all this for each start
    that runs at the same time.  The first start is computed before T and U are there.
    """
    if plan.descends:
        return _descent_memory(problem, rank, options)
    observations = problem.observations
    stored, (m, n) = observations.n_stored, observations.shape
    width = rank + problem.offset_columns.width
    if observations.scratch is not None:
        stored = 0  # arrays of the size of X lie in files
    arrays = 2 * stored  # T and U
    if problem.observed_only:
        arrays += 2 * stored + stored  # S, its values by columns, and two patterns
    elif problem.sparse:
        arrays += stored  # WH of the iteration before
    factors = (m + n) * width
    numbers = arrays + 8 * factors
    if plan:
        matrices = (m + n) * width**2
        numbers += stored + (2 * MOST_PAIRS + 12) * factors
        numbers += 2 * matrices if memory_allows(matrices, stored) else 0
    numbers += 2 * min(BLOCK_ENTRIES, stored) * max(problem.threads, 1)
    at_a_time = side_by_side(problem, options, options.n_init - 1)
    iteration = numbers * observations.dtype.itemsize * at_a_time
    return max(iteration, _start_memory(observations, rank, options) if stored else 0)


def _descent_memory(problem: Problem, rank: int, options: Options) -> int:
    """Return the bytes of descents: stored entries, vectors of the factors, and tiles."""
    observations = problem.observations
    stored, factors = observations.values.size, sum(observations.shape) * rank
    itemsize = observations.dtype.itemsize
    vectors = 2 * pairs_for(factors) + 14 + 2 * problem.threads
    numbers = 2 * stored + vectors * factors + ENTRIES * problem.threads
    patterns = 32 * stored  # positions, and what sorts them
    start = _start_memory(observations, rank, replace(options, init="randomized"))
    return max(numbers * itemsize + patterns, start)


def _start_memory(observations: Observations, rank: int, options: Options) -> int:
    """Return the bytes that the first start takes."""
    if not isinstance(options.init, str) or options.init == "random":
        return 0
    return svd_memory(observations, rank, "svd" if options.init == "auto" else options.init)


def check_memory(problem: Problem, rank: int, options: Options, plan: RefinementPlan) -> None:
    """Raise MemoryError if a fit needs more than the free memory."""
    if isinstance(problem.observations, ClusterObservations):
        return  # the workers have memory of their own
    threads = min(problem.threads, thread_shares(problem.observations.n_stored))
    at_a_time = side_by_side(problem, options, options.n_init - 1)
    threads = max(threads, at_a_time) if max(threads, at_a_time) > 1 else 0
    needed = needed_memory(problem, rank, options, plan)
    LOG.info(
        "X of shape %s: %.3g GiB are planned beside it.", problem.observations.shape, needed / 2**30
    )
    if options.memory_limit is not None and needed > options.memory_limit * 2**30:
        m, n = problem.observations.shape
        raise MemoryError(
            f"X of shape {(m, n)} needs {needed / 2**30:.3g} GiB beside it, and memory_limit="
            f"{options.memory_limit:g} allows less: give more, a smaller rank, or X as a memmap or "
            "a SparseStore."
        )
    _refuse_above_free(problem.observations, needed, threads)


def check_copy(observations: Observations) -> None:
    """Raise MemoryError if there is no room for a copy of the data, T and U."""
    needed = 3 * observations.n_stored * observations.dtype.itemsize
    _refuse_above_free(observations, needed, threads=0)


def _refuse_above_free(observations: Observations, needed: int, threads: int) -> None:
    """Raise MemoryError if so many bytes are not free beside so many new threads."""
    on_disk = observations.scratch is not None
    limits = [free_memory(with_cache=True) if on_disk else free_memory()]
    if thread_shares(observations.n_stored):
        limits.append(free_addresses(threads))
    free = min((limit for limit in limits if limit is not None), default=None)
    if free is None or needed < MEMORY.share * free:
        return
    raise MemoryError(_message(observations, needed, free, threads))


def _message(observations: Observations, needed: int, free: int, threads: int) -> str:
    """Return the sentence of the refusal."""
    m, n = observations.shape
    if observations.scratch is not None:
        return (
            f"X of shape {(m, n)} needs {needed / 2**30:.3g} GiB for the factors and the rest of a "
            f"fit by blocks, {free / 2**30:.3g} GiB are free: give a smaller rank, or n_init=1."
        )
    rows = int(MEMORY.share * free / needed * m)
    remedy = f"about {rows} rows of {n} columns would fit"
    if observations.dtype.itemsize == 8:
        remedy += ", or twice as many with dtype='float32'"
    alone = free_addresses(0)
    if threads and alone is not None and alone > free:
        remedy += ", or more with threads=1"
    return (
        f"X of shape {(m, n)} needs {needed / 2**30:.3g} GiB for T, U and the rest of a fit, "
        f"{free / 2**30:.3g} GiB are free: {remedy}."
    )
