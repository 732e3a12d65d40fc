"""The order in which settings are tried.

The search begins with offsets alone.  It then weakens the ridge step by step, each time from the
factors of the trial before, until the held-out error grows; compares nonlinearities and losses;
adds components, or takes some away, with the ridge adapted to each rank; compares the kinds of
offsets; and ends with smaller steps of the ridges.  What is more complicated must be clearly
better: components than offsets alone, offsets of rows and columns than a mean, and many components
than few.
"""

from __future__ import annotations

import numpy as np

from .candidates import log_likelihood
from .moves import COARSE, FINE, Moves, both
from .progress import SETTLED
from .setting import Setting, Trial
from .space import KINDS

FIRST_RANK = 8  # rank of the first trials
FIRST_RIDGE = 0.5  # first ridge, relative to the one that removes all components
FINEST = 10**0.125  # factor between ridges before the ranks are compared, and at the end
OFFSET_STEP = 4.0  # factor between ridges of the offsets
MOST_RIDGES = 14  # largest number of ridges of the first path, over six powers of ten
GROWN = 0.02  # growth of the mean loss, in each of two steps, at which the path ends
RATIO = 4 / 3  # least ratio between a rank and a larger one to try
MANY = 32  # number of components with which trials take long
GAIN = 0.002  # decrease of the mean loss that is worth so many components; less is worth fewer
NO_GAIN = 2  # larger ranks without such a gain that end the search; one above MANY
WORSE = 0.05  # growth of the mean loss at which a search for fewer components ends
TOLERATED = 0.0005  # largest growth of the error that fewer components may cost
ROUNDING = 10  # a rank is found up to a rounding of one in as many
CLEARLY = 2.0  # standard errors by which components, or offsets with limits, must be better
SURELY = 3.0  # standard errors by which fewer components are worse that end the search for such
SAME = 2.0  # standard errors of the difference up to which a fresh start ends at the same
DIFFERENT = 0.002  # relative difference up to which it does, too
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
            best = self.best_rank(best)
            other = self.best_nonlinearity(best)
            best = best if other is best else self.best_rank(other)
        best = self.offsets_again(best)
        best = self.climb(best, "alpha", *both(FINEST))
        if self.space.alpha is not None:
            return best
        return self.or_offsets_alone(self.repeated(self.strongest_ridge(best)))

    def guess(self) -> Setting:
        """Return a setting without any trial: offsets alone."""
        return self.first

    def best_offsets(self) -> Trial:
        """Return the best trial without components; offsets must be clearly better than a mean."""
        _, *others = self.space.kinds
        best = self.offsets_alone(self.first)
        for kind in others:
            if self.stopped or best.is_exact:
                break
            other = self.offsets_alone(best.setting._replace(offsets=kind))
            simpler = kind == "global" and not best.clearly_below(other, CLEARLY)
            best = other if simpler or other.mean < best.mean else best
        if best.setting.offsets not in ("none", "global"):
            steps = both(OFFSET_STEP)
            best = self.climb_with(best, "offset_alpha", steps, self.offsets_alone)
        self.alone = best.setting
        return best

    def ridge_path(self, null: Trial) -> Trial:
        """Return the best trial along ever weaker ridges, for the first rank."""
        space = self.space
        rank = space.rank or min(FIRST_RANK, space.largest_rank)
        offset_alpha = min(null.setting.offset_alpha, self.first.offset_alpha)
        setting = null.setting._replace(rank=rank, offset_alpha=offset_alpha)
        if space.alpha is not None:
            return self.trials.run(setting)
        alphas = FIRST_RIDGE * self.unit / COARSE ** np.arange(MOST_RIDGES)
        even = setting.nonlinearity.even  # strong ridges lose the signs of WH
        best, last, grown = null, None, 0
        for alpha in (alphas[::-1] if even else alphas).tolist():
            if self.stopped or best.is_exact:
                break
            starts = None if last is None else last.starts
            last = self.trials.run(setting._replace(alpha=alpha), starts)
            best = min(best, last, key=_mean)
            grown = grown + 1 if last.mean > (1 + GROWN) * best.mean else 0
            if grown == 2 and not even:
                break
        if best is null:
            return null if last is None else last
        return self.climb(best, "alpha", *both(FINE))

    def without_offsets(self, best: Trial) -> Trial:
        """Return the best trial, or one without offsets if it is clearly better.

        Where entries have limits, offsets must be clearly better: the known entries of a column are
        those above a limit, and their mean is too high.
        """
        if self.space.offsets is not None or best.setting.offsets == "none" or self.stopped:
            return best
        without = self.trials.run(best.setting._replace(offsets="none"), best.starts)
        if without.mean < (1 + GROWN) * best.mean:
            without = self.climb(without, "alpha", *both(FINE))
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
        """Return the best trial with one of the losses, judged by the likelihood."""
        best = first if first.setting.loss in self.space.losses else None
        values = np.concatenate([fold.held_out.values for fold in self.trials.folds])

        def likelihood(trial: Trial) -> float:
            return log_likelihood(trial.setting.loss, trial.mean, values)

        for loss in self.space.losses:
            if loss == first.setting.loss or (self.stopped and best is not None):
                continue
            trial = self.with_model(first, first.setting.nonlinearity, loss)
            if best is None or likelihood(trial) > likelihood(best):
                best = trial
        assert best is not None
        return best

    def best_rank(self, first: Trial) -> Trial:
        """Return the best trial with any rank, of several about equally good ones the smallest."""
        return self.few_components(self.simplest(self.ranks(first)))

    def ranks(self, first: Trial) -> Trial:
        """Return the best trial of all ranks."""
        best, last, rank, no_gain = first, first, first.setting.rank, 0
        for larger in self.space.ranks:
            if larger < RATIO * rank:
                continue
            allowed = NO_GAIN if larger <= MANY else 1
            if self.stopped or best.is_exact or no_gain >= allowed or last.has_spare_components:
                break
            last, rank = self.at_rank(last, larger), larger
            gain = GAIN * larger / MANY
            no_gain = 0 if last.mean < (1 - gain) * best.mean else no_gain + 1
            best = best if no_gain else last
        last = first
        for smaller in reversed([rank for rank in self.space.ranks if rank < first.setting.rank]):
            if self.stopped:
                break
            last = self.at_rank(last, smaller)
            best = min(best, last, key=_mean)
            surely = best.clearly_below(last, SURELY) and last.mean > (1 + GROWN) * best.mean
            if surely or not last.mean <= (1 + WORSE) * best.mean:
                break
        return self.climb(best, "alpha", *both(FINE))

    def offsets_again(self, best: Trial) -> Trial:
        """Return the best trial with other ridges and other kinds of offsets."""
        if best.setting.offsets not in ("none", "global"):
            best = self.climb(best, "offset_alpha", *both(OFFSET_STEP))
        kinds = KINDS if self.space.offsets is None else ()
        first = best
        for kind in kinds:
            if kind == first.setting.offsets or self.stopped or best.is_exact:
                continue
            other = self.trials.run(first.setting._replace(offsets=kind), first.starts)
            if other.clearly_below(best, CLEARLY if self.trials.has_limits else 1.0):
                best = other
        return best if best is first else self.climb(best, "alpha", *both(FINE))

    def simplest(self, best: Trial) -> Trial:
        """Return the trial of smallest rank whose error is not clearly above the lowest.

        Ranks between those tried are tried, too.
        """
        trials = self._of_model(best)
        chosen = next(trial for trial in trials if self._close(trial, best))
        below = max(
            (t.setting.rank for t in trials if t.setting.rank < chosen.setting.rank), default=0
        )
        while chosen.setting.rank - below > max(1, chosen.setting.rank // ROUNDING):
            if self.stopped:
                break
            rank = (chosen.setting.rank + below) // 2
            trial = self.trials.run(chosen.setting._replace(rank=rank), chosen.starts)
            if self._close(trial, best):
                chosen = trial
            else:
                below = rank
        return chosen

    def few_components(self, best: Trial) -> Trial:
        """Return the best trial, or one of smaller rank with a start of its own, if as good."""
        if best.error > LITTLE_NOISE * self.trials.size or self.trials.is_mixed:
            return best
        for rank in range(1, min(best.setting.rank, FIRST_RANK)):
            if self.stopped:
                break
            trial = self.trials.run(best.setting._replace(rank=rank), patient=True)
            if trial.is_exact or trial.mean <= best.mean:
                return trial
        return best

    def _of_model(self, best: Trial) -> list[Trial]:
        """Return the trials of a model with components, the smallest rank first."""
        model = best.setting[:2]
        same = [t for t in self.trials.done if t.setting[:2] == model and t.starts]
        return sorted(same, key=lambda t: (t.setting.rank, t.mean))

    def _close(self, trial: Trial, best: Trial) -> bool:
        """Return whether the error of a trial is not clearly above the lowest."""
        allowed = min(max(trial.spread(best), SETTLED * best.error / 2), TOLERATED * best.error)
        return trial is best or trial.error <= best.error + allowed

    def strongest_ridge(self, best: Trial) -> Trial:
        """Return the trial of strongest ridge whose error is not clearly above the lowest."""
        alike = [t for t in self.trials.done if t.starts and _but_ridge(t) == _but_ridge(best)]
        close = [trial for trial in alike if self._close(trial, best)]
        strongest = max(close, key=lambda trial: trial.setting.alpha)
        while strongest.setting.alpha < self.unit and not self.stopped:
            setting = strongest.setting._replace(alpha=COARSE * strongest.setting.alpha)
            stronger = self.trials.run(setting, strongest.starts)
            if not self._close(stronger, best):
                break
            strongest = stronger
        return strongest

    def repeated(self, best: Trial) -> Trial:
        """Return a trial from a fresh start with the best setting, or one that repeats.

        Where a fresh start ends elsewhere, the error of the best trial is that of the way to it.
        Then ridges are made stronger, from fresh starts, as long as that lowers the error.
        """
        if self.stopped or best.is_exact:
            return best
        fresh = self.trials.run(best.setting, fresh=True)
        allowed = max(SAME * fresh.spread(best), DIFFERENT * best.error)
        if abs(fresh.error - best.error) <= allowed or self.stopped:
            return fresh
        self.not_repeated = best, fresh
        while fresh.error > best.error and self.space.alpha is None and not self.stopped:
            alpha = COARSE * fresh.setting.alpha
            stronger = self.trials.run(fresh.setting._replace(alpha=alpha), fresh=True)
            if stronger.mean >= fresh.mean:
                break
            fresh = stronger
        return fresh

    def or_offsets_alone(self, best: Trial) -> Trial:
        """Return the best trial, or that without components if it is not clearly worse."""
        f, loss = best.setting.nonlinearity, best.setting.loss
        alone, _ = self.without_components(f, loss)
        offset_alpha = self.alone.offset_alpha
        if loss != self.alone.loss:
            offset_alpha = alone.offset_alpha
        null = self.offsets_alone(
            alone._replace(offsets=self.alone.offsets, offset_alpha=offset_alpha)
        )
        return best if best.clearly_below(null, CLEARLY) else null


def _mean(trial: Trial) -> float:
    return trial.mean


def _but_ridge(trial: Trial) -> Setting:
    """Return the setting of a trial but for its ridge."""
    return trial.setting._replace(alpha=0.0)
