"""Ctrl-C at any moment: the best so far in an interactive session, the end of a script."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from helpers import PATIENCE
from killing import calls_in, send_after
from numba.core import event

import nmd_lab as nmd
from nmd_lab._runtime import progress
from nmd_lab._runtime.compiler import compile_kernel
from nmd_lab.api import fits as fit_module
from nmd_lab.checkpoint import read_file
from nmd_lab.engines.refined import Refined

OPTIONS = {"max_iter": 12, "tol": 0, "random_state": 0, "progress": False}
FIT, NOTHING, WRONG = 0, 10, 11

LOOP = """
import numpy as np, nmd_lab as nmd
X = np.random.default_rng(0).random((20, 15))

def callback(state):
    if state.iteration == 3:
        print("begun", flush=True)

for _ in range(count):
    options = {"tol": 0, "max_iter": 10**9, "progress": False}
    options |= {"solver": nmd.ADMM(refine=False), "compute": nmd.Compute(**compute)}
    fit = nmd.decompose(X, 2, callback=callback, **options)
    print(fit.stop_reason.code, flush=True)
"""
"""Fits without end."""


@pytest.fixture(autouse=True)
def _nothing_is_left():
    yield
    assert getattr(progress._of_thread, "interruption", None) is None


# Sessions and scripts ---------------------------------------------------------------------------


def script(count, **compute):
    """Return a loop of so many fits with these settings of the machine."""
    return f"{count = }\n{compute = }\n{LOOP}"


def ended_by(number, *arguments):
    """Return how a Python process ends that gets a signal in a fit: code, output and errors."""
    with subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_script_with_a_loop_of_fits(number, tmp_path):
    path = tmp_path / "run.nc"
    lines = script(10, checkpoint=str(path), checkpoint_every=0)
    code, out, err = ended_by(number, "-c", lines)
    assert (code, out) == (-number, "")
    assert err.strip().endswith("KeyboardInterrupt") == (number == signal.SIGINT)
    _, arrays = read_file(path)
    assert arrays  # whole


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_ctrl_c_at_the_prompt_returns_the_best_so_far():
    code, out, _ = ended_by(signal.SIGINT, "-i", "-c", script(1))
    assert (code, out) == (0, "interrupted\n")


@pytest.mark.exhaustive
def test_the_stop_button_of_jupyter_returns_the_best_so_far():
    start_new_kernel = pytest.importorskip("jupyter_client.manager").start_new_kernel
    pytest.importorskip("ipykernel")
    manager, client = start_new_kernel()
    try:
        client.execute(script(1))
        seen: list[str] = []
        while "{'name': 'stdout', 'text': 'begun\\n'}" not in seen:
            seen.append(str(client.get_iopub_msg(timeout=PATIENCE)["content"]))
        manager.interrupt_kernel()
        while "'execution_state': 'idle'" not in seen[-1]:
            seen.append(str(client.get_iopub_msg(timeout=PATIENCE)["content"]))
        assert "'text': 'interrupted\\n'" in seen[-2]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def sent(function):
    """Return a function that gets Ctrl-C at its first call, and then is another one."""
    numbers = [signal.SIGINT]

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
        and np.isfinite(fit.parameters["optimality"])
        and set(history) == {fit._n_iter}
        and fit.starts.sizes["start"] == n_starts
        and fit.objective == np.nanmin(fit.starts["objective"].values)
        and fit.stop_reason.code in ("max_iter", "interrupted")
    )


# Any moment -------------------------------------------------------------------------------------


def outcome_of(calls, X):
    """Return how a child ends that gets Ctrl-C after so many calls within a fit."""
    child = os.fork()
    if child == 0:
        iterates, code = [], WRONG
        try:
            send_after(calls, signal.SIGINT)
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_ctrl_c_at_any_moment(noisy, interactive):
    def whole():
        nmd.decompose(noisy, 3, "modulus", "l1", n_init=3, callback=lambda state: None, **OPTIONS)

    whole()  # compiles
    calls = calls_in(whole)
    moments = np.random.default_rng(0).integers(1, calls - 300, size=20)
    found = {outcome_of(int(moment), noisy) for moment in moments}
    assert found == {FIT, NOTHING}


# Chosen moments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("module", "name"), [(fit_module, "optimality"), (fit_module, "package")])
def test_ctrl_c_after_the_last_iteration(noisy, module, name, monkeypatch, interactive):
    alone = nmd.decompose(noisy, 3, **OPTIONS)
    monkeypatch.setattr(module, name, sent(getattr(module, name)))
    fit = nmd.decompose(noisy, 3, **OPTIONS)
    assert fit.stop_reason == "interrupted: Ctrl-C after 12 iterations"
    np.testing.assert_array_equal(fit.W.values, alone.W.values)


def test_a_second_ctrl_c_ends_the_iteration_at_once(noisy, monkeypatch, interactive):
    step, count = Refined.step, []

    def interrupted(self, *arguments):
        count.append(1)
        if len(count) == 4:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return step(self, *arguments)

    monkeypatch.setattr(Refined, "step", interrupted)
    fit = nmd.decompose(noisy, 3, **OPTIONS)
    assert fit.stop_reason == "interrupted: Ctrl-C after 3 iterations"


def test_a_handler_of_the_user_stays(noisy, interactive):
    heard = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        again = {"callback": lambda _: signal.raise_signal(signal.SIGINT)}
        fit = nmd.decompose(noisy, 3, **OPTIONS, **again)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert heard == [signal.SIGINT] * 12
    assert fit.stop_reason.code == "max_iter"


def test_a_fit_within_a_fit_ends_with_it(noisy, interactive):
    inner = []

    def callback(state):
        if state.iteration == 2:
            again = {"callback": lambda _: signal.raise_signal(signal.SIGINT)}
            inner.append(nmd.decompose(noisy, 2, **again, **OPTIONS))

    outer = nmd.decompose(noisy, 3, callback=callback, **OPTIONS)
    assert inner[0].stop_reason == "interrupted: Ctrl-C after 1 iteration"
    assert outer.stop_reason == "interrupted: Ctrl-C after 2 iterations"


def test_ctrl_c_while_a_kernel_is_compiled():
    class Once(event.Listener):
        def __init__(self):
            self.sent = 0

        def on_start(self, _event):
            self.sent += 1
            if self.sent == 1:
                signal.raise_signal(signal.SIGINT)

        def on_end(self, _event):
            pass

    twice = compile_kernel(lambda x: 2 * x, "twice", cached=False)
    listener = Once()
    with event.install_listener("numba:compile", listener), pytest.raises(KeyboardInterrupt):
        twice(3.0)
    assert listener.sent == 1
    assert len(twice.signatures) == 1  # the compiler came to its end
    assert twice(3.0) == 6.0


def test_a_second_ctrl_c_ends_a_compiler_too():
    done = []

    def interrupted():
        signal.raise_signal(signal.SIGINT)
        done.append(1)
        signal.raise_signal(signal.SIGINT)
        done.append(2)

    with pytest.raises(KeyboardInterrupt), progress.without_interruption():
        interrupted()
    assert done == [1]
