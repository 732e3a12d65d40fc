"""Ctrl-C and SIGTERM at any moment of a fit: the best so far is returned, if there is one."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np
import pytest
from killing import calls_in
from numba.core import event
from waiting import wait_for

import nmd_lab as nmd
from nmd_lab import _fitting as fit_module
from nmd_lab import _interruption
from nmd_lab._numba import compile_scalar
from nmd_lab.cli import main
from nmd_lab.datasets import synthetic
from nmd_lab.solver import restarts, starts
from nmd_lab.solver.run import Run

OPTIONS = {"max_iter": 12, "tol": 0, "random_state": 0, "progress": False}
FIT, NOTHING, WRONG = 0, 10, 11


@pytest.fixture(scope="module")
def noisy():
    return np.abs(synthetic(16, 12, 3, "modulus", noise=0.2, random_state=0).X.values)


@pytest.fixture(autouse=True)
def _usual_handlers():
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert _interruption._current is None


def sent(number, function):
    """Return a function that sends a signal to this process once, and then is another one."""
    numbers = [number]

    def sending(*arguments, **options):
        while numbers:
            signal.raise_signal(numbers.pop())
        return function(*arguments, **options)

    return sending


def is_valid(fit, n_starts):
    history = [fit.history[name].size for name in fit.history.data_vars]
    return (
        np.isfinite(fit.W.values).all()
        and np.isfinite(fit.H.values).all()
        and np.isfinite(fit.optimality)
        and set(history) == {fit.n_iter}
        and fit.starts.sizes["start"] == n_starts
        and fit.objective == np.nanmin(fit.starts["objective"].values)
        and fit.stop_reason.code in ("max_iter", "interrupted")
    )


# Any moment -------------------------------------------------------------------------------------


def outcome_of(number, calls, X):
    """Return how a child ends that gets a signal after so many calls within a fit."""
    child = os.fork()
    if child == 0:
        iterates, code = [], WRONG
        try:
            _send_after(calls, number)
            fit = nmd.decompose(
                X, 3, "modulus", "l1", n_init=3, callback=iterates.append, **OPTIONS
            )
            code = FIT if is_valid(fit, 3) else WRONG
        except KeyboardInterrupt:
            code = WRONG if iterates else NOTHING
        finally:
            sys.setprofile(None)
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _send_after(calls, number):
    left = calls

    def look(*_):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), number)

    sys.setprofile(look)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_moment(noisy, number):
    def whole():
        nmd.decompose(noisy, 3, "modulus", "l1", n_init=3, callback=lambda state: None, **OPTIONS)

    whole()  # compiles
    calls = calls_in(whole)
    moments = np.random.default_rng(0).integers(1, calls - 300, size=40)
    found = {outcome_of(number, int(moment), noisy) for moment in moments}
    nothing = NOTHING if number == signal.SIGINT else -signal.SIGTERM
    assert found == {FIT, nothing}


# Chosen moments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "Ctrl-C"),
                                              (signal.SIGTERM, "SIGTERM")])  # fmt: skip
def test_the_reason_names_the_signal(noisy, number, name):
    def callback(state):
        if state.iteration == 5:
            signal.raise_signal(number)

    fit = nmd.decompose(noisy, 3, callback=callback, **OPTIONS)
    assert fit.stop_reason == f"interrupted: {name} after 5 iterations"
    assert fit.stop_reason.code == "interrupted"
    assert fit.n_iter == 5


def test_the_warm_up_of_a_later_start_loses_nothing(noisy, monkeypatch):
    warmed_up, count = starts.warmed_up, []

    def second_is_interrupted(*arguments):
        count.append(1)
        if len(count) == 2:
            signal.raise_signal(signal.SIGINT)
        return warmed_up(*arguments)

    alone = nmd.decompose(noisy, 3, "modulus", "l1", **OPTIONS)
    monkeypatch.setattr(starts, "warmed_up", second_is_interrupted)
    fit = nmd.decompose(noisy, 3, "modulus", "l1", n_init=4, **OPTIONS)
    assert fit.stop_reason.code == "interrupted"
    np.testing.assert_array_equal(fit.W.values, alone.W.values)
    assert list(fit.starts["n_iter"].values) == [12, 0, 0, 0]
    assert [reason.split(":")[0] for reason in fit.starts["stop_reason"].values] == [
        "max_iter", "interrupted", "not run", "not run",
    ]  # fmt: skip


@pytest.mark.parametrize(("module", "name"), [(restarts, "optimality"), (fit_module, "label")])
def test_a_signal_after_the_last_iteration(noisy, module, name, monkeypatch):
    alone = nmd.decompose(noisy, 3, **OPTIONS)
    monkeypatch.setattr(module, name, sent(signal.SIGTERM, getattr(module, name)))
    fit = nmd.decompose(noisy, 3, **OPTIONS)
    assert fit.stop_reason == "interrupted: SIGTERM after 12 iterations"
    np.testing.assert_array_equal(fit.W.values, alone.W.values)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_starts_side_by_side_all_end(number, monkeypatch):
    X = np.abs(synthetic(320, 240, 3, "modulus", noise=0.2, random_state=0).X.values)
    run = restarts._Runner._run_or_none

    def interrupted(self, *arguments):
        if not self.interruption:
            os.kill(os.getpid(), number)
            wait_for(lambda: self.interruption)
        return run(self, *arguments)

    alone = nmd.decompose(X, 3, **OPTIONS)
    monkeypatch.setattr(restarts._Runner, "_run_or_none", interrupted)
    fit = nmd.decompose(X, 3, n_init=4, threads=2, **OPTIONS)
    assert fit.stop_reason.code == "interrupted"
    assert list(fit.starts["n_iter"].values[:1]) == [12]
    assert np.all(fit.starts["n_iter"].values[1:] <= 1)
    assert fit.objective <= alone.objective


def test_before_the_first_iterate_there_is_nothing_to_return(noisy, monkeypatch):
    iterate = sent(signal.SIGINT, restarts.iterate_and_learn)
    monkeypatch.setattr(restarts, "iterate_and_learn", iterate)
    with pytest.raises(KeyboardInterrupt):
        nmd.decompose(noisy, 3, **OPTIONS)


def test_a_second_signal_ends_the_iteration_at_once(noisy, monkeypatch):
    step, count = Run._step, []

    def interrupted(self, rules):
        count.append(1)
        if len(count) == 4:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return step(self, rules)

    monkeypatch.setattr(Run, "_step", interrupted)
    fit = nmd.decompose(noisy, 3, **OPTIONS)
    assert fit.stop_reason == "interrupted: Ctrl-C after 3 iterations"


def test_a_handler_of_the_user_stays(noisy):
    heard = []
    previous = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        fit = nmd.decompose(
            noisy, 3, callback=lambda state: signal.raise_signal(signal.SIGTERM), **OPTIONS
        )
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert heard == [signal.SIGTERM] * 12
    assert fit.stop_reason.code == "max_iter"


def test_a_fit_within_a_fit_ends_with_it(noisy):
    inner = []

    def callback(state):
        if state.iteration == 2:
            again = {"callback": lambda _: signal.raise_signal(signal.SIGINT)}
            inner.append(nmd.decompose(noisy, 2, **again, **OPTIONS))

    outer = nmd.decompose(noisy, 3, callback=callback, **OPTIONS)
    assert inner[0].stop_reason == "interrupted: Ctrl-C after 1 iterations"
    assert outer.stop_reason == "interrupted: Ctrl-C after 2 iterations"


def test_the_command_saves_and_exits_with_143(noisy, monkeypatch, tmp_path):
    np.save(tmp_path / "X.npy", noisy)
    record = Run._record

    def interrupted(self, state):
        if state.iteration == 3:
            signal.raise_signal(signal.SIGTERM)
        return record(self, state)

    monkeypatch.setattr(Run, "_record", interrupted)
    out = tmp_path / "fit.nc"
    code = main(["fit", str(tmp_path / "X.npy"), "--rank", "2", "--out", str(out), "--quiet"])
    assert code == 143
    assert nmd.load(out).stop_reason == "interrupted: SIGTERM after 3 iterations"


def test_the_time_limit_bounds_every_warm_up(noisy, clock):
    fit = nmd.decompose(
        noisy, 3, "modulus", "l1", n_init=5, max_iter=5, time_limit=3.0, random_state=0
    )
    run = fit.starts["n_iter"].values > 0
    assert run.sum() == 2  # the first warm-up takes more than half of the time
    assert fit.starts["seconds"].values[run].sum() < 3.2
    assert fit.stop_reason == "time_limit: 3 s passed"


def test_a_signal_while_a_kernel_is_compiled():
    class Once(event.Listener):
        def __init__(self):
            self.sent = 0

        def on_start(self, _event):
            self.sent += 1
            if self.sent == 1:
                signal.raise_signal(signal.SIGINT)

        def on_end(self, _event):
            pass

    twice = compile_scalar.__wrapped__(lambda x: 2 * x)
    listener = Once()
    with event.install_listener("numba:compile", listener), pytest.raises(KeyboardInterrupt):
        twice(3.0)
    assert listener.sent == 1
    assert len(twice.signatures) == 1  # the compiler came to its end
    assert twice(3.0) == 6.0


def test_a_second_signal_ends_a_compiler_too():
    done = []

    def interrupted():
        signal.raise_signal(signal.SIGINT)
        done.append(1)
        signal.raise_signal(signal.SIGINT)
        done.append(2)

    with pytest.raises(KeyboardInterrupt), _interruption.without_interruption():
        interrupted()
    assert done == [1]
