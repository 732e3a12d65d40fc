"""All chains of a posterior, with what is recorded after each sweep."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._interruption import Interruption
from nmd_lab._progress import with_progress
from nmd_lab._stop_reason import StopReason
from nmd_lab.checkpoint.place import NOWHERE, Place
from nmd_lab.data.base import FloatArray

from .chain import sweeps
from .draws import Draws, Probes
from .model import Model
from .options import SampleOptions
from .state import ChainState
from .targets import Targets
from .work import Work

N_PROBES = 200
"""Number of entries whose predictions are recorded."""


class Sweep(NamedTuple):
    """What a callback is told after each sweep.

    Attributes
    ----------
    chain, sweep : int
        Number of the chain, from 0, and of its sweep, from 1.
    tuning : bool
        Whether the sweep belongs to the tuning.
    log_likelihood : float
        Log-likelihood, up to a constant.
    seconds : float
        Time since the start.
    """

    chain: int
    sweep: int
    tuning: bool
    log_likelihood: float
    seconds: float


class ChainStart(NamedTuple):
    """A chain that is to run.

    Attributes
    ----------
    state : ChainState
        Where it begins.
    seed : int
        Seed of its random numbers.
    """

    state: ChainState
    seed: int


def run_chains(
    model: Model,
    work: Work,
    starts: Iterator[ChainStart],
    options: SampleOptions,
    tune: int,
    targets: Targets | None,
    interruption: Interruption,
    place: Place = NOWHERE,
) -> tuple[Draws, StopReason]:
    """Run one chain after the other, and return the draws of those that were begun."""
    recorder = Recorder(model, options.step(model.numbers), targets)
    began, reason, begun = time.perf_counter(), None, -1
    if place.goes_on:
        kept = place.take()
        begun, began = kept["chain"], began - kept["elapsed"]
        recorder.restore(kept["recorder"])

    def describe() -> dict[str, Any]:
        elapsed = time.perf_counter() - began
        return {"chain": chain, "elapsed": elapsed, "recorder": recorder.kept()}

    for chain, (state, seed) in enumerate(islice(starts, options.chains)):
        if chain < begun:
            continue
        total, first, inside = tune + options.draws, state.sweep, place.inner("chain")
        if inside.goes_on:
            work.restore(state, inside.take())
        else:
            recorder.begin(chain)
        place.mark(describe)
        inside.mark(partial(work.kept, state))
        steps = islice(
            sweeps(model, work, state, seed, first + tune), total - (state.sweep - first)
        )
        for done in with_progress(steps, total, options.progress, text=_text, unit="sweep"):
            number = done.sweep - first
            recorder.record(done, number - tune)
            interruption.begin()
            seconds = time.perf_counter() - began
            told = Sweep(chain, number, number <= tune, done.log_likelihood, seconds)
            reason = _reason_to_end(options, told, interruption)
            if reason is not None:
                break
            place.tick()
        recorder.end(state)
        if reason is not None:
            return recorder.draws(), reason
    draws = f"{options.draws} sweeps after {tune} for tuning"
    return recorder.draws(), StopReason("draws", f"draws: all {draws} are done")


def _text(state: ChainState) -> str:
    return f"log-likelihood {state.log_likelihood:.4g}"


def _reason_to_end(
    options: SampleOptions, told: Sweep, interruption: Interruption
) -> StopReason | None:
    """Return the reason to end after a sweep, or None."""
    if options.callback is not None and options.callback(told):
        return StopReason("callback", f"callback: it asked to stop after sweep {told.sweep}")
    if interruption:
        return interruption.reason(told.sweep)
    limit = options.time_limit
    if limit is not None and told.seconds >= limit:
        text = f"time_limit: {limit:g} s are over after sweep {told.sweep} of chain {told.chain}"
        return StopReason("time_limit", text)
    return None


class Recorder:
    """Keeps draws and traces."""

    def __init__(self, model: Model, step: int, targets: Targets | None) -> None:
        self._model, self._step, self._targets = model, step, targets
        self._kept: dict[str, list[list[Any]]] = {}
        self._log_likelihood: list[list[float]] = []
        self._predictions: list[list[FloatArray]] = []
        self.probes = Probes.random(model.shape, N_PROBES, seed=0)

    KEPT = ("_kept", "_log_likelihood", "_predictions")

    def kept(self) -> dict[str, Any]:
        """Return all that was recorded, for a checkpoint."""
        own = {name: getattr(self, name) for name in self.KEPT}
        targets = None if self._targets is None else self._targets.kept()
        return own | {"targets": targets}

    def restore(self, kept: dict[str, Any]) -> None:
        """Set what `kept` has returned."""
        targets = kept.pop("targets")
        vars(self).update(kept)
        if self._targets is not None:
            vars(self._targets).update(targets)

    def begin(self, chain: int) -> None:
        """Begin to record another chain."""
        self._log_likelihood.append([])
        self._predictions.append([])
        for lists in self._kept.values():
            lists.append([])

    def record(self, state: ChainState, number: int) -> None:
        """Record a sweep; `number` counts from 1 after the tuning."""
        if number < 1:
            return
        self._log_likelihood[-1].append(state.log_likelihood)
        model, vectors, probes = self._model, (state.rows, state.columns), self.probes
        products = model.at(*vectors, probes.rows, probes.columns)
        self._predictions[-1].append(model.pair.nonlinearity(products))
        if (targets := self._targets) is not None:
            targets.add(model.at(*vectors, targets.rows, targets.columns), state.rho)
        if number % self._step == 0:
            self._keep(state)

    def end(self, state: ChainState) -> None:
        """End a chain; the last state is kept if nothing else is."""
        if not self._kept or not self._kept["rows"][-1]:
            self._keep(state)

    def _keep(self, state: ChainState) -> None:
        draw: dict[str, Any] = {
            "rows": state.rows.astype(np.float32),
            "columns": state.columns.astype(np.float32),
            "rho": state.rho,
            "beta": state.beta,
            "row_means": state.row_prior.mean.copy(),
            "row_precisions": state.row_prior.precision.copy(),
        }
        if state.cuts is not None:
            draw["cut_points"] = state.cuts.ends[1:-1].copy()
        for name, array in draw.items():
            chains = self._kept.setdefault(name, [[] for _ in self._log_likelihood])
            chains[-1].append(array)

    def draws(self) -> Draws:
        """Return the draws; a chain that ended early is left out if the others lose more by it."""
        kept, n_chains = self._kept, len(self._log_likelihood)
        lengths = [len(chain) for chain in kept["rows"]]
        if n_chains > 1 and (n_chains - 1) * min(lengths[:-1]) > n_chains * lengths[-1]:
            n_chains -= 1
        fewest = min(lengths[:n_chains])
        sweeps_done = min(map(len, self._log_likelihood[:n_chains]))
        arrays: dict[str, Any] = {
            name: np.stack([np.stack(chain[-fewest:]) for chain in chains[:n_chains]])
            for name, chains in kept.items()
        }
        log_likelihood, predictions = (
            [chain[:sweeps_done] for chain in trace[:n_chains]]
            for trace in (self._log_likelihood, self._predictions)
        )
        return Draws(
            **{"cut_points": None} | arrays,
            log_likelihood=np.array(log_likelihood),
            predictions=np.array(predictions, dtype=np.float32).reshape(
                n_chains, sweeps_done, N_PROBES
            ),
            probes=self.probes,
            step=self._step,
            targets=self._targets,
        )
