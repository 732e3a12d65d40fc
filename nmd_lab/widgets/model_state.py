"""State of an explorer of data: a fit whose settings may be "auto", and draws of a posterior."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_rank, is_auto
from nmd_lab._runtime.progress import Interruption
from nmd_lab.api.fits import ResumableFit
from nmd_lab.fit.summary import Decided
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.model.nonlinearities import NONLINEARITIES, Nonlinearity
from nmd_lab.request.options import SampleOptions
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior import Posterior

from .background import Measure, error_at
from .history import Field, FitState, choice_for, has_bounds, prepared, settings_of
from .live import MOST_CHECKED, Begun, Keep, LiveSample, SampleSettings
from .words import Code, call

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

THIS = "this model"  # name of the fit among its rivals
MOST_JUDGED = 20_000  # known entries at which components are judged, at most

DECISIVE = ("rank", "nonlinearity", "loss", "alpha")  # arguments that trials decide if "auto"

# Settings that have to be right for the sampler
SAMPLED = ("validation", "missing", "seed", "high", "rank", "draws")


class ModelState(FitState):
    """Settings of a fit of data, some of which may be "auto", and of a sampler of the same model.

    A choice puts numbers in the place of "auto", and the fit begins as one with these numbers does.
    """

    hidden_share: str  # the setting for the number of entries that neither fit nor sampler sees

    def __init__(self, first: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        self.sample = LiveSample()
        super().__init__(first, values)
        self.works = [self.sample, self.fit]
        self.fit.finishing = self._compare

    @property
    def errors(self) -> dict[str, float]:
        """The errors of the fit and of its rivals, at entries that it has not seen.

        After a continuation there are none until its rivals have been fitted, too.
        """
        errors = self.fit.begun.errors
        return errors if errors.get(THIS) == self.fit.recording.of_result else {}

    def arguments(self, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the arguments of the fit without the matrix."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix that is fitted."""
        raise NotImplementedError

    def to_fit(self, begun: Begun) -> tuple[Any, dict[str, Any], Measure | None]:
        """Return the data of a fit that begins, its options, and what measures it."""
        raise NotImplementedError

    def to_sample(self) -> tuple[Any, Any]:
        """Return the data of the sampler, and which entries it sees if not a random fraction."""
        raise NotImplementedError

    def known(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return some entries by which components are judged: values, rows and columns."""
        raise NotImplementedError

    def rivals(self, fit: Decomposition) -> dict[str, float]:
        """Return the errors of other models at the entries that a fit has not seen."""
        raise NotImplementedError

    def _compare(self, fit: Decomposition) -> None:
        """Keep the errors of a finished fit and of its rivals, unless a new run has begun."""
        begun, error = self.fit.begun, self.fit.recording.of_result
        found = {} if error is None else {THIS: error} | self.rivals(fit)
        if self.fit.result is fit:
            begun.errors = found

    def loss_without(self, fitted: FittedValues, off: Collection[int]) -> tuple[float, float]:
        """Return the error at known entries with and without some components."""
        x, rows, columns = self.known()
        with_all, without = (
            error_at(each.model, x, each.at(rows, columns), rows, columns)
            for each in (fitted, fitted.without(list(off)))
        )
        return with_all, without

    @property
    def choosable(self) -> list[str]:
        """Names of the settings that may be "auto"."""
        return [field.name for field in self.fields if field.auto]

    def nonlinearity(self, values: Mapping[str, Any] | None = None) -> str | Nonlinearity:
        """Return f as a fit takes it."""
        values = self.values if values is None else values
        name = str(values["nonlinearity"])
        if name == "auto" or not has_bounds(NONLINEARITIES[name]):
            return name
        bounds = {"a": values["low"], "b": values["high"]}
        return NONLINEARITIES[name](**bounds)

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each checked setting that raises an error if it is wrong."""
        rank, checks = self.values["rank"], super().checks() | {"high": self.nonlinearity}
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

    def start(self, *, preview: bool = False) -> None:
        """Choose what is "auto", and fit; all of it in the thread of the fit."""
        earlier = None if self.fit.result is None else self.fit.keep()
        self.forget_draws()
        self.fit.reset(tell=False)  # from now on a running choice changes nothing
        begun = Begun()
        X, options, measure = self.to_fit(begun)
        settings, asked_for = dict(self.values), self.arguments()
        choice: Decided | None = None

        def choose(asked: Interruption) -> Keep:
            nonlocal choice
            choice = choice_for(X, asked_for, asked=asked, **options)
            return partial(self._settle, begun, settings, settings_of(choice))

        def ready() -> Decided:
            made_of = prepared(X, self.arguments(settings), **options)
            selection = None if choice is None else choice.summary.selection
            return made_of._replace(summary=made_of.summary._replace(selection=selection))

        def look() -> Decided:
            begun.arguments = self.arguments(self.simple(settings, np.shape(X)))
            return prepared(X, begun.arguments, **options)

        chooses = any(map(is_auto, map(asked_for.get, DECISIVE)))
        plain = {"offsets": "none", "offset_alpha": settings["alpha"]}
        self._settle(begun, settings, {} if chooses else plain)
        self.fit.start(
            ready,
            settings["iterations"],
            measure,
            choose if chooses else None,
            look=look if chooses and preview else None,
            begun=begun,
            earlier=earlier,
        )

    def forget_draws(self) -> None:
        """Forget the posterior, which is of other data, and tell nobody."""
        self.active = self.fit
        self.sample.reset(tell=False)

    def _settle(self, begun: Begun, settings: dict[str, Any], found: Mapping[str, Any]) -> None:
        """Put values in the place of "auto", unless the user has changed the setting meanwhile."""
        names = [name for name in self.choosable if settings.get(name) == "auto" and name in found]
        if "nonlinearity" in names:
            names += [name for name in ("low", "high") if name in found]
        for name in names:
            if self.values[name] == settings[name]:
                self.values[name] = found[name]
            settings[name] = found[name]
        begun.settings, begun.arguments = self._settings(settings), self.arguments(settings)

    def _rival(self, fit: Decomposition, X: Any, options: Mapping[str, Any]) -> Decomposition:
        """Return a fit like another one, with other options, unless a new run begins meanwhile."""
        rival = ResumableFit(prepared(X, self.fit.begun.arguments | dict(options)))
        return rival.advance(fit._n_iter, lambda _: self.fit.result is not fit)

    @property
    def posterior(self) -> Posterior | None:
        """Draws from the posterior; None until they have been asked for."""
        return self.sample.posterior

    @property
    def has_kinds(self) -> bool:
        """Whether the data are a table whose columns are of several kinds."""
        return False

    def cannot_sample(self) -> str:
        """Return why no draws can be made with the present settings, or an empty string."""
        for name in ("nonlinearity", "rank"):  # those of a table of several kinds are drawn
            if self.values[name] == "auto" and not self.has_kinds:
                return f"the {name} is not chosen yet: ⟲ chooses it"
        problems = self.problems()
        return next((problems[name] for name in SAMPLED if name in problems), "")

    def sample_now(self, *, idle: bool = False) -> None:
        """Draw from the posterior with the present settings; the fit stays.

        If `idle`, the draws are made in the background, and the status remains that of the fit.
        """
        values, (X, observed) = self.values, self.to_sample()
        self.active = self.fit if idle else self.sample
        options = {"draws": values["draws"], "random_state": values["seed"], "observed": observed}
        if self.has_kinds:
            options |= {"rank": "auto", "nonlinearity": "auto"}
        else:
            options |= {"rank": values["rank"], "nonlinearity": self.nonlinearity()}
            options["offsets"] = values.get("offsets", "none")
        settings = SampleSettings(options, values[self.hidden_share])
        self.sample.start(X, settings, idle=idle)

    def sample_code(self, data: str, before: str = "") -> str:
        """Return the code that makes the posterior after other lines; empty if there is none."""
        posterior, settings = self.posterior, self.sample.settings
        if posterior is None or settings is None:
            return ""
        named = {"rank": None, "nonlinearity": None} | settings.options | _as_long(posterior)
        if named["observed"] is not None:
            named["observed"] = Code("mask")
        plain = {"nonlinearity": "identity", "observed": None}
        options = {k: v for k, v in named.items() if k not in plain or v != plain[k]}
        split, seen, last = "", data, "posterior\n"
        if settings.held_out > 0:
            share = {"test_size": settings.held_out, "random_state": options["random_state"]}
            split = f"seen, held_out = {call('nmd.split_observed', data, **share)}\n"
            split *= split not in before
            plot = f"posterior.plot.predictions(held_out, max_points={MOST_CHECKED})\n"
            seen, last = "seen", "" if self.has_kinds else plot  # not of several units
        drawn = call("nmd.sample", seen, **options)
        return f"{split}posterior = {drawn}\n{last}"


def _as_long(posterior: Posterior) -> dict[str, int]:
    """Return the options with which a sampler ends with the same draws, even of a stopped run."""
    sweeps, n_draws = posterior.trace.sizes["sweep"], posterior.draws.sizes["draw"]
    if (step := posterior.parameters["step"]) == 1:
        return {"draws": sweeps}
    return {"draws": n_draws * step if sweeps >= step else sweeps, "keep": n_draws}
