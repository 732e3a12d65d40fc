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
from .trial import CLEARLY, Kind, Trial
from .trials import Trials

COARSE = 10**0.5  # factor between ridges of the first path, and from cold starts
FINE = 10**0.25  # factor between ridges when the rank has changed
MAX_STEPS = 14  # largest number of ridges in one direction
RANK_RATIO = 4 / 3  # least ratio between a rank and a larger one to try
LONG_RANKS = 32  # number of components with which trials take long
ROUNDING = 1e-4  # relative decrease of the mean loss by another ridge that may be rounding
LEAST_GAIN = 1e-3  # the same that is worth a further step
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
                gain = 1 - other.mean / trial.mean if trial.mean > 0 else 0.0
                trial = other if gain > ROUNDING else trial
                if not gain > LEAST_GAIN:
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


OTHER_RANKS = 3  # to try where the best trial is not repeated


def strongest_ridge(moves: Moves, best: Trial) -> Trial:
    """Return the trial of strongest ridge whose error is not clearly above the lowest."""

    def step(trial: Trial) -> Setting | None:
        enough = trial.setting.alpha >= moves.unit or best.is_exact
        return None if enough else moves.space.stepped(trial.setting, "alpha", COARSE)

    same = best.setting._replace(alpha=0.0)
    alike = (t for t in moves.trials.done if t.setting._replace(alpha=0.0) == same)
    close = (trial for trial in alike if trial.is_close(best))
    strongest = max(close, key=lambda trial: trial.setting.alpha, default=best)
    return moves.follow(strongest, step, lambda other, _: other.is_close(best), warm=True)


def from_cold_starts(moves: Moves, best: Trial) -> tuple[Trial, Trial | None]:
    """Return a trial from a cold start, and the one with the best setting if it is worse."""
    path = None
    if moves.space.alpha is None and moves.trials.may_follow_path(best.setting):
        path = moves.trials.run(best.setting, kind="ridge_path")
        first = path if _repeats(path, best) else _of_best_ridge(moves, path)
        wider = _of_larger_rank(moves, first)
        if wider < best:
            return wider, None
    cold = moves.trials.run(best.setting, kind="cold_start")
    if _repeats(cold, best):
        return cold, None
    if path is not None and _repeats(path, best) and path < cold:
        return path, None
    for setting in _as_good(moves, best):
        if not moves.stopped:
            moves.trials.run(setting, kind="cold_start")
    _try_fewer(moves, best)
    _try_stronger(moves, best)
    return _best_cold(moves, best), cold


def ridge_from_cold_starts(moves: Moves, setting: Setting, kind: Kind) -> Trial:
    """Return the best trial from cold starts, or along paths, with ridges around that given.

    Along a path larger ranks are tried, too.
    """
    best = _of_best_ridge(moves, moves.trials.run(setting, kind=kind))
    return _of_larger_rank(moves, best) if kind == "ridge_path" else best


def _of_best_ridge(moves: Moves, trial: Trial) -> Trial:
    """Return the best trial that begins as this one, with ridges around its own."""
    return moves.climb(trial, "alpha", FINE, partial(moves.trials.run, kind=trial.kind))


def _best_cold(moves: Moves, best: Trial) -> Trial:
    """Return the best of all trials from a start of their own."""
    cold = (t for t in moves.trials.done if t.is_cold and t.is_comparable(best))
    return min(cold, default=best)


def _of_larger_rank(moves: Moves, path: Trial) -> Trial:
    """Return a trial along a path whose rank is larger as long as that clearly helps."""

    def step(trial: Trial) -> Setting | None:
        rank = moves.next_rank(trial.setting.rank, RANK_RATIO)
        return None if rank is None else trial.setting._replace(rank=rank)

    def helps(other: Trial, trial: Trial) -> bool:
        return other.mean < (1 - RANK_GAIN * other.setting.rank / LONG_RANKS) * trial.mean

    return moves.follow(path, step, helps, kind="ridge_path")


def _as_good(moves: Moves, best: Trial) -> list[Setting]:
    """Return settings of other ranks whose trials are not clearly worse than the best one."""
    tied: dict[int, Trial] = {}
    for trial in moves.of_model(best):
        if trial.error <= best.error + trial.spread(best):
            tied.setdefault(trial.setting.rank, trial)
    tied.pop(best.setting.rank, None)
    ranks = sorted(tied)
    spaced = (round(k * (len(ranks) - 1) / (OTHER_RANKS - 1)) for k in range(OTHER_RANKS))
    return [tied[rank].setting for rank in sorted({ranks[k] for k in spaced if ranks})]


def _try_fewer(moves: Moves, best: Trial) -> None:
    """Try fewer and fewer components from cold starts, as long as that helps.

    With a linear f a start has the largest components first, and many are no worse than few.
    """
    first = _best_cold(moves, best)
    if moves.space.rank is not None or first.setting.nonlinearity.linear:
        return

    def step(trial: Trial) -> Setting | None:
        rank = moves.space.rank_near(round(trial.setting.rank / RANK_RATIO))
        fewer = trial.error > best.error and 0 < rank < trial.setting.rank
        return trial.setting._replace(rank=rank) if fewer else None

    moves.follow(first, step, kind="cold_start", refined=True)


def _try_stronger(moves: Moves, best: Trial) -> None:
    """Try the best setting from cold starts with stronger ridges, as long as that helps."""
    if moves.space.alpha is not None:
        return

    def step(trial: Trial) -> Setting | None:
        worse = trial.error > best.error
        return moves.space.stepped(trial.setting, "alpha", COARSE) if worse else None

    moves.follow(_best_cold(moves, best), step, kind="cold_start")


def _repeats(cold: Trial, best: Trial) -> bool:
    """Return whether the error of a trial from a cold start is not clearly above the best one."""
    return cold.error - best.error <= max(CLEARLY * cold.spread(best), 0.002 * best.error)


def best_of_long_trials(moves: Moves, best: Trial) -> Trial:
    """Return the best trial, which may be one of about as many iterations as a fit has.

    Where f is flat the iteration is slow, and short trials are those of a stronger ridge.  A lower
    objective can be a worse answer, so trials without refinements are tried as well.
    """
    usual = moves.trials.run(best.setting, kind="long_trial", refined=True)
    if best.setting.loss.degree == 2 and best.clearly_below(usual):
        return best  # the iteration is not slow
    usual = _of_other_ridges(moves, usual)
    plain = moves.trials.run(usual.setting, kind="long_trial", refined=False)
    plain = _of_other_ridges(moves, plain)
    chosen = plain if plain.clearly_below(usual, 3.0) else usual
    return min(best, chosen)


def _of_other_ridges(moves: Moves, first: Trial) -> Trial:
    """Return the best long trial with weaker ridges, with stronger ones, and with none."""
    how: dict[str, Any] = {"kind": "long_trial", "refined": first.refined}
    best = first
    for factor in (1 / COARSE, COARSE):

        def step(trial: Trial, factor: float = factor) -> Setting | None:
            return moves.space.stepped(trial.setting, "alpha", factor)

        best = min(best, moves.follow(first, step, **how))
    if moves.stopped or moves.space.alpha_near(0.0) != 0:
        return best
    return min(best, moves.trials.run(first.setting._replace(alpha=0.0), **how))
