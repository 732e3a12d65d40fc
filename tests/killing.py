"""Processes that get a signal at a given function call, however fast the machine is."""

import itertools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def calls_in(function: Callable[..., Any], *arguments: Any) -> int:
    """Return how many calls and returns there are while a function runs."""
    events = itertools.count()
    sys.setprofile(lambda *_: next(events))
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return next(events)


def killed_in(calls: int, function: Callable[..., Any], *arguments: Any) -> bool:
    """Run a function in a child that is killed after so many calls; return whether it was."""
    child = os.fork()
    if child == 0:
        send_after(calls, signal.SIGKILL)
        function(*arguments)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def send_after(calls: int, number: signal.Signals) -> None:
    """Send a signal to this process after so many calls and returns."""
    events = itertools.count(1)

    def look(*_: Any) -> None:
        if next(events) == calls:
            os.kill(os.getpid(), number)

    sys.setprofile(look)
