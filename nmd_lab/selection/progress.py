"""The outcome of a trial, how it compares with others, and when a trial ends.

It ends where its held-out error has converged, or where it can no longer win.  Squares converge
within a few iterations.  Other losses fall slowly, so that an error that hardly changes is no
evidence before the factors are near a stationary point.  Parameters of f and of the loss are
learned on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray
from nmd_lab.problem.initialization import Start
from nmd_lab.request.options import Setting

MIN_ERRORS = 2.0  # standard errors of a difference from which it is clear
SCORE_TOL = 5e-4  # relative change of the mean score that is worth no further iterations
MAX_GROWTH = 0.05  # of the mean loss; beyond it another ridge or fewer components cannot help

MEASURES = {
    "deviance": "mean loss",
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
    "log_score": "log score",
}
"""Names of errors, by metric."""

Kind = Literal["short", "long_trial", "cold_start", "ridge_path", "offsets_alone"]
"""How a trial is done.

"short" ends once it cannot be the best one, "long_trial" as well, after about as many iterations as
a fit has.  "cold_start" begins as a fit does and continues even
if others are better.  "ridge_path" begins as ``init="path"`` does, and has the scores after as many
iterations as are best.  "offsets_alone" has no components, and continues, since the best trial is
compared with it.
"""


def mean_score(scores: NDArray[np.floating], metric: str) -> float:
    """Return the mean of scores, with a zero: for logarithms the exponential of their mean."""
    with np.errstate(invalid="ignore", over="ignore"):
        mean = float(np.mean(scores))
        mean = float(np.exp(mean)) if metric == "log_score" else mean
    return mean if math.isfinite(mean) else math.inf


@dataclass(eq=False)
class Trial:
    """The outcome of a trial.

    Attributes
    ----------
    setting : Setting
        What was tried.
    losses : ndarray (n_held_out,)
        Weighted score at each held-out entry of all folds: by default its loss.  They are infinite
        for a trial that does not measure its setting, but its start.
    n_iter : int
        Number of iterations, of all folds together.
    seconds : float
        Duration.
    starts : list of Start
        Last factors of each fold, in the units of X.
    kind : str
        How it was done.
    metric : {"deviance", "rmse", "mae", "log_score"}
        What the scores are.
    is_exact : bool
        Whether there is no error, up to rounding.
    ending : int or None
        Number of iterations of lowest error after a path of ridges; None without a path.
    mean : float
        Mean score, which is to be lowest; infinite if it is not finite.
    is_cold : bool
        Whether it began as a fit does, and not with the factors of another trial.
    squares : bool
        Whether the mean is half of that of squares.
    error : float
        The mean, or the root of twice the mean if that is one of squares.
    measure : str
        Name of what `row` has as error.
    """

    setting: Setting
    losses: NDArray[np.floating]
    n_iter: int
    seconds: float
    starts: list[Start] = field(default_factory=list)
    kind: Kind = "short"
    metric: str = "deviance"
    is_exact: bool = False
    ending: int | None = None

    def __post_init__(self) -> None:
        """Compute what comparisons need."""
        self.mean = mean_score(self.losses, self.metric)
        self.is_cold = self.kind in ("cold_start", "ridge_path")
        by_loss = self.metric == "deviance" and self.setting.loss.squares
        self.squares = by_loss or self.metric == "rmse"
        self.error = math.sqrt(2 * self.mean) if self.squares else self.mean
        self.measure = MEASURES["rmse" if self.squares else self.metric]

    def __lt__(self, other: Trial) -> bool:
        """Return whether the mean score is below that of another trial."""
        return self.mean < other.mean

    def gaussian_sd(self, at: NDArray[np.bool_]) -> float:
        """Return the standard deviation of Gaussian noise that has the mean score of some entries.

        Only for the Frobenius loss.
        """
        mean = mean_score(self.losses[at], self.metric)
        if self.squares:
            return math.sqrt(2 * mean)
        score = math.sqrt(2 * math.pi * math.e)  # exponential of the log score of sd 1
        return mean * (math.sqrt(math.pi / 2) if self.metric == "mae" else 1 / score)

    def is_comparable(self, other: Trial) -> bool:
        """Return whether the mean has the same meaning as that of another trial."""
        return self.metric != "deviance" or self.setting.loss == other.setting.loss

    def spread(self, best: Trial) -> float:
        """Return the standard error of the difference of `error` to that of another trial.

        It is NaN for trials with different losses.
        """
        if not (self.is_comparable(best) and math.isfinite(self.mean) and math.isfinite(best.mean)):
            return math.nan
        losses, others = self.losses, best.losses
        if self.squares:  # the error is the root of twice the mean
            tiny = math.sqrt(np.finfo(float).tiny)
            losses, others = losses / max(self.error, tiny), others / max(best.error, tiny)
        of_difference = float(np.std(losses - others)) / math.sqrt(losses.size)
        return of_difference * (best.mean if self.metric == "log_score" else 1.0)

    def clearly_below(self, other: Trial, number: float = MIN_ERRORS) -> bool:
        """Return whether `error` is below that of another trial by a number of standard errors."""
        if not math.isfinite(other.mean):
            return math.isfinite(self.mean)
        return other.error - self.error > number * self.spread(other)

    def is_close(self, best: Trial) -> bool:
        """Return whether the error is not clearly above the lowest, nor much if that is unsure."""
        allowed = min(max(self.spread(best), SCORE_TOL / 2 * best.error), SCORE_TOL * best.error)
        return self is best or self.error <= best.error + allowed

    def is_hopeless(self, setting: Setting, best: Trial) -> bool:
        """Return whether it had a setting, up to rounding, and was much worse than another one."""
        mine = self.setting
        return (
            self.mean > (1 + MAX_GROWTH) * best.mean
            and mine._replace(alpha=setting.alpha) == setting
            and math.isclose(mine.alpha, setting.alpha)
        )

    def prunes(self, losses: NDArray[np.floating]) -> bool:
        """Return whether scores of another trial on the first folds are clearly worse."""
        excess = losses - self.losses[: losses.size]
        error = float(np.std(excess)) / math.sqrt(excess.size)
        scale = 1.0 if self.metric == "log_score" else self.mean
        return bool(np.mean(excess) > max(MIN_ERRORS * error, SCORE_TOL * scale))

    def completed(self, losses: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return scores of another trial on all folds.

        On folds that were left out they exceed those of this one as on the others.
        """
        rest = self.losses[losses.size :]
        excess = np.resize(losses - self.losses[: losses.size], rest.size)
        return np.concatenate([losses, rest + excess])

    def row(self, best: Trial) -> dict[str, Any]:
        """Return the row of `Decomposition.selection`."""
        names = {"nonlinearity": repr(self.setting.nonlinearity), "loss": self.setting.loss.name}
        error = self.error if math.isfinite(self.error) else math.nan
        spread = self.spread(best)
        if self.metric == "log_score":
            error, spread = math.log(error), spread / best.mean
        outcome = {"error": error, "spread": spread, "n_iter": self.n_iter, "seconds": self.seconds}
        return self.setting._asdict() | names | outcome


