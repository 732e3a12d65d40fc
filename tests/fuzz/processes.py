"""Children that are forked from this process, warmed up, and killed at random moments."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path


def forked(work: Callable[[], None]) -> int:
    """Run a function in a child, in a session of its own; return its process number."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(120)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            work()
        finally:
            os._exit(0)
    return child


def stop(child: int, name: int = signal.SIGKILL) -> int:
    """Send a signal to a child, wait for its end, and return its status."""
    os.kill(child, name)
    return os.waitpid(child, 0)[1]


def session_members(session: int) -> list[int]:
    """Return the processes of a session that are still there."""
    members = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                members.append(int(folder.name))
    return members


def wait_until_gone(session: int, seconds: float) -> list[int]:
    """Wait until no process of a session is left; return those that remain, which are ended."""
    end = time.monotonic() + seconds
    while (left := session_members(session)) and time.monotonic() < end:
        time.sleep(0.05)
    for process in left:
        os.kill(process, signal.SIGKILL)
    return left
