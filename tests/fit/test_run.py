"""A run that pauses and resumes: the iterates, the clock and the reasons are those of one run."""

import inspect
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from given import given, prepare

import nmd_lab as nmd
from nmd_lab.api.fits import ResumableFit
from nmd_lab.engines.refined import Refined
from nmd_lab.fit.loop import FitProgress, fit_from
from nmd_lab.fit.starts import engine_for
from nmd_lab.kernels.sweep import Sweep


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
