"""The progress of a run: a bar, Ctrl-C that ends it, and the reason why it stopped.

From the first iterate of a fit until its result is labelled, a first Ctrl-C in an interactive
session is only noted, and the fit ends with its best after the present iteration.  A second one
raises KeyboardInterrupt at once, as does the first one before the first iterate, and any in a
script.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal, Self, get_args

from .checks import many

StopCode = Literal[
    "converged",
    "max_iter",
    "time_limit",
    "callback",
    "validation",
    "behind",
    "not finite",
    "interrupted",
    "not run",
    "direct",
    "draws",
    "other",
]
"""Codes of what ended a fit.

"converged": a stopping rule of `tol`.  "max_iter", "time_limit", "callback": the argument of that
name.  "validation": early stopping.  "behind": the start could no longer reach the objective of the
first start.  "not finite": an overflow.  "interrupted": Ctrl-C.  "not run": the start
was not run.  "direct": the method has no iterations.  "draws": a sampler
has done all its draws.  "other": the reason has no code, as in results
of functions outside the package.
"""


class StopReason(str):
    """Why a fit stopped: a string for people, with the attribute `code` for programs."""

    code: StopCode

    def __new__(cls, code: StopCode, text: str) -> Self:
        """Create the string."""
        reason = super().__new__(cls, text)
        reason.code = code
        return reason

    def __getnewargs__(self) -> tuple[StopCode, str]:  # type: ignore[override]
        """Return the arguments of `__new__`, for copying and pickling."""
        return self.code, str(self)

    @classmethod
    def read(cls, code: str, text: str) -> StopReason:
        """Return a reason from a file; "other" for a code of a newer version."""
        valid: Any = code if code in get_args(StopCode) else "other"
        return cls(valid, text)

    @classmethod
    def of(cls, reason: str) -> StopReason:
        """Return a `StopReason` unchanged, and any other string with the code "other"."""
        return reason if isinstance(reason, StopReason) else cls("other", reason)


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
            signal.signal(signal.SIGINT, self._note)

    def end(self) -> None:
        """Give Ctrl-C its usual effect again; one that no stop reason tells of has it now."""
        self._restore()
        if self._came and not self.reported:
            signal.raise_signal(signal.SIGINT)

    def reason(self, n_iter: int) -> StopReason:
        """Return the stop reason of a fit that ends now, after so many iterations."""
        self.reported = True
        return StopReason("interrupted", f"interrupted: Ctrl-C after {many(n_iter, 'iteration')}")

    def _note(self, *_: Any) -> None:
        if self._came:
            self._restore()
            raise KeyboardInterrupt
        self._came = True

    def _restore(self) -> None:
        if signal.getsignal(signal.SIGINT) == self._note:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def without_interruption() -> Iterator[None]:
    """Hold a first Ctrl-C back while a compiler runs, which would lose it or break."""
    interruption = Interruption()
    interruption.hold()
    try:
        yield
    finally:
        interruption.end()


_of_thread = threading.local()


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Give the `Interruption` of the outermost fit; outside the main thread it never notes any."""
    outer: Interruption | None = getattr(_of_thread, "interruption", None)
    if outer is not None:
        yield outer
        return
    _of_thread.interruption = interruption = Interruption()
    try:
        yield interruption
    finally:
        _of_thread.interruption = None
        interruption.end()


@contextmanager
def progress_bar(
    total: int | None, show: bool | None, *, done: int = 0, unit: str = "it"
) -> Iterator[Callable[[str], None]]:
    """Give a function that shows one more item and a text; a total of None is unknown."""
    if show is False or total == 0:
        yield lambda text: None
        return
    tqdm = import_module("tqdm.auto" if show else "tqdm")  # a widget in Jupyter, text elsewhere
    disable, delay = (False, 0) if show else (None, 1)
    with tqdm.tqdm(
        total=total, initial=done, unit=unit, disable=disable, delay=delay, leave=bool(show)
    ) as bar:

        def update(text: str) -> None:
            if text:
                bar.set_postfix_str(text, refresh=False)
            bar.update()

        yield update
