"""When a trial ends: where its held-out error has converged, or where it can no longer win.

Squares converge within a few iterations.  Other losses fall slowly, so that an error that hardly
changes is no evidence before the factors are near a stationary point.  Parameters of f and of
the loss are learned on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.state import Iterate

from .trial import SETTLED, mean_score

MIN_ITERATIONS = 3  # from which changes are predicted
MAX_ITERATIONS = 80  # half as many again as the least number, if that is more
MAX_ITERATIONS_SLOW = 150  # the same where factors must be near a stationary point
ITERATIONS_ABOVE_BEST = 10  # that end a trial which keeps its lowest score
NEAR = 1e-3  # relative residual of a point that is nearly stationary
NEARER = 1e-2  # the same from which the error tells that a trial cannot win
BLOCK = 5  # iterations from whose falls of the objective further ones are predicted
MAX_RATIO = 0.97  # largest ratio of the geometric series that predicts it


def predicted_fall(
    earlier: float, before: float, last: float, max_ratio: float = MAX_RATIO
) -> float:
    """Return the further fall of a geometric series with these last terms."""
    change, ratio = before - last, max_ratio
    if before != earlier:
        ratio = min(abs(change / (before - earlier)), max_ratio)
    return change * ratio / (1.0 - ratio)


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
        self.lowest, self.fewest = lowest, fewest
        usual = MAX_ITERATIONS_SLOW if is_slow else MAX_ITERATIONS
        self.most = max(usual if most is None else most, round(1.5 * fewest))
        self._means: list[float] = []
        self._objectives: list[float] = []
        self._residual = self._lowest_here = self._before_round = math.inf
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
        self.fewest, self.is_learned = MIN_ITERATIONS, False

    @property
    def is_over(self) -> bool:
        """Whether no further iteration is worth it."""
        last = self._means[-1]
        if self.count >= self.most or not math.isfinite(last):
            return True
        if self.keeps_best:
            grown = last > (1 + SETTLED) * self._lowest_here
            late = self.count >= self.best + ITERATIONS_ABOVE_BEST
            return (grown and late) or self._residual <= NEAR
        if len(self._means) < self.fewest:
            return False
        if self.is_pruned or not self.is_learned:
            return self.is_pruned
        further = abs(self._further_fall())
        settled = further <= SETTLED * last
        return settled and (self.is_stationary if self._is_slow else further > 0)

    @property
    def counts(self) -> bool:
        """Whether a trial measures its setting, and not its start."""
        return not self._is_slow or self.is_pruned or (self.is_stationary and self.is_learned)

    @property
    def may_learn(self) -> bool:
        """Whether the factors have converged enough to learn parameters of f and of the loss."""
        enough = len(self._means) >= MIN_ITERATIONS
        return not self.is_learned and enough and (self._residual <= NEARER or self.is_stationary)

    @property
    def is_pruned(self) -> bool:
        """Whether no further iterations would bring the error below the lowest so far."""
        last = self._means[-1]
        if not math.isfinite(last):
            return True
        if self._is_slow and last > max(self.lowest, self._before_round) and self.is_stationary:
            return True  # what is learned makes it worse and worse
        near = self._residual <= NEARER or last > 1.1 * self.lowest  # which it can hardly reach
        sure = not self._is_slow or near or self.is_stationary
        return sure and min(last, last - self._further_fall()) > (1 + SETTLED) * self.lowest

    @property
    def is_stationary(self) -> bool:
        """Whether the factors are near a stationary point of the objective."""
        if self._residual <= NEAR:
            return True
        if len(self._objectives) <= 2 * BLOCK:
            return False
        earlier, before, last = self._objectives[-2 * BLOCK - 1 :: BLOCK]
        fall = predicted_fall(earlier, before, last, MAX_RATIO**BLOCK)
        return fall <= 1e-2 * abs(last)

    def _further_fall(self) -> float:
        """Return the predicted fall of the mean score by further iterations; < 0 if it grows."""
        if len(self._means) < MIN_ITERATIONS:
            return math.inf
        earlier, before, last = self._means[-MIN_ITERATIONS:]
        return predicted_fall(earlier, before, last)


class Run(NamedTuple):
    """What comes out of a trial on a fold: scores at held-out entries, and where it ended.

    `curve` has the scores after each iteration, if the trial keeps them.
    """

    losses: FloatArray
    start: Start
    progress: Progress
    curve: Sequence[FloatArray]


def best_ending(runs: Sequence[Run], metric: str, most: int) -> tuple[int, FloatArray]:
    """Return the number of iterations of lowest mean score, at most some, and these scores."""

    def after(count: int) -> FloatArray:
        return np.concatenate([run.curve[min(count, len(run.curve)) - 1] for run in runs])

    counts = range(1, 1 + min(most, max(len(run.curve) for run in runs)))
    best = min(counts, key=lambda count: mean_score(after(count), metric))
    return best, after(best)
