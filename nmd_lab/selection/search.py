"""The order in which settings are tried.

The search begins with offsets alone.  It then weakens the ridge step by step, each time from the
factors of the trial before, until the held-out error grows; compares nonlinearities and losses;
adds components, or takes some away, with the ridge adapted to each rank; compares the kinds of
offsets; and ends with smaller steps of the ridges.  What is more complicated must be clearly
better: components than offsets alone, offsets of rows and columns than a mean, and many components
than few.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.problem.initialization import Start, svd_start
from nmd_lab.request.candidates import Setting, Space

from .progress import CLEARLY, Kind, Trial
from .trials import Trials

FIRST_RANK = 8  # rank of the first trials
FINEST = 10**0.125  # factor between ridges before the ranks are compared, and at the end
OFFSET_STEP = 4.0  # factor between ridges of the offsets
RANKS_WITHOUT_GAIN = 3  # larger ones in turn that end the search; one above LONG_RANKS
LITTLE_NOISE = 0.07  # error, over that without components, up to which fewer are tried from a start
WORSE = 0.05  # growth of the mean loss at which a search for fewer components ends
COARSE = 10**0.5  # factor between ridges of the first path, and from cold starts
FINE = 10**0.25  # factor between ridges when the rank has changed
MAX_STEPS = 14  # largest number of ridges in one direction
RANK_RATIO = 4 / 3  # least ratio between a rank and a larger one to try
LONG_RANKS = 32  # number of components with which trials take long
ROUNDING = 1e-4  # relative decrease of the mean loss by another ridge that may be rounding
LEAST_GAIN = 1e-3  # the same that is worth a further step
RANK_GAIN = 0.002  # decrease of the mean loss that is worth so many components
OTHER_RANKS = 3  # to try where the best trial is not repeated


class Search:
    """A search for the setting of lowest held-out error.

    Attributes
    ----------
    first : Setting
        Setting without components, with moderate ridges.
    unit : float
        The least ridge that removes all components.
    not_repeated : tuple of two trials, or None
        The best trial and the one from a cold start with its setting, if their errors differ.
    """

    not_repeated: tuple[Trial, Trial] | None = None

    def __init__(self, trials: Trials, space: Space) -> None:
        self.trials, self.space = trials, space
        self._without: dict[tuple[Nonlinearity, Loss], tuple[Setting, float]] = {}
        self.first, self.unit = self.without_components(*space.first_model)

    @property
    def stopped(self) -> bool:
        """Whether to end with the best trial so far."""
        return self.trials.stopped()

    def run(self) -> Trial:
        """Return the trial whose setting is to be chosen."""
        best = self.ridge_path(self.best_offsets())
        best = self.without_offsets(best)
        best = self.best_nonlinearity(best)
        best = self.best_loss(best)
        if self.space.rank is None:
            best = self.climb(best, "alpha", FINEST)  # it decides how many components remain
            best = self.few_components(self.simplest(self.ranks(best)))
            best = self.best_nonlinearity(best)
        best = self.offsets_again(best)
        best = self.climb(best, "alpha", FINEST)
        if self.space.alpha is not None:
            return self.repeated(best)
        best = strongest_ridge(self, best)
        if len(self.space.nonlinearities) == 1 and not best.setting.nonlinearity.linear:
            best = best_of_long_trials(self, best)
        return self.or_offsets_alone(self.repeated(best))

    def best_offsets(self) -> Trial:
        """Return the best trial without components."""
        first, *others = self.space.kinds
        best = self.offsets_alone(self.first)
        if first not in ("none", "global") and not self.trials.is_mixed:
            best = self.climb(best, "offset_alpha", OFFSET_STEP, self.offsets_alone)
        for kind in others:
            if self.stopped or best.is_exact:
                break
            other = self.offsets_alone(best.setting._replace(offsets=kind))
            simpler = kind == "global" and not best.clearly_below(other)
            best = other if simpler or other < best else best
        self.alone = best.setting
        return best

    def ridge_path(self, null: Trial) -> Trial:
        """Return the best trial along ever weaker ridges, for the first rank.

        The path ends where the mean loss grows in two steps; trials of tables, which take long,
        hardly move with weak ridges.
        """
        space = self.space
        rank = space.rank or space.rank_near(FIRST_RANK)
        offset_alpha = min(null.setting.offset_alpha, self.first.offset_alpha)
        setting = null.setting._replace(rank=rank, offset_alpha=offset_alpha)
        if space.alpha is not None:
            return self.trials.run(setting)
        alphas = 0.5 * self.unit / COARSE ** np.arange(MAX_STEPS)
        if space.alpha_candidates is not None:
            alphas = np.array(space.alpha_candidates[::-1])
        even = setting.nonlinearity.even  # strong ridges lose the signs of WH
        best, last, grown = null, None, 0
        growth = 1e-3 if self.trials.is_mixed else 0.02
        for alpha in (alphas[::-1] if even else alphas).tolist():
            if self.stopped or best.is_exact:
                break
            starts = None if last is None else last.starts
            last = self.trials.run(setting._replace(alpha=alpha), starts)
            only = best is null and space.alpha_candidates is not None
            best = last if only else min(best, last)
            grown = grown + 1 if last.mean > (1 + growth) * best.mean else 0
            if grown == 2 and not even:
                break
        if best is null:
            return null if last is None else last
        return self.climb(best, "alpha", FINE)

    def without_offsets(self, best: Trial) -> Trial:
        """Return the best trial, or one without offsets if it is clearly better.

        Where entries have limits, offsets must be clearly better: the known entries of a column are
        those above a limit, and their mean is too high.
        """
        if self.space.offsets is not None or best.setting.offsets == "none" or self.stopped:
            return best
        without = self.trials.run(best.setting._replace(offsets="none"), best.starts)
        if without.mean < (1 + WORSE) * best.mean:
            without = self.climb(without, "alpha", FINE)
        if self.trials.has_limits:
            return best if best.clearly_below(without) else without
        return without if without.clearly_below(best, 1.0) else best

    def best_nonlinearity(self, first: Trial) -> Trial:
        """Return the best trial with one of the nonlinearities; another must be clearly better."""
        models = [(f, first.setting.loss) for f in self.space.nonlinearities]
        return self._best_model(
            first, models, lambda trial, best: trial < best and trial.clearly_below(first, 1.0)
        )

    def best_loss(self, first: Trial) -> Trial:
        """Return the best trial with one of the losses, judged by the log score or the metric."""
        values = np.concatenate([fold.held_out.values for fold in self.trials.folds])

        def score(trial: Trial) -> float:
            if self.trials.metric != "deviance":
                return trial.mean
            return float(np.mean(trial.setting.loss.log_scores(trial.losses, values)))

        models = [(first.setting.nonlinearity, loss) for loss in self.space.losses]
        return self._best_model(first, models, lambda trial, best: score(trial) < score(best))

    def _best_model(
        self,
        first: Trial,
        models: list[tuple[Nonlinearity, Loss]],
        is_better: Callable[[Trial, Trial], bool],
    ) -> Trial:
        """Return the best trial with one of some models, all of which begin as the first one."""
        best = first if first.setting[:2] in models else None
        for model in models:
            if model == first.setting[:2] or (self.stopped and best is not None):
                continue
            trial = self.with_model(first, *model)
            if best is None or is_better(trial, best):
                best = trial
        assert best is not None
        return best

    def ranks(self, first: Trial) -> Trial:
        """Return the best trial of all ranks."""
        best, last, no_gain = first, first, 0
        ratio = 2.0 if self.trials.is_mixed else RANK_RATIO  # trials of tables take long
        while larger := self.next_rank(last.setting.rank, ratio):
            allowed = RANKS_WITHOUT_GAIN if larger <= LONG_RANKS else 1
            if self.stopped or best.is_exact or no_gain >= allowed:
                break
            last = self.at_rank(last, larger)
            gains = last.mean < (1 - RANK_GAIN * larger / LONG_RANKS) * best.mean
            best, no_gain = (last, 0) if gains else (best, no_gain + 1)
        last = first
        for smaller in reversed([r for r in self.space.ranks if r < first.setting.rank]):
            if self.stopped:
                break
            last = self.at_rank(last, smaller)
            best = min(best, last)
            if not last.mean <= (1 + WORSE) * best.mean:
                break
        return best

    def offsets_again(self, best: Trial) -> Trial:
        """Return the best trial with other ridges and other kinds of offsets."""
        if best.setting.offsets not in ("none", "global"):
            best = self.climb(best, "offset_alpha", OFFSET_STEP)
        first = best
        for kind in self.space.kinds if self.space.offsets is None else ():
            if kind == first.setting.offsets or self.stopped or best.is_exact:
                continue
            other = self.trials.run(first.setting._replace(offsets=kind), first.starts)
            if other.clearly_below(best, CLEARLY if self.trials.has_limits else 1.0):
                best = other
        return best if best is first else self.climb(best, "alpha", FINE)

    def simplest(self, best: Trial) -> Trial:
        """Return the trial of smallest rank whose error is not clearly above the lowest.

        Ranks between those tried are tried, too, up to a tenth.
        """
        trials = self.of_model(best)
        chosen = next(trial for trial in trials if trial.is_close(best))
        below = max(
            (t.setting.rank for t in trials if t.setting.rank < chosen.setting.rank), default=0
        )
        while chosen.setting.rank - below > max(1, chosen.setting.rank // 10):
            if self.stopped:
                break
            rank = (chosen.setting.rank + below) // 2
            if self.space.rank_near(rank) != rank:
                break
            trial = self.trials.run(chosen.setting._replace(rank=rank), chosen.starts)
            if trial.is_close(best):
                chosen = trial
            else:
                below = rank
        return chosen

    def few_components(self, best: Trial) -> Trial:
        """Return the best trial, or one of smaller rank with a start of its own, if as good."""
        little_noise = best.error <= LITTLE_NOISE * self.trials.null_error
        if not little_noise or self.trials.is_mixed:
            return best
        for rank in range(1, min(best.setting.rank, FIRST_RANK)):
            if self.stopped:
                break
            if self.space.rank_near(rank) != rank:
                continue
            trial = self.trials.run(best.setting._replace(rank=rank), kind="long_trial")
            if trial.is_exact or trial.mean <= best.mean:
                return trial
        return best

    def repeated(self, best: Trial) -> Trial:
        """Return a trial from a cold start with the best setting, or one that repeats."""
        if self.stopped or best.is_cold:
            return best
        chosen, cold = from_cold_starts(self, best)
        if self.stopped or not math.isfinite(chosen.mean):
            return best
        self.not_repeated = None if cold is None else (best, cold)
        return chosen

    def or_offsets_alone(self, best: Trial) -> Trial:
        """Return the best trial, or that without components if it is not clearly worse."""
        if self.space.alpha_candidates is not None or self.stopped:
            return best
        f, loss = best.setting.nonlinearity, best.setting.loss
        alone, _ = self.without_components(f, loss)
        offset_alpha = self.alone.offset_alpha
        if loss != self.alone.loss:
            offset_alpha = alone.offset_alpha
        null = self.offsets_alone(
            alone._replace(offsets=self.alone.offsets, offset_alpha=offset_alpha)
        )
        return best if best.clearly_below(null) else null

    # Steps from one setting to the next: other ridges, other ranks, other models

    def without_components(self, f: Nonlinearity, loss: Loss) -> tuple[Setting, float]:
        """Return a setting of a model, and the least ridge that removes all components."""
        if (f, loss) in self._without:
            return self._without[f, loss]
        space = self.space
        rank = (space.rank_candidates or (1,))[0]
        setting = Setting(f, loss, rank, space.alpha or 1.0, space.kinds[0], 1.0)
        problem = self.trials.problems(setting)[0]
        data, rng = problem.starting_data, np.random.default_rng(0)
        start = svd_start(*data, 1, problem.offsets, rng, "randomized")
        largest = float(np.linalg.norm(start.W) * np.linalg.norm(start.H))
        natural, units = problem.penalty_scale * self.trials.mean_weight, problem.units
        tiny = math.sqrt(np.finfo(float).tiny)
        unit = max(natural * largest / units.scaled_alpha(1.0), tiny)
        of_offsets = max(natural / units.scaled_offset_alpha(1.0, 1.0), tiny)
        alpha, offset_alpha = 4 * unit, 3 * of_offsets
        setting = setting._replace(
            alpha=alpha if space.alpha is None else space.alpha,
            offset_alpha=offset_alpha if space.offset_alpha is None else space.offset_alpha,
        )
        self._without[f, loss] = setting, unit
        return setting, unit

    def offsets_alone(self, setting: Setting) -> Trial:
        """Return a trial with offsets and without components."""
        starts = []
        for problem in self.trials.problems(setting):
            (m, n), dtype = problem.observations.shape, problem.observations.dtype
            W, H = np.zeros((m, setting.rank), dtype), np.zeros((setting.rank, n), dtype)
            offsets = problem.units.given_offsets(problem.offsets)
            starts.append(Start(W, H, True, offsets))
        return self.trials.run(setting, starts, kind="offsets_alone")

    def climb(
        self, trial: Trial, name: str, factor: float, run: Callable[[Setting], Trial] | None = None
    ) -> Trial:
        """Return the best trial with a ridge divided or multiplied by a factor, again and again.

        By default all of them begin with the factors of this trial.
        """
        if getattr(self.space, name) is not None:
            return trial
        run = run or partial(self.trials.run, starts=trial.starts)
        for step in (1 / factor, factor):
            begun_at = trial
            for _ in range(MAX_STEPS):
                if self.stopped or trial.is_exact:
                    return trial
                setting = self.space.stepped(trial.setting, name, step)
                if setting is None:
                    break
                other = run(setting)
                gain = 1 - other.mean / trial.mean if trial.mean > 0 else 0.0
                trial = other if gain > ROUNDING else trial
                if not gain > LEAST_GAIN:
                    break
            if trial is not begun_at:
                break
        return trial

    def follow(
        self,
        trial: Trial,
        step: Callable[[Trial], Setting | None],
        is_better: Callable[[Trial, Trial], bool] = Trial.__lt__,
        *,
        warm: bool = False,
        **how: Any,
    ) -> Trial:
        """Return the last of a chain of trials, which ends before one that is not better.

        Each is done in the same way; it begins with the factors of the one before if `warm`.
        """
        while not self.stopped and (setting := step(trial)) is not None:
            other = self.trials.run(setting, trial.starts if warm else None, **how)
            if not is_better(other, trial):
                break
            trial = other
        return trial

    def with_model(self, trial: Trial, f: Nonlinearity, loss: Loss) -> Trial:
        """Return the best trial with another model, that begins with the factors of a trial."""
        _, unit = self.without_components(*trial.setting[:2])
        setting, other_unit = self.without_components(f, loss)
        alpha = self.space.alpha
        if alpha is None:
            alpha = self.space.alpha_near(trial.setting.alpha * other_unit / unit)
        offset_alpha = setting.offset_alpha
        if loss == trial.setting.loss:
            offset_alpha = trial.setting.offset_alpha
        other = trial.setting._replace(
            nonlinearity=f, loss=loss, alpha=alpha, offset_alpha=offset_alpha
        )
        moved = self.trials.run(other, trial.starts)
        if loss == trial.setting.loss and moved.mean > 1.04 * trial.mean:
            return moved  # another f that is so much worse does not win with another ridge
        return self.climb(moved, "alpha", FINE)

    def at_rank(self, trial: Trial, rank: int) -> Trial:
        """Return the best trial with another rank."""
        moved = self.trials.run(trial.setting._replace(rank=rank), trial.starts)
        return self.climb(moved, "alpha", FINE)

    def next_rank(self, rank: int, ratio: float) -> int | None:
        """Return the next larger rank to try, None if there is none."""
        space = self.space
        least = ratio * rank if space.rank_candidates is None else rank + 1
        larger = (r for r in space.ranks if r >= least and space.rank is None)
        return next(larger, None)

    def of_model(self, best: Trial) -> list[Trial]:
        """Return the trials with the model of a trial, the smallest rank first."""
        same = [t for t in self.trials.done if t.setting[:2] == best.setting[:2]]
        return sorted(same, key=lambda t: (t.setting.rank, t.mean))


def strongest_ridge(search: Search, best: Trial) -> Trial:
    """Return the trial of strongest ridge whose error is not clearly above the lowest."""

    def step(trial: Trial) -> Setting | None:
        enough = trial.setting.alpha >= search.unit or best.is_exact
        return None if enough else search.space.stepped(trial.setting, "alpha", COARSE)

    same = best.setting._replace(alpha=0.0)
    alike = (t for t in search.trials.done if t.setting._replace(alpha=0.0) == same)
    close = (trial for trial in alike if trial.is_close(best))
    strongest = max(close, key=lambda trial: trial.setting.alpha, default=best)
    return search.follow(strongest, step, lambda other, _: other.is_close(best), warm=True)


def from_cold_starts(search: Search, best: Trial) -> tuple[Trial, Trial | None]:
    """Return a trial from a cold start, and the one with the best setting if it is worse."""
    path = None
    if search.space.alpha is None and search.trials.may_follow_path(best.setting):
        path = search.trials.run(best.setting, kind="ridge_path")
        first = path if _repeats(path, best) else _of_best_ridge(search, path)
        wider = _of_larger_rank(search, first)
        if wider < best:
            return wider, None
    cold = search.trials.run(best.setting, kind="cold_start")
    if _repeats(cold, best):
        return cold, None
    if path is not None and _repeats(path, best) and path < cold:
        return path, None
    for setting in _as_good(search, best):
        if not search.stopped:
            search.trials.run(setting, kind="cold_start")
    _try_fewer(search, best)
    _try_stronger(search, best)
    return _best_cold(search, best), cold


def ridge_from_cold_starts(search: Search, setting: Setting, kind: Kind) -> Trial:
    """Return the best trial from cold starts, or along paths, with ridges around that given.

    Along a path larger ranks are tried, too.
    """
    best = _of_best_ridge(search, search.trials.run(setting, kind=kind))
    return _of_larger_rank(search, best) if kind == "ridge_path" else best


def _of_best_ridge(search: Search, trial: Trial) -> Trial:
    """Return the best trial that begins as this one, with ridges around its own."""
    return search.climb(trial, "alpha", FINE, partial(search.trials.run, kind=trial.kind))


def _best_cold(search: Search, best: Trial) -> Trial:
    """Return the best of all trials from a start of their own."""
    cold = (t for t in search.trials.done if t.is_cold and t.is_comparable(best))
    return min(cold, default=best)


def _of_larger_rank(search: Search, path: Trial) -> Trial:
    """Return a trial along a path whose rank is larger as long as that clearly helps."""

    def step(trial: Trial) -> Setting | None:
        rank = search.next_rank(trial.setting.rank, RANK_RATIO)
        if rank is None or trial.is_exact:
            return None
        return trial.setting._replace(rank=rank)

    def helps(other: Trial, trial: Trial) -> bool:
        return other.mean < (1 - RANK_GAIN * other.setting.rank / LONG_RANKS) * trial.mean

    return search.follow(path, step, helps, kind="ridge_path")


def _as_good(search: Search, best: Trial) -> list[Setting]:
    """Return settings of other ranks whose trials are not clearly worse than the best one."""
    tied: dict[int, Trial] = {}
    for trial in search.of_model(best):
        if trial.error <= best.error + trial.spread(best):
            tied.setdefault(trial.setting.rank, trial)
    tied.pop(best.setting.rank, None)
    ranks = sorted(tied)
    spaced = (round(k * (len(ranks) - 1) / (OTHER_RANKS - 1)) for k in range(OTHER_RANKS))
    return [tied[rank].setting for rank in sorted({ranks[k] for k in spaced if ranks})]


def _try_fewer(search: Search, best: Trial) -> None:
    """Try fewer and fewer components from cold starts, as long as that helps.

    With a linear f a start has the largest components first, and many are no worse than few.
    """
    first = _best_cold(search, best)
    if search.space.rank is not None or first.setting.nonlinearity.linear:
        return

    def step(trial: Trial) -> Setting | None:
        rank = search.space.rank_near(round(trial.setting.rank / RANK_RATIO))
        fewer = trial.error > best.error and 0 < rank < trial.setting.rank
        return trial.setting._replace(rank=rank) if fewer else None

    search.follow(first, step, kind="cold_start", refined=True)


def _try_stronger(search: Search, best: Trial) -> None:
    """Try the best setting from cold starts with stronger ridges, as long as that helps."""
    if search.space.alpha is not None:
        return

    def step(trial: Trial) -> Setting | None:
        worse = trial.error > best.error
        return search.space.stepped(trial.setting, "alpha", COARSE) if worse else None

    search.follow(_best_cold(search, best), step, kind="cold_start")


def _repeats(cold: Trial, best: Trial) -> bool:
    """Return whether the error of a trial from a cold start is not clearly above the best one."""
    return cold.error - best.error <= max(CLEARLY * cold.spread(best), 0.002 * best.error)


def best_of_long_trials(search: Search, best: Trial) -> Trial:
    """Return the best trial, which may be one of about as many iterations as a fit has.

    Where f is flat the iteration is slow, and short trials are those of a stronger ridge.  A lower
    objective can be a worse answer, so trials without refinements are tried as well.
    """
    usual = search.trials.run(best.setting, kind="long_trial", refined=True)
    if best.setting.loss.degree == 2 and best.clearly_below(usual):
        return best  # the iteration is not slow
    usual = _of_other_ridges(search, usual)
    plain = search.trials.run(usual.setting, kind="long_trial", refined=False)
    plain = _of_other_ridges(search, plain)
    chosen = plain if plain.clearly_below(usual, 3.0) else usual
    return min(best, chosen)


def _of_other_ridges(search: Search, first: Trial) -> Trial:
    """Return the best long trial with weaker ridges, with stronger ones, and with none."""
    how: dict[str, Any] = {"kind": "long_trial", "refined": first.refined}
    best = first
    for factor in (1 / COARSE, COARSE):

        def step(trial: Trial, factor: float = factor) -> Setting | None:
            return search.space.stepped(trial.setting, "alpha", factor)

        best = min(best, search.follow(first, step, **how))
    if search.stopped or search.space.alpha_near(0.0) != 0:
        return best
    return min(best, search.trials.run(first.setting._replace(alpha=0.0), **how))


class RankSearch:
    """A search for the rank alone, over the ascending ranks of a space."""

    not_repeated = None

    def __init__(self, trials: Trials, space: Space) -> None:
        self.trials, self.space = trials, space
        assert space.alpha is not None
        assert space.offset_alpha is not None
        model = space.nonlinearities[0], space.losses[0]
        self.first = Setting(*model, 1, space.alpha, "none", space.offset_alpha)

    def run(self) -> Trial:
        """Return the trial of fewest components whose error is not clearly above the lowest."""
        trials, best, no_gain = self.trials, None, 0
        for rank in self.space.ranks:
            enough = no_gain >= (RANKS_WITHOUT_GAIN if rank <= LONG_RANKS else 1)
            if best is not None and (trials.stopped() or enough):
                break
            trial = trials.run(self.first._replace(rank=rank))
            if best is None or trial < best:
                best, no_gain = trial, 0
            else:
                no_gain += 1
        assert best is not None
        if trials.stopped():
            return best
        return next(trial for trial in trials.done if not best.clearly_below(trial, 1.0))
