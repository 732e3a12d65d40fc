"""The chains of a posterior: their start, their run, and the draws that they keep.

A chain begins at singular vectors, at a short fit, at a given fit, or at the columns (`ensemble`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import is_auto, many, new_stream
from nmd_lab._runtime.machine import all_threads, in_threads
from nmd_lab._runtime.progress import Interruption, StopReason, progress_bar
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.folds import missing_in_runs, some_rows
from nmd_lab.data.observations import Observations
from nmd_lab.fit.loop import Stopping
from nmd_lab.fit.starts import first_start
from nmd_lab.fit.summary import make_problem
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.model.model import make_model
from nmd_lab.problem.initialization import Start, svd_start
from nmd_lab.request.options import Options, SampleOptions

from .chain import (
    ChainState,
    Draw,
    first_season,
    first_T,
    linear_at,
    new_state,
    one_sweep,
    unhide_cells,
)
from .ensemble import COLUMNS, RARE, Ensemble, Member, Size, make_ensemble
from .problem import SampledProblem

N_PROBES = 200
"""Number of entries whose predictions are recorded."""


class Sweep(NamedTuple):
    """State of a chain after a sweep, for a callback.

    Attributes
    ----------
    chain, sweep, total : int
        Number of the chain, from 0, of its sweep, from 1, and number of sweeps of a chain.
    tuning : bool
        Whether the sweep belongs to the tuning.
    log_likelihood : float
        Log-likelihood, up to a constant.
    seconds : float
        Time since the start.
    """

    chain: int
    sweep: int
    total: int
    tuning: bool
    log_likelihood: float
    seconds: float


@dataclass
class PosteriorState:
    """Where a posterior stands.

    Attributes
    ----------
    rng : Generator
        Random numbers, as they were before the first chain.
    members : list of Member
        Members of the present chain that have begun.
    iteration, seconds : int, float
        Recorded sweeps of all chains, and their time.
    draws : list of list of dict
        Draws of each chain.
    log_likelihood, products : list of list
        Log-likelihood, and WH with offsets at the probes, of each chain after each sweep that
        counts.
    """

    rng: np.random.Generator
    members: list[Member] = field(default_factory=list)
    iteration: int = 0
    seconds: float = 0.0
    draws: list[list[Draw]] = field(default_factory=list)
    log_likelihood: list[list[float]] = field(default_factory=list)
    products: list[list[FloatArray]] = field(default_factory=list)


@dataclass
class Chains:
    """The chains of a posterior, one after the other; each is an ensemble of one or more."""

    ensemble: Ensemble
    options: SampleOptions
    state: PosteriorState
    rng: np.random.Generator

    def __post_init__(self) -> None:
        """Choose the random numbers of each chain, and the entries whose predictions are kept."""
        ensemble, problem = self.ensemble, self.ensemble.problem
        self._streams = [new_stream(self.rng) for _ in range(self.options.chains)]
        self._warm_up, self._thin = ensemble.warm_up, self.options.step(problem.numbers)
        probes = np.random.default_rng(0)
        self._probes = tuple(probes.integers(size, size=N_PROBES) for size in problem.shape)
        self._began = time.perf_counter() - self.state.seconds

    def run(
        self, interruption: Interruption, before_each_turn: Callable[[], None]
    ) -> tuple[dict[str, Any], StopReason]:
        """Run the chains, and return the arrays of those that were begun, in the units of X."""
        run, options = self.state, self.options
        total = options.chains * (self._warm_up + options.draws)
        rules = Stopping(total, options.time_limit, options.callback)
        reason: StopReason | None = None
        with progress_bar(total, options.progress, done=run.iteration, unit="sweep") as show:
            while reason is None:
                before_each_turn()
                for sweep in self._turn():
                    reason = rules.reason(sweep, run.iteration)
                    show(f"log-likelihood {sweep.log_likelihood:.4g}")
                    interruption.begin()
                    if reason is None and interruption:
                        reason = interruption.reason(run.iteration)
                    if reason is not None:
                        break
        if reason.code == "max_iter":
            text = f"draws: {many(options.draws, 'sweep')} done after {self._warm_up} for tuning"
            reason = StopReason("draws", text)
        if interruption and not interruption.reported:
            reason = interruption.reason(run.iteration)
        return self._in_units_of_X(self._draws()), reason

    def _turn(self) -> Iterator[Sweep]:
        """Do the next sweeps of several members at a time, and yield each when it is recorded."""
        run, ensemble = self.state, self.ensemble
        total = self._warm_up + self.options.draws
        number, before = divmod(run.iteration, total)
        if before == 0:
            run.members = []
            for each in (run.draws, run.log_likelihood, run.products):
                each.append([])
        tunes = before < ensemble.all_tuned
        if before == ensemble.all_tuned and ensemble.hidden is not None:
            ensemble.weigh(run.members)
        turns = ensemble.turns(before, run.members)
        for k in range(len(run.members), max(turns) + 1):
            run.members.append(self._begin(k, self._streams[number]))
        problems = ensemble.trials if tunes else ensemble.problems
        threads = min(self.options.compute.threads or all_threads(), len(turns))
        in_threads(lambda k: one_sweep(problems[k], run.members[k].state), turns, threads)
        for sweep, k in enumerate(turns, before):
            member, warms_up = run.members[k], sweep < self._warm_up
            if tunes:
                ensemble.score(sweep, k, member)
            run.iteration += 1
            if not warms_up:
                self._record(k, member, sweep + 1 - self._warm_up)
            run.seconds = time.perf_counter() - self._began
            log_likelihood = member.state.log_likelihood
            yield Sweep(number, sweep + 1, total, warms_up, log_likelihood, run.seconds)

    def _begin(self, k: int, rng: np.random.Generator) -> Member:
        """Return a member of the present chain before its first sweep."""
        ensemble = self.ensemble
        if k:
            rng = np.random.default_rng([self.state.members[0].state.seed, k])
        init = ensemble.init(k, self.options.init)
        start, size = (ensemble.trials[k], ensemble.observations, init, rng), ensemble.sizes[k]
        more: Any = {"tuning": ensemble.tuned, "n_groups": size.groups, "in_order": size.in_order}
        return ensemble.member(first_chain(*start, **more))

    def _record(self, k: int, member: Member, number: int) -> None:
        """Record a sweep of a member; `number` counts from 1 after the warm-up."""
        run, ensemble = self.state, self.ensemble
        run.log_likelihood[-1].append(member.state.log_likelihood)
        state = ensemble.in_form(k, member.state)
        run.products[-1].append(linear_at(ensemble.problem, state, *self._probes))
        if number % self._thin == 0:
            run.draws[-1].append(ensemble.draw(k, state, member))

    def _draws(self) -> dict[str, Any]:
        """Return the arrays of all draws; of a chain without any the last state.

        A chain that ended early is left out if the others lose more by it.
        """
        run, n_chains = self.state, len(self.state.draws)
        if not run.draws[-1]:
            ensemble, k = self.ensemble, len(run.members) - 1
            member = run.members[k]
            state = ensemble.in_form(k, unhide_cells(ensemble.problems[k], member.state))
            run.draws[-1].append(ensemble.draw(k, state, member))
        lengths = [len(chain) for chain in run.draws]
        if n_chains > 1 and (n_chains - 1) * min(lengths[:-1]) > n_chains * lengths[-1]:
            n_chains -= 1
        fewest = min(lengths[:n_chains])
        chains = [chain[-fewest:] for chain in run.draws[:n_chains]]
        arrays: dict[str, Any] = {
            name: np.stack([np.stack([draw[name] for draw in chain]) for chain in chains])
            for name in chains[0][0]
        }
        sweeps = min(map(len, run.log_likelihood[:n_chains]))
        log_likelihood, products = (
            np.array([chain[:sweeps] for chain in trace[:n_chains]])
            for trace in (run.log_likelihood, run.products)
        )
        products = products.reshape(n_chains, sweeps, N_PROBES)
        predictions = self.ensemble.problem.model.modelled(products, *self._probes)
        return arrays | {
            "log_likelihood": log_likelihood,
            "predictions": predictions.astype(np.float32),
            "probe_rows": self._probes[0],
            "probe_columns": self._probes[1],
        }

    def _in_units_of_X(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return the arrays of a `Posterior`, in the units of X, given those of the chains."""
        problem = self.ensemble.problem
        rank, scaling = problem.rank, problem.scaling
        of_T = 2 * scaling.exponent
        # In float32 the units of very large or small data would overflow.
        dtype = np.float32 if abs(of_T) < 60 else np.float64

        def scaled(array: NDArray[Any], exponent: int) -> NDArray[Any]:
            return np.ldexp(array.astype(dtype, copy=False), exponent) if exponent else array

        rows, columns = arrays.pop("rows"), arrays.pop("columns")
        has_offset = problem.offset_columns.before
        units = np.ldexp(1.0, np.repeat([scaling.exponent, of_T], [rank, has_offset]))
        has_beta = problem.noise_levels[3].any()
        power = problem.model.column_models[0].loss.noise_model.power  # several have no exponent
        levels: dict[str, Any] = {
            "rho": np.ldexp(arrays["rho"], -2 * of_T),
            "beta": np.ldexp(arrays["beta"], -power * scaling.log2_unit_of_x) if has_beta else None,
            "cut_points": arrays.get("cut_points"),
        }
        if not problem.model.is_mixed:
            levels = {name: None if a is None else a[:, :, 0] for name, a in levels.items()}
        arrays |= levels | {
            "W": scaled(rows[..., :rank], scaling.exponent),
            "H": scaled(columns[..., :rank], scaling.exponent),
            "mean": math.ldexp(problem.offset_columns.mean, of_T),
            "row_mean": arrays.pop("row_means") * units,
            "row_precision": arrays.pop("row_precisions") / np.outer(units, units),
            "predictions": np.ldexp(arrays["predictions"].astype(dtype), scaling.log2_unit_of_x),
        }
        if "season" in arrays:
            arrays["season"] = scaled(arrays["season"], of_T)
        if has_offset:
            arrays["row_offsets"] = scaled(rows[..., rank], of_T)
        if problem.offset_columns.after:
            arrays["column_offsets"] = scaled(columns[..., rank], of_T)
        return arrays


