"""Ctrl-C and SIGTERM during a fit: noted, so that the fit can end with its best iterate.

From the first iterate of a fit until its result is labelled, a first signal is only noted, and the
fit ends after the present iteration.  A second signal has its usual effect at once.  Before the
first iterate there is nothing to return, and signals have their usual effect.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._stop_reason import StopReason

NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
"""Signals that end a fit, as a stop reason calls them."""


class Terminated(KeyboardInterrupt):
    """Raised where SIGTERM has cut a fit short whose result is of no use; else as Ctrl-C."""


class Interruption:
    """The signal that ended a fit, if one came.

    Attributes
    ----------
    signal : int or None
        Number of the signal; None if there was none.
    reported : bool
        Whether a stop reason tells of the signal.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self.reported = False
        self._previous: dict[int, Any] = {}
        self._process = os.getpid()

    def __bool__(self) -> bool:
        """Return whether a signal came."""
        return self.signal is not None

    def begin(self) -> None:
        """Note signals from now on, in the main thread and where their effect is the usual one.

        A handler of the user stays.  A worker process of `multiprocessing` ends at SIGTERM.
        """
        if self._previous or threading.current_thread() is not threading.main_thread():
            return
        usual: dict[int, Any] = {signal.SIGINT: signal.default_int_handler}
        if multiprocessing.parent_process() is None:
            usual[signal.SIGTERM] = signal.SIG_DFL
        for number, handler in usual.items():
            if signal.getsignal(number) == handler:
                self._previous[number] = handler
                signal.signal(number, self._note)

    def end(self) -> None:
        """Give signals their usual effect again; one that no stop reason tells of has it now."""
        self._restore()
        if self.signal is not None and not self.reported:
            signal.raise_signal(self.signal)

    def reason(self, n_iter: int) -> StopReason:
        """Return the stop reason of a fit that ends now.

        Parameters
        ----------
        n_iter : int
            Number of iterations that are done.
        """
        self.reported = True
        name = NAMES[signal.Signals(self.signal or signal.SIGINT)]
        return StopReason("interrupted", f"interrupted: {name} after {n_iter} iterations")

    def error(self) -> KeyboardInterrupt:
        """Return the exception for a fit that the signal has cut short."""
        return Terminated() if self.signal == signal.SIGTERM else KeyboardInterrupt()

    def _note(self, number: int, _frame: Any) -> None:
        """Note the first signal; give the second one its usual effect."""
        if self.signal is None and self._process == os.getpid():  # not a copy in a forked process
            self.signal = number
            return
        self._restore()
        signal.raise_signal(number)

    def _restore(self) -> None:
        while self._previous:
            signal.signal(*self._previous.popitem())


@contextmanager
def without_interruption() -> Iterator[None]:
    """Keep Ctrl-C back while code runs that would lose it or break, such as a compiler.

    A second Ctrl-C has its usual effect at once.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    interruption = Interruption()
    interruption.begin()
    try:
        yield
    finally:
        interruption.end()


_current: Interruption | None = None


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Give the `Interruption` of the outermost fit in the main thread, and restore the signals.

    A fit in another thread has one that never notes a signal.
    """
    global _current
    if threading.current_thread() is not threading.main_thread():
        yield Interruption()
        return
    if _current is not None:
        yield _current
        return
    interruption = Interruption()
    try:
        _current = interruption
        yield interruption
    finally:
        _current = None
        interruption.end()
