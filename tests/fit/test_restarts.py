"""Several starts: the best comes back, each is told about, and threads change nothing.

A run that pauses and resumes: the iterates, the clock and the reasons are those of one run.
"""

import inspect
import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from helpers import given, prepare

import nmd_lab as nmd
from nmd_lab.api.fits import ResumableFit
from nmd_lab.datasets import synthetic
from nmd_lab.engines.refined import Refined
from nmd_lab.fit import starts
from nmd_lab.fit.loop import FitProgress, fit_from
from nmd_lab.fit.starts import engine_for
from nmd_lab.kernels.sweep import Sweep

VARIABLES = {"kind", "objective", "relative_error", "n_iter", "seconds", "stop_reason"}
OPTIONS = {"n_init": 4, "max_iter": 30, "random_state": 0}
PAIR = np.ones((30, 3)), np.random.default_rng(0).normal(size=(3, 20))


@pytest.fixture
def outcomes(monkeypatch):
    """The outcome of each start that is run."""
    found, fit_from = [], starts.fit_from

    def spy(*arguments, **options):
        found.append(fit_from(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(starts, "fit_from", spy)
    return found


# What is told -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("f", "init", "kind"), [("relu", "auto", "svd"), ("relu", "svd", "svd"),
                                                 ("modulus", "auto", "random"),
                                                 ("modulus", "svd", "svd"),
                                                 ("relu", "random", "random"),
                                                 ("relu", PAIR, "given")])  # fmt: skip
def test_every_start_has_its_row(noisy, f, init, kind):
    fit = nmd.decompose(noisy, 3, given(f), init=init, **OPTIONS)
    assert set(fit.starts.data_vars) == VARIABLES
    assert list(fit.starts["kind"].values) == [kind, "random", "random", "random"]
    assert np.all(fit.starts["n_iter"] == 30)
    assert np.all(fit.starts["seconds"] > 0)
    assert np.all(np.isfinite(fit.starts["objective"]))
    assert fit.relative_error in fit.starts["relative_error"].values
    assert list(fit.starts["stop_reason"].values) == ["max_iter: 30 iterations done"] * 4


@pytest.mark.parametrize("all_run", [True, False])
def test_the_account_survives_a_file(noisy, all_run, read_back):
    exact, most = synthetic(30, 20, 2, random_state=0).X, {"max_iter": 500}
    fit = nmd.decompose(noisy if all_run else exact, 2, **OPTIONS | ({} if all_run else most))
    loaded = read_back(fit)
    assert loaded.starts.identical(fit.starts)
    codes = [start["stop_reason"].code for start in loaded.parameters["starts"]]
    assert codes == (["max_iter"] * 4 if all_run else ["converged"] + ["not run"] * 3)
    assert np.isnan(fit.starts["objective"][1:]).all() != all_run
    assert fit.starts["n_iter"][1:].any() == all_run
    assert all_run or "the first start left nothing to gain" in fit.starts["stop_reason"].item(1)


# The best ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", ["square", "modulus", "minmax"])
@pytest.mark.parametrize("loss", ["frobenius", "l1", "kl"])
def test_the_best_comes_back(noisy, f, loss):
    fit = nmd.decompose(noisy, 3, given(f), loss, init="random", **OPTIONS)
    objectives = fit.starts["objective"].values
    assert fit.objective == objectives.min()
    assert len(set(objectives)) == 4
    alone = nmd.decompose(noisy, 3, given(f), loss, init="random", **{**OPTIONS, "n_init": 1})
    assert objectives[0] == alone.objective
    values = fit.loss(noisy, fit.reconstruct().values).sum()
    assert values == pytest.approx(fit.objective, rel=1e-9)


def test_validation_decides_if_there_is_one(noisy, outcomes):
    better, given = 0, {"init": "random", "validation": 0.3, "solver": nmd.ADMM(patience=100)}
    for seed in range(6):
        outcomes.clear()
        fit = nmd.decompose(noisy, 5, "square", **OPTIONS | given | {"random_state": seed})
        errors = [min(outcome.history["validation_rmse"]) for outcome in outcomes]
        assert len(errors) == 4
        assert fit.history["validation_rmse"].values.min() == min(errors)
        objectives = [outcome.result.objective for outcome in outcomes]
        better += int(np.argmin(errors)) != int(np.argmin(objectives))
    assert better > 0  # the two orders do differ


# Fewer than all ---------------------------------------------------------------------------------


def test_a_start_that_is_behind_is_given_up(noisy):
    options = {"n_init": 8, "max_iter": 400, "random_state": 0, "init": "random"}
    fit = nmd.decompose(noisy, 3, "square", "l1", **options)
    behind = fit.starts["stop_reason"].str.startswith("behind").values
    assert behind.any()
    assert not behind[0]
    assert np.all(fit.starts["n_iter"].values[behind] < 400)
    assert np.all(fit.starts["n_iter"].values[behind] >= 100)  # not before there is a trend
    assert np.all(fit.starts["objective"].values[behind] > fit.objective)
    assert set(fit.starts["stop_reason"].values[behind]) == {
        "behind: it would not reach the first start any more"
    }
    every = nmd.decompose(noisy, 3, "square", "l1", tol=0, **options | {"max_iter": 150})
    assert np.all(every.starts["n_iter"] == 150)  # without tolerance


