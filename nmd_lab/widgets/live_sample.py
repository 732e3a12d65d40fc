"""The sampler of an explorer, in a thread of its own, and results of its draws next to the data."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._messages import FEWEST, message_of_chains
from nmd_lab._runtime.machine import one_thread
from nmd_lab._runtime.progress import Interruption
from nmd_lab.data.inputs import observe, observe_dense
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.split import split_observed
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior
from nmd_lab.sampling import draw_posterior
from nmd_lab.solver.options import SampleOptions
from nmd_lab.solver.sampler.run import Sweep

from .background import Background, Positions, many

LEVEL = 0.9  # probability of the intervals
LEVELS = (0.1, 0.3, 0.5, 0.7, LEVEL)  # and of those that are compared with what they hold

IDLE = 15  # priority of a thread in the background, from 0 to 19, the lowest
TOO_FAR = 0.07  # difference from the level at which intervals are too narrow, or too wide
MOST_CHECKED = 5000  # entries that are checked; of more, as many that are spaced evenly


class Findings(NamedTuple):
    """Coverage of the intervals of a posterior at known entries."""

    held_out: bool  # whether the sampler has not seen the entries
    held: dict[float, float]  # fraction of the intervals that cover the value, by probability

    @property
    def summary(self) -> str:
        """The coverage in one line."""
        return self.covers(" of the hidden values" if self.held_out else " of the known values")

    def covers(self, which: str = "") -> str:
        """Return the coverage as a part of a sentence."""
        coverage = self.held[LEVEL]
        few = ": they are too narrow" if coverage < LEVEL - TOO_FAR else ""
        few = ": they are too wide" if coverage > LEVEL + TOO_FAR else few
        level = f"{100 * LEVEL:.0f} % intervals"
        return f"{level} cover {100 * coverage:.0f} %{which}{few}"


def findings(posterior: Posterior, X: Any, held_out: SparseObservations | None) -> Findings | None:
    """Return the findings of a posterior at held-out entries, or at seen ones if there are none.

    Of a table they are of its numbers: None without any.
    """
    unseen = held_out is not None and held_out.n_observed > 0
    compared = held_out if held_out and unseen else observe(X).as_sparse()
    if (table := posterior._labels.table) is not None:
        numbers = [at[0] for column, at in table.blocks() if not column.is_class]
        compared = compared.select(np.isin(compared.entries()[1], numbers))
        if not compared.n_observed:
            return None
    n, checked = compared.n_observed, np.zeros(compared.n_observed, dtype=bool)
    checked[np.linspace(0, n - 1, min(n, MOST_CHECKED)).astype(int)] = True  # as plots take them
    rows, columns, x = compared.select(checked).entries()
    at, held = entries_at(rows, columns), {}
    for level in LEVELS:
        low, high = posterior.predict_interval(at, level=level).T
        held[level] = float(np.mean((low <= x) & (x <= high)))
    return Findings(unseen, held)


def doubt(posterior: Posterior) -> str:
    """Return what is to be done, and why, if the draws have not converged; empty if they have."""
    if not message_of_chains(posterior):
        return ""
    share, few = posterior._unsettled, posterior.trace.sizes["sweep"] < FEWEST
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
        self.reset(tell=False)
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
        posterior = _drawn(seen, settings, lambda sweep: self._watch(sweep, stop))
        n_draws = posterior.trace.sizes["sweep"]
        stopped = posterior.stop_reason.code == "callback"
        values: dict[str, Any] = {"message": "stopped before the first draw: let it run longer"}
        if n_draws:
            self._show_progress(stop, "computing intervals …", now=True)
            found = findings(posterior, X, held_out)
            begins = "stopped after" if stopped else "finished:"
            warning = doubt(posterior)
            values = {
                "posterior": posterior,
                "findings": found,
                "settings": settings,
                "unseen": None if held_out is None else held_out.entries()[:2],
                "message": f"{begins} {many(n_draws, 'draw')}",
                "warnings": (warning,) if warning else (),
            }
        self._end(stop, "stopped" if stopped else "finished", **values)

    def _watch(self, now: Sweep, stop: threading.Event) -> bool:
        """Show how far it is; return whether to stop."""
        if stop is self._stop:
            self._done, self.planned = now.sweep, now.total
        first = ", the first ones are not kept" if now.tuning else ""
        self._show_progress(stop, f"drawing: {now.sweep} of {now.total}{first}")
        return stop.is_set()


def _drawn(X: Any, settings: SampleSettings, callback: Callable[[Any], bool]) -> Posterior:
    """Return the result of `nmd_lab.sample`, without messages outside the explorer."""
    asked = SampleOptions(**settings.options, callback=callback, progress=False)
    with one_thread():
        return draw_posterior(X, asked, Interruption())
