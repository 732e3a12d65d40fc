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

import numpy as np

from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity

from .moves import (
    COARSE,
    FINE,
    LONG_RANKS,
    MAX_STEPS,
    RANK_GAIN,
    RANK_RATIO,
    Moves,
    best_of_long_trials,
    from_cold_starts,
    strongest_ridge,
)
from .trial import CLEARLY, Trial

FIRST_RANK = 8  # rank of the first trials
FINEST = 10**0.125  # factor between ridges before the ranks are compared, and at the end
OFFSET_STEP = 4.0  # factor between ridges of the offsets
RANKS_WITHOUT_GAIN = 3  # larger ones in turn that end the search; one above LONG_RANKS
LITTLE_NOISE = 0.07  # error, over that without components, up to which fewer are tried from a start
WORSE = 0.05  # growth of the mean loss at which a search for fewer components ends


class Search(Moves):
    """A search for the setting of lowest held-out error; see `Moves` for the parameters.

    Attributes
    ----------
    not_repeated : tuple of two trials, or None
        The best trial and the one from a cold start with its setting, if their errors differ.
    """

    not_repeated: tuple[Trial, Trial] | None = None

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
