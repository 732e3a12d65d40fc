"""A fit in a thread: it stops, continues, is forgotten or fails as one fit does, and its curves."""

import threading

import numpy as np
import pytest
from explorer_page import arrays_of, ended, plain
from waiting import PATIENCE, wait_for

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.metrics import rmse
from nmd_lab.widgets import fitting
from nmd_lab.widgets.background import is_measured
from nmd_lab.widgets.charts import curves_chart
from nmd_lab.widgets.matrix import MatrixState

ENDLESS = 10**9


def fitted(X, iterations=ENDLESS, **settings):
    """Return the state of a matrix whose fit goes on until it is stopped."""
    settings = {"rank": 3, "tol": 0.0, "iterations": iterations} | settings
    return plain(MatrixState, X, **settings)


def joined(state):
    """Return the work of a fit that has ended."""
    assert state.fit.join(PATIENCE)
    return state.fit


def test_stop_keeps_the_last_state_as_max_iter_would(small):
    state = fitted(small)
    state.start()
    wait_for(lambda: state.fit.state is not None and state.fit.state.iteration > 5)
    state.fit.stop()
    fit = joined(state)
    assert fit.phase == "stopped"
    count = fit.result._n_iter
    assert fit.message == f"stopped after {count} iterations"
    whole = nmd.decompose(small, 3, max_iter=count, tol=0, random_state=0).rotate()
    np.testing.assert_array_equal(fit.result.W, whole.W)
    assert [*fit.recorded("relative_error")][-1] == count


def test_reset_forgets_even_a_running_fit(small):
    state = fitted(small)
    state.start()
    wait_for(lambda: state.fit.state is not None)
    state.fit.reset()
    assert (joined(state).phase, state.fit.state, state.fit.result) == ("ready", None, None)
    state.proceed()
    assert state.fit.phase == "ready"


def test_an_error_becomes_a_sentence(small, monkeypatch):
    def overflows(*_, **__):
        raise FloatingPointError("overflow in W")

    state = fitted(small, 3)
    wrong = [
        (fitted(small, rank=99), "rank=99 exceeds the smaller side of X"),
        (fitted(np.full((8, 8), 1e200)), "X has a largest magnitude of 1e+200"),
        (state, "FloatingPointError: overflow in W"),
    ]
    for each, sentence in wrong:
        with monkeypatch.context() as patch:
            if each is state:
                patch.setattr(fitting, "prepared", overflows)
            each.run()
            assert joined(each).message.startswith(sentence)
        assert each.fit.phase == "failed"
        assert each.fit.cannot_proceed()
    ended(state)  # it lives on


def test_listeners_are_called_at_most_sixteen_times_a_second(small, clock):
    state, calls = fitted(small, 300), []
    state.fit.listeners.append(lambda: calls.append((clock.now, state.fit.message)))
    ended(state)
    times = [moment for moment, message in calls if message.startswith("running")]
    assert 2 <= len(times) < 300
    assert min(np.diff(times)) >= 0.06


def test_many_starts_and_stops_do_not_disturb_each_other_and_leave_no_thread(small):
    before, asked = threading.active_count(), []
    state = fitted(small)
    for _ in range(20):
        state.start()
        wait_for(lambda: state.fit.state is not None)
        state.fit.stop()
        state.fit.join()
        state.start()

    def stop_once_it_runs():
        if state.fit.phase == "running" and state.fit.state is not None:
            asked.append(state.fit.state.iteration)
            state.fit.stop()

    state.fit.listeners.append(stop_once_it_runs)
    state.start()
    fit = joined(state)
    assert [fit.result._n_iter] == asked  # it is heard at once
    assert [*fit.recorded("relative_error")][-1] == asked[0]
    wait_for(lambda: threading.active_count() <= before)


@pytest.fixture
def choosing(small, monkeypatch):
    """Return a function that makes a state whose choice calls another function."""

    def made(during, **settings):
        state = fitted(small, alpha="auto", **settings)

        def choose(X, arguments, signals, **options):
            during(signals)
            return fitting.prepared(X, arguments | {"alpha": 0.5}, **options)

        monkeypatch.setattr(fitting, "choice_for", choose)
        return state

    return made


def test_a_choice_comes_before_the_fit_in_its_thread(choosing):
    threads = []

    def trials(asked):
        threads.append(threading.current_thread())
        for _ in range(5):
            asked.begin()
            assert not asked

    state = choosing(trials, iterations=4)
    assert (ended(state)._n_iter, state.values["alpha"]) == (4, 0.5)
    assert threads != [threading.main_thread()]
    state.set("iterations", 3)
    state.proceed()
    assert joined(state).result._n_iter == 7
    assert len(threads) == 1


def test_a_finished_fit_has_done_all_and_the_time_of_a_choice_is_no_iteration(choosing, clock):
    state = choosing(lambda _: setattr(clock, "now", clock.now + 400), tol=0.5, iterations=5000)
    assert ended(state).stop_reason.code == "converged"
    assert state.fit.planned == state.fit.done < 5000
    assert clock.now - state.fit.began < 300


# Curves -------------------------------------------------------------------------------------------


def check_curve(state, X, held_out, *, seed=0):
    """Compare the curve with fits that end at its iterations."""
    hidden = np.isnan(np.asarray(state.fit.data.seen))
    rank = state.fit.settings["rank"]
    for iteration in [1, 2, 7, *list(held_out)[12::9], max(held_out)]:
        fit = nmd.complete(
            state.fit.data.seen, rank, "relu", alpha=0, random_state=seed, max_iter=iteration,
            tol=0,
        )  # fmt: skip
        expected = rmse(np.asarray(X), fit.reconstruct().values, observed=hidden)
        assert held_out[iteration] == pytest.approx(expected, rel=1e-9)


def test_the_curve_is_measured_on_a_schedule_of_its_own():
    digits = datasets.digits(300)
    explorer = plain(widgets.explore, digits, missing=0.3, rank=12, iterations=120)
    explorer.start()
    assert explorer.join(PATIENCE)
    held_out = explorer.state.fit.held_out
    assert list(held_out) == [k for k in range(1, 121) if is_measured(k) or k == 120]
    assert len(held_out) > 40
    check_curve(explorer.state, digits, held_out)
    best = min(held_out, key=held_out.get)
    assert 1 < best < 120
    shown = dict(zip(*arrays_of(explorer.curves)["hidden"], strict=True))
    assert shown == pytest.approx(held_out)


def test_what_is_read_does_not_change_while_it_runs(small):
    settings = {"iterations": ENDLESS, "tol": 0.0, "rho": 1.0}
    state = plain(MatrixState, small, rank=4, missing=0.2, **settings)
    state.start()
    wait_for(lambda: state.fit.state is not None)
    before = state.fit.guesses
    seen, count = state.fit.state.iteration, len(before)
    wait_for(lambda: state.fit.state.iteration > 2 * seen + 40)
    assert len(before) == count < len(state.fit.guesses)
    state.fit.reset()
    assert state.fit.join(PATIENCE)
    assert state.fit.guesses == {}


def test_all_numbers_arrive_as_they_are():
    a = np.geomspace(1, 1e-300, 300)
    seen = dict(enumerate(a, 1))
    points = arrays_of(curves_chart({"seen": seen, "hidden": {1: 0.5}, "other": {}}))
    assert list(points) == ["seen", "hidden"]
    np.testing.assert_array_equal(points["seen"], [np.arange(1, a.size + 1), a])
    assert curves_chart({"seen": {}, "hidden": {}}) is None
