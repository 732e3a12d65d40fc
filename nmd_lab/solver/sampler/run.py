"""All chains of a posterior, with what is recorded after each sweep."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._interruption import Interruption
from nmd_lab._stop_reason import StopReason
from nmd_lab.data.base import FloatArray
from nmd_lab.solver.loop import loop

from .chain import sweep
from .cut_points import padded
from .draws import Draws, Probes
from .model import Model
from .options import SampleOptions
from .state import ChainState
from .targets import Moments, Targets
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


@dataclass
class Records:
    """What was recorded so far.

    Attributes
    ----------
    draws : dict of list of list of ndarray
        Draws of each chain, by their names.
    log_likelihood, predictions : list of list
        Those of each chain after each sweep that counts.
    moments : Moments or None
        Running moments of the targets.
    """

    draws: dict[str, list[list[Any]]] = field(default_factory=dict)
    log_likelihood: list[list[float]] = field(default_factory=list)
    predictions: list[list[FloatArray]] = field(default_factory=list)
    moments: Moments | None = None


@dataclass
class PosteriorState:
    """Where a posterior stands.

    Attributes
    ----------
    rng : Generator
        Random numbers, as they were before the first chain.
    chain : int
        Number of the present chain, from 0; -1 before the first.
    current : ChainState or None
        State of that chain.
    records : Records
        What was recorded.
    seconds : float
        Time so far.
    """

    rng: np.random.Generator
    chain: int = -1
    current: ChainState | None = None
    records: Records = field(default_factory=Records)
    seconds: float = 0.0


class Chains:
    """The chains of a posterior, one after the other."""

    def __init__(
        self,
        model: Model,
        work: Work,
        options: SampleOptions,
        tune: int,
        targets: Targets | None,
        state: PosteriorState,
    ) -> None:
        self._model, self._work, self._options, self._tune = model, work, options, tune
        self._recorder = Recorder(model, options.step(model.numbers), targets, state.records)
        self._state, self._total = state, tune + options.draws
        self._began = time.perf_counter() - state.seconds

    def run(
        self, starts: Iterator[ChainStart], interruption: Interruption, save: Callable[[], None]
    ) -> tuple[Draws, StopReason]:
        """Run the chains, and return the draws of those that were begun."""
        now = self._state
        for chain, start in enumerate(islice(starts, self._options.chains)):
            if chain < now.chain:
                continue
            first = start.state.sweep
            if now.current is None or chain > now.chain:
                now.chain, now.current = chain, start.state
                self._recorder.begin()
            reason = loop(
                partial(self._step, now.current, first, start.seed),
                self._total,
                done=now.current.sweep - first,
                unit="sweep",
                progress=self._options.progress,
                interruption=interruption,
                before_each=save,
            )
            self._recorder.end(now.current)
            if interruption and not interruption.reported:
                reason = interruption.reason(now.current.sweep - first)
            if reason.code != "draws":
                break
        return self._recorder.draws(), reason

    def _step(self, state: ChainState, first: int, seed: int) -> tuple[StopReason | None, str]:
        """Do one sweep, and return the reason to end with it, if any, and a text."""
        now, tune, number = self._state, self._tune, state.sweep + 1 - first
        sweep(self._model, self._work, state, seed, tune=number <= tune)
        self._recorder.record(state, number - tune)
        now.seconds = time.perf_counter() - self._began
        done = Sweep(now.chain, number, number <= tune, state.log_likelihood, now.seconds)
        return self._reason(done), f"log-likelihood {state.log_likelihood:.4g}"

    def _reason(self, done: Sweep) -> StopReason | None:
        """Return the reason to end after a sweep, or None."""
        options, limit = self._options, self._options.time_limit
        if options.callback is not None and options.callback(done):
            return StopReason("callback", f"callback: it asked to stop after sweep {done.sweep}")
        if limit is not None and done.seconds >= limit:
            where = f"after sweep {done.sweep} of chain {done.chain}"
            return StopReason("time_limit", f"time_limit: {limit:g} s are over {where}")
        if done.sweep < self._total:
            return None
        draws = f"{options.draws} sweeps after {self._tune} for tuning"
        return StopReason("draws", f"draws: all {draws} are done")


class Recorder:
    """Keeps draws and traces."""

    def __init__(self, model: Model, step: int, targets: Targets | None, now: Records) -> None:
        self._model, self._step, self._targets, self._now = model, step, targets, now
        if targets is not None and now.moments is not None:
            targets.now = now.moments
        elif targets is not None:
            now.moments = targets.now
        self.probes = Probes.random(model.shape, N_PROBES, seed=0)

    def begin(self) -> None:
        """Begin to record another chain."""
        self._now.log_likelihood.append([])
        self._now.predictions.append([])
        for lists in self._now.draws.values():
            lists.append([])

    def record(self, state: ChainState, number: int) -> None:
        """Record a sweep; `number` counts from 1 after the tuning."""
        if number < 1:
            return
        self._now.log_likelihood[-1].append(state.log_likelihood)
        model, vectors, probes = self._model, (state.rows, state.columns), self.probes
        products = model.at(*vectors, probes.rows, probes.columns)
        self._now.predictions[-1].append(model.pair.modelled(products, probes.rows, probes.columns))
        if (targets := self._targets) is not None:
            targets.add(model, state)
        if number % self._step == 0:
            self._keep(state)

    def end(self, state: ChainState) -> None:
        """End a chain; the last state is kept if nothing else is."""
        if not self._now.draws or not self._now.draws["rows"][-1]:
            self._keep(state)

    def _keep(self, state: ChainState) -> None:
        draw: dict[str, Any] = {
            "rows": state.rows.astype(np.float32),
            "columns": state.columns.astype(np.float32),
            "rho": state.rho.copy(),
            "beta": state.beta.copy(),
            "row_means": state.row_prior.mean.copy(),
            "row_precisions": state.row_prior.precision.copy(),
        }
        if any(state.cuts):
            draw["cut_points"] = padded(state.cuts)
        for name, array in draw.items():
            chains = self._now.draws.setdefault(name, [[] for _ in self._now.log_likelihood])
            chains[-1].append(array)

    def draws(self) -> Draws:
        """Return the draws; a chain that ended early is left out if the others lose more by it."""
        now, n_chains = self._now, len(self._now.log_likelihood)
        lengths = [len(chain) for chain in now.draws["rows"]]
        if n_chains > 1 and (n_chains - 1) * min(lengths[:-1]) > n_chains * lengths[-1]:
            n_chains -= 1
        fewest = min(lengths[:n_chains])
        sweeps_done = min(map(len, now.log_likelihood[:n_chains]))
        arrays: dict[str, Any] = {
            name: np.stack([np.stack(chain[-fewest:]) for chain in chains[:n_chains]])
            for name, chains in now.draws.items()
        }
        log_likelihood, predictions = (
            [chain[:sweeps_done] for chain in trace[:n_chains]]
            for trace in (now.log_likelihood, now.predictions)
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
