"""The steps from one setting to the next: other ridges, other ranks, no components."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.solver.initialization import Start, svd_start

from .space import Setting, Space
from .trial import Trial
from .trials import Trials

COARSE = 10**0.5  # factor between ridges of the first path, and from cold starts
FINE = 10**0.25  # factor between ridges when the rank has changed
MAX_STEPS = 14  # largest number of ridges in one direction
RANK_RATIO = 4 / 3  # least ratio between a rank and a larger one to try
LONG_RANKS = 32  # number of components with which trials take long
RANK_GAIN = 0.002  # decrease of the mean loss that is worth so many components


class Moves:
    """Trials of settings that differ from others in one number.

    Attributes
    ----------
    first : Setting
        Setting without components, with moderate ridges.
    unit : float
        The least ridge that removes all components.
    """

    def __init__(self, trials: Trials, space: Space) -> None:
        self.trials, self.space = trials, space
        self._without: dict[tuple[Nonlinearity, Loss], tuple[Setting, float]] = {}
        self.first, self.unit = self.without_components(*space.first_model)

    @property
    def stopped(self) -> bool:
        """Whether to end with the best trial so far."""
        return self.trials.stopped()

    def without_components(self, f: Nonlinearity, loss: Loss) -> tuple[Setting, float]:
        """Return a setting of a model, and the least ridge that removes all components."""
        if (f, loss) in self._without:
            return self._without[f, loss]
        space = self.space
        rank = (space.rank_candidates or (1,))[0]
        setting = Setting(f, loss, rank, space.alpha or 1.0, space.kinds[0], 1.0)
        problem = self.trials.problems(setting)[0]
        data, rng = problem.starting_data, np.random.default_rng(0)
        start = svd_start(*data, 1, problem.offsets, rng, "randomized")
        largest = float(np.linalg.norm(start.W) * np.linalg.norm(start.H))
        natural, units = problem.natural_penalty * self.trials.mean_weight, problem.units
        tiny = math.sqrt(np.finfo(float).tiny)
        unit = max(natural * largest / units.scaled_alpha(1.0), tiny)
        of_offsets = max(natural / units.scaled_offset_alpha(1.0, 1.0), tiny)
        alpha, offset_alpha = 4 * unit, 3 * of_offsets
        setting = setting._replace(
            alpha=alpha if space.alpha is None else space.alpha,
            offset_alpha=offset_alpha if space.offset_alpha is None else space.offset_alpha,
        )
        self._without[f, loss] = setting, unit
        return setting, unit

    def offsets_alone(self, setting: Setting) -> Trial:
        """Return a trial with offsets and without components."""
        starts = []
        for problem in self.trials.problems(setting):
            (m, n), dtype = problem.observations.shape, problem.observations.dtype
            W, H = np.zeros((m, setting.rank), dtype), np.zeros((setting.rank, n), dtype)
            offsets = problem.units.given_offsets(problem.offsets)
            starts.append(Start(W, H, True, offsets))
        return self.trials.run(setting, starts, kind="offsets_alone")

    def climb(
        self, trial: Trial, name: str, factor: float, run: Callable[[Setting], Trial] | None = None
    ) -> Trial:
        """Return the best trial with a ridge divided or multiplied by a factor, again and again.

        By default all of them begin with the factors of this trial.
        """
        if getattr(self.space, name) is not None:
            return trial
        run = run or partial(self.trials.run, starts=trial.starts)
        for step in (1 / factor, factor):
            begun_at = trial
            for _ in range(MAX_STEPS):
                if self.stopped or trial.is_exact:
                    return trial
                setting = self.space.stepped(trial.setting, name, step)
                if setting is None:
                    break
                other = run(setting)
                gains = other.mean < (1 - 1e-3) * trial.mean
                trial = min(trial, other)
                if not gains:
                    break
            if trial is not begun_at:
                break
        return trial

    def follow(
        self,
        trial: Trial,
        step: Callable[[Trial], Setting | None],
        is_better: Callable[[Trial, Trial], bool] = Trial.__lt__,
        *,
        warm: bool = False,
        **how: Any,
    ) -> Trial:
        """Return the last of a chain of trials, which ends before one that is not better.

        Each is done in the same way; it begins with the factors of the one before if `warm`.
        """
        while not self.stopped and (setting := step(trial)) is not None:
            other = self.trials.run(setting, trial.starts if warm else None, **how)
            if not is_better(other, trial):
                break
            trial = other
        return trial

    def with_model(self, trial: Trial, f: Nonlinearity, loss: Loss) -> Trial:
        """Return the best trial with another model, that begins with the factors of a trial."""
        _, unit = self.without_components(*trial.setting[:2])
        setting, other_unit = self.without_components(f, loss)
        alpha = self.space.alpha
        if alpha is None:
            alpha = self.space.alpha_near(trial.setting.alpha * other_unit / unit)
        offset_alpha = setting.offset_alpha
        if loss == trial.setting.loss:
            offset_alpha = trial.setting.offset_alpha
        other = trial.setting._replace(
            nonlinearity=f, loss=loss, alpha=alpha, offset_alpha=offset_alpha
        )
        moved = self.trials.run(other, trial.starts)
        if loss == trial.setting.loss and moved.mean > 1.04 * trial.mean:
            return moved  # another f that is so much worse does not win with another ridge
        return self.climb(moved, "alpha", FINE)

    def at_rank(self, trial: Trial, rank: int) -> Trial:
        """Return the best trial with another rank."""
        moved = self.trials.run(trial.setting._replace(rank=rank), trial.starts)
        return self.climb(moved, "alpha", FINE)

    def next_rank(self, rank: int, ratio: float) -> int | None:
        """Return the next larger rank to try, None if there is none."""
        space = self.space
        least = ratio * rank if space.rank_candidates is None else rank + 1
        larger = (r for r in space.ranks if r >= least and space.rank is None)
        return next(larger, None)

    def of_model(self, best: Trial) -> list[Trial]:
        """Return the trials with the model of a trial, the smallest rank first."""
        same = [t for t in self.trials.done if t.setting[:2] == best.setting[:2]]
        return sorted(same, key=lambda t: (t.setting.rank, t.mean))
