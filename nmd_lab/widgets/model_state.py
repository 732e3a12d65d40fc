"""Explorers of data: a fit whose settings may be "auto", and draws from a posterior."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_rank, is_auto
from nmd_lab._runtime.machine import one_thread
from nmd_lab._runtime.progress import Interruption
from nmd_lab.api.fits import ResumableFit
from nmd_lab.api.prepare import prepare
from nmd_lab.data.inputs import form_of
from nmd_lab.fit.summary import Decided
from nmd_lab.model.nonlinearities import NONLINEARITIES, Nonlinearity
from nmd_lab.request.options import COMPLETION_DEFAULTS, Options, SampleOptions
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.selection import TRIAL

from .background import Background, Judged
from .charts import calibration_chart, curves_chart, errors_by_shape, trials_charts
from .live import MAX_CHECKED, FitRun, LiveFit, LiveSample, SampleRun
from .printer import Code, call
from .state import Field, State
from .words import THIS, Number, shapes

Numbers = NDArray[Any]

# The settings of a model, and the lengths of its fit and of its chains
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
DRAWS = Field("draws", check=lambda draws: SampleOptions(draws=draws))


DECISIVE = ("rank", "nonlinearity", "loss", "alpha")  # arguments that trials decide if "auto"

# Settings that have to be right for the sampler
SAMPLED = ("validation", "missing", "seed", "high", "rank", "draws")


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


class ModelState(State):
    """Data, a fit of them whose settings may be "auto", and a sampler of the same model.

    A choice puts numbers in the place of "auto", and the fit begins as one with these numbers does.
    """

    hidden_share: str  # the setting for the number of entries that neither fit nor sampler sees
    opens = True
    fit: LiveFit

    def __init__(
        self, X: Any, values: Mapping[str, Any], *, first: Mapping[str, Any] | None = None
    ) -> None:
        self.sample = LiveSample()
        self._choice: Decomposition | None = None
        fit = LiveFit(tuple(field.name for field in self.fields))
        super().__init__(X, values, first=first or {}, fit=fit)
        self.works: list[Background] = [self.sample, self.fit]
        self.fit.finishing = self._compare
        sampling = "Sample models that go with the data: predictions with 90 % intervals"
        self.buttons["sample"] = "draw intervals", sampling
        self.actions |= self.factors.actions | {
            "continue": lambda _: self.proceed(),
            "sample": lambda _: self.how_sure(),
            "point": self._fit_with,
        }

    # What a kind of data has

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a fit with some settings, without the matrix."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix that is fitted."""
        raise NotImplementedError

    def to_fit(self, run: FitRun) -> tuple[Any, dict[str, Any]]:
        """Return the data of a fit that begins, and its options; the run hears what measures it."""
        raise NotImplementedError

    def to_sample(self) -> tuple[Any, Any]:
        """Return the data of the sampler, and which entries it sees if not a random fraction."""
        raise NotImplementedError

    def judged(self) -> Judged:
        """Return the held-out entries, or without any some that are seen, to judge components."""
        raise NotImplementedError

    def rivals(self, fit: Decomposition) -> dict[str, float]:
        """Return the errors of other models at the entries that a fit has not seen."""
        raise NotImplementedError

    @property
    def has_kinds(self) -> bool:
        """Whether the data are a table whose columns are of several kinds."""
        return False

    @property
    def draws_itself(self) -> bool:
        """Whether it draws from the posterior in the background."""
        return True

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

    # The fit

    def run(self, *, preview: bool = False) -> None:
        """Choose what is "auto", and fit; all of it in the thread of the fit."""
        earlier = None if self.fit.result is None else self.fit.run
        self.forget_draws()
        self.fit.reset()  # from now on a running choice changes nothing
        run = FitRun()
        X, options = self.to_fit(run)
        settings, asked_for = dict(self.values), self.arguments(self.values)
        chooses = any(map(is_auto, map(asked_for.get, DECISIVE)))
        plain = {"offsets": "none", "offset_alpha": settings["alpha"]}
        self._settle(run, settings, {} if chooses else plain)

        def settle(choice: Decided) -> None:
            self._settle(run, settings, settings_of(choice))

        def preparation(run: FitRun) -> Decided | None:
            selection = None
            if chooses and preview:
                run.arguments = self.arguments(self.simple(settings, np.shape(X)))
                run.is_look, look = True, prepared(X, run.arguments, **options)
                if not self.fit.preview(look, run):
                    return None
            if chooses:
                choose = partial(choice_for, X, asked_for, **options)
                if (choice := self.fit.choose(choose, settle, run, earlier)) is None:
                    return None
                selection = choice.summary.selection
            decided = prepared(X, self.arguments(settings), **options)
            return decided._replace(summary=decided.summary._replace(selection=selection))

        self.fit.start(preparation, settings["iterations"], run)

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

    def proceed(self) -> None:
        """Continue the fit."""
        self.active = self.fit
        self.fit.proceed(self.values["iterations"])

    def _fit_with(self, message: Mapping[str, Any]) -> None:
        """Fit with the number of components of a point that was clicked."""
        self.set("rank", int(message["id"]))
        self.start()

    @property
    def choice(self) -> Decomposition | None:
        """The last fit whose settings were chosen by trials; None without one."""
        fit = self.fit.result
        if fit is not None and fit.selection.sizes[TRIAL]:
            self._choice = fit
        return self._choice

    # Errors

    def _compare(self, run: FitRun) -> None:
        """Keep the errors of a finished fit and of its rivals."""
        error = run.recording.of_result
        run.errors = {} if error is None else {THIS: error} | self.rivals(run.result)

    def _rival(self, fit: Decomposition, X: Any, options: Mapping[str, Any]) -> Decomposition:
        """Return a fit like another one, with other options, unless a new run begins meanwhile."""
        rival = ResumableFit(prepared(X, self.fit.arguments | dict(options)))
        return rival.advance(fit._n_iter, lambda _: self.fit.result is not fit)

    @property
    def errors(self) -> dict[str, float]:
        """The errors of the fit and of its rivals, at entries that it has not seen.

        After a continuation there are none until its rivals have been fitted, too.
        """
        errors: dict[str, float] = self.fit.errors
        return errors if errors.get(THIS) == self.fit.recording.of_result else {}

    def _guess(self, *words: Any) -> Number | None:
        """Return how well the model guesses what is hidden; `words` as of `Number.of_guess`."""
        error = self.fit.recording.of_result
        errors = self.errors or ({} if error is None else {THIS: error})
        return Number.of_guess(errors, *words)._replace(more=self.covered) if errors else None

    @property
    def covered(self) -> str:
        """Words on the intervals of the draws, for the end of the sentence."""
        found = self.sample.findings
        return "" if found is None else f"; {found.covers()}"

    def number(self, *, of_fit: bool = False) -> Number | None:
        """Return the number of the model without the components that are off, if some are."""
        number, fitted, off = super().number(of_fit=of_fit), self.shown, self.off
        if number is None or fitted is None or not off or of_fit or self.fit.phase == "running":
            return number

        less = fitted.without(off)
        found = self.memo("without", lambda: self.judged().error(less), fitted.H, off)
        guess = number if number.sign else Number(found, "Entries that are seen are fitted to ")
        return guess._replace(error=found, more="")

    # Draws

    @property
    def posterior(self) -> Posterior | None:
        """Draws from the posterior; None until they have been asked for."""
        posterior: Posterior | None = self.sample.result
        return posterior

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

    def sample_now(self, *, idle: bool = False) -> None:
        """Draw from the posterior with the present settings; the fit stays.

        If `idle`, the draws are made in the background, and the status remains that of the fit.
        """
        values, (X, observed) = self.values, self.to_sample()
        self.active = self.fit if idle else self.sample
        options = {"draws": values["draws"], "random_state": values["seed"], "observed": observed}
        options |= {"rank": "auto", "nonlinearity": "auto"}
        if not self.has_kinds:
            options |= {"rank": values["rank"], "nonlinearity": self.nonlinearity(values)}
            options["offsets"] = values.get("offsets", "none")
        share = values[self.hidden_share]
        self.sample.start(SampleRun(arguments=options, data=X, held_out=share), idle=idle)

    def how_sure(self) -> None:
        """Draw from the posterior with the present settings, for everybody to see."""
        if problem := self.cannot_sample():
            raise ValueError(problem)
        if self.sample.phase == "running":  # in the background: now everybody can see it
            self.active = self.sample
        else:
            self.sample_now()

    def idle(self) -> None:
        """Draw from the posterior in the background, once a fit has ended."""
        fitted = self.fit.phase == "finished" and bool(self.errors) and not self.changed
        waits = fitted and self.sample.phase == "ready"
        if waits and self.draws_itself and not self.cannot_sample():
            self.sample_now(idle=True)

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
        if run.held_out > 0:
            split = split_code(data, run.held_out, options["random_state"])
            split *= split not in before
            plot = f"posterior.plot.predictions(held_out, max_points={MAX_CHECKED})\n"
            seen, last = "seen", "" if self.has_kinds else plot  # not of several units
        drawn = call("nmd.sample", seen, **options)
        return f"{split}posterior = {drawn}\n{last}"

    # The page

    def parts(self) -> dict[str, Any]:
        """Return the curves and the charts; subclasses add the others."""
        fit, found = self.fit, self.sample.findings
        intervals = {} if found is None else {"intervals": calibration_chart(found)}
        tried, f = errors_by_shape(self.choice), str(self.values["nonlinearity"])
        if fit.result is not None and not self.changed:
            f = str(fit.result.nonlinearity.name)  # the columns of a table may have their own
        return {
            "curves": curves_chart(self.curves()),
            "dots": intervals | trials_charts(self.choice),
            "facts": {"shapes": self.memo("shapes", lambda: shapes(f, tried), f, tried)},
        }

    def curves(self) -> dict[str, dict[int, float]]:
        """Return the curves of errors by iteration."""
        return {"hidden": self.fit.recording.hidden}


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
