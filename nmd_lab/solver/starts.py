"""The starts of a fit, and the iteration from one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from nmd_lab.model.offsets import Offsets
from nmd_lab.model.proximal import make_pair

from .admm import State, admm
from .initialization import Start, given_start, random_start, svd_start
from .options import Options
from .penalty import BALANCED
from .problem import Problem
from .refinement.acceleration import accelerated
from .refinement.plan import RefinementPlan
from .run import Run
from .starting_data import starting_data
from .stopping import STOPPING


@dataclass(frozen=True)
class WarmUpOptions:
    """Constants of the warm-up.

    Attributes
    ----------
    iterations : int
        Number of iterations of Modulus + Frobenius before a fit with an even f (``init="auto"``).
    """

    iterations: int = 200


WARM_UP = WarmUpOptions()


class NamedStart(NamedTuple):
    """Starting factors and their kind.

    Attributes
    ----------
    kind : {"svd", "randomized", "nndsvd", "random", "given", "chosen"}
        Method that made the factors.
    start : Start
        Starting factors.
    """

    kind: str
    start: Start


def all_starts(
    problem: Problem,
    offsets: Offsets,
    rank: int,
    options: Options,
    rng: np.random.Generator,
    chosen: Start | None = None,
) -> Iterator[NamedStart]:
    """Yield the start that `init` selects, then random ones; each is computed when requested.

    Parameters
    ----------
    problem : Problem
        Problem to solve.
    offsets : Offsets
        Starting offsets of every start.
    rank : int
        Number of components.
    options : Options
        `init` and `n_init`.
    rng : Generator
        Random numbers of all starts.
    chosen : Start, optional
        Factors with which the setting was chosen, in the units of X; the first start if `init` is
        "auto".
    """
    observations, pair = starting_data(problem.observations, problem.pair)
    init = options.init
    for index in range(options.n_init):
        if index == 0 and init == "auto" and chosen is not None:
            yield NamedStart("chosen", problem.units.scaled_start(chosen))
        elif index > 0 or init == "random" or (init == "auto" and pair.nonlinearity.even):
            yield NamedStart("random", random_start(observations, pair, rank, offsets, rng))
        elif isinstance(init, str):
            kind = "svd" if init == "auto" else init
            yield NamedStart(kind, svd_start(observations, pair, rank, offsets, rng, kind))
        else:
            units = problem.units
            start = given_start(observations, rank, init, units.given_offsets(offsets))
            yield NamedStart("given", units.scaled_start(start))


def iterate(
    problem: Problem,
    named: NamedStart,
    options: Options,
    plan: RefinementPlan,
    cancelled: Callable[[], Any] | None = None,
) -> Iterator[State]:
    """Iterate from a start, with the refinements of the plan; the times include the warm-up.

    Parameters
    ----------
    problem : Problem
        Problem to solve.
    named : NamedStart
        Start.  With ``init="auto"``, a random start begins with a warm-up that finds the signs.
    options : Options
        `init`, `tol` and `time_limit`.
    plan : RefinementPlan
        Refinements to run between the iterations.
    cancelled : callable, optional
        Whether the warm-up shall end with a KeyboardInterrupt.

    Yields
    ------
    State
        Result of each iteration, in the units of X.
    """
    began = time.perf_counter()
    start = named.start
    if named.kind == "random" and options.init == "auto":
        start = warmed_up(problem, start, options, cancelled or (lambda: False))
    warm_up = time.perf_counter() - began
    for state in accelerated(problem, start, plan) if plan else admm(problem, start):
        state = problem.units.given_state(state, projected=problem.rule.projected)
        yield replace(state, seconds=state.seconds + warm_up)


def first_start(
    problem: Problem, offsets: Offsets, rank: int, options: Options, rng: np.random.Generator
) -> Start:
    """Return the first start of `all_starts`, after the warm-up of an even f."""
    named = next(all_starts(problem, offsets, rank, options, rng))
    if named.kind != "random":
        return named.start
    return warmed_up(problem, named.start, options)


def warmed_up(
    problem: Problem,
    start: Start,
    options: Options,
    cancelled: Callable[[], Any] = lambda: False,
) -> Start:
    """Return the start for an even f, improved by iterations of Modulus + Frobenius.

    They fit the starting T and find the signs of WH.  For any other f the start is unchanged.

    Parameters
    ----------
    problem : Problem
        Problem to solve.
    start : Start
        Random start, in the units of the problem.
    options : Options
        `tol` and `time_limit`.
    cancelled : callable, optional
        Whether the warm-up shall end with a KeyboardInterrupt.
    """
    f, pair = problem.pair.nonlinearity, make_pair("modulus", "frobenius")
    if not f.even or problem.pair.structure == pair.structure:
        return start
    observations = problem.observations.mapped(problem.pair.preimage)
    warm_up = replace(problem, observations=observations, pair=pair, rule=BALANCED)
    run = Run(admm(warm_up, start), tol=STOPPING.exact_for(options.tol))
    state, _, reason, _ = run.advance(
        WARM_UP.iterations, callback=lambda _: cancelled(), time_limit=options.time_limit
    )
    if reason.code in ("interrupted", "callback"):
        raise KeyboardInterrupt
    return Start(state.W, state.H, from_factors=True, offsets=state.offsets)
