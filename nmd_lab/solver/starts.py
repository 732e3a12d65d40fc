"""The starts of a fit, and the run from one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab.model.fitted_values import Offsets
from nmd_lab.model.model import make_model

from .constraints.factor_constraints import NO_CONSTRAINTS, is_nonnegative
from .constraints.least_squares import kind_of_descent
from .constraints.starts import filled, random_within, with_simplex
from .engines.admm import Admm
from .engines.constrained import Constrained, after_least_squares
from .engines.implicit_zeros import ImplicitZeros
from .engines.protocol import FitEngine
from .engines.refined import Refined
from .held_out import HeldOut
from .initialization import Start, given_start, random_start, svd_start
from .loop import Stopping, exact_for, nothing
from .options import Options
from .penalty import BALANCED
from .problem import Problem
from .refinement.plan import RefinementPlan, make_plan
from .ridge_path import after_strong_ridges, iterations_of
from .run import FIRST_ROUND, Run, RunState


def all_starts(
    problem: Problem,
    offsets: Offsets,
    rank: int,
    options: Options,
    plan: RefinementPlan,
    rng: np.random.Generator,
    chosen: Start | None = None,
) -> Iterator[Start]:
    """Yield the start that `init` selects, then random ones; each is computed when requested."""
    observations, model = problem.starting_data
    init = options.init
    for index in range(options.n_init):
        if index == 0 and init == "auto" and chosen is not None:
            yield problem.units.scaled_start(chosen)._replace(kind="chosen")
        elif problem.constraints.nonnegative and (isinstance(init, str) or index > 0):
            yield _nonnegative_start(problem, offsets, rank, "random" if index else init, rng)
        elif index > 0 or init == "random" or (init == "auto" and model.even):
            yield random_start(observations, model, rank, offsets, rng)
        elif isinstance(init, str):
            kind = "randomized" if plan.few_stored else "svd"
            kind = kind if init in ("auto", "path") else init
            start = svd_start(observations, model, rank, offsets, rng, kind)
            if init == "path":
                engine: FitEngine[Any] = ImplicitZeros(exact=0.0) if plan.few_stored else Admm()
                start = after_strong_ridges(problem, start, iterations_of(engine))
                start = start._replace(kind="path")
            yield start
        else:
            units = problem.units
            start = given_start(observations, rank, init, units.given_offsets(offsets))
            yield units.scaled_start(start)


def _nonnegative_start(
    problem: Problem, offsets: Offsets, rank: int, init: str, rng: np.random.Generator
) -> Start:
    """Return a start if a factor must be nonnegative.

    "auto" is random if both must be and descents follow (`kind_of_descent`), which ended in lower
    minima from there, and nonnegative parts of the singular value decomposition otherwise.
    """
    observations, model = problem.starting_data
    if init == "auto":
        both = is_nonnegative(problem.constraints.W) and is_nonnegative(problem.constraints.H)
        init = "random" if both and kind_of_descent(problem) else "nndsvd"
    if init == "random":
        start = random_start(observations, model, rank, offsets, rng)
        return random_within(problem, rank, start, rng)
    start = svd_start(observations, model, rank, offsets, rng, "nndsvd" if init == "svd" else init)
    start = with_simplex(problem, start if init == "randomized" else filled(start, rng))
    return start._replace(kind=init)


def engine_for(plan: RefinementPlan) -> FitEngine[Any]:
    """Return the engine of a plan."""
    if plan.engine == "constrained":
        return Constrained(exact=plan.fitted)
    if plan.engine == "implicit zeros":
        return ImplicitZeros(exact=plan.fitted, tol=plan.tol)
    return Refined(plan) if plan else Admm()


def run_from(
    problem: Problem,
    start: Start,
    options: Options,
    plan: RefinementPlan,
    rules: Stopping,
    *,
    state: RunState | None = None,
    held_out: HeldOut | None = None,
    cancelled: Callable[[], Any] = lambda: False,
    before_each: Callable[[], None] = nothing,
) -> Run:
    """Return the run from a start, after its warm-up, whose time belongs to the run."""
    state = RunState() if state is None else state
    if not state.has_begun:
        began = time.perf_counter()
        before = 0.0 if state.warm_up is None else state.warm_up.seconds
        kind, warms_up = start.kind, start.kind == "random" and options.init == "auto"
        if warms_up and plan.engine == "constrained":
            start = after_least_squares(problem, start)
        elif warms_up and not problem.constraints.nonnegative:
            start = warmed_up(problem, start, options, plan, state, cancelled, before_each)
        if problem.units.model.learns:  # at the factors of a fit, after one iteration
            length = 1 if kind in ("chosen", "given") else FIRST_ROUND
            state.round_length = state.round_end = length
        state.start, state.warm_up = start, None
        state.seconds = before + time.perf_counter() - began
    return Run(problem, engine_for(plan), state, rules, held_out)


def first_start(
    problem: Problem, offsets: Offsets, rank: int, options: Options, rng: np.random.Generator
) -> Start:
    """Return the first start of `all_starts`, after the warm-up of an even f."""
    plan = make_plan(problem, rank, options)
    start = next(all_starts(problem, offsets, rank, options, plan, rng))
    if start.kind != "random" or problem.constraints.nonnegative:
        return start
    return warmed_up(problem, start, options, plan, RunState())


def warmed_up(
    problem: Problem,
    start: Start,
    options: Options,
    plan: RefinementPlan,
    state: RunState,
    cancelled: Callable[[], Any] = lambda: False,
    before_each: Callable[[], None] = nothing,
) -> Start:
    """Return the start for an even f, improved by up to 200 iterations of Modulus + Frobenius.

    They fit the starting T and find the signs of WH.  For any other f the start is unchanged.
    """
    model = make_model("modulus", "frobenius")
    if not problem.model.even or problem.model.structure == model.structure:
        return start
    observations = problem.observations.mapped(problem.model.pseudo_inverse)
    free = replace(problem, constraints=NO_CONSTRAINTS, scaling=None)  # in its units all the time
    signs = replace(free, observations=observations, model=model, rule=BALANCED)
    exact = exact_for(options.tol)
    if state.warm_up is None:
        state.warm_up = RunState(start)
    with_zeros = plan.engine == "implicit zeros"
    engine: FitEngine[Any] = ImplicitZeros(exact=exact) if with_zeros else Admm()
    rules = Stopping(200, options.time_limit, lambda _: cancelled(), tol=exact)
    outcome = Run(signs, engine, state.warm_up, rules).advance(before_each=before_each)
    if outcome.stop_reason.code in ("interrupted", "callback"):
        raise KeyboardInterrupt
    reached = outcome.state
    return Start(reached.W, reached.H, from_factors=True, offsets=reached.offsets)
