"""The state with which a chain begins, and whether groups of rows predict better than none.

Two short chains, with groups and without, predict cells that are hidden from both.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator
from scipy.special import ndtr

from nmd_lab._runtime.progress import Interruption
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import BLOCK, Observations
from nmd_lab.data.split import some_rows, split
from nmd_lab.model.censored import expected_value
from nmd_lab.model.mixed import each_group
from nmd_lab.solver.formulation import make_problem
from nmd_lab.solver.initialization import svd_by_random_range
from nmd_lab.solver.lowrank import RowBlocks
from nmd_lab.solver.options import Options
from nmd_lab.solver.scaling import Scaling
from nmd_lab.solver.starts import first_start
from nmd_lab.solver.storage import CsrStorage, DenseStorage

from .chain import Chain, ChainStart
from .cut_points import CutPoints, ends_in_rows
from .prepare import PreparedSample
from .problem import SampledProblem
from .row_updates import BLOCK_ROWS
from .sampled_model import SampleOptions
from .state import ChainState

SMALL = 0.1
"""Size of random factors, in units of the prior."""

SHRUNK = 0.3
"""Size of the first W and H, as a share of the singular vectors, for few data with many holes.

There a chain leaves small components faster than large ones that have fitted noise; with many data
it is the other way round."""

FEW = 1 << 18
"""Number of entries that counts as few."""


def first_chain(
    prepared: PreparedSample, engine: Chain, init: str, tune: int, rng: np.random.Generator
) -> ChainState:
    """Return the state of a chain before its first sweep."""
    problem, scaling = prepared.problem, prepared.scaling
    observations = scaling.scaled_observations(prepared.observations)
    seed = int(rng.integers(2**62))
    factors = first_factors(problem, observations, init, rng)
    state = engine.init(problem, ChainStart(*factors, seed, tune))
    for k, kind in enumerate(problem.model.kinds):
        if not kind.loss.noise_model.shape:  # β is 1 in the units of X
            state.beta[problem.levels_of(k)] = math.ldexp(1.0, scaling.of_objective)
    return state


def first_factors(
    problem: SampledProblem,
    observations: Observations,
    init: str,
    rng: np.random.Generator,
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
        T = _first_T(problem).astype(np.float64, copy=False)
        T = T - (problem.mean + fill)
        W, H = svd_by_random_range(_as_operator(problem, T, fill), rank, rng)
        if few and problem.n_entries < FEW:
            W, H = SHRUNK * W, SHRUNK * H
    else:
        options = Options(random_state=rng).settled()
        scaling = Scaling(problem.model)
        of_fit, offsets = make_problem(observations, scaling, options, observed_only=few)
        start = first_start(of_fit, offsets, rank, options, rng)
        W, H = start.W, start.H
    rows[:, :rank], columns[:, :rank] = W, H.T
    return rows, columns


def _first_T(problem: SampledProblem) -> FloatArray:
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


SHARE = 0.1
"""Share of the observed cells that are hidden from both chains."""

TUNE, DRAWS = 40, 40
"""Sweeps of each chain before those whose predictions are averaged, and number of these."""

ROWS, CELLS = 400, 40_000
"""Number of rows of the chains at most: as many as hold these cells, but at least these rows."""

SHARE_OF_TIME = 0.1
"""Share of a time limit that each chain may take."""


def choose_groups(
    prepared: PreparedSample,
    options: SampleOptions,
    rng: np.random.Generator,
    interruption: Interruption,
) -> PreparedSample:
    """Return a problem without its groups if hidden cells are predicted worse with them.

    Worse are larger squared errors, by more than their standard error over the hidden cells.
    """
    problem = prepared.problem
    if options.groups != "auto" or problem.n_groups == 1:
        return prepared
    most = max(ROWS, CELLS // problem.shape[1])
    observed, hidden = split(some_rows(prepared.observations, most, rng), SHARE, rng)
    seconds = SHARE_OF_TIME * (math.inf if options.time_limit is None else options.time_limit)
    seed = int(rng.integers(2**62))
    trial = prepared.of_entries(observed, options)
    without, within = (
        _errors(trial.with_groups(groups), hidden, seed, seconds, interruption)
        for groups in (1, problem.n_groups)
    )
    worse = within - without
    hurts = worse.sum() > worse.std() * np.sqrt(worse.size)
    return prepared.with_groups(1) if hurts else prepared


def _errors(
    prepared: PreparedSample,
    hidden: Observations,
    seed: int,
    seconds: float,
    interruption: Interruption,
) -> NDArray[np.float64]:
    """Return the squared error at each hidden entry, in units of the variance of its column."""
    problem, engine = prepared.problem, Chain()
    *at, x = prepared.scaling.scaled_observations(hidden).entries()
    rows, columns = (each.astype(np.intp) for each in at)
    rng, began = np.random.default_rng(seed), time.perf_counter()
    state = first_chain(prepared, engine, "auto", TUNE, rng)
    total, count = np.zeros(x.size), 0
    for sweep in range(TUNE + DRAWS):
        state = engine.step(problem, state)
        if sweep >= TUNE:
            total += _expected_at(problem, state, rows, columns)
            count += 1
        if interruption or time.perf_counter() - began > seconds:
            break
    errors: NDArray[np.float64] = np.square(
        (total / max(count, 1) - x) / problem.prior.spreads_of_X[columns]
    )
    return errors


def _expected_at(
    problem: SampledProblem,
    state: ChainState,
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Return the expected X at some entries of a table, given W and H."""
    products = problem.at(state.rows, state.columns, rows, columns).astype(np.float64)
    value = np.empty(products.size)
    for _, at in each_group(_first_alike(problem)[columns], problem.shape[1]):
        value[at] = _expected(problem, state, columns[at], products[at])
    return value


def _first_alike(problem: SampledProblem) -> NDArray[np.intp]:
    """Return the first column with the same levels for each column; a number has itself."""
    first: dict[Any, int] = {}
    kinds = enumerate(problem.model.kinds)
    keys = [
        np.asarray(k.loss.level_values).tobytes() if k.loss.classes == "ordered" else j
        for j, k in kinds
    ]
    return np.array([first.setdefault(key, j) for j, key in enumerate(keys)])


def _expected(
    problem: SampledProblem,
    state: ChainState,
    kinds: NDArray[np.intp],
    WH: FloatArray,
) -> FloatArray:
    """Return the expected X, given WH with offsets, of a kind, or of several of the same levels."""
    k = int(kinds[0])
    kind, noise = problem.model.kinds[k], problem.noises[k]
    v: FloatArray = kind.centre + kind.size * WH
    if noise == "gaussian":
        return v
    if kind.loss.classes == "ordered":
        used, which = np.unique(kinds, return_inverse=True)
        ends = ends_in_rows([state.cuts[each] for each in used])[which]
        above = ndtr(v[:, None] - ends[:, 1:-1])  # probabilities of the levels above a cut point
        expected: FloatArray = kind.loss.level_values[0] + above @ np.diff(kind.loss.level_values)
        return expected
    rho = state.rho[problem.levels_of(k)] / kind.size**2
    return expected_value(kind.nonlinearity, v, 1 / np.sqrt(rho))