@pytest.mark.parametrize("start", [0, 1, 2])
@pytest.mark.parametrize("how", ["callback", "interrupted"])
def test_a_stop_ends_all_starts(noisy, start, how, interactive):
    calls = itertools.count(1)

    def callback(state):
        is_last = next(calls) == 30 * start + 5
        if is_last and how == "interrupted":
            raise KeyboardInterrupt
        return is_last

    fit = nmd.decompose(noisy, 3, "modulus", callback=callback, **OPTIONS)
    reasons = list(fit.starts["stop_reason"].values)
    assert fit.stop_reason.startswith(how)
    assert reasons[start] == fit.stop_reason
    assert list(fit.starts["n_iter"].values) == [30] * start + [5] + [0] * (3 - start)
    which = "an earlier" if start else "the first"
    assert set(reasons[start + 1 :]) == {f"not run: {which} start was stopped"}
    assert np.isnan(fit.starts["objective"].values[start + 1 :]).all()
    assert fit.objective == np.nanmin(fit.starts["objective"])


def test_the_time_limit_bounds_every_warm_up(noisy, clock):
    options = {"n_init": 5, "max_iter": 5, "time_limit": 3.0, "random_state": 0}
    fit = nmd.decompose(noisy[:16, :12], 3, "modulus", "l1", **options)
    run = fit.starts["n_iter"].values > 0
    assert run.sum() == 2  # the first warm-up takes more than half of the time
    assert fit.starts["seconds"].values[run].sum() < 3.2
    assert fit.stop_reason == "time_limit: 3 s passed"


def test_the_time_limit_is_for_all_starts_together(noisy, clock):
    fit = nmd.decompose(noisy, 3, "square", "kl", n_init=50, max_iter=100, time_limit=8.0,
                            random_state=0)  # fmt: skip
    run = fit.starts["n_iter"].values > 0
    seconds = fit.starts["seconds"].values[run]
    assert run.sum() > 1  # one start alone does not use it up
    assert seconds[:-1].sum() < 8.0  # what is done between the starts counts as well
    assert 7.5 < seconds.sum() < 8.1
    assert set(fit.starts["stop_reason"].values[~run]) == {"not run: an earlier start was stopped"}
    assert fit.stop_reason == "time_limit: 8 s passed"


def run_of(X, rank=3, **options):
    """Return a function that does so many iterations more."""
    ready = prepare(X, rank, "relu", "frobenius", absent_are_zeros=True, random_state=0, **options)
    engine, run = engine_for(ready.plan), FitProgress()

    def advance(more):
        rules, start = replace(ready.rules, most=run.n_iter + more), partial(next, ready.starts)
        return fit_from(ready.problem, start, rules, engine, run, held_out=ready.held_out)

    return advance


def test_a_standstill_is_seen_across_pauses(small):
    """The objective stands still for 200 iterations in a row, some before the pause."""
    whole = nmd.decompose(
        small, 1, max_iter=3000, random_state=0, tol=1e-6, solver=nmd.ADMM(refine=False)
    )
    assert whole.stop_reason.code == "converged"
    advance = run_of(small, rank=1, solver=nmd.ADMM(refine=False), tol=1e-6)
    advance(whole._n_iter - 100)
    run = advance(1000)
    assert len(run.history["objective"]) == whole._n_iter
    assert run.stop_reason == whole.stop_reason


def test_a_pause_does_not_count(small, clock):
    advance = run_of(small)
    advance(2)
    clock.now += 1000
    seconds = advance(2).history["seconds"]
    assert 0 < seconds[0] < seconds[1] < seconds[2] < seconds[3] < 1000


def test_the_warm_up_of_a_resumable_fit_has_the_time_that_the_choice_left(small, clock):
    arguments = {"absent_are_zeros": True, "random_state": 0, "time_limit": 2.0}
    ready = prepare(small, 3, "modulus", "l1", **arguments)
    fit = ResumableFit(ready._replace(summary=ready.summary._replace(spent=1.5)))
    fit.advance(1, lambda state: False)
    assert 0.4 < fit.progress.seconds < 0.6


def test_an_overflow_later_gives_the_best_so_far(small, monkeypatch):
    advance, iterate = run_of(small), Refined.iterate
    score = advance(2).score
    monkeypatch.setattr(Refined, "iterate", lambda *it: replace(iterate(*it), objective=np.inf))
    run = advance(5)
    assert run.stop_reason.code == "not finite"
    assert run.score == score


def test_few_frames_of_python_are_above_the_kernels(small, monkeypatch):
    stacks, update = [], Sweep.update

    def spy(*arguments, **others):
        stacks.append([frame.function for frame in inspect.stack()])
        return update(*arguments, **others)

    monkeypatch.setattr(Sweep, "update", spy)
    nmd.decompose(small, 3, "relu", max_iter=2, tol=0)
    assert stacks[0].index("decompose") <= 9, stacks[0]


PIECEWISE = [
    ("relu", {"validation": 0.3, "solver": nmd.ADMM(patience=1000)}),
    ("relu", {"solver": nmd.ADMM(refine=False, polish=True)}),
    ("square", {"tol": 1e-9}),
    ("minmax", {"solver": nmd.ADMM(homotopy=True)}),
]


@pytest.mark.parametrize(("f", "options"), PIECEWISE)
def test_pieces_are_those_of_one_run(small, rng, f, options):
    noisy = np.clip(small + rng.normal(size=small.shape), 0, 1 if f == "minmax" else None)
    options = {"random_state": 0, "tol": 0} | options
    begun = {"max_iter": 1, "absent_are_zeros": True} | options
    piecewise = ResumableFit(prepare(noisy, 8, given(f), "frobenius", **begun))
    for most in (1, 19, 20, 60):
        result = piecewise.advance(most, lambda state: False)
    whole = nmd.decompose(noisy, 8, given(f), max_iter=100, **options)
    assert "validation" not in options or whole.parameters["iteration"] < 100  # it overfits
    assert result.parameters["iteration"] == whole.parameters["iteration"]
    np.testing.assert_array_equal(result.W, whole.W)
    np.testing.assert_array_equal(result.history["objective"], whole.history["objective"])
