"""A setting of the options that can be chosen, and the outcome of a trial with it.

The search space of a choice: which settings are open, and which are fixed.

Nonlinearities and losses that suit the data, for "auto".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.observations import Observations
from nmd_lab.model.losses import KL, L1, Frobenius, Loss
from nmd_lab.model.nonlinearities import Identity, MinMax, Nonlinearity, ReLU
from nmd_lab.solver.initialization import Start


class Setting(NamedTuple):
    """Values of the options that can be chosen.

    Attributes
    ----------
    nonlinearity, loss : Nonlinearity, Loss
        Model.
    rank : int
        Number of components.
    alpha : float
        Ridge of the factors, in the units of X.
    offsets : {"none", "global", "rows", "columns", "both"}
        Offsets of the model.
    offset_alpha : float
        Ridge of the offsets, in the units of X.
    """

    nonlinearity: Nonlinearity
    loss: Loss
    rank: int
    alpha: float
    offsets: str
    offset_alpha: float


MEASURES = {
    "deviance": "mean loss",
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
    "log_score": "log score",
}
"""Names of errors, by metric."""

GAUSSIAN = math.sqrt(2 * math.pi * math.e)  # exponential of the log score of Gaussian noise of sd 1


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
        Last factors of each fold, in the units of X; emptied when no later trial needs them.
    cold : bool
        Whether it began as a fit does, and not with the factors of another trial.
    refined : bool
        Whether the iterates were refined as those of a fit.
    is_exact : bool
        Whether there is no error, up to rounding.
    metric : {"deviance", "rmse", "mae", "log_score"}
        What the scores are.
    counts : bool
        Whether it says something of its setting, and not of where it began.
    ending : int or None
        Number of iterations of lowest error after a path of ridges; None without a path.
    offsets_alone : bool
        Whether there are no components.
    """

    setting: Setting
    losses: NDArray[np.floating]
    n_iter: int
    seconds: float
    starts: list[Start] = field(default_factory=list)
    cold: bool = False
    refined: bool = False
    is_exact: bool = False
    metric: str = "deviance"
    counts: bool = True
    ending: int | None = None
    offsets_alone: bool = False

    @cached_property
    def mean(self) -> float:
        """Mean score, which is to be lowest; infinite if it is not finite or does not count."""
        return mean_score(self.losses, self.metric) if self.counts else math.inf

    @property
    def squares(self) -> bool:
        """Whether the mean is half of that of squares."""
        by_loss = self.metric == "deviance" and self.setting.loss.squares
        return by_loss or self.metric == "rmse"

    @property
    def degree(self) -> int:
        """Power of the unit of X in which the mean is."""
        if self.metric == "deviance":
            return self.setting.loss.degree or 1
        return 2 if self.squares else 1

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

    def clearly_below(self, other: Trial, number: float) -> bool:
        """Return whether `error` is below that of another trial by a number of standard errors."""
        if not math.isfinite(other.mean):
            return math.isfinite(self.mean)
        return other.error - self.error > number * self.spread(other)

    def row(self, best: Trial) -> dict[str, Any]:
        """Return the row of `Decomposition.selection`."""
        numbers = self.setting._asdict()
        names = {"nonlinearity": repr(self.setting.nonlinearity), "loss": self.setting.loss.name}
        error = self.error if math.isfinite(self.error) else math.nan
        spread = self.spread(best)
        if self.metric == "log_score":
            error, spread = math.log(error), spread / best.mean
        outcome = {"error": error, "spread": spread}
        return numbers | names | outcome | {"n_iter": self.n_iter, "seconds": self.seconds}


RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 100)
"""Ranks that a search may try, if the data are large enough."""

KINDS = ("both", "columns", "rows", "global")
"""Kinds of offsets that a search may try."""


