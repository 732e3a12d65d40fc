"""Work in a thread of its own, its runs, and the entries at which models are compared."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nmd_lab._runtime.checks import many, sentence
from nmd_lab._runtime.machine import one_thread
from nmd_lab.api.fits import ResumableFit
from nmd_lab.fit.held_out import HeldOut
from nmd_lab.fit.loop import VALIDATION
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.model.model import Model
from nmd_lab.problem.state import State as Iterate
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.selection import as_text
from nmd_lab.result.summary import validation_error

from .words import THIS, Number

# The message until the first progress
STARTING = "starting; a first run takes some seconds more …"
Array = NDArray[Any]
Record = dict[str, Any]  # what the page gets
Settings = dict[str, Any]  # values by name
Shape = tuple[int, int]
Limits = tuple[float, float]  # the smallest and the largest value

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
    message: str = ""  # phase and progress in one sentence
    warnings: tuple[str, ...] = ()  # what the same work outside an explorer would warn of
    planned: int = 0  # number of steps at the end of the run
    done: int = 0  # number of steps that are done
    began: float = 0.0  # time at its beginning
    result: Any = None  # so far, once it has ended
    errors: dict[str, float] = field(default_factory=dict)  # its own and rivals', where not seen
    number: Number | None = None  # the first of these, as the sentence has it, of a past run
    findings: Any = None  # coverage of intervals
    # Rows and columns of the entries that it has not seen
    unseen: Any = (np.empty(0), np.empty(0))
    resumable: ResumableFit | None = None  # what is continued
    stop: threading.Event = field(default_factory=threading.Event)

    def cannot_proceed(self) -> str:
        """Return why the work cannot be continued, or an empty string."""
        if self.phase not in ("stopped", "finished") or self.resumable is None:
            return "there is nothing to continue from"
        return "the fit has converged" * bool(self.result.stop_reason.code == "converged")


@dataclass
class FitRun(Run):
    """One fit, which can be continued, and the errors of its iterates."""

    X: Any = None  # what is fitted, and options that go with it
    options: dict[str, Any] = field(default_factory=dict)
    # Measures the error at entries that are held out of the fit, if any are
    measure: Callable[[FittedValues], float] | None = None
    remembers: bool = False  # whether it begins at a fit that has seen these entries
    state: Iterate | None = None  # last iterate
    held_out: dict[int, float] = field(default_factory=dict)  # what that is, by iteration

    def add(self, iterate: Iterate) -> None:
        """Take the next iterate; errors of some are measured."""
        self.state, self.done = iterate, iterate.iteration
        if self.measure is not None and is_measured(self.done):
            self.held_out[self.done] = self.measure(iterate._fitted)

    def end(self, result: Decomposition) -> None:
        """Take the result, with its held-out error and that of the last iterate."""
        self.result, error = result, validation_error(result)
        if self.measure is not None:
            error = self.measure(result._fitted)
            if self.state is not None:
                self.held_out[self.done] = self.measure(self.state._fitted)
        self.errors = {} if error is None else {THIS: error}  # of an earlier iterate, perhaps
        self.unseen = Run.unseen if self.hidden is None else self.hidden.positions

    def forget(self) -> None:
        """Forget the iterates, which were those of a first look."""
        self.state, self.result, self.resumable, self.done = None, None, None, 0
        self.held_out, self.errors = {}, {}

    def recorded(self, name: str) -> dict[int, float]:
        """Return some numbers of the history by iteration."""
        run = self.resumable  # the fit's thread may forget it
        return {} if run is None else some_of(run.progress.history, name)

    @property
    def guesses(self) -> dict[int, float]:
        """The held-out errors that are those of a guess."""
        errors = dict(self.held_out) or self.recorded(VALIDATION)
        # A fit that begins at one that has seen these entries forgets them while their error rises
        highest = max(errors, key=errors.__getitem__, default=0) if self.remembers else 0
        return {k: error for k, error in errors.items() if k >= highest}

    @property
    def hidden(self) -> HeldOut | None:
        """The entries that the fit has held out; None without any."""
        return None if self.resumable is None else self.resumable.decided.held_out

    @property
    def means(self) -> Array:
        """The mean of what is seen of each column, and of all where nothing is."""
        assert self.resumable is not None
        seen = self.resumable.decided.summary.observations
        _, columns, x = seen.entries()
        means = pd.Series(x).groupby(columns).mean()
        return means.reindex(range(seen.shape[1]), fill_value=x.mean()).to_numpy()


def is_measured(iteration: int) -> bool:
    """Return whether the error of an iteration is measured.

    >>> [k for k in range(1, 40) if is_measured(k)][17:]
    [18, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29, 31, 32, 34, 36, 37, 39]
    """
    step = math.log(1.05)  # the next one is about 5 % later
    return iteration == 1 or math.log(iteration) // step > math.log(iteration - 1) // step


def some_of(history: Mapping[str, Any], name: str) -> dict[int, float]:
    """Return the numbers of a history at iterations that are measured, and at the last one."""
    numbers = dict(enumerate(np.asarray(history.get(name, ())).tolist(), 1))
    return {k: x for k, x in numbers.items() if is_measured(k) or k == len(numbers)}


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
                with one_thread():  # whatever else the process computes: sums do not depend on it
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


class History:
    """Runs by number from 1, the newest last; continuations and strokes of the brush replace one.

    They are kept without what continues them.
    """

    def __init__(self) -> None:
        self.runs: dict[int, Run] = {}
        self.left: int | None = None  # number of that which is left of the dividers

    @property
    def compared(self) -> Run | None:
        """The run left of the dividers."""
        return self.runs.get(self.left or 0)

    def lines(self, state: Any) -> list[Record]:
        """Keep the present run, if it has ended, with its number; return a line for each run."""
        number, here = state.number(of_fit=True), state.number()
        known = number if number and number.sign else None
        if state.fit.result is not None and state.fit.phase in ("stopped", "finished"):
            self._keep(state.fit.run, known)
        shown = state.fit.result if here == number else None  # else draws are
        now = {self.left: here.error if here and here.sign and not here.value else None}
        return [
            {
                "number": k,
                "text": self.words(past),
                "off": past.number and past.number.error,
                "error": past.number.compared(now.get(k)) if past.number else "",
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

    def _keep(self, run: Run, known: Number | None) -> None:
        """Add the present run, or bring its entry up to date."""
        of = run.before or run.of
        new = max(self.runs, default=0) + 1
        number = next((k for k, past in self.runs.items() if past.of is of), new)
        self.runs[number] = Run(run.settings, data=run.data, of=of, result=run.result, number=known)
        if len(self.runs) > MAX_RUNS:
            del self.runs[min(self.runs)]

    def words(self, run: Run) -> str:
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


def in_sample(count: int, most: int) -> NDArray[np.bool_]:
    """Return which of so many things are in a random sample of at most so many, always the same."""
    some = np.random.default_rng(0).choice(count, min(count, most), replace=False)
    return np.isin(np.arange(count), some)


MAX_JUDGED = 20_000  # entries that are seen at which components are judged, at most


class Judged(NamedTuple):
    """Known entries at which models are compared."""

    values: Array
    rows: Array
    columns: Array
    where: str = "held out"

    def error(self, fitted: FittedValues, within: Array | None = None) -> float:
        """Return the error of a model at the entries, or at those of them that a mask has."""
        return self.error_of(fitted.at(self.rows, self.columns), fitted.model, within)

    def error_of(self, guesses: Array, model: Model, within: Array | None = None) -> float:
        """Return the RMSE of guesses, in the unit of the data or, if mixed, of each column."""
        some = slice(None) if within is None else within[self.rows, self.columns]
        at = self.rows[some], self.columns[some]
        errors = model.in_units(self.values[some] - guesses[some], *at)
        return float(np.sqrt(np.mean(np.square(errors)))) if errors.size else math.nan


COARSE = ContextVar("coarse", default=0)
"""On a page that has to be small, how coarse it is, from 1; 0 on any other page."""

SIZED = ("pictures", "drawn", "points", "drawing")  # what coarse pages have otherwise


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

        def same(a: Any, b: Any) -> bool:
            return a is b or (type(a) is type(b) and type(a) in PLAIN and a == b)

        key = name, COARSE.get() * (name in SIZED)
        last = self._values.get(key)
        if last is None or not all(map(same, last[0], of)):
            last = self._values[key] = of, make()
        value: T = last[1]
        return value
