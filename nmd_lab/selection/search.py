"""The order in which settings are tried.

The search begins with offsets alone.  It then weakens the ridge step by step, each time from the
factors of the trial before, until the held-out error grows; compares models, which are kinds of
offsets, nonlinearities and losses; adds components, or takes some away, with the ridge adapted to
each rank; compares models again; and ends with smaller steps of the ridge and a check from a cold
start.  What is more complicated must be clearly better: components than offsets alone, offsets of
rows and columns than a mean, and many components than few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.problem.initialization import Start, svd_start
from nmd_lab.request.options import Setting, Space

from .progress import MAX_GROWTH, MIN_ERRORS, Kind, Trial
from .trials import Trials

FIRST_RANK = 8  # rank of the first trials
FINEST = 10**0.125  # factor between ridges before the ranks are compared, and at the end
OFFSET_STEP = 4.0  # factor between ridges of the offsets
MAX_RANKS_WITHOUT_GAIN = 3  # larger ones in turn that end the search; one above LONG_RANK
COARSE = 10**0.5  # factor between ridges of the first path
FINE = 10**0.25  # factor between ridges when something else has changed
MAX_STEPS = 14  # largest number of ridges in one direction
LONG_RANK = 32  # number of components with which trials take long


class Search:
    """A search for the setting of lowest held-out error.

    Attributes
    ----------
    first : Setting
        Setting without components, with moderate ridges.
    unit : float
        The least ridge that removes all components.
    drawn : str
        How the held-out entries were drawn.
    chosen : Trial or None
        The trial whose setting is chosen; None if no entry could be held out.
    not_repeated : tuple of two trials, or None
        The best trial and the one from a cold start with its setting, if their errors differ.
    """

    chosen: Trial | None = None
    not_repeated: tuple[Trial, Trial] | None = None

    def __init__(self, trials: Trials, space: Space, drawn: str = "") -> None:
        self.trials, self.space, self.stopped = trials, space, trials.stopped
        self.drawn, self.shape = drawn, trials.folds[0].rest.shape
        self._without: dict[tuple[Nonlinearity, Loss], tuple[Setting, float]] = {}
        self.first, self.unit = self.without_components(*space.first_model)

    def growth(self, m: int) -> float:
        """Return the factor from the ridges here to those of a matrix with m rows.

        The ridge removes components up to the largest singular value of the noise, which grows as
        the sum of the roots of the sides.
        """
        number, n = self.shape
        return (math.sqrt(m) + math.sqrt(n)) / (math.sqrt(number) + math.sqrt(n))

    @property
    def best(self) -> Trial | None:
        """The trial of lowest error of those that can be compared with the chosen one."""
        chosen, done = self.chosen, self.trials.done
        return None if chosen is None else min(t for t in done if t.is_comparable(chosen))

    def rows(self, m: int) -> list[dict[str, Any]]:
        """Return the rows of the trials, with ridges for all m rows."""
        best, growth = self.best, self.growth(m)
        rows = [] if best is None else [trial.row(best) for trial in self.trials.done]
        return [row | {"alpha": growth * row["alpha"]} for row in rows]

    def run(self) -> Trial:
        """Return the trial whose setting is to be chosen."""
        if self.trials.have_zeros:
            return self.fewest_components()
        best = self.ridge_path(self.best_offsets())
        best = self.best_model(self.best_kind(best, ["none"]))
        if self.space.rank is None:
            best = self.climb(best, "alpha", FINEST)  # it decides how many components remain
            best = self.best_model(self.few_components(self.simplest(self.ranks(best))))
        best = self.best_kind(self.climb(best, "offset_alpha", OFFSET_STEP), self.space.kinds)
        best = self.strongest_ridge(self.climb(best, "alpha", FINEST))
        if len(self.space.nonlinearities) == 1 and not best.setting.nonlinearity.linear:
            best = self.long_trials(best)
        return self.or_offsets_alone(self.repeated(best))

    # The moves of the search: each returns the best trial

    def best_offsets(self) -> Trial:
        """Return the best trial without components."""
        best = self.offsets_alone(self.first)
        if not self.trials.is_mixed:
            best = self.climb(best, "offset_alpha", OFFSET_STEP, self.offsets_alone)
        for kind in self.space.kinds[1:]:
            if self.stopped() or best.is_exact:
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
        alphas = (0.5 * self.unit / COARSE ** np.arange(MAX_STEPS)).tolist()
        alphas = [*(space.alpha_candidates or alphas[::-1])][::-1]
        even = setting.nonlinearity.even  # strong ridges lose the signs of WH
        best, last, grown = null, None, 0
        growth = 1e-3 if self.trials.is_mixed else 0.02
        for alpha in alphas[::-1] if even else alphas:
            if self.stopped() or best.is_exact:
                break
            weaker = setting._replace(alpha=alpha)
            if last is None:
                last = self.trials.run(weaker, kind="cold_start")
            else:
                last = self.trials.run(weaker, last.starts)
            only = best is null and space.alpha_candidates is not None
            best = last if only else min(best, last)
            grown = grown + 1 if last.mean > (1 + growth) * best.mean else 0
            if grown == 2 and not even:
                break
        if best is null:
            return null if last is None else last
        return self.climb(best, "alpha", FINE)

    def best_kind(self, first: Trial, kinds: Sequence[str]) -> Trial:
        """Return the best trial with one of the kinds of offsets; another must be clearly better.

        Where entries have limits, offsets must be clearly better than none: the known entries of a
        column are those above a limit, and their mean is too high.
        """
        if self.space.offsets is not None:
            return first
        prefers_none = self.trials.folds[0].rest.limits is not None

        def is_better(trial: Trial, best: Trial) -> bool:
            if prefers_none and trial.setting.offsets == "none":
                return not best.clearly_below(trial)
            return trial < best and trial.clearly_below(first, MIN_ERRORS if prefers_none else 1.0)

        settings = [first.setting._replace(offsets=kind) for kind in kinds]
        return self.best_of(first, settings, is_better)

    def best_model(self, first: Trial) -> Trial:
        """Return the best trial with one of the nonlinearities, and then of the losses.

        Another nonlinearity must be clearly better.  Losses are judged by the log score, or by the
        metric.
        """
        setting, space = first.setting, self.space
        settings = [self.with_model(setting, f, setting.loss) for f in space.nonlinearities]
        best = self.best_of(
            first, settings, lambda trial, best: trial < best and trial.clearly_below(first, 1.0)
        )
        setting = best.setting
        settings = [self.with_model(setting, setting.nonlinearity, loss) for loss in space.losses]
        values = np.concatenate([fold.held_out.values for fold in self.trials.folds])

        def score(trial: Trial) -> float:
            if self.trials.metric != "deviance":
                return trial.mean
            return float(np.mean(trial.setting.loss.log_scores(trial.losses, values)))

        return self.best_of(best, settings, lambda trial, best: score(trial) < score(best))

    def best_of(
        self, first: Trial, settings: list[Setting], is_better: Callable[[Trial, Trial], bool]
    ) -> Trial:
        """Return the best trial with one of some settings, that begins as the first one."""
        models = [setting[:2] for setting in settings] or [first.setting[:2]]
        best, climbed = first, [first]
        for setting in settings:
            may_stay = best.setting[:2] in models
            if setting == first.setting or (may_stay and self.stopped()):
                continue
            trial = self.trials.run(setting, first.starts)
            # without offsets, and with another model, the best ridge may be another one
            elsewhere = setting.offsets == "none" or setting[:2] != first.setting[:2]
            if not trial.is_comparable(first) or (
                elsewhere and trial.mean < (1 + MAX_GROWTH) * best.mean
            ):
                trial = self.climb(trial, "alpha", FINE)
                climbed.append(trial)
            if not may_stay or is_better(trial, best):
                best = trial
        return best if best in climbed else self.climb(best, "alpha", FINE)

    def ranks(self, first: Trial) -> Trial:
        """Return the best trial of all ranks."""
        best = self.larger_ranks(first, self.at_rank, MAX_RANKS_WITHOUT_GAIN)
        last = first
        for smaller in reversed([r for r in self.space.ranks if r < first.setting.rank]):
            if self.stopped():
                break
            last = self.at_rank(last, smaller)
            best = min(best, last)
            if not last.mean <= (1 + MAX_GROWTH) * best.mean:
                break
        return best

    def simplest(self, best: Trial) -> Trial:
        """Return the trial of smallest rank whose error is not clearly above the lowest.

        Ranks between those tried are tried, too, up to a tenth.
        """
        same = [t for t in self.trials.done if t.setting[:2] == best.setting[:2]]
        same.sort(key=lambda t: (t.setting.rank, t.mean))
        chosen = next(trial for trial in same if trial.is_close(best))
        ranks = [trial.setting.rank for trial in same]
        below = max((rank for rank in ranks if rank < chosen.setting.rank), default=0)
        while chosen.setting.rank - below > max(1, chosen.setting.rank // 10):
            rank = (chosen.setting.rank + below) // 2
            if self.stopped() or self.space.rank_near(rank) != rank:
                break
            trial = self.trials.run(chosen.setting._replace(rank=rank), chosen.starts)
            if trial.is_close(best):
                chosen = trial
            else:
                below = rank
        return chosen

    def few_components(self, best: Trial) -> Trial:
        """Return the best trial, or one of smaller rank from a cold start, if as good.

        Without noise an error from other factors may not tell that fewer components are enough.
        """
        # Of data with little noise, fewer components may be found from a start.
        if best.error > 0.07 * self.trials.null_error or self.trials.is_mixed:
            return best
        for rank in range(1, min(best.setting.rank, FIRST_RANK)):
            if self.stopped() or self.space.rank_near(rank) != rank:
                continue
            trial = self.trials.run(best.setting._replace(rank=rank), kind="cold_start")
            if trial.is_exact or trial.mean <= best.mean:
                return trial
        return best

    def strongest_ridge(self, best: Trial) -> Trial:
        """Return the trial of strongest ridge whose error is not clearly above the lowest."""
        same = best.setting._replace(alpha=0.0)
        alike = (t for t in self.trials.done if t.setting._replace(alpha=0.0) == same)
        close = (trial for trial in alike if trial.is_close(best))
        strongest = max(close, key=lambda trial: trial.setting.alpha, default=best)
        while not self.stopped() and not best.is_exact and strongest.setting.alpha < self.unit:
            setting = self.space.stepped(strongest.setting, "alpha", COARSE)
            if setting is None or self.space.alpha is not None:
                break
            stronger = self.trials.run(setting, strongest.starts)
            if not stronger.is_close(best):
                break
            strongest = stronger
        return strongest

    def long_trials(self, best: Trial) -> Trial:
        """Return the best trial, which may be one of about as many iterations as a fit has.

        Where f is flat the iteration is slow, and short trials are those of a stronger ridge.
        """
        run = partial(self.trials.run, kind="long_trial")
        trial = run(best.setting)
        if self.stopped() or best.clearly_below(trial):
            return best
        return min(best, self.climb(trial, "alpha", COARSE, run))

    def repeated(self, best: Trial) -> Trial:
        """Return the best trial that begins as a fit does, by a path of ridges or without one."""
        if self.stopped() or best.is_cold:
            return best
        chosen = None
        if self.space.alpha is None and self.trials.may_follow_path(best.setting):
            chosen = self.from_cold_start(best.setting, "ridge_path", best)
        if chosen is None or not chosen < best:
            cold = self.from_cold_start(best.setting, "cold_start", best)
            chosen = cold if chosen is None or _repeats(cold, best) else min(chosen, cold)
        return chosen if math.isfinite(chosen.mean) and not self.stopped() else best

    def from_cold_start(self, setting: Setting, kind: Kind, best: Trial | None = None) -> Trial:
        """Return the best trial from a cold start with a setting, or with other ridges.

        They are tried if the first is clearly worse than the best trial so far.  Along a path
        larger ranks are tried, too, as long as they clearly help.
        """
        run = partial(self.trials.run, kind=kind)
        trial = run(setting)
        if best is None or not _repeats(trial, best):
            if best is not None and kind == "cold_start":
                self.not_repeated = best, trial
            trial = self.climb(trial, "alpha", FINE if kind == "ridge_path" else COARSE, run)
        if kind != "ridge_path":
            return trial
        return self.larger_ranks(trial, lambda last, rank: run(last.setting._replace(rank=rank)), 1)

    def or_offsets_alone(self, best: Trial) -> Trial:
        """Return the best trial, or that without components if it is not clearly worse."""
        if self.space.alpha_candidates is not None or self.stopped():
            return best
        f, loss = best.setting.nonlinearity, best.setting.loss
        alone, _ = self.without_components(f, loss)
        if loss == self.alone.loss:
            alone = alone._replace(offset_alpha=self.alone.offset_alpha)
        null = self.offsets_alone(alone._replace(offsets=self.alone.offsets))
        return best if best.clearly_below(null) else null

    def fewest_components(self) -> Trial:
        """Return the trial of smallest rank whose error is not clearly above the lowest.

        Each begins as a fit does, with what is given of its setting.
        """

        def at_rank(_: Any, rank: int) -> Trial:
            return self.trials.run(self.first._replace(rank=rank), kind="cold_start")

        first = at_rank(None, self.space.ranks[0])
        best = self.larger_ranks(first, at_rank, MAX_RANKS_WITHOUT_GAIN, ratio=1.0)
        if self.stopped():
            return best
        return next(trial for trial in self.trials.done if not best.clearly_below(trial, 1.0))

    # Steps from one setting to the next: other ridges, other ranks, other models

    def without_components(self, f: Nonlinearity, loss: Loss) -> tuple[Setting, float]:
        """Return a setting of a model, and the least ridge that removes all components."""
        if (f, loss) in self._without:
            return self._without[f, loss]
        space = self.space
        rank = (space.rank_candidates or (1,))[0]
        setting = Setting(f, loss, rank, space.alpha or 1.0, space.kinds[0], 1.0)
        problem = self.trials.problem(setting)
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
        for index in range(len(self.trials.folds)):
            problem = self.trials.problem(setting, index)
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
        without = name == "offset_alpha" and trial.setting.offsets in ("none", "global")
        if without or getattr(self.space, name) is not None:
            return trial
        known = [] if run else self.trials.done  # other kinds of trials begin elsewhere
        run = run or partial(self.trials.run, starts=trial.starts)
        for step in (1 / factor, factor):
            begun_at = trial
            for _ in range(MAX_STEPS):
                if self.stopped() or trial.is_exact:
                    return trial
                setting = self.space.stepped(trial.setting, name, step)
                if setting is None or any(t.is_hopeless(setting, trial) for t in known):
                    break
                other = run(setting)
                gain = 1 - other.mean / trial.mean if trial.mean > 0 else 0.0
                trial = other if gain > 1e-4 else trial  # less may be rounding
                if not gain > 1e-3:  # it is worth no further step
                    break
            if trial is not begun_at:
                break
        return trial

    def with_model(self, setting: Setting, f: Nonlinearity, loss: Loss) -> Setting:
        """Return a setting with another model, and ridges in its units."""
        _, unit = self.without_components(*setting[:2])
        other, other_unit = self.without_components(f, loss)
        alpha = self.space.alpha
        if alpha is None:
            alpha = self.space.alpha_near(setting.alpha * (other_unit / unit))
        offset_alpha = setting.offset_alpha if loss == setting.loss else other.offset_alpha
        return setting._replace(nonlinearity=f, loss=loss, alpha=alpha, offset_alpha=offset_alpha)

    def at_rank(self, trial: Trial, rank: int) -> Trial:
        """Return the best trial with another rank."""
        moved = self.trials.run(trial.setting._replace(rank=rank), trial.starts)
        return self.climb(moved, "alpha", FINE)

    def larger_ranks(
        self,
        first: Trial,
        at_rank: Callable[[Trial, int], Trial],
        patience: int,
        ratio: float = 4 / 3,
    ) -> Trial:
        """Return the best trial of ever larger ranks, which end after some in turn without gain.

        `at_rank` returns a trial with another rank, after the one before it.
        """
        best, last, no_gain = first, first, 0
        ratio = 2.0 if self.trials.is_mixed else ratio  # trials of tables take long
        ratio = 1.0 if self.space.rank_candidates is not None else ratio
        while self.space.rank is None:
            least = max(last.setting.rank + 1, math.ceil(ratio * last.setting.rank))
            larger = next((rank for rank in self.space.ranks if rank >= least), None)
            if larger is None or self.stopped() or best.is_exact:
                break
            if no_gain >= (patience if larger <= LONG_RANK else 1):
                break
            last = at_rank(last, larger)
            # So much, and more for more components, is worth a larger rank.
            gains = last.mean < (1 - 0.002 * larger / LONG_RANK) * best.mean
            best, no_gain = (last, 0) if gains else (best, no_gain + 1)
        return best


def _repeats(cold: Trial, best: Trial) -> bool:
    """Return whether the error of a trial from a cold start is not clearly above the best one."""
    return cold.error - best.error <= max(MIN_ERRORS * cold.spread(best), 0.002 * best.error)
