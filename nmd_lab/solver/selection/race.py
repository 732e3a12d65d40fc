"""The comparison of a trial with the best one so far, fold after fold.

A trial that is clearly worse on some folds does not do the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nmd_lab.data.base import FloatArray
from nmd_lab.model.losses import Loss

from .folds import Fold
from .progress import SETTLED
from .setting import Trial

BEATEN = 2.0  # standard errors of the excess over the best trial from which it is clear


def lowest_of(done: Sequence[Trial], loss: Loss) -> Trial | None:
    """Return the best trial with a loss; None if there is none that counts."""
    same = [t for t in done if t.setting.loss == loss and math.isfinite(t.mean)]
    return min(same, key=lambda trial: trial.mean, default=None)


def mean_at(trial: Trial, index: int, folds: Sequence[Fold]) -> float:
    """Return the mean loss of a trial at the held-out entries of a fold."""
    before = sum(fold.held_out.n_observed for fold in folds[:index])
    return float(np.mean(trial.losses[before : before + folds[index].held_out.n_observed]))


def is_beaten(losses: FloatArray, best: Trial) -> bool:
    """Return whether losses at the held-out entries of the first folds are clearly worse."""
    excess = losses - best.losses[: losses.size]
    error = float(np.std(excess)) / math.sqrt(excess.size)
    return bool(np.mean(excess) > max(BEATEN * error, SETTLED * best.mean))


def completed(losses: FloatArray, best: Trial | None) -> FloatArray:
    """Return losses at the held-out entries of all folds.

    On folds that were left out they exceed those of the best trial as on the others.
    """
    if best is None or losses.size == best.losses.size:
        return losses
    rest = best.losses[losses.size :]
    excess = np.resize(losses - best.losses[: losses.size], rest.size)
    return np.concatenate([losses, rest + excess])