def first_chain(
    problem: SampledProblem, data: Observations, init: Any, rng: np.random.Generator, **more: Any
) -> ChainState:
    """Return the state of a chain before its first sweep; `init` is a name or a fit.

    `more` is what else `new_state` takes.
    """
    seed, is_name = int(rng.integers(2**62)), isinstance(init, str)
    factors = _first_factors(problem, data, init if is_name else "random", rng)
    if not is_name:
        _take_fit(problem, init, *factors)
    state = new_state(problem, *factors, seed=seed, **more)
    if state.in_order:
        _to_unit_variance(problem, *factors)
        if problem.order is not None and problem.order.period:
            state.season = first_season(problem, state.T)
    if is_name and init == COLUMNS:
        state.rho[:] = 1000 / problem.prior.spread**2  # nearly all of T is WH
    return state


def _to_unit_variance(problem: SampledProblem, rows: FloatArray, columns: FloatArray) -> None:
    """Make the components of the rows as large as their prior says; the product stays the same."""
    rank = problem.rank
    sizes = np.sqrt(np.mean(np.square(rows[:, :rank]), axis=0)) / problem.units[0][:rank]
    sizes[sizes == 0] = 1.0
    rows[:, :rank] /= sizes
    columns[:, :rank] *= sizes


def _take_fit(problem: SampledProblem, fit: Any, rows: FloatArray, columns: FloatArray) -> None:
    """Put factors and offsets of a fit into vectors of rows and columns."""
    (m, n), rank, (W, H) = problem.shape, problem.rank, fit._factors
    start = problem.scaling.scaled_start(Start(W, H, True, fit.offsets))
    rest = start.offsets.mean - problem.offset_columns.mean
    of_rows, of_columns = start.offsets.of_rows(m, float), start.offsets.of_columns(n, float)
    for vectors, factor, offsets in ((rows, start.W, of_rows), (columns, start.H.T, of_columns)):
        vectors[:, :rank] = factor
        if vectors.shape[1] > rank:
            vectors[:, rank], rest = offsets + rest, 0.0


