"""Work in a thread of its own, past runs, and the entries at which models are compared."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import many, sentence
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.model.model import Model
from nmd_lab.result.selection import as_text
from nmd_lab.result.summary import two_digits

# The message until the first progress
STARTING = "starting; a first run takes some seconds more …"
Array = NDArray[Any]
Record = dict[str, Any]  # what the page gets
Positions = tuple[NDArray[np.integer], NDArray[np.integer]]  # rows and columns of entries

INTERVAL = 0.06  # seconds, at least, from the end of a call of the listeners to the next call
PAUSE = 11.0  # the same in durations of the call: listeners take at most 1/12 of the time


Phase = Literal["ready", "running", "stopped", "finished", "failed"]


@dataclass
class Run:
    """One run: what it was begun with, how far it is, and what it has found."""

    settings: dict[str, Any] = field(default_factory=dict)  # empty before a fit
    arguments: dict[str, Any] = field(default_factory=dict)
    data: Any = None  # what it sees of a matrix
    before: Any = None  # the run before the first stroke of the brush
    of: Any = field(default_factory=object)  # what it has in common with its continuations
    is_look: bool = False  # whether it is a first look: the settings are not chosen yet
    phase: Phase = "ready"
    message: str = "ready"  # phase and progress in one sentence
    warnings: tuple[str, ...] = ()  # what the same work outside an explorer would warn of
    planned: int = 0  # number of steps at the end of the run
    done: int = 0  # number of steps that are done
    began: float = 0.0  # time at its beginning
    result: Any = None  # so far, once it has ended
    errors: dict[str, float] = field(default_factory=dict)  # its own and rivals', where not seen
    findings: Any = None  # coverage of intervals
    stop: threading.Event = field(default_factory=threading.Event)

    def cannot_proceed(self) -> str:
        """Return why the work cannot be continued, or an empty string."""
        return "there is nothing to continue from"


R = TypeVar("R", bound=Run)


class Background(Generic[R]):
    """Work in a worker thread, of which one run counts: the last one begun.

    What is known of this run is an attribute of the work, too.  One that no longer counts ends at
    its next step, and changes nothing but its own record.

    Parameters
    ----------
    kind : type
        Class of the runs.
    """

    def __init__(self, kind: type[R]) -> None:
        # Called after each change, from any thread; at most sixteen times a second during a run
        self.listeners: list[Callable[[], None]] = []
        self.kind, self.run = kind, kind()
        self.lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._next_look = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["run"], name)

    def begin(self, run: R, work: Callable[[R], None]) -> None:
        """Do the work of a run in a thread, in the place of what runs."""
        run.stop, run.phase, run.began = threading.Event(), "running", time.perf_counter()
        run.message = STARTING if self._thread is None else "starting …"
        self.recall(run)

        def guarded() -> None:
            try:
                work(run)
            except Exception as error:
                self.end(run, "failed", sentence(error))

        self._thread = threading.Thread(target=guarded, daemon=True)
        self.tell()
        self._thread.start()

    def show(self, run: R, message: str, *, now: bool = False) -> None:
        """Tell the listeners how far a run is, now or once they have had their pause."""
        if run.stop.is_set() or (not now and time.perf_counter() < self._next_look):
            return
        run.message = message
        began = time.perf_counter()
        self.tell(run)
        later = time.perf_counter()
        self._next_look = later + max(INTERVAL, PAUSE * (later - began))

    def end(self, run: R, phase: Phase, message: str) -> None:
        """End a run."""
        run.message, run.phase = message, phase
        self.tell(run)

    def tell(self, run: R | None = None) -> None:
        """Call the listeners, unless it is about a run that no longer counts."""
        for listener in self.listeners:
            if run is None or run is self.run:
                listener()

    def stop(self) -> None:
        """Ask running work to stop at its next step."""
        if self.phase == "running":
            self.run.stop.set()
            self.run.message = "stopping …"

    def recall(self, run: R) -> None:
        """Come back to a run, which can be continued if it could be before."""
        with self.lock:
            self.run.stop.set()
            self.run = run

    def reset(self) -> None:
        """Forget the work."""
        self.recall(self.kind())

    def join(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for the run to end, and return whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()


MAX_RUNS = 12  # runs that are kept; the oldest one is forgotten first
WORDS = {  # of settings
    "rank": "{} components",
    "groups": "{} groups",
    "method": "{}",
    "alpha": "penalty {}",
    "offset_alpha": "penalty of offsets {}",
    "nonlinearity": "{}",
    "missing": "{} held out",
    "validation": "{} held out",
}


class PastRun(NamedTuple):
    """One run, which continuations and strokes of the brush replace."""

    of: Any  # what these have in common
    result: Any
    settings: dict[str, Any]
    data: Any
    error: float | None  # where entries are hidden, as the sentence has it
    shown: str  # the same as text, or the fraction of classes that are right


class History:
    """Runs by number from 1, the newest last."""

    def __init__(self) -> None:
        self.runs: dict[int, PastRun] = {}
        self.left: int | None = None  # number of that which is left of the dividers
        self._count = 0

    @property
    def compared(self) -> PastRun | None:
        """The run left of the dividers."""
        return self.runs.get(self.left or 0)

    def lines(self, state: Any) -> list[Record]:
        """Keep the present run, if it has ended, with its number; return a line for each run."""
        number = state.number(of_fit=True)
        known = number is not None and bool(number.sign)
        if state.fit.result is not None and state.fit.phase in ("stopped", "finished"):
            self._keep(state.fit.run, *((number.error, number.shown) if known else (None, "")))
        shown = state.fit.result if state.number() == number else None  # else draws are
        now = number.error if known and not number.value else None
        return [
            {
                "number": k,
                "text": self.words(past),
                "off": past.error,
                "error": past.shown + (_difference(past.error, now) if k == self.left else ""),
                "current": past.result is shown,
                "left": k == self.left,
            }
            for k, past in self.runs.items()
        ]

    def show_left(self, number: int) -> None:
        """Show a run left of the dividers, or no longer."""
        if number not in self.runs:
            raise ValueError(f"run {number} is not kept: choose another.")
        self.left = None if self.left == number else number

    def _keep(self, run: Run, error: float | None, shown: str) -> None:
        """Add the present run, or bring its entry up to date."""
        of = run.before or run.of
        number = next((k for k, past in self.runs.items() if past.of is of), self._count + 1)
        self._count = max(self._count, number)
        self.runs[number] = PastRun(of, run.result, run.settings, run.data, error, shown)
        if len(self.runs) > MAX_RUNS:
            del self.runs[min(self.runs)]

    def words(self, run: PastRun) -> str:
        """Return the settings of a run that are not those of all runs; its size in any case."""
        settings, paint = run.settings, getattr(run.data, "paint", None)
        others = [other.settings for other in self.runs.values()]
        chosen = {"rank": getattr(run.result, "rank", None)} if "rank" in settings else {}
        chosen |= {"groups": run.result.sizes["group"]} if "groups" in settings else {}
        words = [
            WORDS.get(name, f"{name} {{}}").format(as_text(value))
            for name, value in (settings | chosen).items()
            if name in chosen
            or (value != "auto" and any(value != other.get(name) for other in others))
        ]
        if paint and paint.n_painted:
            words.append(f"{many(paint.n_painted, 'entry')} painted")
        return ", ".join(words)


def _difference(error: float | None, now: float | None) -> str:
    """Return how much better or worse an error is than that of the present run."""
    if error is None or now is None or error == now:
        return ""
    if abs(error - now) < 0.005 * now:
        return " (as now)"
    return f" ({two_digits(abs(error - now))} {'better' if error < now else 'worse'} than now)"


def in_sample(count: int, most: int) -> NDArray[np.bool_]:
    """Return which of so many things are in a random sample of at most so many, always the same."""
    drawn = np.zeros(count, dtype=bool)
    drawn[np.random.default_rng(0).choice(count, min(count, most), replace=False)] = True
    return drawn


MAX_JUDGED = 20_000  # entries that are seen at which components are judged, at most


class Judged(NamedTuple):
    """Known entries at which models are compared."""

    values: Array
    rows: Array
    columns: Array
    where: str = "held out"

    def error(self, fitted: FittedValues, within: Array | None = None) -> float:
        """Return the error of a model at the entries, or at those of them that a mask has."""
        return self._error(fitted.at(self.rows, self.columns), fitted.model, within)

    def error_of_means(
        self, seen: Array, fitted: FittedValues, within: Array | None = None
    ) -> float:
        """Return the error of the mean of what is seen of each column, in the unit of `error`."""
        counts = np.count_nonzero(~np.isnan(seen), axis=0)
        means = np.nansum(seen, axis=0) / np.maximum(counts, 1)
        return self._error(means[self.columns], fitted.model, within)

    def _error(self, guesses: Array, model: Model, within: Array | None) -> float:
        """Return the RMSE, in the unit of the data or, of a mixed table, of each column."""
        some = slice(None) if within is None else within[self.rows, self.columns]
        errors = self.values[some] - guesses[some]
        if model.is_mixed:
            errors = model.in_units(errors, self.rows[some], self.columns[some])
        return float(np.sqrt(np.mean(np.square(errors)))) if errors.size else math.nan


COARSE = ContextVar("coarse", default=0)
"""On a page that has to be small, how coarse it is, from 1; 0 on any other page."""

SIZED = ("frame", "pictures", "drawn", "points", "drawing")  # what coarse pages have otherwise


def at_most(number: int, coarse: int) -> int:
    """Return the largest number of something; on a coarse page another one, halved as often."""
    return coarse >> (COARSE.get() - 1) if COARSE.get() else number


T = TypeVar("T")

PLAIN = (str, int, float, bool, tuple, list, dict)  # types that are compared by value


class Memo:
    """Values by name, and what they are of: all but plain objects are compared by identity."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, int], tuple[tuple[Any, ...], Any]] = {}

    def __call__(self, name: str, make: Callable[[], T], *of: Any) -> T:
        """Return the last value with a name if it is of the same objects, or else a new one."""
        key = name, COARSE.get() * (name in SIZED)
        last = self._values.get(key)
        if last is None or not all(map(_same, last[0], of)):
            last = self._values[key] = of, make()
        value: T = last[1]
        return value


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and type(a) in PLAIN and a == b)
