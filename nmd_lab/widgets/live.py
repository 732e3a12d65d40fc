"""A fit or a sampler in a thread of its own, which can be stopped and continued."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nmd_lab._runtime.checks import many
from nmd_lab._runtime.machine import one_thread
from nmd_lab._runtime.progress import Interruption
from nmd_lab.api.fits import ResumableFit
from nmd_lab.api.messages import (
    MIN_SWEEPS,
    OPTIONS,
    Messages,
    message_of_chains,
    messages_after,
    messages_before,
)
from nmd_lab.api.posteriors import draw_posterior
from nmd_lab.data.folds import split_observed
from nmd_lab.data.inputs import observe, observe_dense
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.fit.held_out import HeldOut
from nmd_lab.fit.loop import VALIDATION
from nmd_lab.fit.summary import Decided
from nmd_lab.problem.state import State
from nmd_lab.request.options import SampleOptions
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior
from nmd_lab.sampler.run import Sweep
from nmd_lab.warnings import NotConvergedWarning

from .background import NO_RUN, STARTING, Background, Begun, Measure, Positions, Recording

NO_CHOICE = "stopped before a choice was made"  # message of a run that was stopped while it chose
A_LOOK = "this is the simplest model: ⟲ fit again chooses a better one"
ENDS = {  # how a fit ended, by the code of its stop reason; other reasons in their own words
    "converged": "done in {}",
    "validation": "done in {}; shown is that with the lowest error at held-out entries",
    "max_iter": "not settled after {}: ⟲ resumes",
}
PLAIN = {  # words of the library, as the page has them
    "a ridge (alpha)": "a penalty",
    "a larger alpha": "a larger penalty",
    "a smaller rank": "fewer components",
}
PREVIEW_ITERATIONS = 40  # iterations of a first look, which is shown while settings are chosen
MAX_CHOSEN = 2_000_000  # known entries up to which a choice follows a first look by itself
MIXED = 8  # entries of others for which one of a mixed table counts: its trials take long

# Attributes that belong to one fit
KEPT = ("phase", "message", "warnings", "planned", "result", "recording", "begun", "_resumable")


class Choosing(Interruption):
    """What a choice asks at each iteration: whether to end.  So an explorer can watch it."""

    def __init__(self, stop: threading.Event, tell: Callable[[threading.Event, str], None]) -> None:
        super().__init__()
        self._stop, self._tell, self._trials = stop, tell, 0

    def __bool__(self) -> bool:
        trials = many(self._trials, "trial")
        self._tell(self._stop, f"choosing by held-out entries: {trials} so far")
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
        self.recording = Recording()  # what is kept of the iterates; another one for each fit
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

    def cannot_proceed(self) -> str:
        """Return why the fit cannot be continued, or an empty string."""
        if self.phase not in ("stopped", "finished") or self._resumable is None:
            return NO_RUN
        return "the fit has converged" * bool(self.result.stop_reason.code == "converged")

    def start(
        self,
        prepare: Callable[..., Decided | None],
        iterations: int,
        measure: Measure | None = None,
        begun: Begun | None = None,
        *,
        remembers: bool = False,
    ) -> None:
        """Start a new fit; `prepare` returns it in the worker thread, or None if there is none."""
        self.reset()
        self.begun = begun or Begun()
        recording = self.recording = Recording(measure, remembers=remembers)
        self.planned = iterations

        def work(stop: threading.Event) -> None:
            if (decided := prepare(stop)) is not None:
                self._work(ResumableFit(decided), iterations, stop, recording)

        self._begin(work, "nmd-fit")

    def proceed(self, iterations: int) -> None:
        """Continue the fit for so many iterations, if it can be continued."""
        fit, recording = self._resumable, self.recording
        if fit is not None and not self.cannot_proceed():
            self.planned = iterations + self.done
            self._begin(lambda stop: self._work(fit, iterations, stop, recording), "nmd-fit")

    def keep(self) -> dict[str, Any]:
        """Return what `recall` needs to come back to the present fit."""
        return {name: vars(self)[name] for name in KEPT}

    def recall(self, saved: dict[str, Any]) -> None:
        """Come back to a fit, which can be continued if it could be before."""
        self.reset()
        vars(self).update(saved)

    def preview(self, look: Decided, stop: threading.Event, measure: Measure | None) -> bool:
        """Show a short fit of simple settings; return whether a choice is to follow at once."""
        fit, planned, recording = ResumableFit(look), self.planned, Recording(measure)
        self._update(stop, recording=recording, planned=PREVIEW_ITERATIONS)
        result = self._advance(fit, PREVIEW_ITERATIONS, stop, recording)
        recording.end(result)
        known = result.parameters["n_observed"] * (MIXED if result._fitted.model.is_mixed else 1)
        follows = known <= MAX_CHOSEN and not stop.is_set()
        self._update(stop, _resumable=fit, result=result, planned=planned)
        if not follows:
            self._update(stop, message=A_LOOK, planned=self.done, phase="stopped")
        self._finish(result)
        return follows

    def _work(
        self, fit: ResumableFit, iterations: int, stop: threading.Event, recording: Recording
    ) -> None:
        """Do the fit; `stop` tells this run from later ones."""
        facts, model = fit.decided.summary.facts, fit.decided.problem.units.model
        before = messages_before(facts, model, fit.decided.outside)
        self._update(stop, recording=recording, warnings=_sentences(before))
        result = self._advance(fit, iterations, stop, recording)
        recording.end(result)
        after = messages_after(result, facts, fit.decided.options, self.settings)
        stopped = stop.is_set() and result.stop_reason.code == "callback"
        why = ENDS.get(result.stop_reason.code, str(result.stop_reason))
        if stopped or self.begun.before is not None:  # after a stroke few iterations are enough
            why = "stopped after {}" if stopped else "done in {}"
        self._update(
            stop,
            warnings=_sentences(before | after),
            _resumable=fit,
            result=result,
            message=why.format(many(result._n_iter, "iteration")),
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

    def choose(
        self,
        choice_for: Callable[[Interruption], Decided],
        settle: Callable[[Decided], None],
        stop: threading.Event,
        earlier: dict[str, Any] | None = None,
    ) -> Decided | None:
        """Return the choice of settings, after they have been settled.

        A stop before the choice is made comes back to an `earlier` fit, and returns None.
        """
        choice = choice_for(Choosing(stop, self._show_progress))
        with self._lock:
            if stopped := stop.is_set():
                self._update(stop, phase="stopped", message=NO_CHOICE)
                if earlier is not None:
                    self.recall(earlier | {"message": f"{NO_CHOICE}; the earlier fit is shown"})
            else:
                self._update(stop, message=STARTING, began=time.perf_counter())
                settle(choice)
        self.tell()
        return None if stopped else choice

    def _advance(
        self, fit: ResumableFit, iterations: int, stop: threading.Event, recording: Recording
    ) -> Decomposition:
        """Continue a fit, and keep what is to be shown of each iterate."""

        def watch(state: State) -> bool:
            history = fit.progress.history
            recording.add(state, history[VALIDATION][-1] if VALIDATION in history else None)
            self._show_progress(stop, f"running: iteration {state.iteration} of {self.planned}")
            return stop.is_set()

        return fit.advance(iterations, watch).rotate()  # as the page numbers its components


def _sentences(messages: Messages) -> tuple[str, ...]:
    """Return what a fit would warn of, but not that more iterations help: the curves show it."""
    found = [text for kind, text in messages.items() if text and kind is not NotConvergedWarning]
    for words, plain in PLAIN.items():
        found = [text.replace(words, plain) for text in found]
    return tuple(found)


LEVEL = 0.9  # probability of the intervals
LEVELS = (0.1, 0.3, 0.5, 0.7, LEVEL)  # and of those that are compared with what they hold

COMPILING = threading.Lock()  # held by a sampler until its first sweep
POLL = 0.2  # seconds after which one that waits for it looks whether it is to stop
NO_DRAW = "stopped before the first draw: let it run longer"
IDLE = 15  # priority of a thread in the background, from 0 to 19, the lowest
TOO_FAR = 0.07  # difference from the level at which intervals are too narrow, or too wide
MAX_CHECKED = 5000  # entries that are checked; of more, as many that are spaced evenly


class Findings(NamedTuple):
    """Coverage of the intervals of a posterior at known entries."""

    held_out: bool  # whether the sampler has not seen the entries
    held: dict[float, float]  # fraction of the intervals that cover the value, by probability

    @property
    def summary(self) -> str:
        """The coverage in one line."""
        return self.covers(f" of the {'held-out' if self.held_out else 'known'} values")

    def covers(self, which: str = "") -> str:
        """Return the coverage as a part of a sentence."""
        coverage = self.held[LEVEL]
        few = ": they are too narrow" if coverage < LEVEL - TOO_FAR else ""
        few = ": they are too wide" if coverage > LEVEL + TOO_FAR else few
        level = f"{100 * LEVEL:.0f} % intervals"
        return f"{level} cover {100 * coverage:.0f} %{which}{few}"


def findings(posterior: Posterior, X: Any, held_out: SparseObservations | None) -> Findings | None:
    """Return the findings of a posterior at held-out entries, or at seen ones if there are none.

    Of a table they are of its numbers.  None without any, or if no column has two values.
    """
    unseen = held_out is not None and held_out.n_observed > 0
    compared = held_out if held_out and unseen else observe(X).as_sparse()
    if (table := posterior._labels.table) is not None:
        numbers = [at[0] for column, at in table.blocks() if not column.is_class]
        compared = compared.select(np.isin(compared.entries()[1], numbers))
        if not compared.n_observed:
            return None
    n, checked = compared.n_observed, np.zeros(compared.n_observed, dtype=bool)
    checked[np.linspace(0, n - 1, min(n, MAX_CHECKED)).astype(int)] = True  # as plots take them
    rows, columns, x = compared.select(checked).entries()
    if pd.Series(x).groupby(columns).nunique().max() == 1:  # of constants, all is covered
        return None
    at, held = entries_at(rows, columns), {}
    for level in LEVELS:
        low, high = posterior.predict_interval(at, level=level).T
        held[level] = float(np.mean((low <= x) & (x <= high)))
    return Findings(unseen, held)


def doubt(posterior: Posterior) -> str:
    """Return what is to be done, and why, if the draws have not converged; empty if they have."""
    if not message_of_chains(posterior):
        return ""
    share, few = posterior._unsettled, posterior.trace.sizes["sweep"] < MIN_SWEEPS
    why = "too few to judge them" if few else f"another chain would differ in {share:.0%} of cells"
    return f"more draws may help: {why}"


class SampleSettings(NamedTuple):
    """What `nmd_lab.sample` is called with, and which entries it does not see."""

    options: dict[str, Any]  # its arguments, but for the data
    held_out: float  # fraction of the observed entries that are held out; 0 for none

    def parts(self, X: Any) -> tuple[Any, Any]:
        """Return the entries that the sampler sees and those that it does not, or None."""
        if (observed := self.options["observed"]) is not None:
            return X, np.where(observed, np.nan, observe_dense(X).to_array())
        if self.held_out == 0:
            return X, None
        return split_observed(X, self.held_out, self.options["random_state"])


class LiveSample(Background):
    """Draws from a posterior in a worker thread; at most one run at a time."""

    def _clear(self) -> None:
        super()._clear()
        self.posterior: Posterior | None = None  # draws of the last run, once it has ended
        self.findings: Findings | None = None  # their results at held-out entries
        self.settings: SampleSettings | None = None  # what they were drawn with
        self.unseen: Positions | None = None  # entries that the sampler has not seen

    def start(self, X: Any, settings: SampleSettings, *, idle: bool = False) -> None:
        """Draw from the posterior; if `idle`, other threads go first on Linux."""
        self.reset()
        self.planned = settings.options["draws"]

        def work(stop: threading.Event) -> None:
            if idle and sys.platform == "linux":
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), IDLE)
            self._work(X, settings, stop)

        self._begin(work, "nmd-sample")

    def _work(self, X: Any, settings: SampleSettings, stop: threading.Event) -> None:
        """Draw and look at the draws; `stop` tells this run from later ones."""
        self._show_progress(stop, "preparing the draws …", now=True)
        seen, hidden = settings.parts(X)
        held_out = None if hidden is None else observe(hidden).as_sparse()
        with ExitStack() as start:
            while not COMPILING.acquire(timeout=POLL):
                if stop.is_set():
                    return self._end(stop, "stopped", message=NO_DRAW)
            start.callback(COMPILING.release)

            def watch(sweep: Sweep) -> bool:
                start.close()
                return self._watch(sweep, stop)

            options = SampleOptions(**settings.options, callback=watch, progress=False)
            with one_thread():  # and no message outside the explorer
                posterior = draw_posterior(seen, options, Interruption())
        n_draws = posterior.trace.sizes["sweep"]
        stopped = posterior.stop_reason.code == "callback"
        values: dict[str, Any] = {"message": NO_DRAW}
        if n_draws:
            self._show_progress(stop, "computing intervals …", now=True)
            found = findings(posterior, X, held_out)
            begins = "stopped after" if stopped else "finished:"
            values = {
                "posterior": posterior,
                "findings": found,
                "settings": settings,
                "unseen": None if held_out is None else held_out.entries()[:2],
                "message": f"{begins} {many(n_draws, 'draw')}",
                "warnings": tuple(filter(None, [doubt(posterior)])),
            }
        self._end(stop, "stopped" if stopped else "finished", **values)

    def _watch(self, now: Sweep, stop: threading.Event) -> bool:
        """Show how far it is; return whether to stop."""
        if stop is self._stop:
            self._done, self.planned = now.sweep, now.total
        first = ", the first ones are not kept" if now.tuning else ""
        self._show_progress(stop, f"drawing: {now.sweep} of {now.total}{first}")
        return stop.is_set()
