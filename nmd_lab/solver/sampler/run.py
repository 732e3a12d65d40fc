"""The run of all chains of a posterior, one after the other, and what is recorded of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._runtime.progress import Interruption, StopReason
from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.engines.protocol import Engine
from nmd_lab.solver.loop import loop
from nmd_lab.solver.stopping import Stopping

from .chain import Draw
from .draws import Draws, Probes
from .options import SampleOptions
from .problem import SampledProblem
from .state import ChainState

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


@dataclass
class PosteriorState:
    """Where a posterior stands.

    Attributes
    ----------
    rng : Generator
        Random numbers, as they were before the first chain.
    chain : ChainState or None
        State of the present chain; None before the first.
    iteration, seconds : int, float
        Sweeps of all chains so far, and their time.
    draws : list of list of dict
        Draws of each chain.
    log_likelihood, products : list of list
        Log-likelihood, and WH with offsets at the probes, of each chain after each sweep that
        counts.
    """

    rng: np.random.Generator
    chain: ChainState | None = None
    iteration: int = 0
    seconds: float = 0.0
    draws: list[list[Draw]] = field(default_factory=list)
    log_likelihood: list[list[float]] = field(default_factory=list)
    products: list[list[FloatArray]] = field(default_factory=list)


class Chains:
    """The chains of a posterior, one after the other."""

    def __init__(
        self,
        problem: SampledProblem,
        engine: Engine[SampledProblem, Any, ChainState, Draw],
        begin: Callable[[int], ChainState],
        options: SampleOptions,
        state: PosteriorState,
    ) -> None:
        self._problem, self._engine, self._begin = problem, engine, begin
        self._options, self._state = options, state
        self._tune, self._thin = options.tune or 0, options.step(problem.numbers)
        self._probes = Probes.random(problem.shape, N_PROBES, seed=0)
        self._began = time.perf_counter() - state.seconds

    def run(
        self, interruption: Interruption, before_each: Callable[[], None]
    ) -> tuple[Draws, StopReason]:
        """Run the chains, and return the draws of those that were begun."""
        now, options = self._state, self._options
        total = options.chains * (self._tune + options.draws)
        text = f"draws: all {options.draws} sweeps after {self._tune} for tuning are done"
        enough = StopReason("draws", text)
        reason = loop(
            partial(self._step, Stopping(total, options.time_limit, options.callback, enough)),
            total,
            done=now.iteration,
            unit="sweep",
            progress=options.progress,
            interruption=interruption,
            before_each=before_each,
        )
        if interruption and not interruption.reported:
            reason = interruption.reason(now.iteration)
        return self._draws(), reason

    def _step(self, rules: Stopping) -> tuple[StopReason | None, str]:
        """Do one sweep, and return the reason to end with it, if any, and a text."""
        now, tune = self._state, self._tune
        number, before = divmod(now.iteration, tune + self._options.draws)
        if now.chain is None or before == 0:
            now.chain = self._begin(number)
            for each in (now.draws, now.log_likelihood, now.products):
                each.append([])
        state = now.chain = self._engine.step(self._problem, now.chain)
        now.iteration += 1
        if before >= tune:
            self._record(state, before + 1 - tune)
        now.seconds = time.perf_counter() - self._began
        done = Sweep(number, before + 1, before < tune, state.log_likelihood, now.seconds)
        reason = rules.reason(done, now.iteration) or self._engine.status(state)
        return reason, f"log-likelihood {state.log_likelihood:.4g}"

    def _record(self, state: ChainState, number: int) -> None:
        """Record a sweep; `number` counts from 1 after the tuning."""
        now, problem, i, j = self._state, self._problem, self._probes.rows, self._probes.columns
        now.log_likelihood[-1].append(state.log_likelihood)
        now.products[-1].append(problem.at(state.rows, state.columns, i, j))
        if number % self._thin == 0:
            now.draws[-1].append(self._engine.iterate(problem, state))

    def _draws(self) -> Draws:
        """Return the draws; of a chain without any the last state.

        A chain that ended early is left out if the others lose more by it.
        """
        now, n_chains = self._state, len(self._state.draws)
        if not now.draws[-1]:
            assert now.chain is not None
            now.draws[-1].append(self._engine.iterate(self._problem, now.chain))
        lengths = [len(chain) for chain in now.draws]
        if n_chains > 1 and (n_chains - 1) * min(lengths[:-1]) > n_chains * lengths[-1]:
            n_chains -= 1
        fewest = min(lengths[:n_chains])
        chains = [chain[-fewest:] for chain in now.draws[:n_chains]]
        arrays: dict[str, Any] = {
            name: np.stack([np.stack([draw[name] for draw in chain]) for chain in chains])
            for name in chains[0][0]
        }
        sweeps = min(map(len, now.log_likelihood[:n_chains]))
        log_likelihood, products = (
            np.array([chain[:sweeps] for chain in trace[:n_chains]])
            for trace in (now.log_likelihood, now.products)
        )
        i, j = (np.tile(at, n_chains * sweeps) for at in (self._probes.rows, self._probes.columns))
        predictions = self._problem.model.modelled(products.ravel(), i, j)
        return Draws(
            **{"cut_points": None} | arrays,
            log_likelihood=log_likelihood,
            predictions=predictions.astype(np.float32).reshape(n_chains, sweeps, N_PROBES),
            probes=self._probes,
            step=self._thin,
        )
