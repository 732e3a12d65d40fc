"""A setting of the options that can be chosen, and the outcome of a trial with it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.model.losses import Frobenius, Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.solver.initialization import Start

ROUNDING = 1e-6  # relative difference of ridges that are the same
SPARE = 1e-3  # size of a component, over the largest one, below which the ridge has removed it


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

    def is_like(self, other: Setting) -> bool:
        """Return whether two settings are the same, up to rounding of the ridges."""
        ridges = ((self.alpha, other.alpha), (self.offset_alpha, other.offset_alpha))
        same = self._replace(alpha=0.0, offset_alpha=0.0) == other._replace(
            alpha=0.0, offset_alpha=0.0
        )
        return same and all(math.isclose(*pair, rel_tol=ROUNDING) for pair in ridges)


@dataclass(eq=False)
class Trial:
    """The outcome of a trial.

    Attributes
    ----------
    setting : Setting
        What was tried.
    losses : ndarray (n_held_out,)
        Weighted loss at each held-out entry of all folds.
    n_iter : int
        Number of iterations, of all folds together.
    seconds : float
        Duration.
    starts : list of Start
        Last factors of each fold, in the units of X; emptied when no later trial needs them.
    cold : bool
        Whether it began as a fit does, and not with the factors of another trial.
    is_exact : bool
        Whether there is no error, up to rounding.
    counts : bool
        Whether its factors are near a stationary point of its objective.  Others are not those of
        the setting, but of where they began, and count as the worst.
    """

    setting: Setting
    losses: NDArray[np.floating]
    n_iter: int
    seconds: float
    starts: list[Start] = field(default_factory=list)
    cold: bool = False
    is_exact: bool = False
    counts: bool = True

    @property
    def mean(self) -> float:
        """Mean loss; infinite if a loss is not finite, or if the trial does not count."""
        with np.errstate(invalid="ignore"):
            mean = float(np.mean(self.losses))
        return mean if math.isfinite(mean) and self.counts else math.inf

    @property
    def has_spare_components(self) -> bool:
        """Whether the ridge has removed components, so that there is no use for more of them."""
        if self.setting.alpha == 0:
            return False
        for start in self.starts:
            sizes = np.linalg.svd(np.linalg.qr(start.W)[1] @ np.linalg.qr(start.H.T)[1].T)[1]
            if np.count_nonzero(sizes > SPARE * sizes.max(initial=0.0)) == self.setting.rank:
                return False
        return True

    @property
    def error(self) -> float:
        """Root mean squared error for the Frobenius loss, the mean loss for others."""
        return math.sqrt(2 * self.mean) if isinstance(self.setting.loss, Frobenius) else self.mean

    def spread(self, best: Trial) -> float:
        """Return the standard error of the difference of `error` to that of another trial.

        It is NaN for trials with different losses.
        """
        comparable = self.setting.loss == best.setting.loss
        if not (comparable and math.isfinite(self.mean) and math.isfinite(best.mean)):
            return math.nan
        differences = self.losses - best.losses
        of_mean = float(np.std(differences)) / math.sqrt(differences.size)
        if not isinstance(self.setting.loss, Frobenius):
            return of_mean
        return of_mean / max(best.error, math.sqrt(np.finfo(float).tiny))

    def clearly_below(self, other: Trial, number: float) -> bool:
        """Return whether `error` is below that of another trial by a number of standard errors."""
        return other.error - self.error > number * self.spread(other)

    def row(self, best: Trial) -> dict[str, Any]:
        """Return the row of `Decomposition.selection`."""
        numbers = self.setting._asdict()
        names = {"nonlinearity": repr(self.setting.nonlinearity), "loss": self.setting.loss.name}
        error = self.error if math.isfinite(self.error) else math.nan
        outcome = {"error": error, "spread": self.spread(best)}
        return numbers | names | outcome | {"n_iter": self.n_iter, "seconds": self.seconds}
