"""The best setting from cold starts, with trials whose errors are made."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Identity
from nmd_lab.solver.selection.cold_starts import from_cold_starts, ridge_from_cold_starts
from nmd_lab.solver.selection.moves import FINE, Moves
from nmd_lab.solver.selection.space import Setting, Space
from nmd_lab.solver.selection.trial import Trial

NOISE = np.random.default_rng(0).normal(1, 0.1, size=1000) ** 2
AT_BEST = Setting(Identity(), Frobenius(), 8, 1.0, "none", 1.0)


class Made(Moves):
    """Moves whose trials have the error that a function gives for ridge, rank and kind of start."""

    def __init__(self, error):
        self.space = Space([Identity()], [Frobenius()], 64, offsets="none", offset_alpha=1.0)
        self.error, self.asked = error, []
        self.trials = SimpleNamespace(
            run=self.made, done=[], may_follow_path=lambda _: True, stopped=lambda: False
        )

    def made(self, setting, starts=None, *, kind="short", **_):
        path = kind == "ridge_path"
        self.asked.append((setting.rank, setting.alpha, path))
        mean = self.error(math.log(setting.alpha, FINE), setting.rank, path) ** 2 / 2
        trial = Trial(setting, mean * NOISE, 10, 0.0, [object()], kind)
        trial.is_cold, trial.ending = starts is None, 5 if path else None
        self.trials.done.append(trial)
        return trial


def warm(moves, error):
    """Return a trial of the setting from other factors, with an error of its own."""
    trial = Trial(AT_BEST, error**2 / 2 * NOISE, 10, 0.0, [object()])
    moves.trials.done.append(trial)
    return trial


def test_a_path_above_the_best_trial_is_followed_to_other_ridges_and_ranks():
    # along paths the best ridge is two steps weaker, and 12 components are better than 8
    moves = Made(lambda step, rank, path: 1.1 - 0.15 * (rank >= 12) + 0.02 * abs(step + 2))
    chosen, cold = from_cold_starts(moves, warm(moves, 1.0))
    assert cold is None
    assert chosen.setting.alpha == pytest.approx(FINE**-2)
    assert chosen.setting.rank == 12
    assert all(path for *_, path in moves.asked)


def test_a_path_that_repeats_the_best_trial_keeps_its_ridge():
    moves = Made(lambda step, rank, path: 0.999 + 0.02 * abs(step + 2) - 0.04)
    chosen, _ = from_cold_starts(moves, warm(moves, 1.0))
    assert chosen.setting == AT_BEST
    assert {alpha for _, alpha, _ in moves.asked} == {1.0}


def test_without_a_better_path_the_best_of_all_cold_starts_is_taken():
    # paths are worse at all ridges, and cold starts are better the stronger the ridge is
    moves = Made(lambda step, rank, path: 1.3 if path else 1.2 - 0.01 * min(step, 4))
    best = warm(moves, 1.0)
    chosen, cold = from_cold_starts(moves, best)
    assert chosen.ending is None
    assert chosen.error < cold.error
    assert chosen.mean == min(t.mean for t in moves.trials.done if t.is_cold)


@pytest.mark.parametrize("kind", ["cold_start", "ridge_path"])
def test_the_ridge_of_a_sample_is_adapted_from_the_same_kind_of_start(kind):
    moves = Made(lambda step, rank, path: 1.0 + 0.02 * abs(step - 3))
    chosen = ridge_from_cold_starts(moves, AT_BEST, kind)
    assert chosen.setting.alpha == pytest.approx(FINE**3)
    assert {path for *_, path in moves.asked} == {kind == "ridge_path"}
    larger = {rank for rank, *_ in moves.asked if rank > AT_BEST.rank}
    assert larger == ({12} if kind == "ridge_path" else set())
