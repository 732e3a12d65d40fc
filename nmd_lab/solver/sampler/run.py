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


@dataclass(frozen=True)
class Probes:
    """Entries whose predictions are recorded after each sweep, to judge convergence.

    Attributes
    ----------
    rows, columns : ndarray of int (n_probes,)
        Positions.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]

    @classmethod
    def random(cls, shape: tuple[int, int], number: int, seed: int) -> Probes:
        """Return entries at random positions."""
        rng = np.random.default_rng(seed)
        return cls(rng.integers(shape[0], size=number), rng.integers(shape[1], size=number))


@dataclass
class Draws:
    """Draws of all chains, in the units of the sampler.

    Attributes
    ----------
    rows, columns : ndarray of float32 (chain, draw, m or n, d)
        Vectors of rows and columns.
    rho, beta : ndarray (chain, draw, n_levels)
        Precisions of the noise of all entries, or of each column.
    row_means, row_precisions : ndarray (chain, draw, n_groups, d) and (chain, draw, n_groups, d, d)
        Priors of the rows, for new rows.
    cut_points : ndarray (chain, draw, n_kinds, n_levels - 1) or None
        Cut points of each kind, NaN where it has fewer; None without levels.
    log_likelihood : ndarray (chain, sweep)
        Log-likelihood after each sweep that is not for tuning.
    predictions : ndarray (chain, sweep, n_probes)
        f(WH) at the probes.
    probes : Probes
        Entries of `predictions`.
    step : int
        Number of sweeps from one draw to the next.
    row_share, row_group, group_scale, group_strength : ndarray or None
        Shares of the groups of rows (chain, draw, n_groups), the groups (chain, draw, m), and what
        they have in common (chain, draw, d, d) and (chain, draw); None for one group.
    """

    rows: NDArray[np.float32]
    columns: NDArray[np.float32]
    rho: NDArray[np.float64]
    beta: NDArray[np.float64]
    row_means: NDArray[np.float64]
    row_precisions: NDArray[np.float64]
    cut_points: NDArray[np.float64] | None
    log_likelihood: NDArray[np.float64]
    predictions: FloatArray
    probes: Probes
    step: int
    row_share: NDArray[np.float64] | None = None
    row_group: NDArray[np.int16] | None = None
    group_scale: NDArray[np.float64] | None = None
    group_strength: NDArray[np.float64] | None = None

    def in_units_of_X(self, scaling: Scaling, problem: SampledProblem) -> dict[str, Any]:
        """Return the arrays of a `Posterior`, in the units of X."""
        rank, of_T = problem.rank, 2 * scaling.exponent
        # In float32 the units of very large or small data would overflow.
        dtype = np.float32 if abs(of_T) < FLOAT32_RANGE else np.float64

        def scaled(array: NDArray[Any], exponent: int) -> NDArray[Any]:
            return np.ldexp(array.astype(dtype, copy=False), exponent) if exponent else array

        units = np.ldexp(np.ones(rank + problem.row_offsets), scaling.exponent)
        units[rank:] = math.ldexp(1.0, of_T)
        has_beta = [
            noise == "after" and kind.loss.noise_model.shape > 0
            for noise, kind in zip(problem.noises, problem.model.kinds, strict=True)
        ]
        loss = problem.model.kinds[0].loss  # several kinds have no exponent
        of_levels = -2 * of_T, -loss.noise_model.power * scaling.of_X
        rho: Any = np.ldexp(self.rho, of_levels[0])
        beta: Any = np.ldexp(self.beta, of_levels[1]) if any(has_beta) else None
        cuts: Any = self.cut_points
        if not problem.by_column:
            rho, beta, cuts = (
                None if each is None else each[:, :, 0] for each in (rho, beta, cuts)
            )
        return {
            "W": scaled(self.rows[..., :rank], scaling.exponent),
            "H": scaled(self.columns[..., :rank], scaling.exponent),
            "row_offsets": scaled(self.rows[..., rank], of_T) if problem.row_offsets else None,
            "column_offsets": (
                scaled(self.columns[..., rank], of_T) if problem.column_offsets else None
            ),
            "mean": math.ldexp(problem.mean, of_T),
            "rho": rho,
            "beta": beta,
            "cut_points": cuts,
            "row_mean": self.row_means * units,
            "row_precision": self.row_precisions / np.outer(units, units),
            "row_share": self.row_share,
            "row_group": self.row_group,
            "group_scale": self.group_scale,
            "group_strength": self.group_strength,
            "log_likelihood": self.log_likelihood,
            "predictions": np.ldexp(self.predictions.astype(dtype), scaling.of_X),
        }


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
