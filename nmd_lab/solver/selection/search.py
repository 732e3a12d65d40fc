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

import numpy as np

from .fresh import (
    COARSE,
    GAIN,
    MANY,
    RATIO,
    RATIO_SLOW,
    best_of_patient,
    from_fresh_starts,
    strongest_ridge,
)
from .moves import FINE, Moves, is_close, mean_of, of_model
from .setting import KINDS, Setting, Trial

FIRST_RANK = 8  # rank of the first trials
FIRST_RIDGE = 0.5  # first ridge, relative to the one that removes all components
FINEST = 10**0.125  # factor between ridges before the ranks are compared, and at the end
OFFSET_STEP = 4.0  # factor between ridges of the offsets
MOST_RIDGES = 14  # largest number of ridges of the first path, over six powers of ten
GROWN = 0.02  # growth of the mean loss, in each of two steps, at which the path ends
GROWN_TABLE = 1e-3  # the same for tables, whose trials hardly move with weak ridges
NO_GAIN = 3  # larger ranks without such a gain that end the search; one above MANY
WORSE = 0.05  # growth of the mean loss at which a search for fewer components ends
ROUNDING = 10  # a rank is found up to a rounding of one in as many
CLEARLY = 2.0  # standard errors by which components, or offsets with limits, must be better
LITTLE_NOISE = 0.02  # error, over the largest |x|, below which few components start afresh


