"""An ensemble of chains with different numbers of groups of rows, weighed by stacking.

Chains with groups find different groupings, each at a mode of its own.  The mean of several of them
predicts better than each, and depends less on the seed.  Each chain is a member of the ensemble:

1. The members are tuned while a tenth of the cells is hidden, and most rows of a large table.
   Their groups are at first those of k-means of the rows of WH.  Some are of full rank.
2. The weights of the members maximise the log score of their mixture at the hidden cells
   (Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Using stacking to average Bayesian predictive
   distributions", Bayesian Analysis 13, 917-1007, 2018).  Members of one size share a weight.
3. The hidden cells say how much narrower or wider intervals are than those of the mixture,
   and how much surer probabilities (`hidden_cells.py`).
4. The hidden cells come back.  Each member draws in proportion to its weight, so that all draws
   count the same.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.observations import Observations
from nmd_lab.data.split import first_of_cells, test_set
from nmd_lab.solver.options import SampleOptions

from .chain import Chain, Draw, with_groups
from .first_state import COLUMNS
from .full_rank import full_rank, with_cut_points, with_rank
from .hidden_cells import Hidden, Scores
from .latent_sweep import ChainState
from .new_rows import with_all_cells
from .prepare import problem_of
from .problem import SampledProblem

HIDDEN = 0.1
"""Fraction of the observed cells that is hidden while the members are tuned."""

ALONE, MEMBER = 100, 90
"""Sweeps in which a single chain is tuned, and at most each member before it is scored."""

RARE = 10
"""Number of cells of a level below which none of them is hidden."""

SCORED = 30
"""Sweeps of each member after these, whose predictions of hidden cells are scored."""

RETURNED = 10
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
    """

    groups: int
    is_full: bool = False


