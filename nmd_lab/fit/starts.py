"""The starts of a fit, and what comes of them, one after the other.

The first start runs to its end, and each other one ends early when it can no longer reach the
objective of the first one.  `init` names the starts; others are the factors of another fit.

With ``init="path"`` a few iterations are done with each of several ridges, from strong to weak.
Under a strong ridge hardly anything but the strongest directions is left.  The others grow again,
the stronger ones first, as the ridge becomes weaker.  A fit that ends early from there has strong
components that the ridge has hardly shrunk, and none of the weak ones, which are mostly noise.

The loss of an entry with limits needs the standard deviation of the noise (`LimitModel`).  Where
settings are chosen by held-out entries, it is their error.  Otherwise a pilot run estimates it: a
few iterations, each time with the noise of the iterations before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from nmd_lab._runtime.progress import Interruption, StopReason, interruptible, is_interactive
from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.data.observations import Observations
from nmd_lab.engines import FitEngine, iterates
from nmd_lab.engines.admm import Admm
from nmd_lab.engines.constrained import (
    Constrained,
    after_least_squares,
    filled,
    kind_of_descent,
    random_within,
    with_simplex,
)
from nmd_lab.engines.refined import ImplicitZeros, Refined, RefinementPlan, exact_for, make_plan
from nmd_lab.kernels.products import pseudo_inverses, singular_factors
from nmd_lab.model.column_model import LimitModel
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.model.model import make_model
from nmd_lab.problem.initialization import Start, given_start, random_start, svd_start
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import learned_state, products_at
from nmd_lab.request.constraints import NO_CONSTRAINTS, is_nonnegative
from nmd_lab.request.options import Options
from nmd_lab.request.penalty import BALANCED

from .loop import UNFINISHED, FitProgress, Stopping, fit_from
from .summary import Decided


def first_sd(observations: Observations) -> float:
    """Return the standard deviation of the known values, for a model that explains nothing."""
    _, _, x, weights = _known_entries(observations)
    return math.sqrt(np.cov(x, aweights=weights, ddof=0)) if weights.any() else 0.0


def _known_entries(observations: Observations) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return the observed entries, and their weights, 0 where a value is not known."""
    rows = observations.csr_rows(slice(0, observations.shape[0]))
    weights = rows.exact if rows.weights is None else rows.weights * rows.exact
    return rows.rows, rows.indices, rows.values, weights


def with_sd(problem: Problem, sd: float) -> Problem:
    """Return a problem with the standard deviation of the noise, in the units of X."""
    model = problem.units.model
    if not model.has_form_for_limits:
        return problem
    return problem.with_model(model.with_limits(model.limits._replace(sd=sd)))


def with_estimated_sd(problem: Problem, options: Options) -> Problem:
    """Return a problem with the noise that a pilot run finds, 0 if no value is known."""
    observations, model = problem.observations, problem.model
    sd, rank, (m, n) = first_sd(observations), options.rank, observations.shape
    if not model.has_form_for_limits or sd == 0:
        return with_sd(problem, 0.0)
    start = first_start(problem, rank, options, options.generator())
    rows, columns, x, weights = _known_entries(observations)
    # A tenth of the known values are degrees of freedom that are left, at least.
    free = max(1.0 - rank * (m + n - rank) / np.count_nonzero(weights), 0.1)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(4):  # estimates
            pilot = replace(problem, model=model.with_limits(LimitModel(model.limits.smallest, sd)))
            *_, last = islice(iterates(Admm(), pilot, start), 20)
            if not last.is_finite:
                break
            t = products_at(last.W_aug, last.H_aug, rows, columns)
            errors = x - model.nonlinearity(t.astype(np.float64))
            sd = min(sd, math.sqrt(np.average(np.square(errors), weights=weights) / free))
            W, H, offsets = problem.offset_columns.split(last.W_aug, last.H_aug)
            start = Start(W.copy(), H.copy(), True, offsets)
    return with_sd(problem, sd * 2.0**problem.units.log2_unit_of_x)


