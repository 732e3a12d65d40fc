"""An ensemble of chains with different numbers of groups of rows, weighed by stacking.

Chains with groups find different groupings, each at a mode of its own.  The mean of several of them
predicts better than each, and depends less on the seed.  Each chain is a member of the ensemble:

1. The members are tuned while a tenth of the cells is hidden, and most rows of a large table.
   Their groups are at first those of k-means of the rows of WH.  Some are of full rank.
2. The weights of the members maximise the log score of their mixture at the hidden cells
   (Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Using stacking to average Bayesian predictive
   distributions", Bayesian Analysis 13, 917-1007, 2018).  Members of one size share a weight.
3. The hidden cells say how much narrower or wider intervals are than those of the mixture,
   and how much surer probabilities.
4. The hidden cells come back.  Each member draws in proportion to its weight, so that all draws
   count the same.

A mixture of forecasts spreads more than its members need (T. Gneiting and R. Ranjan, "Combining
predictive distributions", Electronic Journal of Statistics 7, 1747-1782, 2013).  Numbers get
a spread with which the 90 % intervals of the hidden cells cover 90 %.  Probabilities of levels and
classes are raised to the power of one over a temperature (C. Guo, G. Pleiss, Y. Sun and K.
Weinberger, "On calibration of modern neural networks", ICML 2017), with which their log score is
highest.  Those of classes are first divided by their frequencies, and then multiplied by them: the
evidence of a row gets weaker or stronger, and a class without any keeps its frequency.

A chain with as many components as columns may begin at the columns: W is T, and H the identity.
Such a member is a Gaussian with a full covariance, or a mixture of them.  It knows exact relations
of columns, such as a column that is the sum of others, which a few components with a noise for each
column do not.  It takes the position of a level, or 0 and 1, for a number with normal noise.  So
does linear regression, while the other members draw T between cut points.  Each kind is ahead on
some tables.  A draw of such a member is one of the other kind with cut points half-way between the
levels, in units in which the noise is 1.  Draws of both kinds are kept in this form, with zeros for
the components that one of the other kind does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr, ndtri

from nmd_lab.data.folds import (
    first_of_cells,
    holes_depend_on_each_other,
    missing_in_runs,
    moved_holes,
    moved_runs,
    test_set,
)
from nmd_lab.data.observations import Observations
from nmd_lab.model.ordinal import interval_mass
from nmd_lab.request.options import SampleOptions

from .chain import ChainState, Draw, draw_of, first_T, linear_at, unhide_cells
from .latent_draws import first_cuts
from .problem import SampledProblem, problem_of
from .sampled_model import knows_T

COLUMNS = "columns"
"""Name of the start at the columns."""

MIN_PROBABILITY = 1e-12
"""Smallest probability of a hidden level, so that one cell does not decide."""

COVERED = 0.9
"""Fraction of the hidden numbers within the intervals that get their spread."""

HALF_WIDTH = float(ndtri((1 + COVERED) / 2))
"""Half the width of a normal interval that covers as much, in standard deviations."""

CELLS_OF_PRIOR = 100
"""Number of cells that the prior counts for, by which the spread is 1."""

MIN_SPREAD, MAX_SPREAD, MAX_SPREAD_OF_GAPS = 0.71, 1.4, 4.0
"""Limits of the spread, of cells alone and of gaps with a shape: a weighted mean of two draws can
have no smaller one."""

TEMPERATURES = np.exp(np.linspace(-1.4, 0.4, 37))
"""Temperatures among which that of each column is found."""

WIDTH, WIDTH_OF_COLUMNS = 0.35, 0.2
"""Standard deviation of the logarithm of the temperature in a prior: of the table around 1, and of
a column around the table."""

Array = NDArray[np.float64]
Positions = NDArray[np.intp]


class Scores(NamedTuple):
    """What a member, or a mixture of them, says of the hidden cells.

    Attributes
    ----------
    log_densities : ndarray (n_hidden,)
        Logarithm of the density of T, or of the probability of the level.
    below : ndarray (n_hidden,)
        Probability of a T below that of the cell.
    masses : ndarray (n_levels, K)
        Probabilities of all levels of the hidden levels; of an indicator that of its class alone.
    """

    log_densities: Array
    below: Array
    masses: Array

    def plus(self, other: Scores) -> Scores:
        """Return the sums of densities and probabilities."""
        log_densities = np.logaddexp(self.log_densities, other.log_densities)
        return Scores(log_densities, self.below + other.below, self.masses + other.masses)


class Hidden(NamedTuple):
    """Hidden cells, in the units of the problem, with T for numbers and a position for levels.

    Attributes
    ----------
    rows, columns : ndarray of int (n_hidden,)
        Positions.
    values : ndarray (n_hidden,)
        T without units, or the position of the level.
    is_level : ndarray of bool (n_hidden,)
        Whether it is a level.
    cells : ndarray of int (n_levels,)
        Number of the cell of each level; the indicators of a category are one cell.
    is_indicator : ndarray of bool (n_levels,)
        Whether it is an indicator.
    firsts : ndarray of int (n_levels,)
        Column of the matrix at which the column of the table begins.
    frequency : ndarray (n,)
        Fraction of the second level among the cells of each column of two; otherwise 1.
    """

    rows: Positions
    columns: Positions
    values: Array
    is_level: NDArray[np.bool_]
    cells: Positions
    is_indicator: NDArray[np.bool_]
    firsts: Positions
    frequency: Array

    @classmethod
    def of(cls, problem: SampledProblem, hidden: Observations) -> Hidden:
        """Return the hidden cells whose T or level is known; others are not scored."""
        stored, table = problem.scaling.scaled_observations(hidden).as_sparse(), hidden.labels.table
        here, i, j = replace(problem, observations=stored), stored.rows, stored.indices
        which, cells = problem.kinds_of(j), first_of_cells(i, j, table)
        ordered = np.array(problem.noises) == "ordinal"
        is_known = ordered | [knows_T(noise, kind.nonlinearity) for noise, kind, _ in here.kinds]
        is_level, known = ordered[which], is_known[which] & stored.exact
        values = np.where(is_level, here.values, first_T(here)).astype(np.float64)
        levels = known & is_level
        at, i, j = j[levels], i[known].astype(np.intp), j[known].astype(np.intp)
        firsts, is_indicator = np.arange(problem.shape[1]), np.zeros(problem.shape[1], bool)
        if table is not None:
            firsts = table.first_of_cell
            is_indicator = np.array([each.has_indicators for each in table.of_matrix])
        _, cell = np.unique(cells[levels], return_inverse=True)
        counts = [np.empty(0) if each is None else each.counts for each in problem.levels]
        frequency = [(c[1] + 0.5) / (c.sum() + 1) if c.size == 2 else 1.0 for c in counts]
        of_columns = np.array(frequency)[problem.kinds_of(np.arange(problem.shape[1]))]
        of_levels = cell.ravel(), is_indicator[at], firsts[at], of_columns
        return cls(i, j, values[known], is_level[known], *of_levels)

    def scores(self, problem: SampledProblem, state: ChainState) -> Scores:
        """Return what a state of a chain says of the cells."""
        v = linear_at(problem, state, self.rows, self.columns).astype(np.float64)
        rho = state.rho[problem.kinds_of(self.columns)]
        z = np.sqrt(rho) * (self.values - v)
        logs = 0.5 * np.log(rho) - 0.5 * z**2
        kinds = problem.kinds_of(self.columns[self.is_level])
        centre, size = problem.units_of_kinds[kinds].T
        ends = state.ends[kinds] - (centre + size * v[self.is_level])[:, None]
        masses = interval_mass(ends[:, :-1], ends[:, 1:])
        logs[self.is_level] = np.log(self._observed(masses) + MIN_PROBABILITY)
        return Scores(logs, ndtr(z), self._of_classes(masses))

    def _observed(self, masses: Array) -> Array:
        """Return the probabilities of the levels that are hidden."""
        codes = self.values[self.is_level].astype(np.intp)
        return np.asarray(masses[np.arange(codes.size), codes])

    def _of_classes(self, masses: Array) -> Array:
        """Return probabilities where those of the indicators of a cell add to 1."""
        at, found = self.is_indicator, masses.copy()
        if at.any():
            sums = np.bincount(self.cells[at], masses[at, 1], self.cells.max() + 1)
            found[at] = 0.0
            found[at, 1] = masses[at, 1] / np.maximum(sums[self.cells[at]], MIN_PROBABILITY)
        return found

    def calibration(self, spread: float, temperature: Array | float) -> dict[str, NDArray[Any]]:
        """Return the arrays of each draw by name; those of the mixture itself are 1."""
        each = np.broadcast_to(temperature, self.frequency.shape)
        return {"spread": np.array(spread), "temperature": each, "frequency": self.frequency}

    def spread(self, below: Array, largest: float = MAX_SPREAD) -> float:
        """Return the spread of intervals that cover their share of the numbers.

        `below` has the probability that the mixture gives to T below each cell.
        """
        if self.is_level.all():
            return 1.0
        z = np.abs(ndtri(np.clip(below[~self.is_level], MIN_PROBABILITY, 1 - MIN_PROBABILITY)))
        ratio = np.quantile(z, COVERED) / HALF_WIDTH
        return float(np.clip(ratio ** (z.size / (z.size + CELLS_OF_PRIOR)), MIN_SPREAD, largest))

    def temperatures(self, masses: Array) -> Array | float:
        """Return the temperature of each column of the matrix; `masses` are those of the mixture.

        It maximises the log score of the hidden levels and classes together with its prior, first
        of all columns, then of each.
        """
        n, codes = self.frequency.size, self.values[self.is_level]
        if not masses.size:
            return 1.0
        at = ~self.is_indicator | (codes == 1)
        second, logs = self.frequency[self.columns[self.is_level], None], np.log(TEMPERATURES)
        first = np.where(second < 1, 1 - second, 1.0)  # a high temperature leaves these references
        references = np.where(np.arange(masses.shape[1]) == 1, second, first)
        ratios = masses / references
        observed = np.log(self._observed(ratios)[at] + MIN_PROBABILITY)
        scores = np.zeros((n, TEMPERATURES.size))
        for k, temperature in enumerate(TEMPERATURES):
            powers = np.where(masses > 0, references * ratios ** (1 / temperature), 0).sum(axis=1)
            sums = np.log(np.bincount(self.cells, powers)[self.cells[at]] + MIN_PROBABILITY)
            scores[:, k] = np.bincount(self.firsts[at], observed / temperature - sums, n)
        whole = logs[np.argmax(scores.sum(axis=0) - 0.5 * (logs / WIDTH) ** 2)]
        prior = 0.5 * ((logs - whole) / WIDTH_OF_COLUMNS) ** 2
        return np.asarray(TEMPERATURES[np.argmax(scores - prior, axis=1)])


HIDDEN_SHARE = 0.1
"""Fraction of the observed cells that is hidden while the members are tuned."""

TUNING_SWEEPS_SINGLE, TUNING_SWEEPS_MEMBER = 100, 90
"""Sweeps in which a single chain is tuned, and at most each member before it is scored."""

RARE = 10
"""Number of cells of a level below which none of them is hidden."""

N_SCORED_SWEEPS, N_SCORED_IN_SHAPE = 30, 60
"""Sweeps of each member after these, whose predictions of hidden cells are scored."""

SWEEPS_AFTER_UNHIDING = 10
"""Sweeps for each member after the hidden cells are back, before any draw is kept."""

PRIOR = 0.1
"""Number of cells that the prior of each weight counts for."""

ROUNDS = 300
"""Iterations of the weights."""


class Size(NamedTuple):
    """Size of a member.

    Attributes
    ----------
    groups : int
        Largest number of groups of rows.
    is_full : bool
        Whether it is of full rank, and levels are numbers.
    in_order : bool
        Whether each row depends on the one before it.
    is_small : bool
        Whether it has two of five components.
    """

    groups: int
    is_full: bool = False
    in_order: bool = False
    is_small: bool = False


@dataclass
class Member:
    """A chain of the ensemble.

    Attributes
    ----------
    state : ChainState
        Its state.
    draws : int
        Number of sweeps whose draws are kept.
    calibration : dict of ndarray
        That of the mixture, which is part of each draw; empty if no cells are hidden.
    scores : Scores or None
        Sums over the scored sweeps; None before the first of them.
    weight : float
        Its weight in the mixture.
    groups : ndarray of int (m,) or None
        Groups of the rows when the hidden cells came back.
    """

    state: ChainState
    draws: int
    calibration: Draw
    scores: Any = None
    weight: float = 1.0
    groups: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Ensemble:
    """The members of a chain: one, or several that take turns.

    Attributes
    ----------
    problem : SampledProblem
        Problem in whose form all draws are kept, with the rank of the member with most components.
    sizes : tuple of Size
        Size of each member.
    problems : list of SampledProblem
        Problem of each member, with all cells; members of full rank share one, and the others.
    trials : list of SampledProblem
        The same for these data.
    complete, observations : Observations
        Data, of a large table some rows, with and without the hidden cells.
    hidden : Hidden or None
        The hidden cells; None for one member.
    tuned : int
        Number of sweeps of each member without them.
    scored : int
        Number of the last of these sweeps, after which the hidden cells are scored.
    returned : int
        Number of sweeps of all members together with all cells before the draws that count.
    draws : int
        Number of sweeps of all members whose draws count.
    in_shape : bool
        Whether cells are hidden as others are missing, in gaps with a shape.
    """

    problem: SampledProblem
    sizes: tuple[Size, ...]
    problems: list[SampledProblem]
    trials: list[SampledProblem]
    complete: Observations
    observations: Observations
    hidden: Hidden | None
    tuned: int
    scored: int
    returned: int
    draws: int
    in_shape: bool = False

    def init(self, k: int, asked: Any) -> Any:
        """Return the start of a member, where `asked` is that of the options."""
        has_all = self.sizes[k].is_full and self.problems[k].rank == self.problem.shape[1]
        return COLUMNS if has_all else asked

    def in_form(self, k: int, state: ChainState) -> ChainState:
        """Return the state of a member in the form in which draws are kept."""
        if self.sizes[k].is_full:
            return with_cut_points(self.problem, self.problems[k], state)
        return state

    def draw(self, k: int, state: ChainState, member: Member) -> Draw:
        """Return the draw of a member from its state in this form.

        It has as many groups and components as the largest one.
        """
        n_groups = max(size.groups for size in self.sizes)
        state = replace(state, row_prior=state.row_prior.padded(n_groups))
        draw = draw_of(state)
        if len(self.problems) == 1:
            named = member.calibration.items()
            return draw | {n: a for n, a in named if n == "spread" or self.problem.model.is_mixed}
        rank = self.problems[k].rank
        if (order := self.problem.order) is not None:  # other members have neither φ nor a season
            draw = {"phi": np.zeros(draw["rows"].shape[1])} | draw
            if order.period:
                season = np.zeros((order.period, self.problem.shape[1]), np.float32)
                draw = {"season": season} | draw
        draw = with_rank(draw, rank, self.problem.rank - rank)
        return draw | member.calibration | {"member": np.array(k, np.int16)}

    @property
    def all_tuned(self) -> int:
        """Number of sweeps of all members without the hidden cells."""
        return len(self.problems) * self.tuned

    @property
    def warm_up(self) -> int:
        """Number of sweeps of all members before the draws that count."""
        return self.all_tuned + self.returned

    def turns(self, sweep: int, members: list[Member]) -> list[int]:
        """Return the members that do the next sweeps, from 0, until one would do a second."""
        if self.hidden is None:
            return [0]
        if sweep < self.all_tuned:
            order = np.arange(sweep, self.all_tuned) % len(self.problems)
        else:
            counts = np.array([member.draws for member in members])
            before = np.resize(np.flatnonzero(counts), self.returned)
            order = np.concatenate([before, _in_turn(counts)])[sweep - self.all_tuned :]
        repeats = (k for k, member in enumerate(order) if member in order[:k])
        turns: list[int] = order[: next(repeats, order.size)].tolist()
        return turns

    def member(self, state: ChainState) -> Member:
        """Return a member that has not been scored; if it is the only one, it has all draws."""
        if self.hidden is None:
            return Member(state, self.draws, {})
        return Member(state, 0, self.hidden.calibration(1.0, 1.0))

    def score(self, sweep: int, k: int, member: Member) -> None:
        """Add the scores of the hidden cells after one of the last sweeps of the tuning."""
        if self.hidden is None or sweep // len(self.problems) < self.tuned - self.scored:
            return
        scores = self.hidden.scores(self.problem, self.in_form(k, member.state))
        member.scores = scores if member.scores is None else member.scores.plus(scores)

    def log_densities(self, members: list[Member]) -> Array:
        """Return the log-density of each hidden cell in the mixture of the members."""
        logs = np.array([each.scores.log_densities for each in members])
        weights = np.array([each.weight for each in members])
        return np.asarray(logsumexp(logs, axis=0, b=weights[:, None]) - np.log(self.scored))

    def _mixture(self, members: list[Member], weights: Array) -> tuple[Array, Array]:
        """Return the probability of a T below each hidden cell in the mixture, and of levels."""
        below = np.tensordot(weights, [each.scores.below for each in members], 1)
        masses = np.tensordot(weights, [each.scores.masses for each in members], 1)
        return below / self.scored, masses / self.scored

    def coverage(self, members: list[Member]) -> dict[str, Any]:
        """Return which share of the hidden numbers their 90 % intervals cover, with the spread."""
        if self.hidden is None or self.hidden.is_level.all():
            return {}
        below, _ = self._mixture(members, np.array([each.weight for each in members]))
        spread = members[0].calibration["spread"]
        inside = np.abs(below[~self.hidden.is_level] - 0.5) <= ndtr(HALF_WIDTH * spread) - 0.5
        shape = "in the shape of the gaps" if self.in_shape else "at random"
        return {"hidden": inside.size, "covered": float(inside.mean()), "hidden_cells": shape}

    def weigh(self, members: list[Member]) -> None:
        """Give each member its weight and number of draws, the calibration, and all cells."""
        hidden, logs = self.hidden, np.array([each.scores.log_densities for each in members])
        assert hidden is not None
        weights = stacked(logs, self.sizes)
        exact = weights * self.draws
        counts = np.floor(exact).astype(int)
        counts[np.argsort(counts - exact)[: self.draws - counts.sum()]] += 1
        below, masses = self._mixture(members, weights)
        spread = hidden.spread(below, MAX_SPREAD_OF_GAPS if self.in_shape else MAX_SPREAD)
        calibration = hidden.calibration(spread, hidden.temperatures(masses))
        each_member = zip(members, self.problems, counts, weights.tolist(), strict=True)
        for member, problem, count, weight in each_member:
            member.draws, member.calibration, member.weight = int(count), calibration, weight
            member.groups = member.state.groups.labels.copy()
            if count:
                member.state = unhide_cells(problem, member.state)


def with_cut_points(problem: SampledProblem, full: SampledProblem, state: ChainState) -> ChainState:
    """Return the state of a member of full rank with cut points for the levels."""
    at = np.flatnonzero(np.array(problem.noises) == "ordinal")
    centres, sizes = full.units_of_kinds[at].T
    roots, scale = np.sqrt(state.rho[at]), np.ones_like(state.rho)
    scale[at] = roots
    columns = state.columns * scale[:, None].astype(problem.dtype)
    columns[at, -1] += roots * centres / sizes
    rho, (ends, _) = np.where(scale == 1, state.rho, 1.0), first_cuts(problem.levels)
    season = None if state.season is None else state.season * scale
    for j, root, size in zip(at, roots, sizes, strict=True):
        values = np.asarray(problem.model.column_models[j].loss.level_values)
        ends[j, 1 : values.size] = 0.5 * (values[1:] + values[:-1]) * root / size
    return replace(state, columns=columns, rho=rho, ends=ends, season=season)


def with_rank(draw: Draw, rank: int, more: int) -> Draw:
    """Return a draw with `more` components after the first `rank`, of which H is zero."""
    names, at, new = ("rows", "columns", "row_means"), [rank] * more, range(rank, rank + more)
    precisions = np.insert(np.insert(draw["row_precisions"], at, 0, axis=1), at, 0, axis=2)
    precisions[:, new, new] = 1.0
    padded = {name: np.insert(draw[name], at, 0, axis=1) for name in names}
    if "phi" in draw:
        padded["phi"] = np.insert(draw["phi"], at, 0)
    return draw | padded | {"row_precisions": precisions}


def _in_turn(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the member of each draw, so that any part of them has about the same fractions."""
    at = np.concatenate([(np.arange(count) + 0.5) / max(count, 1) for count in counts])
    order: NDArray[np.intp] = np.repeat(np.arange(counts.size), counts)
    return order[np.argsort(at, kind="stable")]


