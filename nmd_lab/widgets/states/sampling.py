"""State of an explorer that can also draw from the posterior, to say how sure it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.widgets.live.background import Background
from nmd_lab.widgets.live.findings import LEVEL
from nmd_lab.widgets.live.sample import LiveSample, SampleSettings

from .choosing import ChoosingState
from .code import Code, call

SAMPLED = ("data", "validation", "missing", "seed", "high", "rank", "draws")
"""Settings that have to be right for the sampler."""


class SamplingState(ChoosingState):
    """Settings of a fit of a matrix, and of a sampler of the same model.

    Attributes
    ----------
    sample : LiveSample
        The sampler, which can be stopped.
    sampled_settings : dict
        Settings with which it was started, without `lengths`; empty before.
    """

    lengths: tuple[str, ...] = ("iterations", "draws")

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.sample = LiveSample()
        self.sampled_settings: dict[str, Any] = {}
        self._active: Background = self.fit

    @property
    def active(self) -> Background:
        """The fit or the sampler, whichever was begun last."""
        return self._active

    @property
    def posterior(self) -> Posterior | None:
        """Draws from the posterior; None until they have been asked for."""
        return self.sample.posterior

    @property
    def is_sampled(self) -> bool:
        """Whether the posterior is of the chosen data."""
        same = self.sampled_settings.get("data") == self.values["data"]
        return self.posterior is not None and same

    def cannot_sample(self) -> str:
        """Return why no draws can be made with the present settings, or an empty string."""
        for name in ("nonlinearity", "rank"):
            if self.values[name] == "auto":
                label = "f" if name == "nonlinearity" else "the rank"
                return f"{label} is not chosen yet: press Run first, or choose"
        problems = self.problems()
        return next((problems[name] for name in SAMPLED if name in problems), "")

    def sample_settings(self) -> SampleSettings:
        """Return what the sampler is called with."""
        values = self.values
        options = {"offsets": values.get("offsets", "none"), "draws": values["draws"]}
        options["random_state"] = values["seed"]
        return SampleSettings(values["rank"], self.nonlinearity(), options, self.share_hidden)

    @property
    def share_hidden(self) -> float:
        """Share of the entries that neither fit nor sampler sees."""
        raise NotImplementedError

    def sample_now(self) -> None:
        """Draw from the posterior with the present settings."""
        raise NotImplementedError

    def _launch_sampler(self, X: Any) -> None:
        """Draw from the posterior; a fit of the same data stays."""
        if self.fitted_settings.get("data") != self.values["data"]:
            self._forget_fit()
        self._active, self.sampled_settings = self.sample, self._settings()
        self.sample.start(X, self.sample_settings())

    def proceed(self) -> None:
        """Continue the fit."""
        self._active = self.fit
        super().proceed()

    def reset(self) -> None:
        """Forget the fit and the posterior."""
        self._forget_sample()
        super().reset()

    def _forget_fit(self) -> None:
        """Forget the fit, and tell nobody."""
        self.fit.reset(tell=False)
        self._forget_choice()
        self.fitted_settings = {}

    def _forget_sample(self) -> None:
        """Forget the posterior, since a new fit or none takes its place."""
        self._active, self.sampled_settings = self.fit, {}
        self.sample.reset(tell=False)

    def _launch(self, X: Any, **options: Any) -> None:
        """Choose what is "auto", and fit; the posterior is forgotten."""
        self._forget_sample()
        super()._launch(X, **options)

    def sample_code(self, data: str) -> str:
        """Return the code that makes the posterior; an empty string if there is none."""
        posterior, settings = self.posterior, self.sample.settings
        if posterior is None or settings is None:
            return ""
        options = settings.options | _as_long(posterior)
        if settings.nonlinearity != "identity":
            options = {"nonlinearity": settings.nonlinearity} | options
        split, seen, last = "", data, "posterior\n"
        if settings.held_out > 0:
            share = {"test_size": settings.held_out, "random_state": options["random_state"]}
            split = f"seen, held_out = {call('nmd.split_observed', data, **share)}\n"
            seen, last = "seen", "posterior.plot.predictions(held_out)\n"
        if settings.observed is not None:
            options["observed"] = Code("mask")
        drawn = call("nmd.sample", seen, rank=settings.rank, **options)
        return f"{split}posterior = {drawn}\n{last}"


def _as_long(posterior: Posterior) -> dict[str, int]:
    """Return the options with which a sampler ends with the same draws, even of a stopped run."""
    sweeps, n_draws = posterior.trace.sizes["sweep"], posterior.draws.sizes["draw"]
    step = posterior.parameters["step"]
    if step == 1:
        return {"draws": sweeps}
    return {"draws": n_draws * step if sweeps >= step else sweeps, "keep": n_draws}


def row_intervals(posterior: Posterior, row: int, columns: NDArray[np.intp]) -> NDArray[Any]:
    """Return the ends of the intervals of new observations in a row, (n, 2)."""
    return np.asarray(posterior.predict_interval(entries_at(row, columns), level=LEVEL))