MIN_ITERATIONS = 3  # from which changes are predicted
MAX_ITERATIONS = 80  # half as many again as the least number, if that is more
MAX_ITERATIONS_SLOW = 150  # the same where factors must be near a stationary point
RESIDUAL_TOL = 1e-3  # relative residual of a point that is nearly stationary
NEAR_TOL = 1e-2  # the same from which the error tells that a trial cannot win
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

    def add(
        self, mean: float | None, objective: float = math.nan, residual: float = math.inf
    ) -> None:
        """Record the mean score at held-out entries after an iteration, and what else is known.

        There may be no score where it is not needed.
        """
        mean = 0.0 if mean is None else mean  # which nothing reads
        self.count += 1
        self._means.append(mean)
        self._objectives.append(objective)
        self._residual = residual
        if mean < self._lowest_here:
            self.best, self._lowest_here = self.count, mean

    def begin_round(self) -> None:
        """Forget the iterations with other parameters of f and of the loss."""
        self._before_round = self._means[-1]
        self._means, self._objectives = [], []
        self.fewest, self.is_learned = MIN_ITERATIONS, False

    @property
    def needs_score(self) -> bool:
        """Whether the score after the next iteration decides, now or later."""
        late = self.count >= self.fewest - MIN_ITERATIONS
        return late or self.keeps_best or not self.is_learned

    @property
    def is_over(self) -> bool:
        """Whether no further iteration is worth it."""
        last = self._means[-1]
        if self.count >= self.most or not math.isfinite(last):
            return True
        if self.keeps_best:
            grown = last > (1 + SCORE_TOL) * self._lowest_here
            late = self.count >= self.best + 10  # iterations above the lowest score
            return (grown and late) or self._residual <= RESIDUAL_TOL
        if len(self._means) < self.fewest:
            return False
        if self.is_pruned or not self.is_learned:
            return self.is_pruned
        further = abs(self._further_fall())
        settled = further <= SCORE_TOL * last
        return settled and (self.is_stationary if self._is_slow else further > 0)

    @property
    def counts(self) -> bool:
        """Whether a trial measures its setting, and not its start."""
        return not self._is_slow or self.is_pruned or (self.is_stationary and self.is_learned)

    @property
    def may_learn(self) -> bool:
        """Whether the factors have converged enough to learn parameters of f and of the loss."""
        enough = len(self._means) >= MIN_ITERATIONS
        return not self.is_learned and enough and (self._residual <= NEAR_TOL or self.is_stationary)

    @property
    def is_pruned(self) -> bool:
        """Whether no further iterations would bring the error below the lowest so far."""
        last = self._means[-1]
        if not math.isfinite(last):
            return True
        if self._is_slow and last > max(self.lowest, self._before_round) and self.is_stationary:
            return True  # what is learned makes it worse and worse
        near = self._residual <= NEAR_TOL or last > 1.1 * self.lowest  # which it can hardly reach
        sure = not self._is_slow or near or self.is_stationary
        return sure and min(last, last - self._further_fall()) > (1 + SCORE_TOL) * self.lowest

    @property
    def is_stationary(self) -> bool:
        """Whether the factors are near a stationary point of the objective."""
        if self._residual <= RESIDUAL_TOL:
            return True
        block = 5  # iterations from whose falls of the objective further ones are predicted
        if len(self._objectives) <= 2 * block:
            return False
        earlier, before, last = self._objectives[-2 * block - 1 :: block]
        fall = predicted_fall(earlier, before, last, MAX_RATIO**block)
        return fall <= 1e-2 * abs(last)

    def _further_fall(self) -> float:
        """Return the predicted fall of the mean score by further iterations; < 0 if it grows."""
        if len(self._means) < MIN_ITERATIONS:
            return math.inf
        earlier, before, last = self._means[-MIN_ITERATIONS:]
        return predicted_fall(earlier, before, last)


class FoldResult(NamedTuple):
    """What comes out of a trial on a fold: scores at held-out entries, and where it ended.

    It counts if it measures its setting.  `curve` has the scores after each iteration, if the trial
    keeps them.
    """

    losses: FloatArray
    start: Start
    n_iter: int
    counts: bool = True
    curve: Sequence[FloatArray] = ()


def best_ending(runs: Sequence[FoldResult], metric: str, most: int) -> tuple[int, FloatArray]:
    """Return the number of iterations of lowest mean score, at most some, and these scores."""

    def after(count: int) -> FloatArray:
        return np.concatenate([run.curve[min(count, len(run.curve)) - 1] for run in runs])

    counts = range(1, 1 + min(most, max(len(run.curve) for run in runs)))
    best = min(counts, key=lambda count: mean_score(after(count), metric))
    return best, after(best)
