"""The run of all chains of a posterior, one after the other, and the draws that they keep."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.progress import Interruption, StopReason
from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.engines.protocol import Engine
from nmd_lab.solver.loop import Stopping, loop
from nmd_lab.solver.scaling import Scaling

from .chain import Draw
from .problem import SampledProblem
from .sampled_model import SampleOptions
from .state import ChainState

FLOAT32_RANGE = 60
"""Logarithm to base 2 of a unit up to which draws are kept in float32."""


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
        rng = np.random.default_rng(0)
        self._probes = tuple(rng.integers(size, size=N_PROBES) for size in problem.shape)
        self._began = time.perf_counter() - state.seconds

    def run(
        self, interruption: Interruption, before_each: Callable[[], None]
    ) -> tuple[dict[str, Any], StopReason]:
        """Run the chains, and return the arrays of those that were begun, in their units."""
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
        now, problem = self._state, self._problem
        now.log_likelihood[-1].append(state.log_likelihood)
        now.products[-1].append(problem.at(state.rows, state.columns, *self._probes))
        if number % self._thin == 0:
            now.draws[-1].append(self._engine.iterate(problem, state))

    def _draws(self) -> dict[str, Any]:
        """Return the arrays of all draws; of a chain without any the last state.

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
        i, j = (np.tile(at, n_chains * sweeps) for at in self._probes)
        predictions = self._problem.model.modelled(products.ravel(), i, j)
        return arrays | {
            "log_likelihood": log_likelihood,
            "predictions": predictions.astype(np.float32).reshape(n_chains, sweeps, N_PROBES),
            "probe_rows": self._probes[0],
            "probe_columns": self._probes[1],
        }


def in_units_of_X(
    drawn: dict[str, Any], scaling: Scaling, problem: SampledProblem
) -> dict[str, Any]:
    """Return the arrays of a `Posterior`, in the units of X, given those of the chains."""
    rank, of_T = problem.rank, 2 * scaling.exponent
    # In float32 the units of very large or small data would overflow.
    dtype = np.float32 if abs(of_T) < FLOAT32_RANGE else np.float64

    def scaled(array: NDArray[Any], exponent: int) -> NDArray[Any]:
        return np.ldexp(array.astype(dtype, copy=False), exponent) if exponent else array

    arrays = drawn.copy()
    rows, columns = arrays.pop("rows"), arrays.pop("columns")
    units = np.ldexp(np.ones(rank + problem.row_offsets), scaling.exponent)
    units[rank:] = math.ldexp(1.0, of_T)
    kinds = zip(problem.noises, problem.model.kinds, strict=True)
    has_beta = any(noise == "after" and kind.loss.noise_model.shape > 0 for noise, kind in kinds)
    loss = problem.model.kinds[0].loss  # several kinds have no exponent
    levels: dict[str, Any] = {
        "rho": np.ldexp(arrays["rho"], -2 * of_T),
        "beta": np.ldexp(arrays["beta"], -loss.noise_model.power * scaling.of_X),
        "cut_points": arrays.get("cut_points"),
    }
    if not has_beta:
        levels["beta"] = None
    if not problem.by_column:
        levels = {name: None if a is None else a[:, :, 0] for name, a in levels.items()}
    arrays |= levels | {
        "W": scaled(rows[..., :rank], scaling.exponent),
        "H": scaled(columns[..., :rank], scaling.exponent),
        "mean": math.ldexp(problem.mean, of_T),
        "row_mean": arrays.pop("row_means") * units,
        "row_precision": arrays.pop("row_precisions") / np.outer(units, units),
        "predictions": np.ldexp(arrays["predictions"].astype(dtype), scaling.of_X),
    }
    if problem.row_offsets:
        arrays["row_offsets"] = scaled(rows[..., rank], of_T)
    if problem.column_offsets:
        arrays["column_offsets"] = scaled(columns[..., rank], of_T)
    return arrays
