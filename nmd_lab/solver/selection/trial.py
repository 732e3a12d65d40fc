"""The outcome of a trial, and how it compares with others."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nmd_lab.solver.initialization import Start

from .space import Setting

CLEARLY = 2.0  # standard errors of a difference from which it is clear
SETTLED = 5e-4  # relative change of the mean score that is worth no further iterations
GAUSSIAN = math.sqrt(2 * math.pi * math.e)  # exponential of the log score of Gaussian noise of sd 1

MEASURES = {
    "deviance": "mean loss",
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
    "log_score": "log score",
}
"""Names of errors, by metric."""

Kind = Literal["short", "cold_start", "long_trial", "ridge_path", "offsets_alone"]
"""How a trial is done.

"short" ends once it cannot be the best one, "long_trial" as well, after about as many iterations as
a fit has.  "cold_start" begins as a fit does and continues even if others are better.  "ridge_path"
begins as ``init="path"`` does, and has the scores after as many iterations as are best.
"offsets_alone" has no components, and continues, since the best trial is compared with it.
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
        Weighted score at each held-out entry of all folds: by default its loss.
    n_iter : int
        Number of iterations, of all folds together.
    seconds : float
        Duration.
    starts : list of Start
        Last factors of each fold, in the units of X.
    kind : str
        How it was done.
    is_cold : bool
        Whether it began as a fit does, and not with the factors of another trial.
    refined : bool
        Whether the iterates were refined as those of a fit.
    metric : {"deviance", "rmse", "mae", "log_score"}
        What the scores are.
    is_exact : bool
        Whether there is no error, up to rounding.
    counts : bool
        Whether it measures its setting, and not its start.
    ending : int or None
        Number of iterations of lowest error after a path of ridges; None without a path.
    """

    setting: Setting
    losses: NDArray[np.floating]
    n_iter: int
    seconds: float
    starts: list[Start] = field(default_factory=list)
    kind: Kind = "short"
    is_cold: bool = False
    refined: bool = False
    metric: str = "deviance"
    is_exact: bool = False
    counts: bool = True
    ending: int | None = None

    @cached_property
    def mean(self) -> float:
        """Mean score, which is to be lowest; infinite if it is not finite or does not count."""
        return mean_score(self.losses, self.metric) if self.counts else math.inf

    def __lt__(self, other: Trial) -> bool:
        """Return whether the mean score is below that of another trial."""
        return self.mean < other.mean

    @property
    def squares(self) -> bool:
        """Whether the mean is half of that of squares."""
        by_loss = self.metric == "deviance" and self.setting.loss.squares
        return by_loss or self.metric == "rmse"

    @property
    def error(self) -> float:
        """The mean, or the root of twice the mean if that is one of squares."""
        return math.sqrt(2 * self.mean) if self.squares else self.mean

    @property
    def measure(self) -> str:
        """Name of what `row` has as error."""
        return MEASURES["rmse" if self.squares else self.metric]

    def gaussian_sd(self, at: NDArray[np.bool_]) -> float:
        """Return the standard deviation of Gaussian noise that has the mean score of some entries.

        Only for the Frobenius loss.
        """
        mean = mean_score(self.losses[at], self.metric)
        if self.squares:
            return math.sqrt(2 * mean)
        return mean * (math.sqrt(math.pi / 2) if self.metric == "mae" else 1 / GAUSSIAN)

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

    def clearly_below(self, other: Trial, number: float = CLEARLY) -> bool:
        """Return whether `error` is below that of another trial by a number of standard errors."""
        if not math.isfinite(other.mean):
            return math.isfinite(self.mean)
        return other.error - self.error > number * self.spread(other)

    def is_close(self, best: Trial) -> bool:
        """Return whether the error is not clearly above the lowest, nor much if that is unsure."""
        allowed = min(max(self.spread(best), SETTLED / 2 * best.error), SETTLED * best.error)
        return self is best or self.error <= best.error + allowed

    def prunes(self, losses: NDArray[np.floating]) -> bool:
        """Return whether scores of another trial on the first folds are clearly worse."""
        excess = losses - self.losses[: losses.size]
        error = float(np.std(excess)) / math.sqrt(excess.size)
        scale = 1.0 if self.metric == "log_score" else self.mean
        return bool(np.mean(excess) > max(CLEARLY * error, SETTLED * scale))

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