class Search(Moves):
    """A search for the setting of lowest held-out error; see `Moves` for the parameters.

    Attributes
    ----------
    not_repeated : tuple of two trials, or None
        The best trial and the one from a fresh start with its setting, if their errors differ.
    """

    not_repeated: tuple[Trial, Trial] | None = None

    def run(self) -> Trial:
        """Return the trial whose setting is to be chosen."""
        best = self.ridge_path(self.best_offsets())
        best = self.without_offsets(best)
        best = self.best_nonlinearity(best)
        best = self.best_loss(best)
        if self.space.rank is None:
            best = self.climb(best, "alpha", FINEST)  # it says how many components live
            best = self.few_components(self.simplest(self.ranks(best)))
            best = self.best_nonlinearity(best)
        best = self.offsets_again(best)
        best = self.climb(best, "alpha", FINEST)
        if self.space.alpha is not None:
            return self.repeated(best)
        best = strongest_ridge(self, best)
        if len(self.space.nonlinearities) == 1 and not best.setting.nonlinearity.linear:
            best = best_of_patient(self, best)
        return self.or_offsets_alone(self.repeated(best))

    def guess(self) -> Setting:
        """Return a setting without any trial: offsets alone."""
        return self.first

    def best_offsets(self) -> Trial:
        """Return the best trial without components."""
        first, *others = self.space.kinds
        best = self.offsets_alone(self.first)
        if first not in ("none", "global") and not self.trials.is_mixed:
            best = self.climb_with(best, "offset_alpha", OFFSET_STEP, self.offsets_alone)
        for kind in others:
            if self.stopped or best.is_exact:
                break
            other = self.offsets_alone(best.setting._replace(offsets=kind))
            simpler = kind == "global" and not best.clearly_below(other, CLEARLY)
            best = other if simpler or other.mean < best.mean else best
        self.alone = best.setting
        return best

    def ridge_path(self, null: Trial) -> Trial:
        """Return the best trial along ever weaker ridges, for the first rank."""
        space = self.space
        rank = space.rank or space.rank_near(FIRST_RANK)
        offset_alpha = min(null.setting.offset_alpha, self.first.offset_alpha)
        setting = null.setting._replace(rank=rank, offset_alpha=offset_alpha)
        if space.alpha is not None:
            return self.trials.run(setting)
        alphas = FIRST_RIDGE * self.unit / COARSE ** np.arange(MOST_RIDGES)
        if space.given_alphas is not None:
            alphas = np.array(space.given_alphas[::-1])
        even = setting.nonlinearity.even  # strong ridges lose the signs of WH
        best, last, grown = null, None, 0
        growth = GROWN_TABLE if self.trials.is_mixed else GROWN
        for alpha in (alphas[::-1] if even else alphas).tolist():
            if self.stopped or best.is_exact:
                break
            starts = None if last is None else last.starts
            last = self.trials.run(setting._replace(alpha=alpha), starts)
            only = best is null and space.given_alphas is not None
            best = last if only else min(best, last, key=mean_of)
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
            return best if best.clearly_below(without, CLEARLY) else without
        return without if without.clearly_below(best, 1.0) else best

    def best_nonlinearity(self, first: Trial) -> Trial:
        """Return the best trial with one of the nonlinearities; another must be clearly better."""
        allowed = self.space.nonlinearities
        best = first if first.setting.nonlinearity in allowed else None
        for f in allowed:
            if f == first.setting.nonlinearity or (self.stopped and best is not None):
                continue
            trial = self.with_model(first, f, first.setting.loss)
            if best is None or (trial.mean < best.mean and trial.clearly_below(first, 1.0)):
                best = trial
        assert best is not None
        return best

    def best_loss(self, first: Trial) -> Trial:
        """Return the best trial with one of the losses, judged by the log score or the metric."""
        best = first if first.setting.loss in self.space.losses else None
        values = np.concatenate([fold.held_out.values for fold in self.trials.folds])

        def score(trial: Trial) -> float:
            if self.trials.metric != "deviance":
                return trial.mean
            return float(np.mean(trial.setting.loss.log_scores(trial.losses, values)))

        for loss in self.space.losses:
            if loss == first.setting.loss or (self.stopped and best is not None):
                continue
            trial = self.with_model(first, first.setting.nonlinearity, loss)
            if best is None or score(trial) < score(best):
                best = trial
        assert best is not None
        return best

    def ranks(self, first: Trial) -> Trial:
        """Return the best trial of all ranks."""
        space = self.space
        best, last, rank, no_gain = first, first, first.setting.rank, 0
        ratio = RATIO_SLOW if self.trials.is_mixed else RATIO
        for larger in space.ranks:
            if larger <= rank or (space.given_ranks is None and larger < ratio * rank):
                continue
            allowed = NO_GAIN if larger <= MANY else 1
            if self.stopped or best.is_exact or no_gain >= allowed:
                break
            last, rank = self.at_rank(last, larger), larger
            gain = GAIN * larger / MANY
            no_gain = 0 if last.mean < (1 - gain) * best.mean else no_gain + 1
            best = best if no_gain else last
        last = first
        for smaller in reversed([rank for rank in space.ranks if rank < first.setting.rank]):
            if self.stopped:
                break
            last = self.at_rank(last, smaller)
            best = min(best, last, key=mean_of)
            if not last.mean <= (1 + WORSE) * best.mean:
                break
        return best

    def offsets_again(self, best: Trial) -> Trial:
        """Return the best trial with other ridges and other kinds of offsets."""
        if best.setting.offsets not in ("none", "global"):
            best = self.climb(best, "offset_alpha", OFFSET_STEP)
        kinds = KINDS if self.space.offsets is None else ()
        first = best
        for kind in kinds:
            if kind == first.setting.offsets or self.stopped or best.is_exact:
                continue
            other = self.trials.run(first.setting._replace(offsets=kind), first.starts)
            if other.clearly_below(best, CLEARLY if self.trials.has_limits else 1.0):
                best = other
        return best if best is first else self.climb(best, "alpha", FINE)

    def simplest(self, best: Trial) -> Trial:
        """Return the trial of smallest rank whose error is not clearly above the lowest.

        Ranks between those tried are tried, too.
        """
        trials = of_model(self, best)
        chosen = next(trial for trial in trials if is_close(trial, best))
        below = max(
            (t.setting.rank for t in trials if t.setting.rank < chosen.setting.rank), default=0
        )
        while chosen.setting.rank - below > max(1, chosen.setting.rank // ROUNDING):
            if self.stopped:
                break
            rank = (chosen.setting.rank + below) // 2
            if not self.space.allows_rank(rank):
                break
            trial = self.trials.run(chosen.setting._replace(rank=rank), chosen.starts)
            if is_close(trial, best):
                chosen = trial
            else:
                below = rank
        return chosen

    def few_components(self, best: Trial) -> Trial:
        """Return the best trial, or one of smaller rank with a start of its own, if as good."""
        little = best.error <= LITTLE_NOISE * self.trials.size
        if not little or not best.starts or self.trials.is_mixed:
            return best
        for rank in range(1, min(best.setting.rank, FIRST_RANK)):
            if self.stopped:
                break
            if not self.space.allows_rank(rank):
                continue
            trial = self.trials.run(best.setting._replace(rank=rank), patient=True)
            if trial.is_exact or trial.mean <= best.mean:
                return trial
        return best

    def repeated(self, best: Trial) -> Trial:
        """Return a trial from a fresh start with the best setting, or one that repeats."""
        if self.stopped or best.cold:
            return best
        chosen, fresh = from_fresh_starts(self, best)
        if self.stopped or not math.isfinite(chosen.mean):
            return best
        self.not_repeated = None if fresh is None else (best, fresh)
        return chosen

    def or_offsets_alone(self, best: Trial) -> Trial:
        """Return the best trial, or that without components if it is not clearly worse."""
        if self.space.given_alphas is not None or self.stopped:
            return best
        f, loss = best.setting.nonlinearity, best.setting.loss
        alone, _ = self.without_components(f, loss)
        offset_alpha = self.alone.offset_alpha
        if loss != self.alone.loss:
            offset_alpha = alone.offset_alpha
        null = self.offsets_alone(
            alone._replace(offsets=self.alone.offsets, offset_alpha=offset_alpha)
        )
        return best if best.clearly_below(null, CLEARLY) else null
