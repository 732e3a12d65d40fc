"""What data say of a request (`describe`), and the problem that follows (`formulate`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._runtime.checks import check_rank, check_size, is_auto
from nmd_lab._runtime.compiler import is_ours
from nmd_lab._runtime.machine import all_threads, refuse_above
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.folds import Fold, draw_folds
from nmd_lab.data.observations import BLOCK, Observations
from nmd_lab.data.units import Facts, facts_of, smallest_value, units_of_columns
from nmd_lab.devices import HOST, FileHost, device_of, refuse_unsupported
from nmd_lab.engines.lbfgs import memory_allows, pairs_for
from nmd_lab.engines.refined import RefinementPlan, make_plan
from nmd_lab.model import checks
from nmd_lab.model.checks import checks_of_nonlinearity, report_of
from nmd_lab.model.column_model import LimitModel
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.model.losses import Loss, as_loss
from nmd_lab.model.model import Model, make_model
from nmd_lab.model.nonlinearity import Nonlinearity
from nmd_lab.problem.columns import (
    goes_beyond,
    is_by_column,
    measures_distance,
    mixed_model,
    model_for,
    out_of_bounds,
    with_data,
)
from nmd_lab.problem.initialization import Start, given_start, svd_memory
from nmd_lab.problem.problem import OffsetColumns, Problem, Scaling, scaling_for
from nmd_lab.request.constraints import GivenConstraints
from nmd_lab.request.options import Options, suitable_functions
from nmd_lab.request.penalty import as_penalty_rule

from .loop import FitState, Stopping


class DataSummary(NamedTuple):
    """What the data say, and what the trials found.

    Attributes
    ----------
    observations : Observations
        Data of the last fit.
    facts : Facts
        What they say in numbers.
    model : Model
        Model with what the data decide of it; stand-ins for what is to be chosen.
    nonlinearity, loss : Nonlinearity, Loss or Mixed, or None
        Those of the model; None if they are to be chosen.
    rank : int or None
        Number of components; None if it is to be chosen.
    limits : LimitModel
        What is known of entries with limits; sd = NaN if it is to be estimated.
    size : float
        Largest magnitude.
    observed_only : bool
        Whether T = WH is imposed on the observed entries alone.
    held_out : Observations or None
        Entries that stop the last fit early; None if it has all of them.
    folds : list of Fold or None
        Entries of the trials and those that judge them; None if the choice draws them itself.
    drawn : str
        How the folds were drawn, for `Decomposition.selection`.
    start : Start or None
        Factors of the trials from which the fit begins; None if it begins by `init`.
    selection : dict or None
        What `Decomposition.selection` tells; None if nothing was chosen.
    spent : float
        Seconds of `time_limit` that the choice took.
    """

    observations: Observations
    facts: Facts
    model: Model
    nonlinearity: Any
    loss: Any
    rank: int | None
    limits: LimitModel
    size: float
    observed_only: bool
    held_out: Any = None
    folds: list[Fold] | None = None
    drawn: str = "given"
    start: Start | None = None
    selection: dict[str, Any] | None = None
    spent: float = 0.0

    def model_with(self, f: Nonlinearity, loss: Loss) -> Model:
        """Return the model with a chosen f and loss; several kinds of columns are never chosen."""
        return self.model if self.model.is_mixed else make_model(f, loss)

    def is_open(self, options: Options) -> bool:
        """Return whether something is to be chosen by held-out entries."""
        found = self.nonlinearity, self.loss, self.rank
        return is_auto(options.alpha) or any(each is None for each in found)

    def folds_for_trials(self, rng: np.random.Generator) -> tuple[list[Fold], str]:
        """Return the folds, and how they were drawn; `rng` draws them if there are none."""
        if self.folds is None:
            return draw_folds(self.observations, rng)
        return self.folds, self.drawn


def describe(
    observations: Observations, rank: int | None, options: Options, *, is_table: bool
) -> DataSummary:
    """Return what the data say; raise an error for options that do not suit them."""
    nonlinearity, loss, shape = options.nonlinearity, options.loss, observations.shape
    if rank is not None:
        rank = check_rank(rank, shape)
        if not isinstance(options.init, str):
            given_start(observations, rank, options.init, NO_OFFSETS)  # checks it
    by_column = is_by_column(nonlinearity, loss, observations.labels)
    may_have_units = is_table and is_auto(nonlinearity) and options.compute.device is None
    may_have_units = may_have_units and not (by_column or is_auto(loss))
    asks = observations.is_small_table and observations.n_observed < math.prod(shape)
    facts = facts_of(observations, by_column=by_column or may_have_units or asks)
    by_column = by_column or (may_have_units and has_units(observations, facts, as_loss(loss)))
    likely = "frobenius" if is_auto(loss) and not by_column else loss
    if by_column:
        model = mixed_model(nonlinearity, likely, observations)
    else:
        model = model_for(nonlinearity, likely, facts.range, facts.labels.valid_range)
        model = with_data(model, observations, centred=True) if model.takes_data else model
    f, d = model.shown
    size = check_size("X", max(map(abs, facts.range)), observations.dtype)
    if not by_column:  # None is to be chosen
        f, d = None if is_auto(nonlinearity) else f, None if is_auto(loss) else d
        if not model.only.structure.is_ours:
            first, _ = next(iter(observations.observed_blocks()))
            refuse_wrong_parts(model.nonlinearity, model.loss, first)
    limits = LimitModel()
    if observations.limits is not None:
        noise = options.solver.limit_noise
        sd = math.nan if isinstance(noise, str) else float(noise)  # which is to be estimated
        limits = LimitModel(smallest_value(facts.range[0]), sd)
    on_observed = observed_only(shape, facts.n_observed, options.solver.split)
    found = DataSummary(observations, facts, model, f, d, rank, limits, size, on_observed)
    alpha, is_open = None if is_auto(options.alpha) else options.alpha, found.is_open(options)
    losses = [kind.loss for kind in model.column_models]
    options.validation.refuse_unsuitable(rank, alpha, shape, losses, is_open=is_open)
    return found


def has_units(observations: Observations, facts: Facts, loss: Loss) -> bool:
    """Return whether the columns of a DataFrame of numbers have units of their own.

    They have, but where many zeros or values at both ends suggest that all have one unit, in which
    ReLU or MinMax may suit them, or where there are limits, whose noise several kinds do not have;
    there, and for losses other than squares, only if the units are apart.
    """
    if not (facts.is_small_table and measures_distance(loss)):
        return False
    plain = loss.squares and not facts.is_limited
    plain = plain and len(suitable_functions(observations)) == 1
    return plain or units_of_columns(facts) is not None


def refuse_wrong_parts(f: Nonlinearity, d: Loss, data: FloatArray) -> None:
    """Raise ValueError if a check fails near some values, with the object and the input."""
    rng, n = np.random.default_rng(0), 200  # inputs of each check
    x = np.asarray(rng.choice(data, n), dtype=np.float64)
    rho = 10.0 ** rng.uniform(-2, 2, n)
    noise = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 0, n)
    v = np.asarray(f.pseudo_inverse(x), dtype=np.float64) + noise * (1.0 + 0.1 * float(np.std(x)))
    if not is_ours(type(d)):
        few, y = np.unique(x)[:: max(1, n // 20)], np.unique(x + np.abs(noise))[::10]
        y = y[(y > d.domain[0]) & (y < d.domain[1])]
        centre = x + noise * (1.0 + 0.1 * np.abs(x))
        tried = checks.checks_of_loss(d, x, few, y, centre, rho)
        report_of(d, tried).raise_for_failure()
    if not is_ours(type(f)):
        report_of(f, checks_of_nonlinearity(f, v)).raise_for_failure()
    subject = f if is_ours(type(d)) else d
    check = (checks.MINIMISER, lambda: checks.t_update_is_minimiser(f, d, x, v, rho))
    report_of(subject, [check]).raise_for_failure()


class Decided(NamedTuple):
    """A checked problem with all that `solve` needs.

    Attributes
    ----------
    options : Options
        What was asked for, with the rank and what else was chosen in place of "auto".
    summary : DataSummary
        Data to fit, in the units of X, and what the choice found.
    problem : Problem
        Problem to solve, with its model.
    starts : iterator of Start
        Starting points, each computed when it is requested.
    plan : RefinementPlan
        Refinements to run between the iterations of Algorithm 1.
    held_out : HeldOut or None
        Held-out entries for early stopping; None without validation.
    state : FitState
        Where the fit stands.
    save : callable
        Function that writes the state from time to time, if it is asked before each iteration.
    """

    options: Options
    summary: DataSummary
    problem: Problem
    starts: Iterator[Start]
    plan: RefinementPlan
    held_out: Any
    state: FitState
    save: Callable[[], None]

    @property
    def outside(self) -> str:
        """Sentence on values of X outside the range of f, empty if there is nothing to say."""
        model = self.problem.units.model
        if model.fits_exactly and goes_beyond(model.nonlinearity, self.summary.facts.range):
            return out_of_bounds(self.problem)
        return ""

    @property
    def after_choice(self) -> Options:
        """The options with what the choice left of the time limit."""
        limit = self.options.time_limit
        if limit is None:
            return self.options
        return replace(self.options, time_limit=max(limit - self.summary.spent, 0.0))

    @property
    def rules(self) -> Stopping:
        """Rules that end the run from its first start."""
        options = self.after_choice
        rules: Any = options.callback, options.tol, options.solver.patience, self.plan.window
        return Stopping(options.max_iter, options.time_limit, *rules)


def formulate(summary: DataSummary, options: Options) -> tuple[Problem, RefinementPlan]:
    """Return problem and refinements, if the fit would fit into memory."""
    scaling = scaling_for(summary.model.with_limits(summary.limits), summary.size)
    problem = make_problem(summary.observations, scaling, options, summary.observed_only)
    plan = make_plan(problem, options.rank, options)
    if not problem.observations.remote:  # workers have memory of their own
        needed = needed_memory(problem, options.rank, options, plan)
        remedy = ROWS if problem.observations.scratch is None else SMALLER
        fit = f"a fit of X of shape {problem.observations.shape}"
        refuse_above(needed, fit, remedy, options.compute.memory_limit)
    return problem, plan


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
            refuse_above(three, f"a fit of X of shape {observations.shape}", ROWS)  # X, T and U
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
    rule = plain.penalty_rule(options.solver.rho, options.solver.initial_rho)
    problem = with_offsets(plain, options.offsets, options.offset_alpha).changed(rule=rule)
    if any(options.factor_constraints):
        return _with_constraints(problem, options)
    return problem


def with_offsets(problem: Problem, kind: str, alpha: float) -> Problem:
    """Return the problem with a kind of offsets, and their ridge in the units of X."""
    mean, one = 0.0 if kind == "none" else problem.mean_of_T, problem.units.ones
    ridge = problem.units.scaled_offset_alpha(alpha, one)
    return problem.changed(offset_columns=OffsetColumns(kind, mean, one), offset_alpha=ridge)


def _with_constraints(problem: Problem, options: Options) -> Problem:
    """Return the problem with the constraints of the options."""
    units, rule = problem.units, problem.rule
    constraints = GivenConstraints.of(
        options.factor_constraints,
        options.alpha,
        problem.observations.shape,
        natural=math.ldexp(problem.penalty_scale, units.log2_unit_of_penalty),
        # A usual component has half of ‖T‖.
        size=math.ldexp(0.5 * problem.norm_of_initial_T, 2 * units.exponent),
    )
    model, weights = problem.model, problem.observations.weight_reader()
    plain = weights is None or weights.dtype == bool
    free = options.solver.rho == "auto" and options.solver.initial_rho is None
    if free and plain and model.is_least_squares:
        rule = as_penalty_rule(1.0)  # then Z = X at observed entries: alternating minimisation
    return problem.changed(rule=rule, constraints=constraints)


def observed_only(shape: tuple[int, int], n_observed: int, split: str) -> bool:
    """Return whether T = WH is imposed on the observed entries alone."""
    few = n_observed < 1 / 3 * shape[0] * shape[1]
    return split == "observed" or (split == "auto" and few)


def needed_memory(problem: Problem, rank: int, options: Options, plan: RefinementPlan) -> int:
    """Return the bytes that a fit allocates in addition to its data."""
    observations, on_disk = problem.observations, problem.observations.scratch is not None
    init = options.init if isinstance(options.init, str) else "random"
    size, zeros = observations.dtype.itemsize, plan.engine == "implicit zeros"
    width = rank + problem.offset_columns.width
    stored = observations.values.size if zeros else observations.n_stored
    stored = 0 if on_disk and not zeros else stored  # or they lie in files
    factors = sum(observations.shape) * width
    # T and U; S, its values by columns and two patterns, or the WH before; a refinement's, or the
    # positions in tiles and what sorts them
    arrays = 2 + (3 if problem.observed_only else problem.sparse) + bool(plan)
    vectors = 8
    if plan or zeros:
        vectors += 2 * pairs_for(factors) + 12
        if memory_allows(factors * width, stored):
            vectors += 2 * width  # the preconditioner
    block = BLOCK if zeros else min(BLOCK, stored)
    numbers = arrays * stored + vectors * factors + 2 * block * max(problem.threads, 1)
    needed = numbers * size + (32 * stored if zeros else 0)
    if init == "random" or on_disk:
        return needed
    # the first start is computed before T and U are there
    is_sparse = observations.pattern is not None or observations.absent_are_zeros
    n_sparse = observations.values.size if is_sparse else None
    kind = "randomized" if zeros else init.replace("auto", "svd")
    return max(needed, svd_memory(observations.shape, size, n_sparse, rank, kind))


ROWS = "give {share:.0%} of its rows, dtype='float32' or a memmap"
SMALLER = "give a smaller rank, or n_init=1"
