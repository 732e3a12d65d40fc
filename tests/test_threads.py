"""BLAS is kept to one thread, from whichever thread a fit runs in."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits
from waiting import PATIENCE

from nmd_lab._runtime.machine import one_thread


def threads():
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, "blas"):
        if threads() != {2}:
            pytest.skip("this BLAS cannot be told how many threads to use")
        yield


def test_limits_hold_in_any_thread_one_after_the_other():
    found = []

    def use():
        with one_thread():
            found.append(threads())
        found.append(threads())

    for run in (lambda use: use(), in_a_thread, lambda use: use(), in_a_thread, in_a_thread):
        run(use)
    assert found == [{1}, {2}] * 5


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
