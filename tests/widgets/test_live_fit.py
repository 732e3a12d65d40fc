"""A fit in a thread: it stops, continues, is forgotten or fails, with the iterates of one fit."""

import threading

import numpy as np
from given import prepare
from waiting import PATIENCE, wait_for

import nmd_lab as nmd
from nmd_lab.widgets.live import LiveFit, ResumableFit

ENDLESS = 10**9


def preparing(X, rank=3, **options):
    options = {"random_state": 0, "tol": 0, "max_iter": 1} | options
    return lambda *_: prepare(X, rank, "relu", "frobenius", absent_are_zeros=True, **options)


def test_the_best_validated_state_survives_further_pieces(small, rng):
    options = {"validation": 0.3, "solver": nmd.ADMM(patience=1000)}
    noisy = small + rng.normal(size=small.shape)
    fitting = ResumableFit(preparing(noisy, rank=8, **options)())
    for _ in range(5):
        result = fitting.advance(20, lambda state: False)
    whole = nmd.decompose(noisy, 8, max_iter=100, tol=0, random_state=0, **options)
    assert whole.parameters["iteration"] < 100  # it does overfit
    assert result.parameters["iteration"] == whole.parameters["iteration"]
    np.testing.assert_array_equal(result.W, whole.W)


def test_stop_keeps_the_last_state_as_max_iter_would(small):
    fit = LiveFit()
    fit.start(preparing(small), ENDLESS)
    wait_for(lambda: fit.state is not None and fit.state.iteration > 5)
    fit.stop()
    assert fit.join(PATIENCE)
    assert fit.phase == "stopped"
    count = fit.result._n_iter
    assert fit.message == f"stopped after {count} iterations"
    whole = nmd.decompose(small, 3, max_iter=count, tol=0, random_state=0).rotate()
    np.testing.assert_array_equal(fit.result.W, whole.W)
    assert [*fit.recording.seen][-1] == count


def test_reset_forgets_even_a_running_fit(small):
    fit = LiveFit()
    fit.start(preparing(small), ENDLESS)
    wait_for(lambda: fit.state is not None)
    fit.reset()
    assert fit.join(PATIENCE)
    assert (fit.phase, fit.state, fit.result) == ("ready", None, None)
    fit.proceed(3)
    assert fit.phase == "ready"


def test_an_error_becomes_a_sentence(small):
    def overflows(_):
        raise FloatingPointError("overflow in W")

    fit = LiveFit()
    for preparation, sentence in [
        (preparing(small, rank=99), "rank=99 exceeds the smaller side of X"),
        (preparing(np.full((3, 3), 1e200)), "X has a largest magnitude of 1e+200"),
        (overflows, "FloatingPointError: overflow in W"),
    ]:
        fit.start(preparation, 3)
        fit.join(PATIENCE)
        assert fit.phase == "failed"
        assert fit.message.startswith(sentence)
    assert fit.cannot_proceed()
    fit.start(preparing(small), 3)  # and it lives on
    fit.join(PATIENCE)
    assert fit.phase == "finished"


def test_listeners_are_called_at_most_sixteen_times_a_second(small, clock):
    fit, calls = LiveFit(), []
    fit.listeners.append(lambda: calls.append((clock.now, fit.message)))
    fit.start(preparing(small), 300)
    assert fit.join(PATIENCE)
    times = [moment for moment, message in calls if message.startswith("running")]
    assert 2 <= len(times) < 300
    assert min(np.diff(times)) >= 0.06


def test_many_starts_and_stops_do_not_disturb_each_other_and_leave_no_thread(small):
    before, asked = threading.active_count(), []
    fit = LiveFit()
    for _ in range(20):
        fit.start(preparing(small), ENDLESS)
        wait_for(lambda: fit.state is not None)
        fit.stop()
        fit.join()
        fit.start(preparing(small), ENDLESS)

    def stop_once_it_runs():
        if fit.phase == "running" and fit.state is not None:
            asked.append(fit.state.iteration)
            fit.stop()

    fit.listeners.append(stop_once_it_runs)
    fit.start(preparing(small), ENDLESS)
    assert fit.join(PATIENCE)
    assert [fit.result._n_iter] == asked  # it is heard at once
    assert [*fit.recording.seen][-1] == asked[0]
    wait_for(lambda: threading.active_count() <= before)


def after(fit, choose, prepare):
    """Return a preparation by a choice, and the list to which that is added."""
    settled = []

    def preparation(run):
        choice = fit.choose(choose, settled.append, run)
        return None if choice is None else prepare(choice)

    return preparation, settled


def test_a_choice_comes_before_the_fit_in_its_thread(small):
    fit, threads = LiveFit(), []

    def choose(asked):
        threads.append(threading.current_thread())
        for _ in range(5):
            asked.begin()
            assert not asked
        return "chosen"

    preparation, settled = after(fit, choose, preparing(small))
    fit.start(preparation, 4)
    assert fit.join(PATIENCE)
    assert (fit.phase, fit.result._n_iter, settled) == ("finished", 4, ["chosen"])
    assert threads != [threading.main_thread()]
    fit.proceed(3)
    assert fit.join(PATIENCE)
    assert (fit.result._n_iter, settled) == (7, ["chosen"])


def test_a_finished_fit_has_done_all_and_the_time_of_a_choice_is_no_iteration(small, clock):
    fit = LiveFit()

    def slow(_):
        clock.now += 400
        return "chosen"

    preparation, _ = after(fit, slow, preparing(small, tol=0.5))
    fit.start(preparation, 5000)
    assert fit.join(PATIENCE)
    assert fit.result.stop_reason.code == "converged"
    assert fit.planned == fit.done < 5000
    assert clock.now - fit.began < 300
