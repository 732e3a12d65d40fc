"""The starts of a fit, and the iteration from one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nmd_lab.checkpoint.place import NOWHERE, Place
from nmd_lab.model.offsets import Offsets
from nmd_lab.model.proximal import make_pair

from .admm import State, admm
from .constraints.descent import kind_of_descent
from .constraints.factor_constraints import NO_CONSTRAINTS, is_nonnegative
from .constraints.search import after_least_squares, searched
from .constraints.starts import filled, random_within, with_simplex
from .initialization import Start, given_start, random_start, svd_start
from .options import Options
from .penalty import BALANCED
from .problem import Problem
from .refinement.acceleration import accelerated
from .refinement.descents import descents
from .refinement.plan import RefinementPlan, descends, make_plan
from .run import Run
from .starting_data import starting_data
from .stopping import exact_for

WARM_UP = 200  # iterations of Modulus + Frobenius before a fit with an even f, init="auto"


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
    """Yield the start that `init` selects, then random ones; each is computed when requested."""
    observations, pair = starting_data(problem.observations, problem.pair)
    init = options.init
    for index in range(options.n_init):
        if index == 0 and init == "auto" and chosen is not None:
            yield NamedStart("chosen", problem.units.scaled_start(chosen))
        elif problem.constraints.nonnegative and (isinstance(init, str) or index > 0):
            yield _nonnegative_start(problem, offsets, rank, "random" if index else init, rng)
        elif index > 0 or init == "random" or (init == "auto" and pair.nonlinearity.even):
            yield NamedStart("random", random_start(observations, pair, rank, offsets, rng))
        elif isinstance(init, str):
            kind = init if init != "auto" else "randomized" if descends(problem, options) else "svd"
            yield NamedStart(kind, svd_start(observations, pair, rank, offsets, rng, kind))
        else:
            units = problem.units
            start = given_start(observations, rank, init, units.given_offsets(offsets))
            yield NamedStart("given", units.scaled_start(start))


def _nonnegative_start(
    problem: Problem, offsets: Offsets, rank: int, init: str, rng: np.random.Generator
) -> NamedStart:
    """Return a start if a factor must be nonnegative.

    "auto" is random if both must be and descents follow (`kind_of_descent`), which ended in lower
    minima from there, and nonnegative parts of the singular value decomposition otherwise.
    """
    observations, pair = starting_data(problem.observations, problem.pair)
    if init == "auto":
        both = is_nonnegative(problem.constraints.of_W) and is_nonnegative(problem.constraints.of_H)
        init = "random" if both and kind_of_descent(problem) else "nndsvd"
    if init == "random":
        start = random_start(observations, pair, rank, offsets, rng)
        return NamedStart("random", random_within(problem, rank, start, rng))
    start = svd_start(observations, pair, rank, offsets, rng, "nndsvd" if init == "svd" else init)
    return NamedStart(
        init, with_simplex(problem, start if init == "randomized" else filled(start, rng))
    )


def iterate(
    problem: Problem,
    named: NamedStart,
    options: Options,
    plan: RefinementPlan,
    cancelled: Callable[[], Any] | None = None,
    place: Place = NOWHERE,
) -> Iterator[State]:
    """Iterate from a start, with the refinements of the plan; the times include the warm-up."""
    began = time.perf_counter()
    start = named.start
    warms_up = named.kind == "random" and options.init == "auto"
    if place.goes_on:
        start = place.take()["start"]
    elif warms_up and plan.searches:
        start = after_least_squares(problem, start)
    elif warms_up and not problem.constraints.nonnegative:
        cancelled = cancelled or (lambda: False)
        start = warmed_up(problem, start, options, plan, cancelled, place.inner("warm-up"))
        place.leave("warm-up")
    place.mark(lambda: {"start": start})
    warm_up = time.perf_counter() - began
    for state in _states(problem, start, plan, place.inner("iteration")):
        state = problem.units.given_state(state, projected=problem.rule.projected)
        yield replace(state, seconds=state.seconds + warm_up, pair=problem.units.pair)


def _states(problem: Problem, start: Start, plan: RefinementPlan, place: Place) -> Iterator[State]:
    """Return the iteration that a plan asks for."""
    if plan.searches:
        return searched(problem, start, exact=plan.fitted, place=place)
    if plan.descends:
        return descents(problem, start, exact=plan.fitted, tol=plan.tol, place=place)
    if plan:
        return accelerated(problem, start, plan, place)
    return admm(problem, start, place)


def first_start(
    problem: Problem, offsets: Offsets, rank: int, options: Options, rng: np.random.Generator
) -> Start:
    """Return the first start of `all_starts`, after the warm-up of an even f."""
    named = next(all_starts(problem, offsets, rank, options, rng))
    if named.kind != "random" or problem.constraints.nonnegative:
        return named.start
    return warmed_up(problem, named.start, options, make_plan(problem, rank, options))


def warmed_up(
    problem: Problem,
    start: Start,
    options: Options,
    plan: RefinementPlan,
    cancelled: Callable[[], Any] = lambda: False,
    place: Place = NOWHERE,
) -> Start:
    """Return the start for an even f, improved by iterations of Modulus + Frobenius.

    They fit the starting T and find the signs of WH.  For any other f the start is unchanged.
    """
    f, pair = problem.pair.nonlinearity, make_pair("modulus", "frobenius")
    if not f.even or problem.pair.structure == pair.structure:
        return start
    observations = problem.observations.mapped(problem.pair.preimage)
    free = replace(problem, constraints=NO_CONSTRAINTS)
    warm_up = replace(free, observations=observations, pair=pair, rule=BALANCED)
    exact = exact_for(options.tol)
    inside = place.inner("iteration")
    if plan.descends:
        states = descents(warm_up, start, exact=exact, place=inside)
    else:
        states = admm(warm_up, start, inside)
    run = Run(states, tol=exact, place=place)
    state, _, reason, _ = run.advance(
        WARM_UP - run.n_iter,
        callback=lambda _: cancelled(),
        time_limit=options.time_limit,
    )
    if reason.code in ("interrupted", "callback"):
        raise KeyboardInterrupt
    return Start(state.W, state.H, from_factors=True, offsets=state.offsets)
