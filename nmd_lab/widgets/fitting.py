"""Explorers of data: a first look, the choice of what is "auto", a fit, its rivals, and draws."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab._runtime.checks import check_rank, is_auto, many
from nmd_lab._runtime.progress import Interruption
from nmd_lab.api.fits import ResumableFit, prepare
from nmd_lab.api.messages import Messages, messages_after, messages_before
from nmd_lab.api.posteriors import draw_posterior
from nmd_lab.data.inputs import form_of, observe
from nmd_lab.fit.summary import Decided
from nmd_lab.model.nonlinearities import NONLINEARITIES, Nonlinearity
from nmd_lab.problem.state import State as Iterate
from nmd_lab.request.options import COMPLETION_DEFAULTS, Options, SampleOptions
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.selection import TRIAL
from nmd_lab.sampler.run import Sweep
from nmd_lab.warnings import NotConvergedWarning

from .background import STARTING, Background, FitRun, Judged, Run, Settings
from .charts import calibration_chart, curves_chart, oriented, trials_charts
from .given import Code, call
from .state import Field, State, option
from .words import MAX_CHECKED, Number, doubt, findings, shapes

# The settings of a model, and the length of its fit
MODEL = (
    Field("nonlinearity", "Shape f", "choice", ("auto", *NONLINEARITIES), "shape", "X ≈ f(W H)",
          {name: f.label for name, f in NONLINEARITIES.items()}, auto=True, value="auto"),
    Field("low", value=0.0),
    Field("high", value=1.0),
    Field("rank", "Components", "integer", (), "components", "Their number", auto=True,
          value="auto"),
    Field("alpha", "Penalty", "number", (), "again", "Keeps W and H small", auto=True, value="auto",
          check=option("alpha")),
)  # fmt: skip
ITERATIONS = Field("iterations", "Iterations", "integer", (), "again", "Number of each run",
                   check=option("max_iter"))  # fmt: skip
DRAWS = Field("draws", check=lambda draws: SampleOptions(draws=draws))
# Settings that have to be right for the sampler
SAMPLED = ("validation", "missing", "seed", "high", "rank", "draws")
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
MAX_COMPARED = 2_000_000  # known entries of data that are fitted by a linear model, too

NO_DRAW = "stopped before the first draw: let it run longer"


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


class ModelState(State):
    """Data, a fit of them whose settings may be "auto", and a sampler of the same model.

    A choice puts numbers in the place of "auto", and the fit begins as one with these numbers does.
    """

    opens = True
    kind = FitRun
    fit: Background[FitRun]
    shape: tuple[int, int]  # of the matrix that is fitted
    linear: Mapping[str, Any] = {"nonlinearity": "identity"}  # of a rival
    hidden_share: str  # the setting for the number of entries that neither fit nor sampler sees
    has_kinds: bool = False  # whether the data are a table whose columns are of several kinds
    draws_itself: bool = True  # whether it draws from the posterior in the background

    # What a kind of data has
    arguments: Callable[[Settings], dict[str, Any]]  # of a fit with some settings, without the data
    to_fit: Callable[[FitRun], None]  # gives a fit the data, their options, and what measures it
    to_sample: Callable[[Settings], Any]  # what a sampler sees, what not (or None), and a mask
    judged: Callable[[], Judged]  # the held-out entries, or some that are seen, to judge components

    def __init__(self, X: Any, values: Settings, first: Settings) -> None:
        self.sample = Background(Run)
        super().__init__(X, values, first)
        self.works: list[Background[Any]] = [self.sample, self.fit]
        sampling = "Sample models that go with the data: predictions with 90 % intervals"
        self.buttons["sample"] = "draw intervals", sampling
        self.actions |= {
            "continue": lambda _: self.proceed(),
            "sample": lambda _: self.how_sure(),
            "point": self._fit_with,
        }

    # Settings

    def nonlinearity(self, values: Mapping[str, Any]) -> str | Nonlinearity:
        """Return f of some settings as a fit takes it."""
        name = str(values["nonlinearity"])
        if name == "auto" or not has_bounds(NONLINEARITIES[name]):
            return name
        bounds = {"a": values["low"], "b": values["high"]}
        return NONLINEARITIES[name](**bounds)

    def check(self, field: Field) -> None:
        """Raise an error if a setting is wrong."""
        super().check(field)
        if field.name == "high":
            self.nonlinearity(self.values)
        elif field.name == "rank" and self.values["rank"] != "auto":
            check_rank(self.values["rank"], self.shape)

    # A run: what the thread does, in this order

    def run(self, *, preview: bool = False) -> None:
        """Choose what is "auto", and fit; all of it in the thread of the fit."""
        self.forget_draws()
        earlier = self.fit.run
        self.fit.reset()  # from now on a running choice changes nothing
        settings, asked_for = dict(self.values), self.arguments(self.values)
        run = FitRun(planned=settings["iterations"], unseen=earlier.unseen)
        self.to_fit(run)
        chooses = any(map(is_auto, map(asked_for.get, DECISIVE)))
        plain = {"offsets": "none", "offset_alpha": settings["alpha"]}
        self._settle(run, settings, {} if chooses else plain)

        def work(run: FitRun) -> None:
            selection = None
            if chooses:
                if preview and not self._look(run, settings):
                    return
                signals = Choosing(run, self.fit.show)
                choice = choice_for(run.X, asked_for, signals, **run.options)
                if not self._accept(choice, run, settings, earlier):
                    return
                selection = choice.summary.selection
            decided = prepared(run.X, run.arguments, **run.options)
            summary = decided.summary._replace(selection=selection)
            self._iterate(run, ResumableFit(decided._replace(summary=summary)))

        self.fit.begin(run, work)

    def _look(self, run: FitRun, settings: dict[str, Any]) -> bool:
        """Show a short fit of the simplest settings; return whether a choice follows at once."""
        rank = max(1, min(self.numbers["rank"], min(np.shape(run.X)) // 3))
        plain = {"nonlinearity": "identity", "offsets": "both", **self.numbers, "rank": rank}
        simple = {name: plain.get(name, x) if x == "auto" else x for name, x in settings.items()}
        run.arguments, run.is_look = self.arguments(simple), True
        planned, run.planned = run.planned, PREVIEW_ITERATIONS
        fit = ResumableFit(prepared(run.X, run.arguments, **run.options))
        result = self._advance(run, fit)
        known = result.parameters["n_observed"] * (MIXED if result._fitted.model.is_mixed else 1)
        follows = known <= MAX_CHOSEN and not run.stop.is_set()
        run.planned = planned
        if not follows:
            run.message, run.planned, run.phase = A_LOOK, run.done, "stopped"
        self._finish(run)
        return follows

    def _accept(self, choice: Decided, run: FitRun, settings: Settings, earlier: FitRun) -> bool:
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
        ends = ("low", "high") if settings["nonlinearity"] == "auto" else ()
        for name in [name for name in found if settings.get(name) == "auto" or name in ends]:
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
            run.add(iterate)
            self.fit.show(run, f"running: iteration {run.done} of {run.planned}")
            return run.stop.is_set()

        run.resumable = fit
        result = fit.advance(run.planned - run.done, watch).rotate()  # as the page numbers them
        run.end(result)
        return result

    def _finish(self, run: FitRun) -> None:
        """Tell of the end of a run, and again once it is compared with its rivals."""
        if run is self.fit.run and run.result.selection.sizes[TRIAL]:
            self.trials = run.result.selection
        self.fit.tell(run)
        if run is self.fit.run and run.errors:
            run.errors = run.errors | self._rivals(run)
            self.fit.tell(run)

    def _rivals(self, run: FitRun) -> dict[str, float]:
        """Return the errors of a linear model, and of the means of columns."""
        errors, judged, fit = dict[str, float](), self.judged(), run.result
        few = fit.parameters["n_observed"] <= MAX_COMPARED
        if few and run.arguments != (linear := run.arguments | dict(self.linear)):
            rival = ResumableFit(prepared(run.X, linear, **run.options))
            other = rival.advance(fit._n_iter, lambda _: self.fit.result is not fit)
            errors["linear"] = judged.error(other._fitted)
        average = judged.error_of(run.means[judged.columns], fit._fitted.model)
        return errors | {"average": average}

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
    def shown(self) -> Any:
        """The last iterate while the fit runs, and then the result, as the page numbers it."""
        last: Any = self.fit.result
        if self.fit.phase == "running" or last is None:
            last = self.fit.state
        return last and self.memo("shown", lambda: oriented(last._fitted), last)

    def number(self, *, of_fit: bool = False) -> Number | None:
        """Return the number of the model without the components that are off, if some are."""
        number = super().number(of_fit=of_fit)
        if number is None and self.result is not None:
            number = Number.of_seen(self.result)
        off, running = self.off, self.fit.phase == "running"
        if number is None or not off or of_fit or running:
            return number
        less = self.shown.without(off)
        found = self.memo("without", lambda: self.judged().error(less), self.shown.H, off)
        guess = number if number.sign else Number(found, "Entries that are seen are fitted to ")
        return guess._replace(error=found, more="")

    # Draws

    @property
    def posterior(self) -> Any:
        """Draws from the posterior; None until they have been asked for."""
        return self.sample.result

    def forget_draws(self) -> None:
        """Forget the posterior, which is of other data; no listener is called."""
        self.active = self.fit
        self.sample.reset()

    def cannot_sample(self) -> str:
        """Return why no draws can be made with the present settings, or an empty string."""
        for name in ("nonlinearity", "rank"):  # those of a table of several kinds are drawn
            if self.values[name] == "auto" and not self.has_kinds:
                return f"the {name} is not chosen yet: ⟲ chooses it"
        problems = self.problems()
        return next((problems[name] for name in SAMPLED if name in problems), "")

    def why_not(self, name: str) -> str:
        """Return why a button has no use now, or an empty string."""
        return super().why_not(name) or (self.cannot_sample() if name == "sample" else "")

    def sample_now(self) -> None:
        """Draw from the posterior with the present settings, in the background; the fit stays."""
        values = dict(self.values)
        options = {"draws": values["draws"], "random_state": values["seed"], "observed": None}
        options |= {"rank": "auto", "nonlinearity": "auto"}
        if not self.has_kinds:
            options |= {"rank": values["rank"], "nonlinearity": self.nonlinearity(values)}
            options |= {"offsets": values.get("offsets", "none")}
        run = Run(settings=values, arguments=options, planned=values["draws"])
        self.sample.begin(run, self._draw)

    def _draw(self, run: Run) -> None:
        """Draw, and look at the draws; in the background, other threads go first on Linux."""
        if self.active is self.fit and sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)  # of 19
        self.sample.show(run, "preparing the draws …", now=True)
        seen, hidden, run.arguments["observed"] = self.to_sample(run.settings)
        held_out = None if hidden is None else observe(hidden).as_sparse()

        def watch(now: Sweep) -> bool:
            run.done, run.planned = now.sweep, now.total
            first = ", the first ones are not kept" if now.tuning else ""
            self.sample.show(run, f"drawing: {now.sweep} of {now.total}{first}")
            return run.stop.is_set()

        options = SampleOptions(**run.arguments, callback=watch, progress=False)
        posterior = draw_posterior(seen, options, Interruption())
        n_draws, message = posterior.trace.sizes["sweep"], NO_DRAW
        stopped = posterior.stop_reason.code == "callback"
        if n_draws and run is self.sample.run:
            self.sample.show(run, "computing intervals …", now=True)
            run.findings = findings(posterior, seen, held_out)
            if held_out is not None:
                run.unseen = held_out.entries()[:2]
            run.warnings = tuple(filter(None, [doubt(posterior)]))
            run.result = posterior
            message = f"{'stopped after' if stopped else 'finished:'} {many(n_draws, 'draw')}"
        self.sample.end(run, "stopped" if stopped else "finished", message)

    def how_sure(self) -> None:
        """Draw from the posterior with the present settings, for everybody to see."""
        if problem := self.cannot_sample():
            raise ValueError(problem)
        self.active = self.sample
        if self.sample.phase != "running":
            self.sample_now()

    def idle(self) -> None:
        """Draw from the posterior in the background, once a fit has ended."""
        fitted = self.fit.phase == "finished" and len(self.fit.errors) > 1 and not self.changed
        waits = fitted and self.sample.phase == "ready"
        if waits and self.draws_itself and not self.cannot_sample():
            self.sample_now()

    def sample_code(self, data: str, before: str = "") -> str:
        """Return the code that makes the posterior after other lines; empty if there is none."""
        posterior, run = self.posterior, self.sample.run
        if posterior is None:
            return ""
        named = {"rank": None, "nonlinearity": None} | run.arguments | _as_long(posterior)
        if named["observed"] is not None:
            named["observed"] = Code("mask")
        plain = {"nonlinearity": "identity", "observed": None}
        options = {k: v for k, v in named.items() if k not in plain or v != plain[k]}
        split, seen, last = "", data, "posterior\n"
        if (share := run.settings[self.hidden_share]) > 0:
            split = split_code(data, share, options["random_state"])
            split *= split not in before
            plot = f"posterior.plot.predictions(held_out, max_points={MAX_CHECKED})\n"
            seen, last = "seen", "" if self.has_kinds else plot  # not of several units
        drawn = call("nmd.sample", seen, **options)
        return f"{split}posterior = {drawn}\n{last}"

    # The page

    def parts(self) -> dict[str, Any]:
        """Return the curves and the charts; subclasses add the others."""
        fit, found = self.fit, self.findings
        intervals = {} if found is None else {"intervals": calibration_chart(found)}
        errors = self.trials[["nonlinearity", "error"]].to_dataframe().groupby("nonlinearity")
        tried, f = dict(errors["error"].min()), str(self.values["nonlinearity"])
        if fit.result is not None and not self.changed:
            f = str(fit.result.nonlinearity.name)  # the columns of a table may have their own
        return {
            "curves": curves_chart(self.curves()),
            "dots": intervals | trials_charts(self.trials),
            "facts": {"shapes": self.memo("shapes", lambda: shapes(f, tried), f, tried)},
        }

    def curves(self) -> dict[str, dict[int, float]]:
        """Return the curves of errors by iteration."""
        return {"hidden": self.fit.guesses}


def prepared(
    X: Any, arguments: Settings, signals: Interruption | None = None, **more: Any
) -> Decided:
    """Return what a fit of X begins with, given arguments of a call of `complete`."""
    options = Options(**COMPLETION_DEFAULTS | dict(arguments) | more)
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


def split_code(data: str, share: float, seed: int) -> str:
    """Return the line that hides a fraction of the entries."""
    split = call("nmd.split_observed", data, test_size=share, random_state=seed)
    return f"seen, held_out = {split}\n"


def _as_long(posterior: Posterior) -> dict[str, int]:
    """Return the options with which a sampler ends with the same draws, even of a stopped run."""
    sweeps, n_draws = posterior.trace.sizes["sweep"], posterior.draws.sizes["draw"]
    if (step := posterior.parameters["step"]) == 1:
        return {"draws": sweeps}
    return {"draws": n_draws * step if sweeps >= step else sweeps, "keep": n_draws}
