"""The joint distribution of all columns of a table, with full covariance matrices.

Components are shrunk, and weak associations of two columns with them.  These are what a regression
on completed copies is about.  Here a row z_i of scores has, in group c of the rows,

    z_i ~ N(m_c, Λ_c⁻¹)

with one group, or with priors as in `priors`.  With one group, Λ⁻¹ has the inverse Wishart
distribution with d + 1 degrees of freedom, under which each correlation is uniform: nothing is
shrunk.  Groups make conditional means bend.

Scores are normal latent variables.  A number is its own score, f⁻¹(x) without units.  A level lies
between two cut points, and a limit is one of the score.  A category of K classes has K - 1 scores:
the first class is that of no score above zero, another one that of the largest.

A sweep draws the missing scores of a row together, then each score of which limits are known, and
then means and covariances.  That is data augmentation (J. L. Schafer, "Analysis of Incomplete
Multivariate Data", 1997) with latent normals (H. Goldstein, J. Carpenter, M. Kenward and K. Levin,
"Multilevel models with multivariate mixed response types", Statistical Modelling 9, 2009).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import cycle
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nmd_lab._runtime.checks import is_auto
from nmd_lab._runtime.compiler import cached_kernel, compile_inner
from nmd_lab._runtime.machine import all_threads, in_threads
from nmd_lab.data.typed_table import TypedTable
from nmd_lab.model.ordinal import interval_mass
from nmd_lab.request.options import SampleOptions

from .ensemble import MIN_PROBABILITY, Array, Ensemble, Member, Positions
from .latent_draws import first_cuts
from .priors import MIN_SHARE, SWEEPS_PER_LABEL_DRAW, Groups, RowPrior, draw_prior
from .problem import SampledProblem, problem_of
from .random_numbers import LATENT, draw_between, draw_index, new_stream, start_of
from .row_updates import draw_solved, half_solve
from .sampled_model import knows_T

N_CHAINS = 8
"""Number of chains with groups, which begin with those of the members of the ensemble in turn."""

N_TUNING_SWEEPS, N_SCORED_SWEEPS, N_SWEEPS_AFTER_UNHIDING = 20, 20, 60

N_DRAWS, SWEEPS_PER_DRAW = 48, 4
"""Number of draws, and sweeps of a chain from one to the next."""

MIN_ROWS_PER_SCORE, MAX_SCORES, MAX_SCORES_WITH_GROUPS = 10, 64, 40
"""Rows for each score from which covariances are well known, and scores up to which a sweep is
quick, without groups and with them."""

MAX_LOSS = 0.05
"""Mean log score of a hidden cell that a joint distribution may lose to an ensemble."""

MAX_IN_ORDER = 0.1
"""Largest weight of members in an order, which the rows of a joint distribution do not have."""

MIN_LOG_DENSITY = -4.0
"""Least log-density of a hidden cell, so that one outlier does not decide."""

NUMBER_SCALE, LATENT_SCALE = 1e-4, 1.0
"""Scale of the inverse Wishart distribution for a number and for another score."""

COPY_NOISE = 0.001
"""Standard deviation of noise on known scores, so that a copy of a column leaves covariances
regular."""

WITHIN_SWEEPS = 3
"""Sweeps over missing scores that lie between the ends of their columns."""

NO_ENDS: Array = np.empty((0, 0))


class Scores(NamedTuple):
    """What is known of the scores of rows.

    Attributes
    ----------
    low, high : ndarray (m, d)
        Limits of each score: equal where it is known, infinite where nothing is.
    classes : ndarray of int (m, d)
        Class of a category, 0 to K - 1, at its first score; -1 elsewhere, and where it is missing.
    firsts : ndarray of int (d,)
        The first score of the category of each score; the score itself where there is none.
    """

    low: Array
    high: Array
    classes: NDArray[np.int64]
    firsts: Positions

    def at(self, rows: Positions) -> Scores:
        """Return the scores of some rows."""
        return Scores(self.low[rows], self.high[rows], self.classes[rows], self.firsts)

    @property
    def free_units(self) -> list[Positions]:
        """Scores with a unit that no cell determines: of two levels, and of a category."""
        signs = np.isin(self.low, (0.0, -np.inf)) & np.isin(self.high, (0.0, np.inf))
        units = (np.flatnonzero(self.firsts == first) for first in np.unique(self.firsts))
        return [at for at in units if signs[:, at].all()]

    def first(self) -> Array:
        """Return scores that agree with what is known, with zero where nothing is."""
        number = np.arange(self.firsts.size) - self.firsts + 1  # that of a score in its category
        chosen = self.classes[:, self.firsts]
        of_class = np.where(chosen == number, 0.5, -0.5)
        return np.where(chosen < 0, np.clip(0.0, self.low, self.high), of_class)


def cut_points(problem: SampledProblem) -> Array:
    """Return the ends of the levels of each column in a row, with infinity behind the last.

    Of two levels the cut point is zero.  Of more, cut points are quantiles of the levels.
    """
    ends, _ = first_cuts(problem.levels, 1.0)
    ends[[each is not None and each.counts.size == 2 for each in problem.levels], 1:2] = 0.0
    return ends


def columns_with_scores(table: TypedTable | None, n: int) -> Positions:
    """Return the columns of the matrix that have a score: not the first class of a category."""
    has_none = [] if table is None else [at[0] for c, at in table.blocks() if c.has_indicators]
    return np.setdiff1d(np.arange(n), has_none)


def scores_of(problem: SampledProblem, table: TypedTable | None, cuts: Array) -> Scores:
    """Return what the cells of a problem say of the scores of their rows."""
    (m, n), ends = problem.shape, [each.astype(np.float64) for each in problem.limits]
    i, j = problem.observations.rows, problem.storage.indices
    low, high = np.full((m, n), -np.inf), np.full((m, n), np.inf)
    for k, (noise, kind, at) in enumerate(problem.kinds):
        for upper, (bound, x) in enumerate(zip((low, high), ends, strict=True)):
            if noise == "ordinal":
                bound[i[at], k] = cuts[k, x[at].astype(np.intp) + upper]
            else:
                finite = at[np.isfinite(x[at])]
                bound[i[finite], k] = kind.pseudo_inverse(x[finite])
    classes, firsts = np.full((m, n), -1, np.int64), np.arange(n)
    for column, at in () if table is None else table.blocks():
        if column.has_indicators:
            low[:, at], high[:, at], firsts[at] = -np.inf, np.inf, at[1]
            is_one = np.isin(j, at) & (problem.values == 1)
            classes[i[is_one], at[1]] = j[is_one] - at[0]
    scored = columns_with_scores(table, n)
    low, high, classes = (np.ascontiguousarray(each[:, scored]) for each in (low, high, classes))
    return Scores(low, high, classes, np.searchsorted(scored, firsts[scored]))


def draw_scores(
    scores: Scores,
    z: Array,
    draw: RowPrior,
    labels: NDArray[np.int64],
    key: tuple[int, int],
    *,
    relabel: bool,
    ends: Array = NO_ENDS,
) -> None:
    """Draw the scores z that are not known, and the groups if asked, in place.

    Missing scores lie within the `ends` (2, d) of their columns if these are given.
    """
    logs = np.log(draw.shares) + 0.5 * np.linalg.slogdet(draw.precision)[1]
    prior = draw.mean, draw.precision, logs
    arguments = tuple(scores), prior, labels, relabel and len(draw.shares) > 1, key, ends
    cached_kernel(_draw_scores, "joint_normal")(z, *arguments)


@compile_inner
def _condition(i, group, z, prior, missing, r, L, no_ridge, y):  # type: ignore[no-untyped-def]
    """Put the distribution of the missing scores of a row given the others into L and y.

    L is the Cholesky factor of their precision, and their mean is L⁻ᵀ y; r has the others without
    their means.  Returned is the log-density of the others in the group, and its log-share.
    """
    means, precision, score = prior[0][group], prior[1][group], prior[2][group]
    for k in range(r.size):
        r[k] = z[i, k] - means[k]
    for a in range(missing.size):
        r[missing[a]] = 0.0
    for a in range(missing.size):
        y[a] = 0.0
        for k in range(r.size):
            y[a] -= precision[missing[a], k] * r[k]
        for c in range(a + 1):
            L[a, c] = precision[missing[a], missing[c]]
    for k in range(r.size):
        total = 0.0
        for c in range(r.size):
            total += precision[k, c] * r[c]
        score -= 0.5 * total * r[k]
    return score + half_solve(L, no_ridge, y)


@compile_inner
def _draw_between(i, k, low, high, z, precision, r, stream):  # type: ignore[no-untyped-def]
    """Draw a score between two limits, given all others of its row."""
    total = 0.0
    for c in range(r.size):
        total += precision[k, c] * r[c]
    centre, sd = z[i, k] - total / precision[k, k], 1.0 / math.sqrt(precision[k, k])
    new = draw_between(centre, sd, low, high, stream)
    r[k] += new - z[i, k]
    z[i, k] = new


@compile_inner
def _limits(i, k, z, known):  # type: ignore[no-untyped-def]
    """Return the limits of a score; those of a category depend on its other scores."""
    low, high, classes, firsts = known
    first = firsts[k]
    chosen = classes[i, first]
    if chosen < 0:
        return low[i, k], high[i, k]
    if chosen == 0:
        return -math.inf, 0.0
    if chosen != k - first + 1:
        return -math.inf, z[i, first + chosen - 1]
    largest = 0.0
    for c in range(firsts.size):
        if c != k and firsts[c] == first:
            largest = max(largest, z[i, c])
    return largest, math.inf


def _draw_scores(z, known, prior, labels, relabel, key, ends):  # type: ignore[no-untyped-def]
    """Draw the groups and the unknown scores of all rows, in place."""
    low, high, classes, firsts = known
    seed, sweep = key
    d, n_groups = z.shape[1], prior[0].shape[0]
    missing, latent = np.empty((2, d), np.int64)
    r, y, no_ridge = np.zeros((3, d))
    L, logs = np.empty((d, d)), np.empty(n_groups)
    for i in range(z.shape[0]):
        stream = new_stream(start_of(seed, sweep, LATENT, i))
        count, n_latent = 0, 0
        for k in range(d):
            is_open = low[i, k] == -math.inf and high[i, k] == math.inf
            if classes[i, firsts[k]] >= 0 or (low[i, k] < high[i, k] and not is_open):
                latent[n_latent] = k
                n_latent += 1
            elif is_open:
                missing[count] = k
                count += 1
        here = missing[:count], r, L[:count, :count], no_ridge[:count], y[:count]
        if relabel:
            for group in range(n_groups):
                logs[group] = _condition(i, group, z, prior, *here)
            labels[i] = draw_index(logs, stream)
        group = labels[i]
        precision = prior[1][group]
        _condition(i, group, z, prior, *here)
        draw_solved(L, y[:count], stream)
        for a in range(count):
            r[missing[a]] = y[a]
            z[i, missing[a]] = prior[0][group, missing[a]] + y[a]
        for a in range(n_latent):
            below, above = _limits(i, latent[a], z, known)
            _draw_between(i, latent[a], below, above, z, precision, r, stream)
        for _ in range(WITHIN_SWEEPS if ends.size else 0):
            for a in range(count):
                k = missing[a]
                _draw_between(i, k, ends[0, k], ends[1, k], z, precision, r, stream)


@dataclass
class JointChain:
    """A chain of joint distributions and scores.

    Attributes
    ----------
    scores : Scores
        What is known.
    z : ndarray (m, d)
        Scores.
    draw : RowPrior
        The distribution.
    groups : Groups
        Groups of the rows, with what they have in common.
    rng : Generator
        Random numbers of the distribution.
    seed, sweep : int
        Seed of the scores, and number of sweeps so far.
    """

    scores: Scores
    z: Array
    draw: RowPrior
    groups: Groups
    rng: np.random.Generator
    seed: int
    sweep: int = 0

    def __post_init__(self) -> None:
        """Find the scores whose units no cell determines."""
        self.free_units = self.scores.free_units

    @classmethod
    def first(cls, scores: Scores, rng: np.random.Generator) -> JointChain:
        """Return the chain of one group before its first sweep."""
        scores = _with_noise(scores)
        m, d = scores.low.shape
        is_number = (scores.low == scores.high).any(axis=0)
        scale = np.where(is_number, NUMBER_SCALE, LATENT_SCALE)
        groups, seed = Groups.apart(np.zeros(m, np.int64), scale, 0.0), int(rng.integers(2**62))
        return cls(scores, scores.first(), RowPrior.first(1, d), groups, rng, seed)

    def with_groups(self, member: Member, rng: np.random.Generator) -> JointChain:
        """Return a chain that begins with the scores of this one and the groups of a member."""
        assert member.groups is not None
        scale = 0.5 * np.cov(self.z, rowvar=False).reshape(self.draw.precision.shape[1:])
        groups, seed = Groups(member.groups.copy(), scale), int(rng.integers(2**62))
        prior = self.draw.padded(member.state.row_prior.shares.size)
        return JointChain(self.scores, self.z.copy(), prior, groups, rng, seed)

    def with_cells(self, scores: Scores) -> JointChain:
        """Return a chain that goes on with more known cells of the same rows."""
        scores = _with_noise(scores)
        is_new = (scores.classes != self.scores.classes)[:, scores.firsts]
        z = np.where(is_new, scores.first(), np.clip(self.z, scores.low, scores.high))
        return replace(self, scores=scores, z=z)

    def step(self) -> None:
        """Do one sweep, in units in which free scores have spread 1."""
        self.sweep += 1
        for at in self.free_units:
            self.z[:, at] /= math.sqrt(self.z[:, at].var(axis=0).mean()) or 1.0
        self.draw = draw_prior(self.groups, self.draw, self.z, self.sweep, self.rng)
        relabel = self.sweep % SWEEPS_PER_LABEL_DRAW == 0
        key = self.seed, self.sweep
        draw_scores(self.scores, self.z, self.draw, self.groups.labels, key, relabel=relabel)


def _with_noise(scores: Scores) -> Scores:
    """Return scores with a little noise on the known ones, the same at each call."""
    noise = COPY_NOISE * np.random.default_rng(0).standard_normal(scores.low.shape)
    noise[scores.low < scores.high] = 0.0
    return scores._replace(low=scores.low + noise, high=scores.high + noise)


class Cells(NamedTuple):
    """Hidden cells whose densities are compared: numbers, and levels between two limits.

    Attributes
    ----------
    rows, columns : ndarray of int (n_cells,)
        Positions of their scores.
    low, high : ndarray (n_cells,)
        Limits of the scores, which are equal for numbers.
    of_hidden : ndarray of int (n_cells,)
        Their positions among all hidden cells.
    """

    rows: Positions
    columns: Positions
    low: Array
    high: Array
    of_hidden: Positions

    def log_densities(self, chain: JointChain) -> Array:
        """Return the log-density of each cell, given all other scores of its row."""
        i, k, low, high, _ = self
        means, precisions, *_ = chain.draw
        groups, away = chain.groups.labels[i], chain.z[i]
        of_others = np.einsum("pk,pk->p", precisions[groups, k], away - means[groups])
        precision = precisions[groups, k, k]
        centre, root = chain.z[i, k] - of_others / precision, np.sqrt(precision)
        below, above = root * (low - centre), root * (high - centre)
        of_numbers = np.log(root) - 0.5 * below**2  # but for a constant, as in `ensemble`
        of_levels = np.log(interval_mass(below, above) + MIN_PROBABILITY)
        return np.where(low == high, of_numbers, of_levels)


class JointDraws(NamedTuple):
    """Draws of the joint distribution of a row, with cut points.

    Attributes
    ----------
    means, precisions : ndarray (n_draws, n_groups, d) and (n_draws, n_groups, d, d)
        Means and inverse covariances of the groups.
    shares : ndarray (n_draws, n_groups)
        Fractions of the rows.
    cuts : ndarray (n, n_levels + 1)
        Ends of the levels of each column of the matrix.
    """

    means: Array
    precisions: Array
    shares: Array
    cuts: Array

    @classmethod
    def of(cls, draws: list[RowPrior], cuts: Array) -> JointDraws:
        """Return draws as arrays; those with fewer groups have empty ones."""
        most = max(draw.shares.size for draw in draws)
        padded = zip(*(draw.padded(most)[:3] for draw in draws), strict=True)
        means, precisions, shares = (np.stack(each) for each in padded)
        return cls(means, precisions, shares, cuts)

    def at(self, k: int) -> RowPrior:
        """Return a draw with the groups that may have rows."""
        some = self.shares[k] > MIN_SHARE
        return RowPrior(self.means[k, some], self.precisions[k, some], self.shares[k, some])


def joint_draws(
    ensemble: Ensemble, members: list[Member], options: SampleOptions
) -> JointDraws | None:
    """Return draws of the joint distribution, from which tables are completed.

    None if few rows are known, something that was asked or the order of the rows speaks against
    them, or the draws of the ensemble are much better.  There are groups if it is much better than
    a distribution without.
    """
    base, table = ensemble.problem, ensemble.observations.labels.table
    kinds = zip(base.noises, base.model.column_models, strict=True)
    known = all(noise == "ordinal" or knows_T(noise, kind.nonlinearity) for noise, kind in kinds)
    is_default = is_auto(options.rank) and is_auto(options.init) and is_auto(options.offsets)
    is_weighted = base.observations.weights is not None
    if len(ensemble.sizes) == 1 or is_weighted or not (is_default and known):
        return None
    pairs = zip(members, ensemble.sizes, strict=True)
    if sum(member.weight for member, size in pairs if size.in_order) > MAX_IN_ORDER:
        return None
    m, d = ensemble.complete.shape[0], columns_with_scores(table, base.shape[1]).size
    if m < MIN_ROWS_PER_SCORE * d or d > MAX_SCORES:
        return None
    full, trial = (
        problem_of(each, options, 1, base.scaling, base.noises)
        for each in (ensemble.complete, ensemble.observations)
    )
    cuts = cut_points(full)
    scores, tried = (scores_of(each, table, cuts) for each in (full, trial))
    cells, seed = _hidden_cells(ensemble, scores), members[0].state.seed
    rngs = [np.random.default_rng([seed, len(members), k]) for k in range(N_CHAINS + 1)]
    chosen, threads = [JointChain.first(tried, rngs[0])], options.compute.threads or all_threads()
    best = ensemble.log_densities(members)[cells.of_hidden]
    if _is_better(best, _tuned(chosen[0], cells)):
        grouped = [each for each in members if each.state.row_prior.shares.size > 1]
        if not grouped or d > MAX_SCORES_WITH_GROUPS:
            return None
        starts = zip(cycle(grouped), rngs[1:], strict=False)
        chosen = [chosen[0].with_groups(*each) for each in starts]
        logs = in_threads(lambda each: _tuned(each, cells), chosen, threads)
        if _is_better(best, logsumexp(logs, axis=0) - math.log(N_CHAINS)):
            return None
    count = N_DRAWS // len(chosen)
    drawn = in_threads(lambda each: _drawn(each, scores, count), chosen, threads)
    return JointDraws.of([draw for each in zip(*drawn, strict=True) for draw in each], cuts)


def _tuned(chain: JointChain, cells: Cells) -> Array:
    """Tune a chain, and return the log-density of each hidden cell."""
    logs = np.full(cells.rows.size, -np.inf)
    for sweep in range(N_TUNING_SWEEPS + N_SCORED_SWEEPS):
        chain.step()
        if sweep >= N_TUNING_SWEEPS:
            logs = np.logaddexp(logs, cells.log_densities(chain))
    return logs - math.log(N_SCORED_SWEEPS)


def _drawn(chain: JointChain, scores: Scores, count: int) -> list[RowPrior]:
    """Return draws of a chain that goes on with all cells."""
    chain, drawn = chain.with_cells(scores), []
    for sweep in range(1, N_SWEEPS_AFTER_UNHIDING + count * SWEEPS_PER_DRAW + 1):
        chain.step()
        if sweep > N_SWEEPS_AFTER_UNHIDING and sweep % SWEEPS_PER_DRAW == 0:
            drawn.append(chain.draw)
    return drawn


def _is_better(logs: Array, simpler: Array) -> bool:
    """Return whether log-densities of cells are much larger than those of a simpler one."""
    gains = np.maximum(logs, MIN_LOG_DENSITY) - np.maximum(simpler, MIN_LOG_DENSITY)
    error = gains.std() / math.sqrt(max(gains.size, 1))
    return bool(gains.size and gains.mean() > max(MAX_LOSS, 2 * error))


def _hidden_cells(ensemble: Ensemble, scores: Scores) -> Cells:
    """Return the hidden cells of an ensemble but for those of categories, given all scores."""
    hidden, n = ensemble.hidden, ensemble.problem.shape[1]
    assert hidden is not None
    is_class = np.zeros(hidden.values.size, bool)
    is_class[hidden.is_level] = hidden.is_indicator
    at = np.flatnonzero(~is_class)
    scored = columns_with_scores(ensemble.observations.labels.table, n)
    i, k = hidden.rows[at], np.searchsorted(scored, hidden.columns[at])
    return Cells(i, k, scores.low[i, k], scores.high[i, k], at)