def _first_factors(
    problem: SampledProblem, observations: Observations, init: str, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the vectors of rows and columns with which a chain begins; offsets are zero."""
    (m, n), rank, dtype = problem.shape, problem.rank, problem.dtype
    few = 3 * problem.storage.n_entries < m * n
    if init == "auto":
        init = "fit" if problem.model.even else "svd"
    units = problem.units
    rows, columns = np.zeros((m, units[0].size), dtype), np.zeros((n, units[1].size), dtype)
    if init == "random":
        for vectors, unit in zip((rows, columns), units, strict=True):
            vectors[:] = 0.1 * unit * rng.standard_normal(vectors.shape)
        return rows, columns
    if init == COLUMNS:
        rows[problem.observations.rows, problem.storage.indices] = first_T(problem)
        columns[:, :n] = np.eye(n)
        return rows, columns
    if init == "svd":
        T = problem.observations.with_stored(first_T(problem))
        of_columns = np.zeros(n) if problem.offset_columns.after else None
        offsets = Offsets(problem.offset_columns.mean, None, of_columns)
        identity = make_model("identity", "frobenius")
        start = svd_start(T, identity, rank, offsets, rng, "randomized")
        # Of few data with many missing cells, a chain leaves small components faster than large
        # ones that have fitted noise; with many data it is the other way round.
        size = 0.3 if few and problem.storage.n_entries < 1 << 18 else 1.0
    else:
        options, of_X, size = Options(random_state=rng).settled(), problem.scaling, 1.0
        fit = make_problem(observations, of_X, options, observed_only=few)
        start = first_start(fit, rank, options, rng)
    rows[:, :rank], columns[:, :rank] = size * start.W, size * start.H.T
    return rows, columns


SIZES = tuple(map(Size, (1, 8, 30, 8, 30, 8, 30)))
"""Sizes of the members."""

FULL, FACTORS = (tuple(Size(groups, is_full) for groups in (8, 30)) for is_full in (True, False))
SIZES_WITH_FULL = FULL[0], *FACTORS, *FULL, *FACTORS[::-1]
"""Sizes of the members where some may be of full rank."""

MIN_MEMBERS, DRAWS_OF_A_MEMBER = 3, 40
"""Number of members for few draws or a large X, and of draws for each of more members."""

MIN_RANK_OF_TWO = 4
"""Rank from which rows of an array in order that have gaps have a member of fewer components."""

MIN_ROWS_OF_A_GROUP = 6
"""Smallest number of rows for each group."""

MAX_CELLS = 250_000
"""Cells of X up to which members are tuned with all of its rows."""

MIN_ROWS = 1000
"""Rows with which they are tuned at least, however many columns there are."""


def ensemble_for(
    problem: SampledProblem,
    observations: Observations,
    options: SampleOptions,
    rng: np.random.Generator,
    *,
    is_table: bool = True,
) -> Ensemble:
    """Return the members of a chain; those of a large X are tuned with some of its rows.

    An array in order has one member, or two.  Some of a table may be of full rank if nothing was
    asked that speaks against it.  Limits, and other noise than the normal one, have no form as
    numbers.
    """
    m, few = problem.shape[0], observations
    largest = m // MIN_ROWS_OF_A_GROUP
    order = problem.order
    is_alone = order is not None and not is_table
    if not (is_auto(options.groups) and problem.model.is_mixed and largest >= 2) or is_alone:
        groups = 1 if is_auto(options.groups) else int(options.groups)
        sizes: tuple[Size, ...] = (Size(groups, in_order=order is not None),)
        has_two = is_alone and is_auto(options.rank) and problem.rank >= MIN_RANK_OF_TWO
        if order is not None and has_two and missing_in_runs(observations, order.sequence):
            sizes = *sizes, Size(groups, in_order=True, is_small=True)
        return make_ensemble(problem, observations, observations, options, sizes, rng)
    was_asked = not (is_auto(options.rank) and is_auto(options.init))
    is_normal = not problem.is_limited and "after" not in problem.noises
    may_be_full = is_normal and not was_asked and not problem.offset_columns.before
    all_sizes = SIZES_WITH_FULL if may_be_full else SIZES
    number = max(MIN_MEMBERS, options.draws // DRAWS_OF_A_MEMBER)
    if observations.n_observed > MAX_CELLS and isinstance(options.init, str) and order is None:
        rows = max(MAX_CELLS * m // observations.n_observed, MIN_ROWS)
        rare = _rows_of_rare_levels(problem, rows / m)
        number, few = MIN_MEMBERS, some_rows(observations, rows, rng, rare)
        largest = few.shape[0] // MIN_ROWS_OF_A_GROUP
    sizes = tuple(size._replace(groups=min(size.groups, largest)) for size in all_sizes[:number])
    if order is not None:
        sizes += tuple(Size(1, each, in_order=True) for each in {False, may_be_full})
    return make_ensemble(problem, observations, few, options, sizes, rng)


def _rows_of_rare_levels(problem: SampledProblem, share: float) -> NDArray[np.intp]:
    """Return rows to keep so that rare levels stay among the rows that tune a chain.

    The cut point next to a level without cells would drift.
    """
    found = [np.empty(0, np.intp)]
    for levels, at in zip(problem.levels, problem.entries_of_kinds, strict=True):
        if levels is not None:
            for level in np.flatnonzero(levels.counts * share < 2 * RARE):
                entries = at[levels.first_of(int(level), RARE)]
                found.append(problem.observations.rows[entries])
    return np.unique(np.concatenate(found))
