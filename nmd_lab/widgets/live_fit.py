"""A fit in a thread of its own, which can be stopped at any iteration and continued from there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from nmd_lab._messages import OPTIONS, Messages, messages_after, messages_before
from nmd_lab._runtime.progress import Interruption
from nmd_lab.fit import ResumableFit
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.held_out import HeldOut
from nmd_lab.solver.request import Decided
from nmd_lab.solver.run import VALIDATION
from nmd_lab.solver.state import State
from nmd_lab.warnings import NotConvergedWarning

from .background import STARTING, Background, Measure, Positions, Recording, many

NO_CHOICE = "stopped before a choice was made"  # message of a run that was stopped while it chose
ENDS = {  # how a fit ended, by the code of its stop reason; other reasons in their own words
    "converged": "done in {}",
    "validation": "done in {}; shown is that with the best guesses of hidden entries",
    "max_iter": "not settled after {}: ⟲ resumes",
}
PLAIN = {  # words of the library, as the page has them
    "a ridge (alpha)": "a penalty",
    "a larger alpha": "a larger penalty",
    "a smaller rank": "fewer components",
}
LOOK = 40  # iterations of a first look, which is shown while settings are chosen
TRIALS = 300  # iterations of a choice, about, by which its time is told after a first look
MIXED = 8  # ratio of these iterations for a mixed table, whose trials take long
SOON = 10.0  # seconds up to which a choice begins by itself after a first look

# Attributes that belong to one fit
KEPT = ("phase", "message", "warnings", "planned", "result", "recording", "begun", "_resumable")


Keep = Callable[[], None]
Choose = Callable[[Interruption], Keep]


@dataclass
class Begun:
    """What a fit was begun with, and its errors."""

    settings: dict[str, Any] = field(default_factory=dict)  # empty before a fit
    arguments: dict[str, Any] = field(default_factory=dict)
    data: Any = None  # what it sees of a matrix
    before: dict[str, Any] | None = None  # the fit before the first stroke of the brush
    errors: dict[str, float] = field(default_factory=dict)  # its own and rivals', where not seen


class Choosing(Interruption):
    """What a choice asks at each iteration: whether to end.  So an explorer can watch it."""

    def __init__(self, stop: threading.Event, watch: Callable[[int], None]) -> None:
        super().__init__()
        self._stop, self._watch, self._trials = stop, watch, 0

    def __bool__(self) -> bool:
        self._watch(self._trials)
        return self._stop.is_set()

    def begin(self) -> None:
        """Count a trial."""
        self._trials += 1


class LiveFit(Background):
    """The fit of an explorer, in a worker thread; at most one fit runs at a time."""

    def __init__(self, settings: Collection[str] = OPTIONS) -> None:
        self.settings = settings  # names that the advice of warnings may name
        # Called in the worker thread with the result after each run
        self.finishing: Callable[[Decomposition], None] | None = None
        super().__init__()

    def _clear(self) -> None:
        super()._clear()
        self.result: Decomposition | None = None  # of the iterations so far, once it has stopped
        self.recording = Recording()  # what is kept of the iterates; another one for each fit
        self.begun = Begun()
        self._resumable: ResumableFit | None = None

    @property
    def state(self) -> State | None:
        """Last iterate."""
        return self.recording.state

    @property
    def done(self) -> int:
        """Number of the last iteration."""
        return 0 if self.state is None else self.state.iteration

    @property
    def hidden(self) -> HeldOut | None:
        """The entries that the fit has held out; None without any."""
        return None if self._resumable is None else self._resumable.decided.held_out

    @property
    def unseen(self) -> Positions | None:
        """Rows and columns of these entries."""
        return None if self.hidden is None else self.hidden.positions

    @property
    def can_proceed(self) -> bool:
        """Whether there is a fit that has stopped before it converged."""
        if self.result is None or self._resumable is None:
            return False
        converged = self.result.stop_reason.code == "converged"
        return self.phase in ("stopped", "finished") and not converged

    def start(
        self,
        prepare: Callable[[], Decided],
        iterations: int,
        measure: Measure | None = None,
        choose: Choose | None = None,
        *,
        remembers: bool = False,
        look: Callable[[], Decided] | None = None,
        begun: Begun | None = None,
        earlier: dict[str, Any] | None = None,
    ) -> None:
        """Start a new fit, after a first `look` and a choice; a long choice is left to the user.

        A stop before the choice is made comes back to an `earlier` fit.
        """
        self.reset(tell=False)
        self.begun = begun or Begun()
        first, recording = Recording(measure), Recording(measure, remembers=remembers)
        self.recording = recording
        self.planned = iterations

        def work(stop: threading.Event) -> None:
            if look is not None and not self._looked(look, stop, first):
                return
            if choose is None or self._chosen(choose, stop, earlier):
                self._work(ResumableFit(prepare()), iterations, stop, recording)

        self._begin(work, "nmd-fit")

    def proceed(self, iterations: int) -> None:
        """Continue the fit for so many iterations, if `can_proceed` holds."""
        fit, recording = self._resumable, self.recording
        if self.can_proceed and fit is not None:
            self.planned = iterations + self.done
            self._begin(lambda stop: self._work(fit, iterations, stop, recording), "nmd-fit")

    def keep(self) -> dict[str, Any]:
        """Return what `recall` needs to come back to the present fit."""
        return {name: getattr(self, name) for name in KEPT}

    def recall(self, saved: dict[str, Any]) -> None:
        """Come back to a fit, which can be continued if it could be before."""
        self.reset(tell=False)
        self.__dict__ |= saved

    def _looked(
        self, look: Callable[[], Decided], stop: threading.Event, recording: Recording
    ) -> bool:
        """Show a short fit of simple settings; return whether the choice is to follow at once."""
        fit, planned = ResumableFit(look()), self.planned
        self._update(stop, recording=recording, planned=LOOK)
        self._advance(fit, 2, stop, recording)  # which compiles
        began = time.perf_counter()
        result = self._advance(fit, LOOK, stop, recording)
        trials = TRIALS * (MIXED if result._fitted.model.is_mixed else 1)
        left = trials * (time.perf_counter() - began) / max(result._n_iter - 2, 1)
        recording.end(result)
        follows = left < SOON and not stop.is_set()
        self._update(stop, _resumable=fit, result=result, planned=planned)
        if not follows:
            took = f"⟲ fit again chooses a better one in about {left:.0f} s"
            message = f"a first look, at the simplest model; {took}"
            self._update(stop, message=message, planned=self.done, phase="stopped")
        self._finish(result)
        return follows

    def _work(
        self, fit: ResumableFit, iterations: int, stop: threading.Event, recording: Recording
    ) -> None:
        """Do the fit; `stop` tells this run from later ones."""
        before = messages_before(fit.decided)
        self._update(stop, recording=recording, warnings=_sentences(before))
        result = self._advance(fit, iterations, stop, recording)
        recording.end(result)
        after = messages_after(result, fit.decided, self.settings)
        stopped = stop.is_set() and result.stop_reason.code == "callback"
        is_stroke = self.begun.before is not None  # after which few iterations are enough
        self._update(
            stop,
            warnings=_sentences(before | after),
            _resumable=fit,
            result=result,
            message=_ended(result, "stopped after {}" if stopped else "done in {}" * is_stroke),
            planned=self.planned if stopped else self.done,
            phase="stopped" if stopped else "finished",
        )
        self._finish(result)

    def _finish(self, result: Decomposition) -> None:
        """Tell of the end of a run, and again after what is to be done then."""
        self.tell()
        if self.finishing is not None:
            self.finishing(result)
            self.tell()

    def _chosen(self, choose: Choose, stop: threading.Event, earlier: Any) -> bool:
        """Let a run choose its settings; return False if it has been stopped."""

        def watch(trials: int) -> None:
            so_far = f"{many(trials, 'trial')} so far"
            self._show_progress(stop, f"choosing by hidden entries: {so_far}")

        keep = choose(Choosing(stop, watch))
        with self._lock:
            if stopped := stop.is_set():
                self._update(stop, phase="stopped", message=NO_CHOICE)
                if earlier is not None:
                    self.recall(earlier | {"message": f"{NO_CHOICE}; the earlier fit is shown"})
            else:
                self._update(stop, message=STARTING, began=time.perf_counter())
                keep()
        self.tell()
        return not stopped

    def _advance(
        self, fit: ResumableFit, iterations: int, stop: threading.Event, recording: Recording
    ) -> Decomposition:
        """Continue a fit, and keep what is to be shown of each iterate."""

        def watch(state: State) -> bool:
            history = {} if fit.run is None else fit.run.state.history
            recording.add(state, history[VALIDATION][-1] if VALIDATION in history else None)
            self._show_progress(stop, f"running: iteration {state.iteration} of {self.planned}")
            return stop.is_set()

        return fit.advance(iterations, watch)


def _sentences(messages: Messages) -> tuple[str, ...]:
    """Return what a fit would warn of, but not that more iterations help: the curves show it."""
    found = [text for kind, text in messages.items() if text and kind is not NotConvergedWarning]
    for words, plain in PLAIN.items():
        found = [text.replace(words, plain) for text in found]
    return tuple(found)


def _ended(result: Decomposition, why: str = "") -> str:
    """Return the sentence on a fit that has ended."""
    why = why or ENDS.get(result.stop_reason.code, str(result.stop_reason))
    return why.format(many(result._n_iter, "iteration"))
