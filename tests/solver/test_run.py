"""A run that pauses and resumes: the iterates, the clock and the reasons are those of one run."""

from dataclasses import replace

import numpy as np
import pytest
from given import prepare

import nmd_lab as nmd
from nmd_lab.fit import ResumableFit
from nmd_lab.solver.loop import Stopping
from nmd_lab.solver.starts import run_from


def run_of(X, rank=3, **options):
    ready = prepare(X, rank, "relu", "frobenius", absent_are_zeros=True, random_state=0, **options)
    asked = ready.options
    rules = Stopping(asked.max_iter, tol=asked.tol, patience=asked.solver.patience)
    fit = ready.problem, next(ready.starts), asked, ready.plan, rules
    return run_from(*fit, held_out=ready.held_out)


@pytest.mark.parametrize(
    "options", [{}, {"validation": 0.2}, {"tol": 0}, {"solver": nmd.ADMM(refine=False)}]
)
@pytest.mark.parametrize("pieces", [(9,), (1,) * 9, (4, 5), (0, 9)])
def test_pauses_change_nothing(small, options, pieces):
    whole = nmd.decompose(small, 3, max_iter=9, random_state=0, **options)
    run = run_of(small, **options)
    for iterations in pieces[:-1]:
        if iterations:
            run.advance(iterations)
    outcome = run.advance(pieces[-1])
    np.testing.assert_array_equal(outcome.state.W, whole._factors[0])
    np.testing.assert_array_equal(outcome.state.H, whole._factors[1])
    assert outcome.history["objective"] == list(whole.history["objective"].values)
    assert outcome.stop_reason == whole.stop_reason


def test_a_standstill_is_seen_across_pauses(small):
    """The objective stands still for 200 iterations in a row, some before the pause."""
    whole = nmd.decompose(
        small, 1, max_iter=3000, random_state=0, tol=1e-6, solver=nmd.ADMM(refine=False)
    )
    assert whole.stop_reason.code == "converged"
    run = run_of(small, rank=1, solver=nmd.ADMM(refine=False), tol=1e-6)
    run.advance(whole._n_iter - 100)
    outcome = run.advance(1000)
    assert len(outcome.history["objective"]) == whole._n_iter
    assert outcome.stop_reason == whole.stop_reason


def test_a_pause_does_not_count(small, clock):
    run = run_of(small)
    run.advance(2)
    clock.now += 1000
    seconds = run.advance(2).history["seconds"]
    assert 0 < seconds[0] < seconds[1] < seconds[2] < seconds[3] < 1000


def test_a_resumable_fit_is_the_fit(small):
    whole = nmd.decompose(small, 3, max_iter=7, random_state=0)
    fit = ResumableFit(
        prepare(small, 3, "relu", "frobenius", absent_are_zeros=True, random_state=0)
    )
    fit.advance(3, lambda state: False)
    result = fit.advance(4, lambda state: False)
    assert result.W.identical(whole.W)
    assert result.H.identical(whole.H)
    assert result.parameters["optimality"] == whole.parameters["optimality"]
    assert result.parameters["observations_hash"] == whole.parameters["observations_hash"]


def test_the_warm_up_of_a_resumable_fit_has_the_time_that_the_choice_left(small, clock):
    arguments = {"absent_are_zeros": True, "random_state": 0, "time_limit": 2.0}
    ready = prepare(small, 3, "modulus", "l1", **arguments)
    fit = ResumableFit(ready._replace(spent=1.5))
    fit.advance(1, lambda state: False)
    assert 0.4 < fit.run.state.seconds < 0.6


def test_an_overflow_later_gives_the_best_so_far(small, monkeypatch):
    run = run_of(small)
    first = run.advance(2)
    iterate = run._engine.iterate

    def overflowing(*arguments):
        return replace(iterate(*arguments), objective=np.inf)

    monkeypatch.setattr(run._engine, "iterate", overflowing)
    outcome = run.advance(5)
    assert outcome.stop_reason.code == "not finite"
    assert outcome.score == first.score
    assert outcome.complete
