"""What a machine has: free memory, within limits and control groups, and threads of BLAS."""

import subprocess
import sys
import threading

import numpy as np
import psutil
import pytest
from threadpoolctl import threadpool_info, threadpool_limits
from waiting import PATIENCE

import nmd_lab
from nmd_lab._runtime import machine
from nmd_lab._runtime.machine import one_thread

GIB = 1 << 30
LIMIT = 9 * GIB  # more than a process of tests takes

GROUPS = {
    "version 2, a group around it": (
        "0::/user/job",
        {"user/memory.max": LIMIT, "memory.max": "max"},
    ),
    "version 1 in a container": ("5:memory:/elsewhere", {"memory/memory.limit_in_bytes": LIMIT}),
}


@pytest.mark.parametrize("case", GROUPS)
def test_a_limit_of_a_control_group_counts(case, tmp_path, monkeypatch):
    line, limits = GROUPS[case]
    files = {"proc/self/cgroup": line} | {f"sys/fs/cgroup/{k}": v for k, v in limits.items()}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(
        machine, "Path", lambda *names: tmp_path.joinpath(*(name.lstrip("/") for name in names))
    )
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("", (), {"available": 64 * GIB}))
    assert LIMIT / 2 < machine.free_memory() < LIMIT  # this process has the rest


def test_what_is_free_is_not_exceeded(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: GIB)
    machine.refuse_above(GIB // 2, "a fit", "wait")
    with pytest.raises(MemoryError) as caught:
        machine.refuse_above(GIB, "a fit", "take {share:.0%}")
    assert str(caught.value) == "a fit needs 1 GiB, 1 GiB are free: take 90%."
    with pytest.raises(MemoryError, match=r"1 GiB are free and memory_limit=0.25: wait\."):
        machine.refuse_above(GIB // 2, "a fit", "wait", 0.25)


def test_factors_of_rows_in_order_need_memory(monkeypatch):
    X, short = np.random.default_rng(0).normal(size=(300, 40)), {"rank": 30, "draws": 1, "tune": 1}
    monkeypatch.setattr(machine, "free_memory", lambda: 8 * 300 * 30**2)
    nmd_lab.sample(X, **short)
    with pytest.raises(MemoryError, match=r"needs 0\.01\d+ GiB"):
        nmd_lab.sample(X, **short, order=np.arange(300))


CHILD = """
import resource, numpy as np, nmd_lab as nmd, psutil
one = nmd.Compute(threads=1)
nmd.decompose(np.eye(5, dtype=np.float32), 1, "relu", compute=one, max_iter=20)  # load everything
X = np.ones((5000, 5000), dtype=np.float32)
resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + 150 * 2**20,) * 2)
try:
    nmd.decompose(X, 3, "relu", compute=one)
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sets a limit")
def test_a_fit_above_the_limit_of_the_process_is_refused_in_one_sentence():
    """T, U and the array of a refinement are 286 MiB, the limit leaves 150."""
    command = [sys.executable, "-c", CHILD]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "GiB are free: give " in run.stdout, run.stderr
    assert run.stdout.count("\n") == 1


def threads():
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@pytest.fixture
def two_threads():
    with threadpool_limits(2, "blas"):
        if threads() != {2}:
            # as that of Apple, without which the claim has nothing to compare
            pytest.skip("this BLAS cannot be told how many threads to use")
        yield


@pytest.mark.usefixtures("two_threads")
def test_limits_hold_in_any_thread_one_after_the_other():
    found = []

    def use():
        with one_thread():
            found.append(threads())
        found.append(threads())

    for run in (lambda use: use(), in_a_thread, lambda use: use(), in_a_thread, in_a_thread):
        run(use)
    assert found == [{1}, {2}] * 5


@pytest.mark.usefixtures("two_threads")
def test_the_last_of_several_threads_gives_them_back():
    entered, leave = threading.Event(), threading.Event()

    def use():
        with one_thread():
            entered.set()
            leave.wait(PATIENCE)

    other = threading.Thread(target=use)
    with one_thread():
        other.start()
        assert entered.wait(PATIENCE)
    assert threads() == {1}
    leave.set()
    other.join()
    assert threads() == {2}
