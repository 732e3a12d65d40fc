"""When a trial ends: near a stationary point of its objective, or where it can no longer win."""

from __future__ import annotations

import math

from nmd_lab.solver.engines.protocol import Iterate

FEWEST = 3  # least number of iterations, from which changes are predicted
MOST = 150  # largest number of iterations; half as many again as the least one, if that is more
NEAR = 1e-3  # relative residual of a point that is nearly stationary
NEARER = 1e-2  # the same from which the error tells that a trial cannot win
BLOCK = 5  # iterations from whose falls of the objective further ones are predicted
LITTLE = 1e-2  # predicted relative fall of the objective from which factors are near such a point
SETTLED = 5e-4  # predicted relative change of the mean loss that is not worth further iterations
SLOWEST = 0.97  # largest ratio of the geometric series that predicts it
HOPELESS = 1.1  # ratio of the mean loss to the lowest one from which a trial cannot win


class Progress:
    """The progress of a trial.

    Attributes
    ----------
    count : int
        Number of iterations.
    is_learned : bool
        Whether new parameters of f and of the loss would gain next to nothing.
    """

    def __init__(self, lowest: float, fewest: int, *, learns: bool = False) -> None:
        self.count, self._lowest, self._fewest = 0, lowest, max(fewest, FEWEST)
        self._most = max(MOST, round(1.5 * fewest))
        self._means: list[float] = []
        self._objectives: list[float] = []
        self._residual = math.inf
        self._before_round = math.inf
        self.is_learned = not learns

    def add(self, mean: float, iterate: Iterate) -> None:
        """Record the mean loss at held-out entries after an iteration."""
        self.count += 1
        self._means.append(mean)
        self._objectives.append(iterate.objective)
        self._residual = iterate.relative_residual

    def begin_round(self) -> None:
        """Forget the iterations with other parameters of f and of the loss."""
        self._before_round = self._means[-1]
        self._means, self._objectives = [], []
        self._fewest, self.is_learned = FEWEST, False

    @property
    def is_over(self) -> bool:
        """Whether no further iteration is worth it."""
        if self.is_late or not math.isfinite(self._means[-1]):
            return True
        if len(self._means) < self._fewest:
            return False
        if not self.is_learned:
            return self.is_hopeless
        settled = abs(self._further()) <= SETTLED * self._means[-1]
        return self.is_hopeless or (settled and self.is_stationary)

    @property
    def counts(self) -> bool:
        """Whether a trial says something of its setting, and not of where it began."""
        return self.is_hopeless or (self.is_stationary and self.is_learned)

    @property
    def may_learn(self) -> bool:
        """Whether the factors are settled enough to learn parameters of f and of the loss."""
        enough = len(self._means) >= FEWEST
        return not self.is_learned and enough and (self._residual <= NEARER or self.is_stationary)

    @property
    def is_late(self) -> bool:
        """Whether there were as many iterations as a trial may have."""
        return self.count >= self._most

    @property
    def is_hopeless(self) -> bool:
        """Whether no further iterations would bring the error below the lowest so far."""
        last, further = self._means[-1], self._further()
        if not math.isfinite(last):
            return True
        if last > max(self._lowest, self._before_round) and self.is_stationary:
            return True  # what is learned makes it worse and worse
        sure = self.is_stationary or self._residual <= NEARER or last > HOPELESS * self._lowest
        return sure and min(last, last - further) > (1 + SETTLED) * self._lowest

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
        """Return the predicted fall of the mean loss by all further iterations; < 0 if it grows."""
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
