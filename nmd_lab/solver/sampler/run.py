"""The chains of a posterior: the state with which each begins, their run, and the draws it keeps.

A chain begins at singular vectors, at a short fit, or at a given fit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

from nmd_lab._runtime.checks import new_stream
from nmd_lab._runtime.progress import Interruption, StopReason
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import BLOCK, Observations
from nmd_lab.solver.formulation import make_problem
from nmd_lab.solver.initialization import svd_by_random_range
from nmd_lab.solver.loop import Stopping, loop
from nmd_lab.solver.lowrank import RowBlocks
from nmd_lab.solver.options import Options, SampleOptions
from nmd_lab.solver.starts import first_start
from nmd_lab.solver.storage import CsrStorage, DenseStorage

from .chain import Chain, ChainStart, Draw
from .cut_points import CutPoints
from .latent_sweep import ChainState
from .problem import SampledProblem
from .row_updates import BLOCK_ROWS

FLOAT32_RANGE = 60
"""Logarithm to base 2 of a unit up to which draws are kept in float32."""


N_PROBES = 200
"""Number of entries whose predictions are recorded."""

SMALL = 0.1
"""Size of random factors, in units of the prior."""

SHRUNK = 0.3
"""Size of the first W and H, as a share of the singular vectors, for few data with many missing
cells.

There a chain leaves small components faster than large ones that have fitted noise; with many data
it is the other way round."""

FEW = 1 << 18
"""Number of entries that counts as few."""


class Sweep(NamedTuple):
    """State of a chain after a sweep, for a callback.

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
        observations: Observations,
        options: SampleOptions,
        state: PosteriorState,
        rng: np.random.Generator,
    ) -> None:
        self._problem, self._observations, self._options = problem, observations, options
        self._engine, self._state = Chain(), state
        self._streams = [new_stream(rng) for _ in range(options.chains)]
        self._tune, self._thin = options.tune or 0, options.step(problem.numbers)
        probes = np.random.default_rng(0)
        self._probes = tuple(probes.integers(size, size=N_PROBES) for size in problem.shape)
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
            start = self._problem, self._observations, self._options.init, tune
            now.chain = first_chain(*start, self._streams[number])
            for each in (now.draws, now.log_likelihood, now.products):
                each.append([])
        state = now.chain = self._engine.step(self._problem, now.chain)
        now.iteration += 1
        if before >= tune:
            self._record(state, before + 1 - tune)
        now.seconds = time.perf_counter() - self._began
        done = Sweep(number, before + 1, before < tune, state.log_likelihood, now.seconds)
        return rules.reason(done, now.iteration), f"log-likelihood {state.log_likelihood:.4g}"

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


def in_units_of_X(drawn: dict[str, Any], problem: SampledProblem) -> dict[str, Any]:
    """Return the arrays of a `Posterior`, in the units of X, given those of the chains."""
    rank, scaling = problem.rank, problem.units_of_X
    of_T = 2 * scaling.exponent
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


def first_chain(
    problem: SampledProblem,
    observations: Observations,
    init: Any,
    tune: int,
    rng: np.random.Generator,
) -> ChainState:
    """Return the state of a chain before its first sweep; `init` is a name or a fit."""
    seed, is_name = int(rng.integers(2**62)), isinstance(init, str)
    factors = _first_factors(problem, observations, init if is_name else "random", rng)
    if not is_name:
        factors = _factors_of_fit(problem, init, *factors)
    state = Chain().init(problem, ChainStart(*factors, seed, tune))
    for k, kind in enumerate(problem.model.kinds):
        if not kind.loss.noise_model.shape:  # β is 1 in the units of X
            of_objective = problem.units_of_X.of_objective
            state.beta[problem.levels_of(k)] = math.ldexp(1.0, of_objective)
    return state


def _factors_of_fit(
    problem: SampledProblem, fit: Any, rows: FloatArray, columns: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return vectors of rows and columns with factors and offsets of a fit in them."""
    (W, H), rank, exponent = fit._factors, problem.rank, problem.units_of_X.exponent
    of_rows, of_columns = fit.offsets.rows, fit.offsets.columns
    rest = fit.offsets.mean - np.ldexp(problem.mean, 2 * exponent)
    if of_rows is not None:
        of_rows = of_rows + rest
    elif of_columns is not None:
        of_columns = of_columns + rest
    for vectors, factor, offsets in ((rows, W, of_rows), (columns, H.T, of_columns)):
        vectors[:, :rank] = np.ldexp(factor, -exponent)
        if vectors.shape[1] > rank:
            vectors[:, rank] = 0 if offsets is None else np.ldexp(offsets, -2 * exponent)
    return rows, columns


def _first_factors(
    problem: SampledProblem, observations: Observations, init: str, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the vectors of rows and columns with which a chain begins; offsets are zero."""
    (m, n), rank, dtype = problem.shape, problem.rank, problem.dtype
    few = 3 * problem.n_entries < m * n
    if init == "auto":
        init = "fit" if problem.model.even else "svd"
    units = problem.units
    rows, columns = np.zeros((m, units[0].size), dtype), np.zeros((n, units[1].size), dtype)
    if init == "random":
        for vectors, unit in zip((rows, columns), units, strict=True):
            vectors[:] = SMALL * unit * rng.standard_normal(vectors.shape)
        return rows, columns
    if init == "svd":
        fill = 0.0 if problem.mean or problem.n_entries == m * n else problem.mean_of_T
        T = _starting_T(problem).astype(np.float64, copy=False)
        T = T - (problem.mean + fill)
        W, H = svd_by_random_range(_as_operator(problem, T, fill), rank, rng)
        if few and problem.n_entries < FEW:
            W, H = SHRUNK * W, SHRUNK * H
    else:
        options, of_X = Options(random_state=rng).settled(), problem.units_of_X
        fit = make_problem(observations, of_X, options, observed_only=few)
        start = first_start(fit, rank, options, rng)
        W, H = start.W, start.H
    rows[:, :rank], columns[:, :rank] = W, H.T
    return rows, columns


def _starting_T(problem: SampledProblem) -> FloatArray:
    """Return T = f⁻¹(X) without units at the entries; for ordered levels, their scores."""
    T = np.empty_like(problem.values)
    kinds = zip(problem.model.kinds, problem.levels, problem.entries_of_kinds, strict=True)
    for kind, levels, at in kinds:
        x = problem.values[at]
        if levels is None:
            T[at] = kind.pseudo_inverse(x)
        else:
            T[at] = CutPoints.first(levels.counts).scores()[x.astype(np.intp)]
    return T


def _as_operator(problem: SampledProblem, values: FloatArray, fill: float) -> LinearOperator:
    """Return numbers at the entries, 0 elsewhere, plus a number, as a linear operator."""
    storage, shape = problem.storage, problem.shape
    matrix: Any = values.reshape(shape) if isinstance(storage, DenseStorage) else None
    if isinstance(storage, CsrStorage):
        matrix = csr_array((values, storage.indices, storage.indptr), shape=shape)
    rows = max(BLOCK_ROWS, 1 << (max(BLOCK // shape[1], 1).bit_length() - 1))
    entries = RowBlocks(matrix, fill, rows)

    def times(V: FloatArray) -> FloatArray:
        return entries.product(np.ascontiguousarray(V))

    def transposed_times(V: FloatArray) -> FloatArray:
        return entries.transposed_product(np.ascontiguousarray(V))

    both = {"matvec": times, "rmatvec": transposed_times}
    more = {"matmat": times, "rmatmat": transposed_times}
    return LinearOperator(shape, **both, **more, dtype=np.float64)
