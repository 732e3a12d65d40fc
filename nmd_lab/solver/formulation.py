"""The problem that follows from data, model and options: units, offsets, ρ, and memory."""

from __future__ import annotations

import math
from dataclasses import replace

from nmd_lab._runtime.machine import all_threads, refuse_above
from nmd_lab.data.observations import Observations
from nmd_lab.model.fitted_values import Offsets

from .constraints.factor_constraints import GivenConstraints
from .devices import HOST, FileHost, device_of, refuse_unsupported
from .initialization import svd_memory
from .options import Options
from .penalty import as_penalty_rule
from .problem import Problem
from .refinement.lbfgs import MOST_PAIRS, pairs_for
from .refinement.plan import RefinementPlan, memory_allows
from .scaling import OffsetColumns, Scaling
from .storage import BLOCK_ENTRIES
from .tiles import ENTRIES

OBSERVED_SHARE = 1 / 3  # fraction of observed entries below which "auto" means "observed"
COMPONENT = 0.5  # singular value of a usual component over ‖T‖, for the weight of l1 penalties


def make_problem(
    observations: Observations, scaling: Scaling, options: Options, observed_only: bool
) -> Problem:
    """Return the problem in the units of a scaling."""
    device = device_of(options.compute.device)
    refuse_unsupported(device, scaling.model, observed_only=observed_only)
    if observations.scratch is not None and device is HOST:
        device = FileHost(observations.scratch)
    if observed_only:
        observations = observations.as_sparse()
    if scaling.exponent:
        three = 3 * observations.n_stored * observations.dtype.itemsize
        if observations.in_memory:
            refuse_fit(observations.shape, three)  # a copy of the data, T and U
        observations = scaling.scaled_observations(observations)
    model = scaling.scaled_model()
    plain = Problem(
        observations,
        model,
        alpha=scaling.scaled_alpha(options.alpha),
        epsilon=options.epsilon_for(observations.dtype),
        observed_only=observed_only,
        threads=options.compute.threads or all_threads(),
        device=device,
        scaling=scaling,
    )
    ridge = scaling.scaled_offset_alpha(options.offset_alpha, 1.0)
    mean = 0.0 if options.offsets == "none" else plain.mean_of_T
    of_X = scaling.given_offsets(Offsets(mean, None, None)).mean
    scaling = replace(scaling, columns=OffsetColumns(options.offsets, of_X))
    columns = replace(scaling.columns, mean=mean, constant=scaling.ones)
    problem = plain.changed(
        rule=plain.penalty_rule(options.solver.rho, options.solver.initial_rho),
        offset_alpha=ridge * columns.constant**2,
        offset_columns=columns,
        scaling=scaling,
    )
    if any(options.factor_constraints):
        return _with_constraints(problem, options)
    return problem


def _with_constraints(problem: Problem, options: Options) -> Problem:
    """Return the problem with the constraints of the options."""
    units, rule = problem.units, problem.rule
    constraints = GivenConstraints.of(
        *options.factor_constraints,
        options.alpha,
        problem.observations.shape,
        natural=math.ldexp(problem.natural_penalty, units.of_penalty),
        size=math.ldexp(COMPONENT * problem.size_of_T, 2 * units.exponent),
    )
    model, weights = problem.model, problem.observations.weight_reader()
    plain = weights is None or weights.dtype == bool
    free = options.solver.rho == "auto" and options.solver.initial_rho is None
    if free and plain and model.is_least_squares:
        rule = as_penalty_rule(1.0)  # then Z = X at observed entries: alternating minimisation
    return problem.changed(rule=rule, constraints=constraints)


def observed_only(shape: tuple[int, int], n_observed: int, split: str) -> bool:
    """Return whether T = WH is imposed on the observed entries alone."""
    few = n_observed < OBSERVED_SHARE * shape[0] * shape[1]
    return split == "observed" or (split == "auto" and few)


STREAMED_ARRAYS = 4  # arrays of the size of X that must fit, or data in files are read by blocks


def needed_memory(problem: Problem, rank: int, options: Options, plan: RefinementPlan) -> int:
    """Return the bytes that a fit allocates in addition to its data."""
    observations, on_disk = problem.observations, problem.observations.scratch is not None
    init = options.init if isinstance(options.init, str) else "random"
    if plan.engine == "implicit zeros":
        needed, init = _of_descents(problem, rank), "randomized"
    else:
        width = rank + problem.offset_columns.width
        stored = 0 if on_disk else observations.n_stored  # or they lie in files
        factors = sum(observations.shape) * width
        # T and U; S, its values by columns and two patterns, or the WH before; a refinement's
        arrays = 2 + (3 if problem.observed_only else problem.sparse) + bool(plan)
        vectors = 8 + (2 * MOST_PAIRS + 12 if plan else 0)
        if plan and memory_allows(factors * width, stored):
            vectors += 2 * width  # the preconditioner
        blocks = 2 * min(BLOCK_ENTRIES, stored) * max(problem.threads, 1)
        numbers = arrays * stored + vectors * factors + blocks
        needed = numbers * observations.dtype.itemsize
    if init == "random" or on_disk:
        return needed
    # the first start is computed before T and U are there
    is_sparse = observations.pattern is not None or observations.absent_are_zeros
    n_sparse, kind = observations.values.size if is_sparse else None, init.replace("auto", "svd")
    size = observations.dtype.itemsize
    return max(needed, svd_memory(observations.shape, size, n_sparse, rank, kind))


def _of_descents(problem: Problem, rank: int) -> int:
    """Return the bytes of descents: stored entries, vectors of the factors, tiles and patterns."""
    observations = problem.observations
    stored, factors = observations.values.size, sum(observations.shape) * rank
    vectors = 2 * pairs_for(factors) + 14 + 2 * problem.threads
    numbers = 2 * stored + vectors * factors + ENTRIES * problem.threads
    return numbers * observations.dtype.itemsize + 32 * stored  # positions, and what sorts them


def refuse_fit(
    shape: tuple[int, int], needed: int, limit: float | None = None, *, on_disk: bool = False
) -> None:
    """Raise MemoryError if so many bytes in addition to the data are not free."""
    remedy = "give {share:.0%} of its rows, dtype='float32' or a memmap"
    if on_disk:
        remedy = "give a smaller rank, or n_init=1"
    refuse_above(needed, f"a fit of X of shape {shape}", remedy, limit)
