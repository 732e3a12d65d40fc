"""The problem of a posterior, from data and arguments; whether groups of rows predict better.

Two short chains, with groups and without, predict cells that are hidden from both.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from nmd_lab._runtime.checks import check_rank, check_size, is_auto
from nmd_lab._runtime.machine import all_threads
from nmd_lab._runtime.progress import Interruption
from nmd_lab.data.entries import FloatArray, Transform
from nmd_lab.data.labels import Labels
from nmd_lab.data.masks import AT_MOST
from nmd_lab.data.observations import Observations
from nmd_lab.data.split import some_rows, split
from nmd_lab.data.units import units_of_groups
from nmd_lab.model.censored import expected_value
from nmd_lab.model.loss import Loss
from nmd_lab.model.mixed import each_group
from nmd_lab.model.model import Model
from nmd_lab.solver.limit_noise import smallest_value
from nmd_lab.solver.options import SampleOptions
from nmd_lab.solver.scaling import Scaling, scaling_for

from .chain import Chain
from .cut_points import ends_in_rows
from .latent_draws import DRAWS_OF_X, SampledLimits
from .latent_sweep import ChainState
from .priors import Prior
from .problem import SampledProblem
from .run import first_chain
from .sampled_model import NoiseKind, has_noise_by_column, noises_of, sampled_model

RANK = 20
"""Upper bound for the rank, if none is given."""

GROUPS = 8
"""Upper bound for the number of groups of rows in a table."""

ROWS_OF_A_GROUP = 20
"""Smallest number of rows for each of these groups."""

MOST_PRECISE = 1e4
"""Largest precision of T of a column in units of its variance, for near copies."""


def prepare_sample(
    observations: Observations, options: SampleOptions, *, is_table: bool = False
) -> SampledProblem:
    """Return the problem of checked arguments; see `nmd_lab.sample`."""
    rank, (smallest, largest) = options.rank, observations.range()
    if is_auto(rank):
        rank = _largest_rank(observations.shape, observations.labels)
    rank = check_rank(rank, observations.shape)
    size = check_size("X", max(-smallest, largest), observations.dtype)
    by_column = has_noise_by_column(observations, options, is_table=is_table)
    model = sampled_model(observations, options, by_column=by_column, is_table=is_table)
    noises = noises_of(options.noise, model, observations)
    return _problem(
        observations, options, rank, scaling_for(model, size), noises, by_column=by_column
    )


def _largest_rank(shape: tuple[int, int], labels: Labels) -> int:
    """Return an upper bound for the rank: components that nothing speaks for stay small."""
    columns = shape[1]
    if labels.table is not None:
        widths = (len(c.categories) if c.kind == "values" else 1 for c in labels.table.columns)
        columns = sum(widths)
    return max(1, min(shape[0], columns - 1, RANK))


def _problem(
    observations: Observations,
    options: SampleOptions,
    rank: int,
    scaling: Scaling,
    noises: tuple[NoiseKind, ...],
    *,
    by_column: bool,
) -> SampledProblem:
    """Return the problem of some observations, in the units of the sampler."""
    observations, model = scaling.scaled_observations(observations), scaling.scaled_model()
    complete = observations.weights is None and observations.pattern is None
    n_groups = _n_groups(options.groups, observations.shape[0], by_column=by_column)
    by_entry = by_column or n_groups > 1
    stored = observations if complete and not by_entry else observations.as_sparse()
    offsets = options.offsets
    if offsets == "auto":
        offsets = "columns" if by_column else "none" if model.even else "both"
    mean = mean_of_T = 0.0
    if by_column:
        _, columns, x = stored.entries()
        spreads = units_of_groups(columns, x, stored.shape[1]).deviation
        prior = Prior(1.0, spreads, most_precise=MOST_PRECISE)
    elif noises[0] == "ordinal":
        prior = Prior(1.0, 1.0)
    else:
        mean_of_T = _mean(stored, model.pseudo_inverse)
        mean = 0.0 if offsets == "none" else mean_of_T
        prior = _prior(stored, model, mean)
    problem = SampledProblem(
        observations=stored,
        threads=options.compute.threads or all_threads(),
        model=model,
        noises=noises,
        rank=rank,
        row_offsets=offsets in ("rows", "both"),
        column_offsets=offsets in ("columns", "both"),
        mean=mean,
        prior=prior,
        mean_of_T=mean_of_T,
        n_groups=n_groups,
        by_column=by_column,
        scaling=scaling,
    )
    if stored.limits is None:
        return problem
    return replace(problem, limits=_limits(problem))


def _n_groups(wanted: Any, m: int, *, by_column: bool) -> int:
    """Return the upper bound for the number of groups of m rows."""
    if not is_auto(wanted):
        return int(wanted)
    return max(1, min(GROUPS, m // ROWS_OF_A_GROUP)) if by_column else 1


def _limits(problem: SampledProblem) -> SampledLimits:
    """Return the limits of the entries of a problem; those of ordered levels are positions."""
    stored = problem.observations
    limits = stored.limit_reader()
    assert limits is not None
    weighted = stored.weights is not None and stored.weights.dtype != bool
    smallest = -math.inf if problem.by_column else smallest_value(stored)
    x = np.asarray(stored.values, dtype=np.float64).ravel()
    low, high = np.zeros((2, x.size))
    kinds = zip(problem.model.kinds, problem.noises, problem.entries_of_kinds, strict=True)
    for kind, noise, at in kinds:
        loss, codes = kind.loss, limits.codes[at]
        if noise == "after":
            _refuse_limits(loss, weighted=weighted)
        low[at], high[at] = limits.at(at).ends(x[at], max(smallest, loss.domain[0]))
        if loss.classes == "ordered":
            first = np.searchsorted(loss.level_values, low[at])
            low[at] = np.where(codes == AT_MOST, 0, first)
            high[at] = np.searchsorted(loss.level_values, high[at], side="right") - 1
    return SampledLimits(limits.codes != 0, low, high)


def _refuse_limits(loss: Loss, *, weighted: bool) -> None:
    """Raise ValueError if x with the noise of a loss cannot be drawn within limits."""
    noise = loss.noise_model
    if noise not in DRAWS_OF_X or (not noise.shape and weighted):
        words = " with weights" if noise in DRAWS_OF_X else ""
        raise ValueError(
            f"at_most= and at_least= do not go with loss={loss.name!r}{words} in sample(): "
            "use loss='frobenius', 'l1' or 'kl', or complete()."
        )


def _mean(stored: Observations, transform: Transform) -> float:
    """Return the mean of transform(X) over the stored entries."""
    return float(stored.row_sums(transform).sum()) / stored.n_stored


def _prior(stored: Observations, model: Model, mean: float) -> Prior:
    """Return the scales of the priors for T around a global offset."""

    def spread(transform: Transform, centre: float) -> float:
        squares = _mean(stored, lambda x: np.square(transform(x).astype(np.float64) - centre))
        return math.sqrt(squares)

    around = spread(model.pseudo_inverse, mean)
    spread_of_X = spread(lambda x: x, _mean(stored, lambda x: x))
    largest = max(map(abs, stored.range()))
    return Prior(around or abs(mean) or 1.0, spread_of_X or largest or 1.0)


SHARE = 0.1
"""Share of the observed cells that are hidden from both chains."""

TUNE, DRAWS = 40, 40
"""Sweeps of each chain before those whose predictions are averaged, and number of these."""

ROWS, CELLS = 400, 40_000
"""Number of rows of the chains at most: as many as hold these cells, but at least these rows."""

SHARE_OF_TIME = 0.1
"""Share of a time limit that each chain may take."""


def choose_groups(
    problem: SampledProblem,
    observations: Observations,
    options: SampleOptions,
    rng: np.random.Generator,
    interruption: Interruption,
) -> SampledProblem:
    """Return a problem without its groups if hidden cells are predicted worse with them.

    Worse are larger squared errors, by more than their standard error over the hidden cells.
    """
    if options.groups != "auto" or problem.n_groups == 1:
        return problem
    most = max(ROWS, CELLS // problem.shape[1])
    observed, hidden = split(some_rows(observations, most, rng), SHARE, rng)
    seconds = SHARE_OF_TIME * (math.inf if options.time_limit is None else options.time_limit)
    seed, by_column = int(rng.integers(2**62)), problem.by_column
    rank, scaling, noises = problem.rank, problem.units_of_X, problem.noises
    trial = _problem(observed, options, rank, scaling, noises, by_column=by_column)
    without, within = (
        _errors(replace(trial, n_groups=groups), observed, hidden, seed, seconds, interruption)
        for groups in (1, problem.n_groups)
    )
    worse = within - without
    hurts = worse.sum() > worse.std() * np.sqrt(worse.size)
    return replace(problem, n_groups=1) if hurts else problem


def _errors(
    problem: SampledProblem,
    observed: Observations,
    hidden: Observations,
    seed: int,
    seconds: float,
    interruption: Interruption,
) -> NDArray[np.float64]:
    """Return the squared error at each hidden entry, in units of the variance of its column."""
    engine = Chain()
    *at, x = problem.units_of_X.scaled_observations(hidden).entries()
    rows, columns = (each.astype(np.intp) for each in at)
    rng, began = np.random.default_rng(seed), time.perf_counter()
    state = first_chain(problem, observed, "auto", TUNE, rng)
    total, count = np.zeros(x.size), 0
    for sweep in range(TUNE + DRAWS):
        state = engine.step(problem, state)
        if sweep >= TUNE:
            total += _expected_at(problem, state, rows, columns)
            count += 1
        if interruption or time.perf_counter() - began > seconds:
            break
    errors: NDArray[np.float64] = np.square(
        (total / max(count, 1) - x) / problem.prior.spreads_of_X[columns]
    )
    return errors


def _expected_at(
    problem: SampledProblem,
    state: ChainState,
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Return the expected X at some entries of a table, given W and H."""
    products = problem.at(state.rows, state.columns, rows, columns).astype(np.float64)
    value = np.empty(products.size)
    for _, at in each_group(_first_alike(problem)[columns], problem.shape[1]):
        value[at] = _expected(problem, state, columns[at], products[at])
    return value


