"""Several starts of one problem, and the best of their outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .admm import Outcome, Problem, Stopping, admm, run
from .offsets import Offsets
from .penalty import BALANCED
from .progress import with_progress
from .proximal import make_pair
from .settings import Settings
from .starts import Start, given_start, random_start, svd_start
from .validation import Validation

WARM_UP = 200
"""Iterations of Modulus + Frobenius that come before another even pair under ``init="auto"``."""


def starts(problem: Problem, offsets: Offsets, rank: int, settings: Settings) -> Iterator[Start]:
    """Yield the chosen start, then random ones.

    Parameters
    ----------
    problem : Problem
        What is to be solved.
    offsets : Offsets
        What every start begins with.
    rank : int
        Number of components.
    settings : Settings
        `init`, `n_init` and the seed.
    """
    rng = settings.generator()
    observations, f, init = problem.observations, problem.pair.nonlinearity, settings.init
    for index in range(settings.n_init):
        if index > 0 or init == "random" or (init == "auto" and f.even):
            start = random_start(observations, f, rank, offsets, rng)
            yield _warmed_up(problem, start, settings) if init == "auto" else start
        elif isinstance(init, str):
            yield svd_start(observations, f, rank, offsets, rng)
        else:
            yield given_start(observations, rank, init, offsets)


def _warmed_up(problem: Problem, start: Start, settings: Settings) -> Start:
    """Let an even f find its signs first: Modulus + Frobenius on the starting T."""
    f, easy = problem.pair.nonlinearity, make_pair("modulus", "frobenius")
    if not f.even or problem.pair.structure == easy.structure:
        return start
    sizes = replace(problem.observations, values=f.preimage(problem.observations.values))
    warm_up = replace(problem, observations=sizes, pair=easy, rule=BALANCED)
    stopping = Stopping(WARM_UP, settings.tol, settings.time_limit)
    state = run(admm(warm_up, start), stopping).state
    return Start(state.W, state.H, from_factors=True, offsets=state.offsets)


def best_outcome(
    problem: Problem, starts: Iterator[Start], settings: Settings, validation: Validation | None
) -> Outcome:
    """Run each start and return the outcome of lowest objective (or validation error).

    Parameters
    ----------
    problem : Problem
        What is solved.
    starts : iterator of Start
        Where from.
    settings : Settings
        When to stop.
    validation : Validation or None
        What to judge by, if not by the objective.
    """
    best: Outcome | None = None
    seconds = 0.0
    for start in starts:
        limit = None if settings.time_limit is None else settings.time_limit - seconds
        stopping = Stopping(
            settings.max_iter,
            settings.tol,
            limit,
            settings.callback,
            validation,
            settings.patience,
        )
        states = with_progress(admm(problem, start), settings.max_iter, settings.progress)
        outcome = run(states, stopping)
        seconds += outcome.history["seconds"][-1]
        if best is None or outcome.score < best.score:
            best = outcome
        if not outcome.complete:
            best = best._replace(stop_reason=outcome.stop_reason)
            break
    assert best is not None
    return best
