"""A fit or a sampler in a thread of its own, which can be stopped and continued."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
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

from .background import NO_RUN, STARTING, Background, Positions, Recording, Run

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


class Choosing(Interruption):
    """What a choice asks at each iteration: whether to end.  So an explorer can watch it."""

    def __init__(self, run: Run, tell: Callable[[Run, str], None]) -> None:
        super().__init__()
        self._run, self._tell, self._trials = run, tell, 0

    def __bool__(self) -> bool:
        trials = many(self._trials, "trial")
        self._tell(self._run, f"choosing by held-out entries: {trials} so far")
        return self._run.stop.is_set()

    def begin(self) -> None:
        """Count a trial."""
        self._trials += 1


@dataclass
class FitRun(Run):
    """One fit, which can be continued."""

    recording: Recording = field(default_factory=Recording)  # what is kept of the iterates
    resumable: ResumableFit | None = None


class LiveFit(Background):
    """The fit of an explorer, in a worker thread; at most one fit runs at a time."""

    Kind = FitRun

    def __init__(self, named: Collection[str] = OPTIONS) -> None:
        self.named = named  # settings that the advice of warnings may name
        # Called in the worker thread after each run
        self.finishing: Callable[[FitRun], None] | None = None
        super().__init__()

    @property
    def state(self) -> State | None:
        """Last iterate."""
        last: State | None = self.recording.state
        return last

    @property
    def done(self) -> int:
        """Number of the last iteration."""
        return int(self.recording.done)

    @property
    def hidden(self) -> HeldOut | None:
        """The entries that the fit has held out; None without any."""
        return None if self.resumable is None else self.resumable.decided.held_out

    @property
    def unseen(self) -> Positions | None:
        """Rows and columns of these entries."""
        return None if self.hidden is None else self.hidden.positions

    def cannot_proceed(self) -> str:
        """Return why the fit cannot be continued, or an empty string."""
        if self.phase not in ("stopped", "finished") or self.resumable is None:
            return NO_RUN
        return "the fit has converged" * bool(self.result.stop_reason.code == "converged")

    def start(
        self, prepare: Callable[..., Decided | None], iterations: int, run: FitRun | None = None
    ) -> None:
        """Start a new fit; `prepare` returns it in the worker thread, or None if there is none."""
        run = run or FitRun()
        run.planned, recording = iterations, run.recording

        def work(run: FitRun) -> None:
            if (decided := prepare(run)) is not None:
                self._work(run, ResumableFit(decided), iterations, recording)

        self._begin(run, work, "nmd-fit")

    def proceed(self, iterations: int) -> None:
        """Continue the fit for so many iterations, if it can be continued."""
        fit, recording = self.resumable, self.recording
        if fit is not None and not self.cannot_proceed():
            run = replace(self.run, planned=iterations + self.done)
            self._begin(run, lambda run: self._work(run, fit, iterations, recording), "nmd-fit")

    def preview(self, look: Decided, run: FitRun) -> bool:
        """Show a short fit of simple settings; return whether a choice is to follow at once."""
        fit, planned, recording = ResumableFit(look), run.planned, run.recording
        run.recording, run.planned = Recording(recording.measure), PREVIEW_ITERATIONS
        result = self._advance(run, fit, PREVIEW_ITERATIONS)
        known = result.parameters["n_observed"] * (MIXED if result._fitted.model.is_mixed else 1)
        follows = known <= MAX_CHOSEN and not run.stop.is_set()
        run.resumable, run.result, run.planned = fit, result, planned
        if not follows:
            run.message, run.planned, run.phase = A_LOOK, run.recording.done, "stopped"
        self._finish(run)
        return follows

    def _work(self, run: FitRun, fit: ResumableFit, iterations: int, recording: Recording) -> None:
        """Do the fit."""
        facts, model = fit.decided.summary.facts, fit.decided.problem.units.model
        before = messages_before(facts, model, fit.decided.outside)
        run.recording, run.warnings = recording, _sentences(before)
        result = self._advance(run, fit, iterations)
        after = messages_after(result, facts, fit.decided.options, self.named)
        stopped = run.stop.is_set() and result.stop_reason.code == "callback"
        why = ENDS.get(result.stop_reason.code, str(result.stop_reason))
        if stopped or run.before is not None:  # after a stroke few iterations are enough
            why = "stopped after {}" if stopped else "done in {}"
        run.warnings, run.resumable, run.result = _sentences(before | after), fit, result
        run.message = why.format(many(result._n_iter, "iteration"))
        run.planned = run.planned if stopped else recording.done
        run.phase = "stopped" if stopped else "finished"
        self._finish(run)

    def _finish(self, run: FitRun) -> None:
        """Tell of the end of a run, and again after what is to be done then."""
        self.tell(run)
        if self.finishing is not None and run is self.run:
            self.finishing(run)
            self.tell(run)

    def choose(
        self,
        choice_for: Callable[[Interruption], Decided],
        settle: Callable[[Decided], None],
        run: FitRun,
        earlier: FitRun | None = None,
    ) -> Decided | None:
        """Return the choice of settings, after they have been settled.

        A stop before the choice is made comes back to an `earlier` fit, and returns None.
        """
        choice = choice_for(Choosing(run, self._show_progress))
        with self._lock:
            if stopped := run.stop.is_set():
                run.message, run.phase = NO_CHOICE, "stopped"
                if earlier is not None and run is self.run:
                    message = f"{NO_CHOICE}; the earlier fit is shown"
                    self.recall(replace(earlier, message=message))
            else:
                run.message, run.began = STARTING, time.perf_counter()
                settle(choice)
        self.tell()
        return None if stopped else choice

    def _advance(self, run: FitRun, fit: ResumableFit, iterations: int) -> Decomposition:
        """Continue a fit, and keep what is to be shown of each iterate."""
        recording = run.recording

        def watch(state: State) -> bool:
            history = fit.progress.history
            recording.add(state, history[VALIDATION][-1] if VALIDATION in history else None)
            self._show_progress(run, f"running: iteration {state.iteration} of {run.planned}")
            return run.stop.is_set()

        result = fit.advance(iterations, watch).rotate()  # as the page numbers its components
        recording.end(result)
        return result


def _sentences(messages: Messages) -> tuple[str, ...]:
    """Return what a fit would warn of, but not that more iterations help: the curves show it."""
    found = [text for kind, text in messages.items() if text and kind is not NotConvergedWarning]
    for words, plain in PLAIN.items():
        found = [text.replace(words, plain) for text in found]
    return tuple(found)


LEVEL = 0.9  # probability of the intervals
LEVELS = (0.1, 0.3, 0.5, 0.7, LEVEL)  # and of those that are compared with what they hold

COMPILING = threading.Lock()  # held by a sampler until its first sweep
NO_DRAW = "stopped before the first draw: let it run longer"
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


@dataclass
class SampleRun(Run):
    """Draws with some arguments of `nmd_lab.sample`; the posterior is the result."""

    held_out: float = 0.0  # fraction of the observed entries that are held out; 0 for none
    unseen: Positions | None = None  # entries that the sampler has not seen

    @property
    def split(self) -> tuple[Any, Any]:
        """The entries that the sampler sees and those that it does not, or None."""
        X, observed = self.data, self.arguments["observed"]
        if observed is not None:
            return X, np.where(observed, np.nan, observe_dense(X).to_array())
        if self.held_out == 0:
            return X, None
        return split_observed(X, self.held_out, self.arguments["random_state"])


class LiveSample(Background):
    """Draws from a posterior in a worker thread; at most one run at a time."""

    Kind = SampleRun

    def start(self, run: SampleRun, *, idle: bool = False) -> None:
        """Draw from the posterior; if `idle`, other threads go first on Linux."""
        run.planned = run.arguments["draws"]

        def work(run: SampleRun) -> None:
            if idle and sys.platform == "linux":
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)  # of 19
            self._work(run)

        self._begin(run, work, "nmd-sample")

    def _work(self, run: SampleRun) -> None:
        """Draw and look at the draws."""
        self._show_progress(run, "preparing the draws …", now=True)
        seen, hidden = run.split
        held_out = None if hidden is None else observe(hidden).as_sparse()
        with ExitStack() as start:
            while not COMPILING.acquire(timeout=0.2):
                if run.stop.is_set():
                    return self._end(run, "stopped", NO_DRAW)
            start.callback(COMPILING.release)

            def watch(sweep: Sweep) -> bool:
                start.close()
                return self._watch(sweep, run)

            options = SampleOptions(**run.arguments, callback=watch, progress=False)
            with one_thread():  # and no message outside the explorer
                posterior = draw_posterior(seen, options, Interruption())
        n_draws, message = posterior.trace.sizes["sweep"], NO_DRAW
        stopped = posterior.stop_reason.code == "callback"
        if n_draws and run is self.run:
            self._show_progress(run, "computing intervals …", now=True)
            run.findings = findings(posterior, run.data, held_out)
            run.unseen = None if held_out is None else held_out.entries()[:2]
            run.warnings = tuple(filter(None, [doubt(posterior)]))
            run.result = posterior
            message = f"{'stopped after' if stopped else 'finished:'} {many(n_draws, 'draw')}"
        self._end(run, "stopped" if stopped else "finished", message)

    def _watch(self, now: Sweep, run: SampleRun) -> bool:
        """Show how far it is; return whether to stop."""
        run.done, run.planned = now.sweep, now.total
        first = ", the first ones are not kept" if now.tuning else ""
        self._show_progress(run, f"drawing: {now.sweep} of {now.total}{first}")
        return run.stop.is_set()
