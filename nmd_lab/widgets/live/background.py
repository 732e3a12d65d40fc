"""Work in a thread of its own that says how far it is, and can be stopped and forgotten."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nmd_lab._errors import sentence

STARTING = "starting; the first run of a model is compiled, which takes some seconds …"
"""Message until the first progress."""

Positions = tuple[NDArray[np.integer], NDArray[np.integer]]  # rows and columns of entries

Phase = Literal["ready", "running", "stopped", "finished", "failed"]

INTERVAL = 0.06  # seconds, at least, from the end of a call of the listeners to the next call
PAUSE = 11.0  # the same in durations of the call: listeners take at most 1/12 of the time


class Background:
    """Work in a worker thread, of which at most one run counts: the last one begun.

    Attributes
    ----------
    phase : {"ready", "running", "stopped", "finished", "failed"}
        Phase of the work.
    message : str
        Phase and progress in one sentence.
    warnings : tuple of str
        Sentences that the same work outside an explorer would give as warnings.
    planned : int
        Number of steps at the end of the present run.
    began, done_before : float and int
        When the steps of the present run began (`time.perf_counter`), and their number before it.
    listeners : list of callable
        Functions without arguments that are called after a change of the above, from any thread.
        While the work runs they are called at most sixteen times a second.
    """

    def __init__(self) -> None:
        self.listeners: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._clear()

    def _clear(self) -> None:
        self.phase: Phase = "ready"
        self.message = "ready"
        self.warnings: tuple[str, ...] = ()
        self.planned = 0
        self.began, self.done_before = 0.0, 0
        self._next_look = 0.0

    @property
    def done(self) -> int:
        """Number of steps that are done."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ask running work to stop at its next step."""
        if self.phase == "running":
            self._stop.set()
            self.message = "stopping …"

    def reset(self, *, tell: bool = True) -> None:
        """Forget the work; if it runs, it stops at its next step without calling listeners."""
        self._forget()
        if tell:
            self.tell()

    def _forget(self) -> None:
        """Make everything as new; running work no longer changes it."""
        with self._lock:
            self._stop.set()
            self._stop = threading.Event()
            self._clear()

    def join(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for the run to end, and return whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout)
            return not self._thread.is_alive()
        return True

    def tell(self) -> None:
        """Call the listeners."""
        for listener in self.listeners:
            listener()

    def _begin(self, work: Callable[[threading.Event], Any], name: str) -> None:
        """Run work in a thread; its argument is set when it is to stop, and tells runs apart."""
        self._stop = threading.Event()
        self.phase, self.message = "running", STARTING
        self.began, self.done_before = time.perf_counter(), self.done
        self._thread = threading.Thread(
            target=self._guard, args=(work, self._stop), name=name, daemon=True
        )
        self.tell()
        self._thread.start()

    def _guard(self, work: Callable[[threading.Event], Any], stop: threading.Event) -> None:
        """Do the work; show an error as a sentence, unless the run is forgotten already."""
        try:
            work(stop)
        except Exception as error:
            with self._lock:
                if stop is not self._stop:
                    return
                self.phase, self.message = "failed", sentence(error)
            self.tell()

    def _is_time_to_look(self) -> bool:
        """Return whether the listeners have had their pause."""
        return time.perf_counter() >= self._next_look

    def _show_progress(self, message: str, stop: threading.Event) -> None:
        """Tell the listeners how far it is, and decide when to tell them again."""
        with self._lock:
            if stop.is_set():
                return
            self.message = message
        began = time.perf_counter()
        self.tell()
        later = time.perf_counter()
        self._next_look = later + max(INTERVAL, PAUSE * (later - began))
