"""The choice of settings: the same walk, with the same number of trials, for every method."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .methods import Method, Setting
from .problems import Ratings, hold_out
from .scores import clipped, rmse

TRIALS = 12
"""Number of settings that a method may try."""
TRIAL_SWEEPS = {"draws": 70, "tune": 30}
"""Sweeps of a sampler in a trial."""


class Choice(NamedTuple):
    """What was chosen.

    Attributes
    ----------
    setting : dict
        The chosen setting.
    error : float
        Its root mean squared error at the held-out training ratings.
    trials : int
        Number of settings that were tried.
    seconds : float
        Processor time of all trials.
    """

    setting: Setting
    error: float
    trials: int
    seconds: float


def choose(
    method: Method, train: Ratings, seed: int, n_trials: int = TRIALS, **sweeps: int
) -> Choice:
    """Choose a setting by a tenth of the training ratings; nothing else is seen.

    Parameters
    ----------
    method : Method
        What is tuned.
    train : csr_array (m, n)
        Training ratings.
    seed : int
        Which tenth is held out, and the seed of the fits.
    n_trials : int, default 12
        Number of settings that may be tried.
    **sweeps
        Numbers of sweeps of a trial, for samplers.
    """
    problem = hold_out(train, seed)
    settings = (sweeps or TRIAL_SWEEPS) if method.is_sampler else {}

    def error(setting: Setting) -> float:
        fitted = method.fit(problem.X, seed, **setting, **settings)
        guess = fitted.predict(problem.rows, problem.columns)
        return rmse(clipped(guess, problem.X), problem.values)

    began = time.process_time()
    best, errors = walk(method.grid, method.start, error, n_trials)
    return Choice(best, errors[_key(best)], len(errors), time.process_time() - began)


def walk(
    grid: dict[str, tuple[Any, ...]],
    start: Setting,
    error: Callable[[Setting], float],
    n_trials: int,
) -> tuple[Setting, dict[tuple[Any, ...], float]]:
    """Walk downhill over a grid, one parameter at a time.

    From the start, the first parameter goes up in its list of values as long as that helps, or else
    down; then the second one does, and so on, from the best setting so far.  The walk ends where no
    parameter helps, or after so many trials.

    Parameters
    ----------
    grid : dict
        The values of each parameter, in order.
    start : dict
        Where the walk begins.
    error : callable
        The error of a setting.
    n_trials : int
        Number of settings that may be tried.

    Returns
    -------
    best : dict
        The setting with the lowest error.
    errors : dict
        The error of every setting that was tried, by its values.
    """
    best = dict(start)
    errors = {_key(best): error(best)}

    def step(name: str, direction: int) -> bool:
        """Go on by one value; return whether that is better."""
        nonlocal best
        position = grid[name].index(best[name]) + direction
        if not 0 <= position < len(grid[name]):
            return False
        there = best | {name: grid[name][position]}
        if _key(there) in errors or len(errors) == n_trials:
            return False
        errors[_key(there)] = error(there)
        better = errors[_key(there)] < errors[_key(best)]
        best = there if better else best
        return better

    moved = True
    while moved:
        moved = False
        for name in grid:
            for direction in (1, -1):
                went = False
                while step(name, direction):
                    went = moved = True
                if went:
                    break
    return best, errors


def _key(setting: Setting) -> tuple[Any, ...]:
    return tuple(setting.values())
