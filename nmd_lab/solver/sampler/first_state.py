"""The state with which a chain begins: at singular vectors, at a short fit, or at a given fit.

A chain with as many components as columns may begin at the columns: W is T, and H the identity.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import BLOCK, Observations
from nmd_lab.solver.initialization import svd_by_random_range
from nmd_lab.solver.lowrank import RowBlocks
from nmd_lab.solver.options import Options
from nmd_lab.solver.request import make_problem
from nmd_lab.solver.starts import first_start
from nmd_lab.solver.storage import CsrStorage, DenseStorage

from .chain import Chain, ChainStart
from .cut_points import CutPoints
from .latent_sweep import ChainState
from .problem import SampledProblem
from .row_updates import BLOCK_ROWS

SMALL = 0.1
"""Size of random factors, in units of the prior."""

SHRUNK = 0.3
"""Size of the first W and H, as a share of the singular vectors, for few data with many missing
cells.

There a chain leaves small components faster than large ones that have fitted noise; with many data
it is the other way round."""

COLUMNS = "columns"
"""Name of the start at the columns."""

PRECISION = 1000.0
"""First precision of the noise there, in units of the variance of a column: nearly all of T is
WH."""

FEW = 1 << 18
"""Number of entries that counts as few."""


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
    if is_name and init == COLUMNS:
        state.rho[:] = PRECISION / problem.prior.spread**2
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
    if init == COLUMNS:
        i = np.repeat(np.arange(m), np.diff(problem.starts))
        rows[i, problem.column_of] = _starting_T(problem)
        columns[:, :n] = np.eye(n)
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
    return RowBlocks(matrix, fill, rows).operator()
