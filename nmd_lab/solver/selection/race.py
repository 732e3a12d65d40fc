"""The comparison of a trial with the best one so far, fold after fold.

A trial that is clearly worse on some folds does not do the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.initialization import Start

from .folds import Fold
from .progress import SETTLED, Progress
from .setting import Setting, Trial, mean_score

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
