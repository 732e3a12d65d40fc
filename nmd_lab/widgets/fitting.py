"""A fit in the background: a first look, the choice of what is "auto", iterations and rivals."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from nmd_lab._runtime.checks import check_rank, is_auto, many
from nmd_lab._runtime.machine import one_thread
from nmd_lab._runtime.progress import Interruption
from nmd_lab.api.fits import ResumableFit
from nmd_lab.api.messages import Messages, messages_after, messages_before
from nmd_lab.api.prepare import prepare
from nmd_lab.data.inputs import form_of
from nmd_lab.fit.held_out import HeldOut
from nmd_lab.fit.loop import VALIDATION
from nmd_lab.fit.summary import Decided
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.model.nonlinearities import NONLINEARITIES, Nonlinearity
from nmd_lab.problem.state import State as Iterate
from nmd_lab.request.options import COMPLETION_DEFAULTS, Options
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.selection import TRIAL
from nmd_lab.result.summary import validation_error
from nmd_lab.warnings import NotConvergedWarning

from .background import STARTING, Background, Judged, Positions, Run
from .state import Field, State
from .words import THIS

# The settings of a model, and the length of its fit
MODEL = (
    Field("nonlinearity", "Shape f", "choice", ("auto", *NONLINEARITIES), "shape", "X ≈ f(W H)",
          {name: f.label for name, f in NONLINEARITIES.items()}, auto=True, value="auto"),
    Field("low", value=0.0),
    Field("high", value=1.0),
    Field("rank", "Components", "integer", (), "components", "Their number", auto=True,
          value="auto"),
    Field("alpha", "Penalty", "number", (), "again", "Keeps W and H small", auto=True, value="auto",
          check="alpha"),
)  # fmt: skip
ITERATIONS = Field(
    "iterations", "Iterations", "integer", (), "again", "Number of each run", check="max_iter"
)
DECISIVE = ("rank", "nonlinearity", "loss", "alpha")  # arguments that trials decide if "auto"

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


@dataclass
class FitRun(Run):
    """One fit, which can be continued, and the errors of its iterates."""

    resumable: ResumableFit | None = None
    # Measures the error at entries that are held out of the fit, if any are
    measure: Callable[[FittedValues], float] | None = None
    remembers: bool = False  # whether it begins at a fit that has seen these entries
    state: Iterate | None = None  # last iterate
    seen: dict[int, float] = field(default_factory=dict)  # errors by iteration, where seen
    held_out: dict[int, float] = field(default_factory=dict)  # and where held out
    of_result: float | None = None  # held-out error of the result, an earlier iterate

    def add(self, iterate: Iterate, validation: float | None, *, last: bool = False) -> None:
        """Take the next iterate; errors of some are kept, and of the last one."""
        self.state, self.done = iterate, iterate.iteration
        if not last and not is_measured(self.done):
            return
        if validation is None and self.measure is not None:
            validation = self.measure(iterate._fitted)
        self.seen[self.done] = iterate.relative_error
        if validation is not None:
            self.held_out[self.done] = validation

    def end(self, result: Decomposition, fit: ResumableFit) -> None:
        """Take the result, with its held-out error and those of the last iterate."""
        measure = self.measure
        self.of_result = measure(result._fitted) if measure else validation_error(result)
        if self.state is not None and self.done not in self.seen:
            last = None if measure else result.history.get(VALIDATION)
            self.add(self.state, None if last is None else float(last[-1]), last=True)
        self.result, self.resumable = result, fit

    def forget(self) -> None:
        """Forget the iterates, which were those of a first look."""
        self.state, self.done, self.seen, self.held_out, self.of_result = None, 0, {}, {}, None

    @property
    def guesses(self) -> dict[int, float]:
        """The held-out errors that are those of a guess."""
        errors = dict(self.held_out)
        # A fit that begins at one that has seen these entries forgets them while their error rises
        highest = max(errors, key=errors.__getitem__, default=0) if self.remembers else 0
        return {k: error for k, error in errors.items() if k >= highest}

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
            return super().cannot_proceed()
        return "the fit has converged" * bool(self.result.stop_reason.code == "converged")


def is_measured(iteration: int) -> bool:
    """Return whether the error of an iteration is measured.

    >>> [k for k in range(1, 40) if is_measured(k)][17:]
    [18, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29, 31, 32, 34, 36, 37, 39]
    """
    if iteration <= 20:
        return True
    step = math.log(1.05)  # the next one is about 5 % later
    return math.floor(math.log(iteration) / step) > math.floor(math.log(iteration - 1) / step)


class Choosing(Interruption):
    """What a choice asks at each iteration: whether to end.  So an explorer can watch it."""

    def __init__(self, run: FitRun, show: Callable[[FitRun, str], None]) -> None:
        super().__init__()
        self._run, self._show, self._trials = run, show, 0

    def __bool__(self) -> bool:
        trials = many(self._trials, "trial")
        self._show(self._run, f"choosing by held-out entries: {trials} so far")
        return self._run.stop.is_set()

    def begin(self) -> None:
        """Count a trial."""
        self._trials += 1


class FitState(State):
    """Data, and a fit of them whose settings may be "auto".

    A choice puts numbers in the place of "auto", and the fit begins as one with these numbers does.
    """

    opens = True
    kind = FitRun
    fit: Background[FitRun]
    shape: tuple[int, int]  # of the matrix that is fitted
    _choice: Decomposition | None = None

    # What a kind of data has

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a fit with some settings, without the matrix."""
        raise NotImplementedError

    def to_fit(self, run: FitRun) -> tuple[Any, dict[str, Any]]:
        """Return the data of a fit that begins, and its options; the run hears what measures it."""
        raise NotImplementedError

    def judged(self) -> Judged:
        """Return the held-out entries, or without any some that are seen, to judge components."""
        raise NotImplementedError

    def rivals(self, fit: Decomposition) -> dict[str, float]:
        """Return the errors of other models at the entries that a fit has not seen."""
        raise NotImplementedError

    # Settings

    @property
    def choosable(self) -> list[str]:
        """Names of the settings that may be "auto"."""
        return [field.name for field in self.fields if field.auto]

    def nonlinearity(self, values: Mapping[str, Any]) -> str | Nonlinearity:
        """Return f of some settings as a fit takes it."""
        name = str(values["nonlinearity"])
        if name == "auto" or not has_bounds(NONLINEARITIES[name]):
            return name
        bounds = {"a": values["low"], "b": values["high"]}
        return NONLINEARITIES[name](**bounds)

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each checked setting that raises an error if it is wrong."""
        rank, checks = self.values["rank"], super().checks()
        checks["high"] = partial(self.nonlinearity, self.values)
        if rank != "auto":
            checks["rank"] = lambda: check_rank(rank, self.shape)
        return checks

    def simple(self, settings: Mapping[str, Any], shape: tuple[int, int]) -> dict[str, Any]:
        """Return settings with the simplest values in the place of "auto"."""
        rank = max(1, min(self.numbers["rank"], min(shape) // 3))
        plain = {"nonlinearity": "identity", "offsets": "both", **self.numbers, "rank": rank}
        return {
            name: plain.get(name, value) if value == "auto" and name in self.choosable else value
            for name, value in settings.items()
        }

    # A run: what the thread does, in this order

    def run(self, *, preview: bool = False) -> None:
        """Choose what is "auto", and fit; all of it in the thread of the fit."""
        earlier, self.active = self.fit.run, self.fit
        self.fit.reset()  # from now on a running choice changes nothing
        settings, asked_for = dict(self.values), self.arguments(self.values)
        run = FitRun(planned=settings["iterations"])
        X, options = self.to_fit(run)
        chooses = any(map(is_auto, map(asked_for.get, DECISIVE)))
        plain = {"offsets": "none", "offset_alpha": settings["alpha"]}
        self._settle(run, settings, {} if chooses else plain)

        def work(run: FitRun) -> None:
            selection = None
            if chooses:
                if preview and not self._look(run, settings, X, options):
                    return
                choice = choice_for(X, asked_for, Choosing(run, self.fit.show), **options)
                if not self._accept(choice, run, settings, earlier):
                    return
                selection = choice.summary.selection
            decided = prepared(X, self.arguments(settings), **options)
            summary = decided.summary._replace(selection=selection)
            self._iterate(run, ResumableFit(decided._replace(summary=summary)))

        self.fit.begin(run, work)

    def _look(
        self, run: FitRun, settings: dict[str, Any], X: Any, options: Mapping[str, Any]
    ) -> bool:
        """Show a short fit of simple settings; return whether a choice is to follow at once."""
        run.arguments, run.is_look = self.arguments(self.simple(settings, np.shape(X))), True
        fit = ResumableFit(prepared(X, run.arguments, **options))
        planned, run.planned = run.planned, PREVIEW_ITERATIONS
        result = self._advance(run, fit)
        known = result.parameters["n_observed"] * (MIXED if result._fitted.model.is_mixed else 1)
        follows = known <= MAX_CHOSEN and not run.stop.is_set()
        run.planned = planned
        if not follows:
            run.message, run.planned, run.phase = A_LOOK, run.done, "stopped"
        self._finish(run)
        return follows

    def _accept(
        self, choice: Decided, run: FitRun, settings: dict[str, Any], earlier: FitRun
    ) -> bool:
        """Take what was chosen, and return True; a stop before that shows an earlier fit again."""
        with self.fit.lock:
            if stopped := run.stop.is_set():
                run.message, run.phase = NO_CHOICE, "stopped"
                if earlier.result is not None and run is self.fit.run:
                    message = f"{NO_CHOICE}; the earlier fit is shown"
                    self.fit.recall(replace(earlier, message=message))
            else:
                run.message, run.began = STARTING, time.perf_counter()
                run.forget()
                self._settle(run, settings, settings_of(choice))
        self.fit.tell()
        return not stopped

    def _settle(self, run: FitRun, settings: dict[str, Any], found: Mapping[str, Any]) -> None:
        """Put values in the place of "auto", unless the user has changed the setting meanwhile."""
        names = [name for name in self.choosable if settings.get(name) == "auto" and name in found]
        if "nonlinearity" in names:
            names += [name for name in ("low", "high") if name in found]
        for name in names:
            if self.values[name] == settings[name]:
                self.values[name] = found[name]
            settings[name] = found[name]
        run.settings, run.arguments = self._settings(settings), self.arguments(settings)
        run.is_look = False

    def _iterate(self, run: FitRun, fit: ResumableFit) -> None:
        """Do the iterations that are planned, and say how they ended."""
        facts, model = fit.decided.summary.facts, fit.decided.problem.units.model
        before = messages_before(facts, model, fit.decided.outside)
        run.warnings = _sentences(before)
        result = self._advance(run, fit)
        named = [field.name for field in self.fields]  # which the advice of warnings may name
        after = messages_after(result, facts, fit.decided.options, named)
        stopped = run.stop.is_set() and result.stop_reason.code == "callback"
        why = ENDS.get(result.stop_reason.code, str(result.stop_reason))
        if stopped or run.before is not None:  # after a stroke few iterations are enough
            why = "stopped after {}" if stopped else "done in {}"
        run.warnings = _sentences(before | after)
        run.message = why.format(many(result._n_iter, "iteration"))
        run.planned = run.planned if stopped else run.done
        run.phase = "stopped" if stopped else "finished"
        self._finish(run)

    def _advance(self, run: FitRun, fit: ResumableFit) -> Decomposition:
        """Continue a fit, and keep what is to be shown of each iterate, and of the result."""

        def watch(iterate: Iterate) -> bool:
            history = fit.progress.history
            run.add(iterate, history[VALIDATION][-1] if VALIDATION in history else None)
            self.fit.show(run, f"running: iteration {run.done} of {run.planned}")
            return run.stop.is_set()

        result = fit.advance(run.planned - run.done, watch).rotate()  # as the page numbers them
        run.end(result, fit)
        return result

    def _finish(self, run: FitRun) -> None:
        """Tell of the end of a run, and again once it is compared with its rivals."""
        self.fit.tell(run)
        if run is self.fit.run:
            error = run.of_result
            run.errors = {} if error is None else {THIS: error} | self.rivals(run.result)
            self.fit.tell(run)

    def proceed(self) -> None:
        """Continue the fit, if it can be continued."""
        self.active, run, fit = self.fit, self.fit.run, self.fit.resumable
        if not run.cannot_proceed():
            run = replace(run, planned=run.done + self.values["iterations"])
            self.fit.begin(run, lambda run: self._iterate(run, fit))

    def _fit_with(self, message: Mapping[str, Any]) -> None:
        """Fit with the number of components of a point that was clicked."""
        self.set("rank", int(message["id"]))
        self.start()

    # What it has found

    @property
    def choice(self) -> Decomposition | None:
        """The last fit whose settings were chosen by trials; None without one."""
        fit = self.fit.result
        if fit is not None and fit.selection.sizes[TRIAL]:
            self._choice = fit
        return self._choice

    @property
    def errors(self) -> dict[str, float]:
        """The errors of the fit and of its rivals, at entries that it has not seen.

        After a continuation there are none until its rivals have been fitted, too.
        """
        errors: dict[str, float] = self.fit.errors
        return errors if errors.get(THIS) == self.fit.of_result else {}

    def rival(self, fit: Decomposition, X: Any, options: Mapping[str, Any]) -> Decomposition:
        """Return a fit like another one, with other options, unless a new run begins meanwhile."""
        rival = ResumableFit(prepared(X, self.fit.arguments | dict(options)))
        return rival.advance(fit._n_iter, lambda _: self.fit.result is not fit)


def prepared(
    X: Any, arguments: Mapping[str, Any], *, signals: Interruption | None = None, **more: Any
) -> Decided:
    """Return what a fit of X begins with, given arguments of a call of `complete`."""
    options = Options(**COMPLETION_DEFAULTS | dict(arguments) | more)
    with one_thread():  # whatever else the process computes: sums do not depend on it
        return prepare(X, form_of(X), options, signals)


def choice_for(X: Any, arguments: Mapping[str, Any], signals: Interruption, **more: Any) -> Decided:
    """Return a fit that is ready to be solved, with what was chosen for what is "auto"."""
    # Explorers go on until a fit has converged: no trial ends early after a path of ridges
    plain = {"init": "svd", "progress": False}  # the page tells how far it is
    return prepared(X, plain | dict(arguments), signals=signals, **more)


def settings_of(choice: Decided) -> dict[str, Any]:
    """Return the chosen values as settings; those of an f with bounds include these."""
    f, options = choice.problem.units.model.column_models[0].nonlinearity, choice.options
    bounds = dict(zip(("low", "high"), f.parameters, strict=True)) if has_bounds(f) else {}
    return bounds | {
        "nonlinearity": f.name,
        "rank": int(options.rank),
        "alpha": rounded(options.alpha),
        "offsets": options.offsets,
        "offset_alpha": rounded(options.offset_alpha),
    }


def has_bounds(f: Any) -> bool:
    """Return whether a nonlinearity, or a class of them, has a lower and an upper bound."""
    return bool(f.parameter_names == ("a", "b"))


def rounded(number: float) -> float:
    """Return a number with four digits: what controls show, the code has and the fit gets.

    >>> rounded(16.185352), rounded(3.0)
    (16.19, 3.0)
    """
    return float(f"{number:.4g}")


def _sentences(messages: Messages) -> tuple[str, ...]:
    """Return what a fit would warn of, but not that more iterations help: the curves show it."""
    found = [text for kind, text in messages.items() if text and kind is not NotConvergedWarning]
    for words, plain in PLAIN.items():
        found = [text.replace(words, plain) for text in found]
    return tuple(found)