def _first_alike(problem: SampledProblem) -> NDArray[np.intp]:
    """Return the first column with the same levels for each column; a number has itself."""
    first: dict[Any, int] = {}
    kinds = enumerate(problem.model.kinds)
    keys = [
        np.asarray(k.loss.level_values).tobytes() if k.loss.classes == "ordered" else j
        for j, k in kinds
    ]
    return np.array([first.setdefault(key, j) for j, key in enumerate(keys)])


def _expected(
    problem: SampledProblem,
    state: ChainState,
    kinds: NDArray[np.intp],
    WH: FloatArray,
) -> FloatArray:
    """Return the expected X, given WH with offsets, of a kind, or of several of the same levels."""
    k = int(kinds[0])
    kind, noise = problem.model.kinds[k], problem.noises[k]
    v: FloatArray = kind.centre + kind.size * WH
    if noise == "gaussian":
        return v
    if kind.loss.classes == "ordered":
        used, which = np.unique(kinds, return_inverse=True)
        ends = ends_in_rows([state.cuts[each] for each in used])[which]
        above = ndtr(v[:, None] - ends[:, 1:-1])  # probabilities of the levels above a cut point
        expected: FloatArray = kind.loss.level_values[0] + above @ np.diff(kind.loss.level_values)
        return expected
    rho = state.rho[problem.levels_of(k)] / kind.size**2
    return expected_value(kind.nonlinearity, v, 1 / np.sqrt(rho))