@dataclass
class Member:
    """A chain of the ensemble.

    Attributes
    ----------
    state : ChainState
        Its state.
    scores : Scores or None
        Sums over the scored sweeps; None if no cells are hidden.
    draws : int
        Number of sweeps whose draws are kept.
    calibration : dict of ndarray
        That of the mixture, which is part of each draw; empty if no cells are hidden.
    """

    state: ChainState
    scores: Scores | None
    draws: int
    calibration: Draw


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
        Problem of each member, with all cells; members of one size share it.
    trials : list of SampledProblem
        The same for these data.
    observations : Observations
        Data without the hidden cells, and of a large table some rows.
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
    """

    problem: SampledProblem
    sizes: tuple[Size, ...]
    problems: list[SampledProblem]
    trials: list[SampledProblem]
    observations: Observations
    hidden: Hidden | None
    tuned: int
    scored: int
    returned: int
    draws: int

    def init(self, k: int, asked: Any) -> Any:
        """Return the start of a member, where `asked` is that of the options."""
        has_all = self.sizes[k].is_full and self.problems[k].rank == self.problem.shape[1]
        return COLUMNS if has_all else asked

    def form(self, k: int) -> SampledProblem:
        """Return the problem in whose form the draws of a member are kept."""
        return replace(self.problem, rank=self.problems[k].rank)

    def in_form(self, k: int, state: ChainState) -> ChainState:
        """Return the state of a member in this form."""
        if self.sizes[k].is_full:
            return with_cut_points(self.problem, self.problems[k], state)
        return state

    def draw(self, k: int, state: ChainState, member: Member) -> Draw:
        """Return the draw of a member from its state in this form.

        It has as many groups and components as the largest one.
        """
        draw = Chain().iterate(self.problems[k], state)
        if len(self.problems) == 1:
            return draw
        draw = with_groups(draw, max(size.groups for size in self.sizes))
        rank = self.problems[k].rank
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
            return list(range(sweep % len(self.problems), len(self.problems)))
        counts = np.array([member.draws for member in members])
        used = np.flatnonzero(counts)
        if sweep < self.warm_up:
            next_ones = used[(sweep - self.all_tuned) % used.size :]
            return list(next_ones[: self.warm_up - sweep])
        following = list(_in_turn(counts)[sweep - self.warm_up :])
        repeats = (k for k, member in enumerate(following) if member in following[:k])
        return following[: next(repeats, len(following))]

    def is_scored(self, sweep: int) -> bool:
        """Return whether the hidden cells are scored after a sweep of the tuning."""
        return sweep // len(self.problems) >= self.tuned - self.scored

    def member(self, state: ChainState) -> Member:
        """Return a member that has not been scored; if it is the only one, it has all draws."""
        if self.hidden is None:
            return Member(state, None, self.draws, {})
        return Member(state, self.hidden.no_scores(), 0, self.hidden.calibration(1.0, 1.0))

    def score(self, k: int, member: Member) -> None:
        """Add the scores of the hidden cells, given the state of a member."""
        assert self.hidden is not None
        assert member.scores is not None
        now = self.form(k), self.in_form(k, member.state)
        member.scores = member.scores.plus(self.hidden.scores(*now))

    def weigh(self, members: list[Member]) -> None:
        """Give each member its number of draws, the calibration, and all cells."""
        hidden, scores = self.hidden, [each.scores for each in members if each.scores is not None]
        assert hidden is not None
        weights = stacked(np.array([each.log_densities for each in scores]), self.sizes)
        exact = weights * self.draws
        counts = np.floor(exact).astype(int)
        counts[np.argsort(counts - exact)[: self.draws - counts.sum()]] += 1
        below, masses = (
            np.tensordot(weights, each, 1) / self.scored
            for each in zip(*((each.below, each.masses) for each in scores), strict=True)
        )
        calibration = hidden.calibration(hidden.spread(below), hidden.temperatures(masses))
        for member, problem, count in zip(members, self.problems, counts, strict=True):
            member.draws, member.calibration = int(count), calibration
            if count:
                member.state = with_all_cells(problem, member.state)


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
    if len(sizes) == 1:
        one, alone = replace(problem, n_groups=sizes[0].groups), ALONE if tune is None else tune
        return Ensemble(one, sizes, [one], [one], observations, None, alone, 0, 0, draws)
    _, j, x = few.entries()
    common, at = np.ones(x.size, bool), np.flatnonzero((np.array(problem.noises) == "ordinal")[j])
    if at.size:
        levels = np.column_stack([j[at], x[at]])
        _, level, counts = np.unique(levels, axis=0, return_inverse=True, return_counts=True)
        first = first_of_cells(few)
        common[first[at[counts[level.ravel()] < RARE]]] = False
        common = common[first]
    is_hidden = np.zeros(x.size, bool)
    is_hidden[common] = test_set(few.select(common), HIDDEN, rng)
    observed, hidden = few.select(~is_hidden), few.select(is_hidden)
    trial = problem_of(observed, options, problem.rank, problem.units_of_X, problem.noises)
    pairs = {False: (problem, trial)}
    if any(size.is_full for size in sizes):
        full = full_rank(problem, observations, options)
        units = full.rank, full.units_of_X, full.noises
        pairs[True] = full, problem_of(observed, options, *units)
    problems, trials = (
        _of_sizes([pairs[size.is_full][k] for size in sizes], sizes) for k in (0, 1)
    )
    form = replace(problem, rank=max(each.rank for each in problems))
    before, returned = (most if tune is None else min(tune, most) for most in (MEMBER, RETURNED))
    scored = min(SCORED, draws)
    cells, tuned, returned = Hidden.of(trial, hidden), before + scored, returned * len(sizes)
    members = sizes, problems, trials
    return Ensemble(form, *members, observed, cells, tuned, scored, returned, draws)


def _of_sizes(problems: list[SampledProblem], sizes: tuple[Size, ...]) -> list[SampledProblem]:
    """Return problems with so many groups, which share all that depends on the data alone."""
    of_kind, of_size = {}, {}
    for problem, size in zip(problems, sizes, strict=True):
        if size.is_full not in of_kind:  # the members have threads of their own
            of_kind[size.is_full] = first = replace(problem, threads=1)
            _ = first.updates, first.segments, first.levels, first.positions, first.units_of_entries
        of_size[size] = same = copy(of_kind[size.is_full])
        vars(same)["n_groups"] = size.groups
    return [of_size[size] for size in sizes]
