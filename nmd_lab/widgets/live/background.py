"""Work in a thread of its own that says how far it is, and can be stopped and forgotten."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nmd_lab._errors import sentence

# The message until the first progress
STARTING = "starting; the first run of a model is compiled, which takes some seconds …"
Positions = tuple[NDArray[np.integer], NDArray[np.integer]]  # rows and columns of entries

INTERVAL = 0.06  # seconds, at least, from the end of a call of the listeners to the next call
PAUSE = 11.0  # the same in durations of the call: listeners take at most 1/12 of the time


class Background:
    """Work in a worker thread, of which at most one run counts: the last one begun."""

    def __init__(self) -> None:
        # Called after each change, from any thread; at most sixteen times a second during a run
        self.listeners: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._clear()

    def _clear(self) -> None:
        self.phase: Literal["ready", "running", "stopped", "finished", "failed"] = "ready"
        self.message = "ready"  # phase and progress in one sentence
        self.warnings: tuple[str, ...] = ()  # what the same work outside an explorer would warn of
        self.planned = 0  # number of steps at the end of the present run
        self.began, self.done_before = 0.0, 0  # time and number of steps at its beginning
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
        """Forget the work; if it runs, it stops at its next step and no longer changes anything."""
        with self._lock:
            self._stop.set()
            self._stop = threading.Event()
            self._clear()
        if tell:
            self.tell()

    def join(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for the run to end, and return whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    def tell(self) -> None:
        """Call the listeners."""
        for listener in self.listeners:
            listener()

    def _begin(self, work: Callable[[threading.Event], Any], name: str) -> None:
        """Run work in a thread; its argument is set when it is to stop, and tells runs apart."""
        stop = self._stop = threading.Event()
        self.phase, self.message = "running", STARTING
        self.began, self.done_before = time.perf_counter(), self.done

        def guarded() -> None:
            try:
                work(stop)
            except Exception as error:
                if self._update(stop, message=sentence(error), phase="failed"):
                    self.tell()

        self._thread = threading.Thread(target=guarded, name=name, daemon=True)
        self.tell()
        self._thread.start()

    def _update(self, stop: threading.Event, **values: Any) -> bool:
        """Change attributes, unless the run is forgotten; return whether it still counts."""
        with self._lock:
            if stop is self._stop:
                self.__dict__ |= values
            return stop is self._stop

    def _show_progress(self, stop: threading.Event, message: str, *, now: bool = False) -> None:
        """Tell the listeners how far it is, now or once they have had their pause."""
        if not now and time.perf_counter() < self._next_look:
            return
        with self._lock:
            if stop.is_set():
                return
            self.message = message
        began = time.perf_counter()
        self.tell()
        later = time.perf_counter()
        self._next_look = later + max(INTERVAL, PAUSE * (later - began))
