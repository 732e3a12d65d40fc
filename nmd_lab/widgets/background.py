"""Work in a thread of its own, and what is kept: iterates, their errors, and past runs."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import many, sentence
from nmd_lab.fit.loop import VALIDATION
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.model.model import Model
from nmd_lab.problem.state import State
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.selection import as_text
from nmd_lab.result.summary import two_digits, validation_error

# The message until the first progress
STARTING = "starting; a first run takes some seconds more …"
Numbers = NDArray[Any]
Record = dict[str, Any]  # what the page gets
Positions = tuple[NDArray[np.integer], NDArray[np.integer]]  # rows and columns of entries

INTERVAL = 0.06  # seconds, at least, from the end of a call of the listeners to the next call
PAUSE = 11.0  # the same in durations of the call: listeners take at most 1/12 of the time


NO_RUN = "there is nothing to continue from"


@dataclass
class Begun:
    """What a fit was begun with, and its errors."""

    settings: dict[str, Any] = field(default_factory=dict)  # empty before a fit
    arguments: dict[str, Any] = field(default_factory=dict)
    data: Any = None  # what it sees of a matrix
    before: dict[str, Any] | None = None  # the fit before the first stroke of the brush
    errors: dict[str, float] = field(default_factory=dict)  # its own and rivals', where not seen
    is_look: bool = False  # whether it is a first look: the settings are not chosen yet


class Forgotten(Exception):
    """The end of a run that no longer counts."""


class Background:
    """Work in a worker thread, of which at most one run counts: the last one begun."""

    def __init__(self) -> None:
        # Called after each change, from any thread; at most sixteen times a second during a run
        self.listeners: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._clear()

    def _clear(self) -> None:
        self.phase: Literal["ready", "running", "stopped", "finished", "failed"] = "ready"
        self.message = "ready"  # phase and progress in one sentence
        self.warnings: tuple[str, ...] = ()  # what the same work outside an explorer would warn of
        self.planned = 0  # number of steps at the end of the present run
        self.began = 0.0  # time at its beginning
        self.begun = Begun()
        self.result: Any = None  # so far, once a run has ended
        self._next_look, self._done = 0.0, 0

    @property
    def done(self) -> int:
        """Number of steps that are done."""
        return self._done

    def cannot_proceed(self) -> str:
        """Return why the work cannot be continued, or an empty string."""
        return NO_RUN

    def stop(self) -> None:
        """Ask running work to stop at its next step."""
        if self.phase == "running":
            self._stop.set()
            self.message = "stopping …"

    def reset(self) -> None:
        """Forget the work; if it runs, it stops at its next step and no longer changes anything."""
        with self._lock:
            self._stop.set()
            self._stop = threading.Event()
            self._clear()

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
        with self._lock:
            self._stop.set()
            stop = self._stop = threading.Event()
            self.phase = "running"
            self.message = STARTING if self._thread is None else "starting …"
            self.began = time.perf_counter()

        def guarded() -> None:
            try:
                with contextlib.suppress(Forgotten):
                    work(stop)
            except Exception as error:
                with contextlib.suppress(Forgotten):
                    self._end(stop, "failed", message=sentence(error))

        self._thread = threading.Thread(target=guarded, name=name, daemon=True)
        self.tell()
        self._thread.start()

    def _update(self, stop: threading.Event, **values: Any) -> None:
        """Change attributes; a run that is forgotten ends here."""
        with self._lock:
            if stop is not self._stop:
                raise Forgotten
            vars(self).update(values)

    def _end(self, stop: threading.Event, phase: str, **values: Any) -> None:
        """End a run with its results."""
        self._update(stop, phase=phase, **values)
        self.tell()

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


Measure = Callable[[FittedValues], float]

EVERY_UP_TO = 20  # up to here each iteration is measured
GROWTH = 1.05  # ratio of later measured iterations: about every 5 %


class Recording:
    """The iterates of one fit: errors by iteration, at seen entries and at some hidden ones."""

    def __init__(self, measure: Measure | None = None, *, remembers: bool = False) -> None:
        self.of_result: float | None = None  # held-out error of the result, an earlier iterate
        self.remembers = remembers  # whether the fit begins at one that has seen these entries
        self.state: State | None = None  # last iterate
        self.measure = measure  # of the error at entries that are held out of the fit, if any are
        self.seen: dict[int, float] = {}
        self.held_out: dict[int, float] = {}

    @property
    def hidden(self) -> dict[int, float]:
        """The held-out errors that are those of a guess."""
        errors = dict(self.held_out)
        # A fit that begins at one that has seen these entries forgets them while their error rises
        highest = max(errors, key=errors.__getitem__, default=0) if self.remembers else 0
        return {k: error for k, error in errors.items() if k >= highest}

    def add(self, state: State, validation: float | None = None, *, last: bool = False) -> None:
        """Take the next iterate; errors of some are kept, and of the last one."""
        self.state = state
        if not last and not is_measured(state.iteration):
            return
        if validation is None and self.measure is not None:
            validation = self.measure(state._fitted)
        self.seen[state.iteration] = state.relative_error
        if validation is not None:
            self.held_out[state.iteration] = validation

    def end(self, result: Decomposition) -> None:
        """Measure the held-out errors of the last iterate and of the result."""
        measure = self.measure
        self.of_result = measure(result._fitted) if measure else validation_error(result)
        if self.state is not None and self.state.iteration not in self.seen:
            last = None if self.measure else result.history.get(VALIDATION)
            self.add(self.state, None if last is None else float(last[-1]), last=True)


MAX_RUNS = 12  # runs that are kept; the oldest one is forgotten first
ALIKE_TOL = 0.005  # relative difference of errors that are alike
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
    fit: Any  # its result
    error: float | None  # where entries are hidden, as the sentence has it
    shown: str  # the same as text, or the fraction of classes that are right
    begun: Begun


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
            self._keep(state.fit, *((number.error, number.shown) if known else (None, "")))
        shown = state.fit.result if state.number() == number else None  # else draws are
        now = number.error if known and not number.value else None
        return [
            {
                "number": k,
                "text": self.words(run),
                "off": run.error,
                "error": run.shown + (_difference(run.error, now) if k == self.left else ""),
                "current": run.fit is shown,
                "left": k == self.left,
            }
            for k, run in self.runs.items()
        ]

    def show_left(self, number: int) -> None:
        """Show a run left of the dividers, or no longer."""
        if number not in self.runs:
            raise ValueError(f"run {number} is not kept: choose another.")
        self.left = None if self.left == number else number

    def _keep(self, fit: Any, error: float | None, shown: str) -> None:
        """Add the present run, or bring its entry up to date."""
        of = fit.begun.before or fit.begun
        number = next((k for k, run in self.runs.items() if run.of is of), self._count + 1)
        self._count = max(self._count, number)
        self.runs[number] = PastRun(of, fit.result, error, shown, fit.begun)
        if len(self.runs) > MAX_RUNS:
            del self.runs[min(self.runs)]

    def words(self, run: PastRun) -> str:
        """Return the settings of a run that are not those of all runs; its size in any case."""
        settings, paint = run.begun.settings, run.begun.data and run.begun.data.paint
        others = [other.begun.settings for other in self.runs.values()]
        chosen = {"rank": getattr(run.fit, "rank", None)} if "rank" in settings else {}
        chosen |= {"groups": run.fit.sizes["group"]} if "groups" in settings else {}
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
    if abs(error - now) < ALIKE_TOL * now:
        return " (as now)"
    return f" ({two_digits(abs(error - now))} {'better' if error < now else 'worse'} than now)"


def in_sample(count: int, most: int) -> NDArray[np.bool_]:
    """Return which of so many things are in a random sample of at most so many, always the same."""
    drawn = np.zeros(count, dtype=bool)
    drawn[np.random.default_rng(0).choice(count, min(count, most), replace=False)] = True
    return drawn


def is_measured(iteration: int) -> bool:
    """Return whether the error of an iteration is measured.

    >>> [k for k in range(1, 40) if is_measured(k)][17:]
    [18, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29, 31, 32, 34, 36, 37, 39]
    """
    if iteration <= EVERY_UP_TO:
        return True
    step = math.log(GROWTH)
    return math.floor(math.log(iteration) / step) > math.floor(math.log(iteration - 1) / step)


MAX_JUDGED = 20_000  # entries that are seen at which components are judged, at most


class Judged(NamedTuple):
    """Known entries at which models are compared."""

    values: Numbers
    rows: Numbers
    columns: Numbers
    where: str = "held out"

    def error(self, fitted: FittedValues, within: Numbers | None = None) -> float:
        """Return the error of a model at the entries, or at those of them that a mask has."""
        return self._error(fitted.at(self.rows, self.columns), fitted.model, within)

    def error_of_means(
        self, seen: Numbers, fitted: FittedValues, within: Numbers | None = None
    ) -> float:
        """Return the error of the mean of what is seen of each column, in the unit of `error`."""
        counts = np.count_nonzero(~np.isnan(seen), axis=0)
        means = np.nansum(seen, axis=0) / np.maximum(counts, 1)
        return self._error(means[self.columns], fitted.model, within)

    def _error(self, guesses: Numbers, model: Model, within: Numbers | None) -> float:
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