def stacked(log_densities: NDArray[np.float64], sizes: tuple[Size, ...]) -> NDArray[np.float64]:
    """Return the weights of the members, given their log-densities (n_members, n_hidden).

    Members of one size have equal weights: which of them is ahead is chance, and the values would
    move with the seed.  The weights of the sizes maximise the log score of the mixture, with a weak
    prior for equal weights.
    """
    distinct, at, counts = np.unique(sizes, axis=0, return_inverse=True, return_counts=True)
    n_sizes, n_hidden = len(distinct), log_densities.shape[1]
    weights = np.full(n_sizes, 1 / n_sizes)
    all_densities = np.exp(log_densities - log_densities.max(axis=0))
    densities = np.stack([all_densities[at == k].mean(axis=0) for k in range(n_sizes)])
    for _ in range(ROUNDS if n_hidden else 0):  # expectation and maximisation
        parts = weights[:, None] * densities
        weights = ((parts / parts.sum(axis=0)).sum(axis=1) + PRIOR) / (n_hidden + PRIOR * n_sizes)
    return weights[at] / counts[at]


def make_ensemble(
    problem: SampledProblem,
    observations: Observations,
    few: Observations,
    options: SampleOptions,
    sizes: tuple[Size, ...],
    rng: np.random.Generator,
) -> Ensemble:
    """Return the members of these sizes; `few` are the rows with which several are tuned.

    Cells of a rare level or class are not hidden, since its cut point would drift without them.
    """
    tune, draws = options.tune, options.draws
    sequence = None if problem.order is None else problem.order.sequence
    hide: Callable[..., NDArray[np.bool_]] | None = None  # as others are missing, if in a shape
    if sequence is not None and missing_in_runs(few, sequence):
        hide = partial(moved_runs, sequence=sequence)
    elif holes_depend_on_each_other(few):
        hide = moved_holes
    if len(sizes) == 1 and sequence is None and hide is None:
        tuned, one = TUNING_SWEEPS_SINGLE if tune is None else tune, [problem]
        return Ensemble(problem, sizes, one, one, few, observations, None, tuned, 0, 0, draws)
    (i, j, x), table = few.entries(), few.labels.table
    common = np.ones(x.size, bool)
    is_level = (np.array(problem.noises) == "ordinal")[problem.kinds_of(j)]
    if is_level.any():
        values, first = pd.DataFrame({"column": j, "level": x}), first_of_cells(i, j, table)
        counts = values.groupby(["column", "level"])["level"].transform("size")
        common[first[is_level & (counts < RARE)]] = False
        common = common[first]
    is_hidden = np.zeros(x.size, bool)
    if hide is not None:
        is_hidden = common & hide(few, HIDDEN_SHARE, rng)
    if not is_hidden.any():
        is_hidden[common] = test_set(few.select(common).entries(), table, HIDDEN_SHARE, rng)
    observed, hidden = few.select(~is_hidden), few.select(is_hidden)
    trial = problem_of(observed, options, problem.rank, problem.scaling, problem.noises)
    order, threads = problem.order, 1 if len(sizes) > 1 else problem.threads

    @cache
    def pair(is_full: bool, is_small: bool) -> list[SampledProblem]:
        both = problem, trial
        if is_full:
            units = problem.units_of_full_rank()
            both = problem_of(observations, options, *units), problem_of(observed, options, *units)
        rank = 2 * both[0].rank // 5 if is_small else both[0].rank
        return [replace(each, rank=rank, order=order, threads=threads) for each in both]

    pairs = [pair(size.is_full, size.is_small) for size in sizes]
    problems, trials = (list(each) for each in zip(*pairs, strict=True))
    form = replace(problem, rank=max(each.rank for each in problems))
    most = TUNING_SWEEPS_MEMBER, SWEEPS_AFTER_UNHIDING
    before, returned = most if tune is None else (min(tune, each) for each in most)
    if len(sizes) == 1:  # it has no others that make up for it
        before = before if tune is None else tune
        returned = max(returned, before // 2)
    scored = min(N_SCORED_SWEEPS if hide is None else N_SCORED_IN_SHAPE, draws)
    cells, tuned, returned = Hidden.of(trial, hidden), before + scored, returned * len(sizes)
    members = sizes, problems, trials
    return Ensemble(
        form, *members, few, observed, cells, tuned, scored, returned, draws, hide is not None
    )