def all_starts(
    problem: Problem,
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
            yield _nonnegative_start(problem, rank, "random" if index else init, rng)
        elif index > 0 or init == "random" or (init == "auto" and model.even):
            yield random_start(observations, model, rank, problem.offsets, rng)
        elif isinstance(init, str):
            kind = "randomized" if plan.few_stored else "svd"
            kind = kind if init in ("auto", "path") else init
            start = svd_start(observations, model, rank, problem.offsets, rng, kind)
            if init == "path":
                engine: FitEngine = ImplicitZeros(exact=0.0) if plan.few_stored else Admm()
                start = after_strong_ridges(problem, start, engine)
                start = start._replace(kind="path")
            yield start
        else:
            units = problem.units
            start = given_start(observations, rank, init, units.given_offsets(problem.offsets))
            yield units.scaled_start(start)


def _nonnegative_start(problem: Problem, rank: int, init: str, rng: np.random.Generator) -> Start:
    """Return a start if a factor must be nonnegative.

    "auto" is random if both must be and descents follow (`kind_of_descent`), which ended in lower
    minima from there, and nonnegative parts of the singular value decomposition otherwise.
    """
    data, offsets = problem.starting_data, problem.offsets
    if init == "auto":
        both = is_nonnegative(problem.constraints.W) and is_nonnegative(problem.constraints.H)
        init = "random" if both and kind_of_descent(problem) else "nndsvd"
    if init == "random":
        start = random_start(*data, rank, offsets, rng)
        return random_within(problem, rank, start, rng)
    start = svd_start(*data, rank, offsets, rng, "nndsvd" if init == "svd" else init)
    start = with_simplex(problem, start if init == "randomized" else filled(start, rng))
    return start._replace(kind=init)


def engine_for(plan: RefinementPlan) -> FitEngine:
    """Return the engine of a plan."""
    if plan.engine == "constrained":
        return Constrained(exact=plan.fitted)
    if plan.engine == "implicit zeros":
        return ImplicitZeros(exact=plan.fitted, tol=plan.tol)
    return Refined(plan) if plan else Admm()


def first_start(problem: Problem, rank: int, options: Options, rng: np.random.Generator) -> Start:
    """Return the first start of `all_starts`, after its warm-up."""
    plan = make_plan(problem, rank, options)
    return warmed_up(problem, next(all_starts(problem, rank, options, plan, rng)), options, plan)


def warmed_up(
    problem: Problem,
    start: Start,
    options: Options,
    plan: RefinementPlan,
    stopped: Callable[[], Any] = lambda: False,
) -> Start:
    """Return a start as the engine takes it: one that ``init="auto"`` drew after a warm-up.

    For an even f, up to 200 iterations of Modulus + Frobenius fit the starting T and find the signs
    of WH.
    """
    if options.init != "auto" or start.kind != "random":
        return start
    if plan.engine == "constrained":
        return after_least_squares(problem, start)
    model, even = make_model("modulus", "frobenius"), problem.model.even
    if not even or problem.constraints.nonnegative or problem.model.structure == model.structure:
        return start
    observations = problem.observations.mapped(problem.model.pseudo_inverse)
    free = replace(problem, constraints=NO_CONSTRAINTS, scaling=None)  # in its units all the time
    signs = replace(free, observations=observations, model=model, rule=BALANCED)
    exact, with_zeros = exact_for(options.tol), plan.engine == "implicit zeros"
    engine: FitEngine = ImplicitZeros(exact=exact) if with_zeros else Admm()
    rules = Stopping(200, options.time_limit, lambda _: stopped(), tol=exact)
    run = fit_from(signs, lambda: start, rules, engine, FitProgress())
    if run.stop_reason.code == "callback":
        raise KeyboardInterrupt
    assert run.result is not None
    return Start(run.result.W, run.result.H, from_factors=True, offsets=run.result.offsets)


MAX_RIDGE_RATIO = 10**0.5  # largest ratio of a ridge to the next one
N_RIDGE_ITERATIONS = 6  # with each of them


def after_strong_ridges(
    problem: Problem, start: Start, engine: FitEngine, stopped: Callable[[], bool] = lambda: False
) -> Start:
    """Return the factors that strong ridges leave of a start, in the units of the problem.

    The first ridge is the least one that removes all components, of which the first is the largest
    one.  Small components would become so small that rounding errors decide how they grow, so that
    a trace of the start is added to them.
    """
    if problem.alpha == 0:
        return start
    largest = float(np.linalg.norm(start.W[:, 0]) * np.linalg.norm(start.H[0]))
    (weight,) = problem.observations.weighted_sums()
    mean_weight = weight / problem.observations.n_observed
    first = problem.penalty_scale * largest * mean_weight / problem.alpha
    # multiples of the data have as many ridges, whatever their rounding
    count = math.ceil(math.log(max(first, 1.0)) / math.log(MAX_RIDGE_RATIO) - 1e-6)
    W, H = 1e-14 * start.W, 1e-14 * start.H  # added after each ridge, above rounding errors
    for k in range(count):
        if stopped():
            break
        alpha = float(first ** (1 - k / count)) * problem.alpha
        stronger = problem.with_cached_statistics().changed(alpha=alpha)
        *_, last = islice(iterates(engine, stronger, start), N_RIDGE_ITERATIONS)
        W_new, H_new, offsets = problem.offset_columns.split(last.W_aug, last.H_aug)
        start = Start(W_new + W, H_new + H, from_factors=True, offsets=offsets)
    return start


def _with_offsets_of(problem: Problem, start: Start) -> Start:
    """Return a start in which offsets that the problem does not have are components."""
    columns, offsets = problem.offset_columns, start.offsets
    m, n, dtype = start.W.shape[0], start.H.shape[1], start.W.dtype
    rows = np.zeros(m, dtype) if columns.before else offsets.of_rows(m, dtype)
    cols = np.zeros(n, dtype) if columns.after else offsets.of_columns(n, dtype)
    mean = offsets.mean if columns.kind == "none" else 0.0
    if not rows.any() and not cols.any() and mean == 0:
        return start
    W = np.column_stack([start.W, rows + mean, np.ones(m, dtype)])
    H = np.vstack([start.H, np.ones(n, dtype), cols])
    return start._replace(W=W.astype(dtype), H=H.astype(dtype))


def starts_of_rank(
    problems: Sequence[Problem], starts: Sequence[Start], rank: int, rng: np.random.Generator
) -> list[Start]:
    """Return starts with the largest components of others, and as many new ones as each needs.

    All are in the units of the problems, which differ in their entries alone.  A component that a
    strong ridge has removed would grow from rounding errors, so that another one takes its place.
    """
    # A rotation would break a constraint.
    components = _by_size if problems[0].is_constrained else singular_factors
    result = []
    for problem, before in zip(problems, starts, strict=True):
        start = _with_offsets_of(problem, before)
        W, H, sizes = components(start.W, start.H)
        n_alive = min(rank, int(np.count_nonzero(sizes > 1e-4 * problem.norm_of_initial_T)))
        W, H = (np.ascontiguousarray(each) for each in (W[:, :n_alive], H[:n_alive]))
        start, more = start._replace(W=W, H=H), rank - n_alive
        result.append(_with_more(problem, start, more, rng) if more else start)
    return result


def _by_size(W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the components as they are and their sizes, the largest first."""
    sizes = np.linalg.norm(W, axis=0) * np.linalg.norm(H, axis=1)
    order = np.argsort(-sizes, kind="stable")
    return W[:, order], H[order], sizes[order]


def _with_more(problem: Problem, start: Start, number: int, rng: np.random.Generator) -> Start:
    """Return a start with further components, the largest of the residual under the ridge."""
    model, observations = problem.model, problem.observations
    positions = observations.stored_positions()
    A = products_at(*problem.extend(start), *positions)
    residual = pseudo_inverses(observations, model) - A
    if not model.is_mixed:
        residual[model.nonlinearity(A) == observations.values.ravel()] = 0
    rest, identity = observations.with_stored(residual), make_model("identity", "frobenius")
    kind = "nndsvd" if problem.constraints.nonnegative else "randomized"
    new = svd_start(rest, identity, number, NO_OFFSETS, rng, kind)
    sizes = np.linalg.norm(new.H, axis=1) ** 2
    shrunk = np.maximum(sizes - problem.alpha, 0.1 * sizes)  # a new one has a tenth at least
    root = np.sqrt(np.divide(shrunk, sizes, out=np.zeros_like(shrunk), where=sizes > 0))
    root = root.astype(start.W.dtype)
    return start._replace(
        W=np.hstack([start.W, new.W * root]), H=np.vstack([start.H, root[:, None] * new.H])
    )


def solve(decided: Decided) -> tuple[FitProgress, list[dict[str, Any]]]:
    """Run each start and return that of lowest objective (or validation error).

    With it come kind, objective, relative_error, n_iter, seconds and stop_reason of each start.
    """
    problem, options, plan = decided.problem, decided.after_choice, decided.plan
    runs, held_out = decided.state.runs, decided.held_out
    began = time.perf_counter() - sum(run.seconds for run in runs if run.result is not None)
    stopped: StopReason | None = None
    over = StopReason("time_limit", f"time_limit: {decided.options.time_limit or 0:g} s passed")
    with interruptible() as interruption:
        try:
            for number in range(options.n_init):
                left, target = options.time_limit, math.inf
                if number > 0 and held_out is None:
                    assert runs[0].result is not None
                    if runs[0].result.relative_error <= exact_for(options.tol):
                        break
                    target = runs[0].score
                if number > 0 and left is not None:
                    left -= time.perf_counter() - began
                if number > 0 and (interruption or (left is not None and left <= 0)):
                    stopped = interruption.reason(runs[0].n_iter) if interruption else over
                    break
                start = next(decided.starts)
                if number == len(runs):
                    runs.append(FitProgress(start.kind))
                elif runs[number].result is not None:  # it ended before a pause
                    continue
                rules = replace(decided.rules, time_limit=left, target=target)
                if start.kind == "chosen" and not plan.window:
                    rules = replace(rules, window=20)  # for a part of tol
                limited = replace(options, time_limit=left), plan, interruption.__bool__
                run = fit_from(
                    problem,
                    partial(warmed_up, problem, start, *limited),
                    rules,
                    engine_for(plan),
                    runs[number],
                    held_out=held_out,
                    interruption=interruption,
                    bar=options.progress,
                    save=decided.save,
                )
                run.engine = run.last = run.best = run.round_best = None
                if run.stop_reason.code == "time_limit":  # that of all starts
                    run.stop_reason = over
                if run.stop_reason.code in UNFINISHED:
                    stopped = run.stop_reason
                    break
        except KeyboardInterrupt:
            if not (runs and runs[0].result is not None and is_interactive()):
                raise
            stopped = interruption.reason(runs[0].n_iter)
            if runs[-1].result is None:
                runs[-1] = FitProgress("random", stop_reason=interruption.reason(0))
        not_run = FitProgress("random", stop_reason=_why_not_run(runs[0], stopped))
        rows = [run.row() for run in runs] + [not_run.row()] * (options.n_init - len(runs))
        best = min((run for run in runs if run.result is not None), key=lambda run: run.score)
        best.stop_reason = stopped or best.stop_reason
        state = best.result
        assert state is not None
        # The run may have ended before the next round of learning, or even before the first one.
        if problem.units.model.learns and (learned := learned_state(problem, state, state)):
            for name in ("objective", "relative_error"):
                best.history[name][state.iteration - 1] = getattr(learned, name)
            best.result = replace(learned, stop_reason=state.stop_reason)
        return stopped_by(interruption, best), rows


def stopped_by(interruption: Interruption, run: FitProgress) -> FitProgress:
    """Return a run whose stop reason tells of Ctrl-C, if it came."""
    if interruption and not interruption.reported:
        run.stop_reason = interruption.reason(run.n_iter)
    return run


def _why_not_run(first: FitProgress, stopped: StopReason | None) -> StopReason:
    """Return why starts were not run, given the first and why the user or the time stopped one."""
    if stopped is None:
        why = "the first start left nothing to gain"
    elif first.stop_reason.code in UNFINISHED:
        why = "the first start was stopped"
    else:
        why = "an earlier start was stopped"
    return StopReason("not run", f"not run: {why}")
