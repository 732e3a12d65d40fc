"""Ctrl-C during a fit: in an interactive session it is noted, and the fit ends with its best.

From the first iterate of a fit until its result is labelled, a first Ctrl-C is only noted, and the
fit ends after the present iteration.  A second one raises KeyboardInterrupt at once, as does the
first one before the first iterate, and any in a script.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._stop_reason import StopReason


def is_interactive() -> bool:
    """Return whether somebody types commands: at the Python prompt, in IPython or in Jupyter."""
    if sys.flags.interactive or hasattr(sys, "ps1"):
        return True
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython is not None and get_ipython() is not None


class Interruption:
    """Whether Ctrl-C asks a fit to end, and whether a stop reason tells of it."""

    def __init__(self) -> None:
        self.reported = False
        self._came = False
        self._is_noting = False

    def __bool__(self) -> bool:
        """Return whether Ctrl-C came."""
        return self._came

    def begin(self) -> None:
        """Note Ctrl-C from now on, in an interactive session."""
        if is_interactive():
            self.hold()

    def hold(self) -> None:
        """Note Ctrl-C from now on, in the main thread; a handler of the user stays."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._is_noting = True
            signal.signal(signal.SIGINT, self._note)

    def end(self) -> None:
        """Give Ctrl-C its usual effect again; one that no stop reason tells of has it now."""
        self._restore()
        if self._came and not self.reported:
            signal.raise_signal(signal.SIGINT)

    def reason(self, n_iter: int) -> StopReason:
        """Return the stop reason of a fit that ends now, after so many iterations."""
        self.reported = True
        return StopReason("interrupted", f"interrupted: Ctrl-C after {n_iter} iterations")

    def _note(self, *_: Any) -> None:
        if self._came:
            self._restore()
            raise KeyboardInterrupt
        self._came = True

    def _restore(self) -> None:
        if self._is_noting:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._is_noting = False


@contextmanager
def without_interruption() -> Iterator[None]:
    """Hold a first Ctrl-C back while a compiler runs, which would lose it or break."""
    interruption = Interruption()
    interruption.hold()
    try:
        yield
    finally:
        interruption.end()


_current: Interruption | None = None


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Give the `Interruption` of the outermost fit in the main thread; others never note any."""
    global _current
    if threading.current_thread() is not threading.main_thread():
        yield Interruption()
        return
    if _current is not None:
        yield _current
        return
    _current = Interruption()
    try:
        yield _current
    finally:
        ended, _current = _current, None
        ended.end()