@dataclass(frozen=True)
class Space:
    """What may be chosen.

    Attributes
    ----------
    nonlinearities : sequence of Nonlinearity
        Nonlinearities, the simplest first.
    losses : sequence of Loss
        Losses.
    rank : int or None
        Given rank, or None.
    largest_rank : int
        Largest rank that may be chosen.
    alpha, offset_alpha : float or None
        Given ridges, or None.
    offsets : str or None
        Given kind of offsets, or None.
    given_ranks, given_alphas : tuple or None
        Ascending candidates to which rank and ridge are limited; None for no limit.
    """

    nonlinearities: Sequence[Nonlinearity]
    losses: Sequence[Loss]
    rank: int | None
    largest_rank: int
    alpha: float | None
    offsets: str | None
    offset_alpha: float | None
    given_ranks: tuple[int, ...] | None = None
    given_alphas: tuple[float, ...] | None = None

    @property
    def first_model(self) -> tuple[Nonlinearity, Loss]:
        """Model of the first path: Identity + Frobenius, unless the ridge is given or f is even.

        A strong ridge brings WH near zero, where other models may be flat.  If f or the loss has no
        degree, WH may not be in the units of X, and the first path has the model itself.
        """
        f, loss = self.nonlinearities[0], self.losses[0]
        alphas_are_given = self.alpha is not None or self.given_alphas is not None
        suits = f.even or alphas_are_given or None in (f.degree, loss.degree)
        return (f, loss) if suits else (Identity(), Frobenius())

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that may be chosen, ascending."""
        candidates = RANKS if self.given_ranks is None else self.given_ranks
        return tuple(rank for rank in candidates if rank <= self.largest_rank)

    def rank_near(self, rank: int) -> int:
        """Return the largest rank up to this one that may be chosen, or the smallest of all."""
        if self.given_ranks is None:
            return min(rank, self.largest_rank)
        return max((each for each in self.given_ranks if each <= rank), default=self.given_ranks[0])

    def allows_rank(self, rank: int) -> bool:
        """Return whether a rank may be chosen."""
        return self.given_ranks is None or rank in self.given_ranks

    def alpha_near(self, alpha: float) -> float:
        """Return the ridge nearest to this one, in proportion, that may be chosen."""
        if self.given_alphas is None:
            return alpha
        return min(self.given_alphas, key=lambda each: abs(_log(each) - _log(alpha)))

    def allows_alpha(self, alpha: float) -> bool:
        """Return whether a ridge may be chosen."""
        return self.given_alphas is None or alpha in self.given_alphas

    def stepped(self, name: str, number: float, factor: float) -> float | None:
        """Return a ridge times a factor, or the next candidate in this direction, None without."""
        if name != "alpha" or self.given_alphas is None:
            return number * factor
        if factor < 1:
            return max((each for each in self.given_alphas if each < number), default=None)
        return min((each for each in self.given_alphas if each > number), default=None)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of offsets to try without components, the first for a guess."""
        if self.offsets is not None:
            return (self.offsets,)
        if self.nonlinearities[0].even:
            return ("none",)
        return KINDS


def _log(number: float) -> float:
    return math.log(max(number, 1e-300))


AT_BOUND = 0.005  # least share of values at the smallest (or largest) one if that is a bound


def suitable_nonlinearities(observations: Observations) -> list[Nonlinearity]:
    """Return the nonlinearities to try, the simplest first.

    Many zeros in data >= 0 suggest ReLU.  Many values at the smallest and at the largest one, or a
    documented range, suggest MinMax.  Square and Modulus are never among them, since nothing in the
    values tells them from ReLU.
    """
    low, high = observations.range()
    total, at_low, at_high = observations.weighted_sums(lambda x: x == low, lambda x: x == high)
    found: list[Nonlinearity] = [Identity()]
    if low == high:
        return found
    if low == 0 and at_low / total >= AT_BOUND:
        found.append(ReLU())
    documented = observations.labels.valid_range
    if documented is not None and np.isfinite(documented).all():
        found.append(MinMax(*documented))
    elif min(at_low, at_high) / total >= AT_BOUND:
        found.append(MinMax(low, high))
    return found


def suitable_losses(observations: Observations) -> list[Loss]:
    """Return the losses to try: KL is one of them for counts only."""
    found: list[Loss] = [Frobenius(), L1()]
    not_counts = observations.sum_of(lambda x, weights: weights * ((x < 0) | (x != np.floor(x))))
    return found if not_counts else [*found, KL()]
