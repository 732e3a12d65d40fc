"""Explorers of data: a fit, and draws from a posterior of the same model."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nmd_lab._runtime.checks import many
from nmd_lab._runtime.machine import one_thread
from nmd_lab._runtime.progress import Interruption
from nmd_lab.api.posteriors import draw_posterior
from nmd_lab.data.folds import split_observed
from nmd_lab.data.inputs import observe, observe_dense
from nmd_lab.request.options import SampleOptions
from nmd_lab.result.posterior import Posterior
from nmd_lab.sampler.run import Sweep

from .background import Background, Positions, Run
from .charts import calibration_chart, curves_chart, errors_by_shape, trials_charts
from .fitting import FitState
from .printer import Code, call
from .state import Field
from .words import MAX_CHECKED, THIS, Number, doubt, findings, shapes

DRAWS = Field("draws", check=lambda draws: SampleOptions(draws=draws))
# Settings that have to be right for the sampler
SAMPLED = ("validation", "missing", "seed", "high", "rank", "draws")

COMPILING = threading.Lock()  # held by a sampler until its first sweep
NO_DRAW = "stopped before the first draw: let it run longer"


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


class ModelState(FitState):
    """Data, a fit of them, and a sampler of the same model."""

    hidden_share: str  # the setting for the number of entries that neither fit nor sampler sees
    has_kinds: bool = False  # whether the data are a table whose columns are of several kinds
    draws_itself: bool = True  # whether it draws from the posterior in the background

    def __init__(self, X: Any, values: Mapping[str, Any], *, first: Mapping[str, Any]) -> None:
        self.sample = Background(SampleRun)
        super().__init__(X, values, first=first)
        self.works: list[Background[Any]] = [self.sample, self.fit]
        sampling = "Sample models that go with the data: predictions with 90 % intervals"
        self.buttons["sample"] = "draw intervals", sampling
        self.actions |= self.factors.actions | {
            "continue": lambda _: self.proceed(),
            "sample": lambda _: self.how_sure(),
            "point": self._fit_with,
        }

    def to_sample(self) -> tuple[Any, Any]:
        """Return the data of the sampler, and which entries it sees if not a random fraction."""
        raise NotImplementedError

    # Errors

    def _guess(self, *words: Any) -> Number | None:
        """Return how well the model guesses what is hidden; `words` as of `Number.of_guess`."""
        error = self.fit.of_result
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

    def run(self, *, preview: bool = False) -> None:
        """Fit, and forget the posterior."""
        self.forget_draws()
        super().run(preview=preview)

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
        share, planned = values[self.hidden_share], values["draws"]
        run = SampleRun(arguments=options, data=X, held_out=share, planned=planned)
        self.sample.begin(run, partial(self._draw, idle=idle))

    def _draw(self, run: SampleRun, *, idle: bool) -> None:
        """Draw, and look at the draws; if `idle`, other threads go first on Linux."""
        if idle and sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)  # of 19
        self.sample.show(run, "preparing the draws …", now=True)
        seen, hidden = run.split
        held_out = None if hidden is None else observe(hidden).as_sparse()
        with ExitStack() as start:
            while not COMPILING.acquire(timeout=0.2):
                if run.stop.is_set():
                    return self.sample.end(run, "stopped", NO_DRAW)
            start.callback(COMPILING.release)

            def watch(now: Sweep) -> bool:
                start.close()
                run.done, run.planned = now.sweep, now.total
                first = ", the first ones are not kept" if now.tuning else ""
                self.sample.show(run, f"drawing: {now.sweep} of {now.total}{first}")
                return run.stop.is_set()

            options = SampleOptions(**run.arguments, callback=watch, progress=False)
            with one_thread():  # and no message outside the explorer
                posterior = draw_posterior(seen, options, Interruption())
        n_draws, message = posterior.trace.sizes["sweep"], NO_DRAW
        stopped = posterior.stop_reason.code == "callback"
        if n_draws and run is self.sample.run:
            self.sample.show(run, "computing intervals …", now=True)
            run.findings = findings(posterior, run.data, held_out)
            run.unseen = None if held_out is None else held_out.entries()[:2]
            run.warnings = tuple(filter(None, [doubt(posterior)]))
            run.result = posterior
            message = f"{'stopped after' if stopped else 'finished:'} {many(n_draws, 'draw')}"
        self.sample.end(run, "stopped" if stopped else "finished", message)

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
        return {"hidden": self.fit.guesses}


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
