"""When a trial ends: where its held-out error has settled, or where it can no longer win.

Squares settle within a few iterations.  Other losses fall slowly, so that an error that hardly
changes says nothing before the factors are near a stationary point.  What a fit learns of f and of
the loss is learned on the way.

The comparison of a trial with the best one so far, fold after fold.

A trial that is clearly worse on some folds does not do the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.engines.protocol import Iterate
from nmd_lab.solver.initialization import Start

from .folds import Fold
from .setting import Setting, Trial, mean_score

FEWEST = 3  # least number of iterations, from which changes are predicted
MOST = 80  # largest number of iterations; half as many again as the least one, if that is more
MOST_SLOW = 150  # the same where factors must be near a stationary point
NEAR = 1e-3  # relative residual of a point that is nearly stationary
NEARER = 1e-2  # the same from which the error tells that a trial cannot win
BLOCK = 5  # iterations from whose falls of the objective further ones are predicted
LITTLE = 1e-2  # predicted relative fall of the objective from which factors are near such a point
SETTLED = 5e-4  # predicted relative change of the mean score that is not worth further iterations
SLOWEST = 0.97  # largest ratio of the geometric series that predicts it
IN_VAIN = 10  # iterations above the lowest score that end a trial which keeps that
HOPELESS = 1.1  # ratio of the mean score to the lowest one from which a slow trial cannot win


class Progress:
    """The progress of a trial on the entries of a fold.

    Parameters
    ----------
    lowest : float
        Lowest mean score of other trials.
    fewest : int
        Least number of iterations.
    most : int, optional
        Largest number of iterations.
    is_slow : bool
        Whether the factors must be near a stationary point.
    learns : bool
        Whether parameters of f or of the loss are learned.
    keeps_best : bool
        Whether the iterate of lowest score is kept, which ends a trial once the score grows.

    Attributes
    ----------
    count : int
        Number of iterations.
    lowest, fewest, most : float, int, int
        Lowest mean score of other trials, and the least and the largest number of iterations.
    best : int
        Number of the iteration of lowest mean score.
    is_learned : bool
        Whether new parameters of f and of the loss would gain next to nothing.
    """

    def __init__(
        self,
        lowest: float,
        fewest: int,
        *,
        most: int | None = None,
        is_slow: bool = False,
        learns: bool = False,
        keeps_best: bool = False,
    ) -> None:
        self.count, self.best, self.keeps_best = 0, 0, keeps_best
        self.lowest, self.fewest, self._lowest_here = lowest, max(fewest, FEWEST), math.inf
        usual = MOST_SLOW if is_slow else MOST
        self.most = max(usual if most is None else most, round(1.5 * fewest))
        self._means: list[float] = []
        self._objectives: list[float] = []
        self._residual = math.inf
        self._before_round = math.inf
        self._is_slow, self.is_learned = is_slow, not learns

    def add(self, mean: float, iterate: Iterate) -> None:
        """Record the mean score at held-out entries after an iteration."""
        self.count += 1
        self._means.append(mean)
        self._objectives.append(iterate.objective)
        self._residual = iterate.relative_residual
        if mean < self._lowest_here:
            self.best, self._lowest_here = self.count, mean

    def begin_round(self) -> None:
        """Forget the iterations with other parameters of f and of the loss."""
        self._before_round = self._means[-1]
        self._means, self._objectives = [], []
        self.fewest, self.is_learned = FEWEST, False

    @property
    def is_over(self) -> bool:
        """Whether no further iteration is worth it."""
        if self.is_late or not math.isfinite(self._means[-1]):
            return True
        if self.keeps_best:
            grown = self._means[-1] > (1 + SETTLED) * self._lowest_here
            return (grown and self.count >= self.best + IN_VAIN) or self._residual <= NEAR
        if len(self._means) < self.fewest:
            return False
        if self.is_hopeless or not self.is_learned:
            return self.is_hopeless
        further = abs(self._further())
        settled = further <= SETTLED * self._means[-1]
        return settled and (self.is_stationary if self._is_slow else further > 0)

    @property
    def counts(self) -> bool:
        """Whether a trial says something of its setting, and not of where it began."""
        if not self._is_slow:
            return True
        return self.is_hopeless or (self.is_stationary and self.is_learned)

    @property
    def may_learn(self) -> bool:
        """Whether the factors are settled enough to learn parameters of f and of the loss."""
        enough = len(self._means) >= FEWEST
        return not self.is_learned and enough and (self._residual <= NEARER or self.is_stationary)

    @property
    def is_late(self) -> bool:
        """Whether there were as many iterations as a trial may have."""
        return self.count >= self.most

    @property
    def is_hopeless(self) -> bool:
        """Whether no further iterations would bring the error below the lowest so far."""
        last, further = self._means[-1], self._further()
        if not math.isfinite(last):
            return True
        if self._is_slow and last > max(self.lowest, self._before_round) and self.is_stationary:
            return True  # what is learned makes it worse and worse
        nearly = self.is_stationary or self._residual <= NEARER
        sure = not self._is_slow or nearly or last > HOPELESS * self.lowest
        return sure and min(last, last - further) > (1 + SETTLED) * self.lowest

    @property
    def is_stationary(self) -> bool:
        """Whether the factors are near a stationary point of the objective."""
        if self._residual <= NEAR:
            return True
        if len(self._objectives) <= 2 * BLOCK:
            return False
        earlier, before, last = self._objectives[-2 * BLOCK - 1 :: BLOCK]
        return _fall(earlier, before, last, SLOWEST**BLOCK) <= LITTLE * abs(last)

    def _further(self) -> float:
        """Return the predicted fall of the mean score by further iterations; < 0 if it grows."""
        if len(self._means) < FEWEST:
            return math.inf
        earlier, before, last = self._means[-FEWEST:]
        return _fall(earlier, before, last, SLOWEST)


def _fall(earlier: float, before: float, last: float, slowest: float) -> float:
    """Return the predicted further fall of a geometric series; its ratio is at most `slowest`."""
    change, rate = before - last, slowest
    if abs(before - earlier) > 0:
        rate = min(abs(change / (before - earlier)), slowest)
    return change * rate / (1 - rate)


BEATEN = 2.0  # standard errors of the excess over the best trial from which it is clear


class Run(NamedTuple):
    """What comes out of a trial on a fold: scores at held-out entries, and where it ended.

    `curve` has the scores after each iteration, if the trial keeps them.
    """

    losses: FloatArray
    start: Start
    progress: Progress
    curve: list[FloatArray]


def scores_of(runs: Sequence[Run]) -> FloatArray:
    """Return the scores at the held-out entries of all folds."""
    return np.concatenate([run.losses for run in runs])


def best_ending(runs: Sequence[Run], metric: str, most: int) -> tuple[int, FloatArray]:
    """Return the number of iterations of lowest mean score, at most some, and these scores."""

    def after(count: int) -> FloatArray:
        return np.concatenate([run.curve[min(count, len(run.curve)) - 1] for run in runs])

    counts = range(1, 1 + min(most, max(len(run.curve) for run in runs)))
    best = min(counts, key=lambda count: mean_score(after(count), metric))
    return best, after(best)


def lowest_of(done: Sequence[Trial], setting: Setting) -> Trial | None:
    """Return the best trial with the loss of a setting; None if there is none that counts."""
    same = [t for t in done if t.setting.loss == setting.loss and math.isfinite(t.mean)]
    return min(same, key=lambda trial: trial.mean, default=None)


def mean_at(trial: Trial, index: int, folds: Sequence[Fold]) -> float:
    """Return the mean score of a trial at the held-out entries of a fold."""
    before = sum(fold.held_out.n_observed for fold in folds[:index])
    at = slice(before, before + folds[index].held_out.n_observed)
    return mean_score(trial.losses[at], trial.metric)


def is_beaten(losses: FloatArray, best: Trial) -> bool:
    """Return whether scores at the held-out entries of the first folds are clearly worse."""
    excess = losses - best.losses[: losses.size]
    error = float(np.std(excess)) / math.sqrt(excess.size)
    scale = 1.0 if best.metric == "log_score" else best.mean
    return bool(np.mean(excess) > max(BEATEN * error, SETTLED * scale))


def completed(losses: FloatArray, best: Trial | None) -> FloatArray:
    """Return scores at the held-out entries of all folds.

    On folds that were left out they exceed those of the best trial as on the others.
    """
    if best is None or losses.size == best.losses.size:
        return losses
    rest = best.losses[losses.size :]
    excess = np.resize(losses - best.losses[: losses.size], rest.size)
    return np.concatenate([losses, rest + excess])
