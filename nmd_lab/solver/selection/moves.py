"""The steps from one setting to the next: other ridges, other ranks, no components."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.solver.initialization import Start, svd_start
from nmd_lab.solver.starting_data import offsets_of

from .progress import SETTLED
from .setting import Setting, Space, Trial
from .trials import Trials

NO_COMPONENTS = 4.0  # ridge without components, relative to the least one that removes all
OFFSET_RIDGE = 3.0  # first ridge of the offsets, relative to the natural penalty
FINE = 10**0.25  # factor between ridges when the rank has changed
MOST_STEPS = 14  # largest number of steps in one direction
HOPELESS = 0.04  # growth of the mean loss with another f, from which no other ridge is tried
TOLERATED = 0.0005  # largest growth of the error that a simpler setting may cost
LITTLE = 1e-3  # relative decrease of the mean loss after which a number is not changed further


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
        if (f, loss) not in self._without:
            self._without[f, loss] = self._without_components(f, loss)
        return self._without[f, loss]

    def _without_components(self, f: Nonlinearity, loss: Loss) -> tuple[Setting, float]:
        space, kind = self.space, self.space.kinds[0]
        rank = space.rank or (space.given_ranks or (1,))[0]
        setting = Setting(f, loss, rank, space.alpha or 1.0, kind, 1.0)
        unit, unit_of_offsets = self._units(setting)
        alpha = NO_COMPONENTS * unit if space.alpha is None else space.alpha
        offset_alpha = OFFSET_RIDGE * unit_of_offsets
        if space.offset_alpha is not None:
            offset_alpha = space.offset_alpha
        return setting._replace(alpha=alpha, offset_alpha=offset_alpha), unit

    def offsets_alone(self, setting: Setting) -> Trial:
        """Return a trial with offsets and without components."""
        starts = []
        for problem in self.trials.problems(setting):
            (m, n), dtype = problem.observations.shape, problem.observations.dtype
            W, H = np.zeros((m, setting.rank), dtype), np.zeros((setting.rank, n), dtype)
            offsets = problem.units.given_offsets(offsets_of(problem))
            starts.append(Start(W, H, True, offsets))
        return self.trials.run(setting, starts, offsets_alone=True)

    def climb(self, trial: Trial, name: str, factor: float) -> Trial:
        """Return the best trial with a ridge divided or multiplied by a factor, again and again."""
        return self.climb_with(trial, name, factor, lambda s: self.trials.run(s, trial.starts))

    def climb_with(
        self, trial: Trial, name: str, factor: float, run: Callable[[Setting], Trial]
    ) -> Trial:
        """Return what `climb` does, with a function that runs a trial."""
        if getattr(self.space, name) is not None:
            return trial
        for step in (1 / factor, factor):
            begun_at = trial
            for _ in range(MOST_STEPS):
                if self.stopped or trial.is_exact:
                    return trial
                number = self.space.stepped(name, getattr(trial.setting, name), step)
                if number is None:
                    break
                changed: dict[str, Any] = {name: number}
                other = run(trial.setting._replace(**changed))
                before = trial.mean
                trial = other if other.mean < before else trial
                if not other.mean < (1 - LITTLE) * before:
                    break
            if trial is not begun_at:
                break
        return trial

    def with_model(self, trial: Trial, f: Nonlinearity, loss: Loss) -> Trial:
        """Return the best trial with another model, that begins with the factors of a trial."""
        _, unit = self.without_components(trial.setting.nonlinearity, trial.setting.loss)
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
        if loss == trial.setting.loss and moved.mean > (1 + HOPELESS) * trial.mean:
            return moved
        return self.climb(moved, "alpha", FINE)

    def at_rank(self, trial: Trial, rank: int) -> Trial:
        """Return the best trial with another rank."""
        moved = self.trials.run(trial.setting._replace(rank=rank), trial.starts)
        return self.climb(moved, "alpha", FINE)

    def _units(self, setting: Setting) -> tuple[float, float]:
        """Return the ridge that removes all components, and the natural ridge of the offsets."""
        problem = self.trials.problems(setting)[0]
        offsets = offsets_of(problem)
        data, rng = problem.starting_data, np.random.default_rng(0)
        start = svd_start(*data, 1, offsets, rng, "randomized")
        largest = float(np.linalg.norm(start.W) * np.linalg.norm(start.H))
        natural, units = problem.natural_penalty * self.trials.mean_weight, problem.units
        of_offsets = natural / units.scaled_offset_alpha(1.0, 1.0)
        of_factors = natural * largest / units.scaled_alpha(1.0)
        tiny = math.sqrt(np.finfo(float).tiny)
        return max(of_factors, tiny), max(of_offsets, tiny)


def mean_of(trial: Trial) -> float:
    """Return the mean score of a trial."""
    return trial.mean


def of_model(moves: Moves, best: Trial) -> list[Trial]:
    """Return the trials of a model with components, the smallest rank first."""
    model = best.setting[:2]
    same = [t for t in moves.trials.done if t.setting[:2] == model and t.starts]
    return sorted(same, key=lambda t: (t.setting.rank, t.mean))


def is_close(trial: Trial, best: Trial) -> bool:
    """Return whether the error of a trial is not clearly above the lowest."""
    allowed = max(trial.spread(best), SETTLED / 2 * best.error)
    allowed = min(allowed, TOLERATED * best.error)
    return trial is best or trial.error <= best.error + allowed
