"""The best rows of W for new rows of X, with H fixed.

With H fixed the rows of X do not depend on one another.  Each is a small problem of its own,

    minimise over w   Σ over the row's entries of weight · d(x, f(w·h + base)) + alpha/2 ‖w‖²,

solved by the T- and U-update of `nmd_lab.solver.split_variable` and the w-step of
`nmd_lab.solver.observed_sweep`.  A row has its own ρ and its own end, so its result does not depend
on the rows that come with it.  For sparse zeros see `nmd_lab.solver.zeros.new_rows`.

Unless f is the identity, the problem is not convex.  A row therefore starts several times, from the
least-squares fit to the starting T and from random w, and only the best start continues.  ρ doubles
whenever the objective makes no progress, which ends the cycles that a small ρ allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import check_size
from nmd_lab._threads import all_threads
from nmd_lab.data.base import CsrRows, EntryLimits, FloatArray, IntArray, Observations
from nmd_lab.data.row_blocks import nonzero_rows
from nmd_lab.model.mixed import AnyPair, MixedPair
from nmd_lab.model.proximal import Pair

from .constraints.base import FactorConstraint, couples_rows
from .constraints.new_rows import ConstrainedRows
from .penalty import BALANCED
from .row_kernel import row_kernel
from .scaling import Scaling, scaling_for
from .zeros.new_rows import ZeroRows, handles_rows

RANDOM_STARTS = 8  # of a row, in addition to one of least squares, if the problem is not convex
BLOCK_ENTRIES = 1 << 16  # stored entries of the rows that a thread solves at a time
BATCH_ENTRIES = 1 << 22  # entries of WH of these rows with implicit zeros: 32 MiB of doubles


@dataclass(frozen=True)
class RowProblem:
    """The parts of a fitted model that determine new rows of W.

    Attributes
    ----------
    pair : Pair or MixedPair
        Nonlinearity and loss.
    Ht : ndarray (n, rank)
        Transpose of H.
    base : ndarray (n,)
        Mean and column offsets, added to WH inside f.
    columns : ndarray of int
        Row of `Ht` for each column of the new rows.
    row_offsets : bool
        Whether a new row has an offset of its own.
    alpha, offset_alpha, epsilon : float
        Ridges of factors and offsets in the objective, and relative ridge that keeps the steps
        solvable.
    constraint : FactorConstraint or None
        Constraint on the rows of W.  Orthonormal columns say nothing of single rows.
    absent_are_zeros : bool
        Whether the fit has sparse zeros, so that most entries of new rows are zeros, too.
    """

    pair: AnyPair
    Ht: FloatArray
    base: FloatArray
    columns: NDArray[np.intp]
    row_offsets: bool
    alpha: float
    offset_alpha: float
    epsilon: float
    constraint: FactorConstraint | None = None
    absent_are_zeros: bool = False


def solve_new_rows(
    problem: RowProblem,
    observations: Observations,
    *,
    tol: float = 1e-8,
    max_iter: int = 2000,
    threads: int | None = None,
) -> tuple[FloatArray, FloatArray | None]:
    """Return W (m, rank) of new rows, and their offsets (m,) if the model has row offsets."""
    pair, Ht, base = problem.pair, np.asarray(problem.Ht, dtype=np.float64), problem.base
    sizes = [np.abs(x).max() for x, _ in observations.observed_blocks() if x.size]
    check_size("X", float(max(sizes, default=0)), observations.dtype)
    ones = math.sqrt(np.mean(Ht * Ht)) or 1.0
    if problem.row_offsets:
        Ht = np.hstack([np.full((Ht.shape[0], 1), ones), Ht])
    epsilon = max(problem.epsilon, np.finfo(float).eps)
    n_starts = 0 if pair.nonlinearity.linear else RANDOM_STARTS
    starts = np.random.default_rng(0).standard_normal((n_starts, Ht.shape[1]))
    W = np.empty((observations.shape[0], Ht.shape[1]))
    constraint = None if couples_rows(problem.constraint) else problem.constraint
    if constraint is not None and isinstance(pair, MixedPair):
        raise ValueError(
            f"w_constraint={constraint!r} does not go with new rows of mixed columns: fit them."
        )

    complete = observations.n_observed == math.prod(observations.shape)
    plain = complete and observations.limits is None and observations.weights is None
    with_zeros = problem.absent_are_zeros and plain and constraint is None and handles_rows(pair)

    def solve_block(block: slice) -> None:
        if with_zeros:
            W[block] = _solve_zeros(problem, Ht, epsilon, nonzero_rows(observations, block))
            return
        own = _in_own_order(observations.csr_rows(block), problem.columns)
        for chosen, scaling, rows in rows_by_unit(own, pair):
            scaled, size = scaling.scaled_pair(), scaling.exponent
            indptr, indices, x, weights, limits = rows
            marks, t = _marks(limits, indices, x, pair), _starting_T(scaled, x, indices)
            H, offset = np.ldexp(Ht, -size), np.ldexp(base, -2 * size)
            ridge = epsilon * float(np.sum(H * H))
            alphas = np.full(H.shape[1], scaling.scaled_alpha(problem.alpha))
            if problem.row_offsets:
                constant = math.ldexp(ones, -size)
                alphas[0] = scaling.scaled_offset_alpha(problem.offset_alpha, constant)
            if constraint is not None:
                own_rows = ConstrainedRows(scaling, H, offset, alphas, ridge, constraint)
                found = own_rows.solve(rows, problem.Ht.shape[1])
                W[block][chosen] = np.ldexp(found, size)
                continue
            rule = (ridge, alphas, BALANCED.initial, BALANCED.factor, BALANCED.step)
            found = np.zeros((indptr.size - 1, Ht.shape[1]))  # the kernel multiplies it by 0
            entries = (indptr, indices, x, weights, *marks, t)
            kernel = row_kernel(pair, limits is not None)
            kernel(*entries, H, offset, starts, rule, tol, max_iter, scaled.model, found)
            W[block][chosen] = np.ldexp(found, size)

    entries = BATCH_ENTRIES if with_zeros else BLOCK_ENTRIES
    with ThreadPoolExecutor(threads or all_threads()) as pool:
        list(pool.map(solve_block, _blocks(observations, entries)))
    W[:, 0] *= ones if problem.row_offsets else 1.0
    W = W.astype(problem.Ht.dtype)
    return (W[:, 1:], W[:, 0]) if problem.row_offsets else (W, None)


def _solve_zeros(
    problem: RowProblem, Ht: FloatArray, epsilon: float, rows: CsrRows
) -> NDArray[np.float64]:
    """Return W of rows whose entries are zeros but for the given ones."""
    W = np.empty((rows.indptr.size - 1, Ht.shape[1]))
    for chosen, scaling, own in rows_by_unit(rows, problem.pair):
        pair, H = scaling.scaled_pair(), np.ldexp(Ht[problem.columns], -scaling.exponent)
        assert isinstance(pair, Pair)
        alpha, ridge = scaling.scaled_alpha(problem.alpha), epsilon * float(np.sum(H * H))
        W[chosen] = np.ldexp(ZeroRows(pair, H, alpha, ridge).solve(own), scaling.exponent)
    return W


def _marks(
    limits: EntryLimits | None, columns: IntArray, x: NDArray[np.float64], pair: AnyPair
) -> tuple[NDArray[np.int8], NDArray[np.float64], IntArray]:
    """Return limit, upper value and part of each entry."""
    codes = np.zeros(x.size, np.int8) if limits is None else limits.codes
    uppers = x if limits is None or limits.uppers is None else limits.uppers
    parts = np.zeros(x.size, np.int64)
    if isinstance(pair, MixedPair):
        parts = pair.which[columns].astype(np.int64)
    return codes, np.asarray(uppers, dtype=np.float64), parts


def _starting_T(pair: AnyPair, x: NDArray[np.float64], columns: IntArray) -> NDArray[np.float64]:
    """Return the starting T of entries."""
    if isinstance(pair, MixedPair):
        return pair.preimage(x, columns=columns).astype(np.float64)
    return np.asarray(pair.preimage(x), dtype=np.float64)


def _in_own_order(rows: CsrRows, columns: NDArray[np.intp]) -> CsrRows:
    """Return rows with the columns of H, ascending, so that the order of X changes no bit."""
    indices = columns[rows.indices]
    if np.all(columns[1:] > columns[:-1]):
        return rows._replace(indices=indices)
    order = np.lexsort((indices, np.repeat(np.arange(rows.indptr.size - 1), np.diff(rows.indptr))))
    limits = None if rows.limits is None else rows.limits.at(order)
    return CsrRows(rows.indptr, indices[order], rows.values[order], rows.weights[order], limits)


def rows_by_unit(
    rows: CsrRows, pair: AnyPair
) -> Iterator[tuple[slice | NDArray[np.bool_], Scaling, CsrRows]]:
    """Yield the rows that share a unit, so that a result does not depend on the other rows."""
    lengths, magnitudes = np.diff(rows.indptr), np.abs(rows.values)
    largest = np.zeros(lengths.size)
    if magnitudes.size:
        filled = lengths > 0
        largest[filled] = np.maximum.reduceat(magnitudes, rows.indptr[:-1][filled])
    scalings = [scaling_for(pair, size) for size in largest.tolist()]
    exponents = np.array([scaling.exponent for scaling in scalings])
    if not exponents.any():
        yield slice(None), Scaling(pair), rows
        return
    for exponent in np.unique(exponents).tolist():
        scaling, chosen = Scaling(pair, exponent=exponent), exponents == exponent
        keep = np.repeat(chosen, lengths)
        indptr = np.append(0, np.cumsum(lengths[chosen]))
        x = np.ldexp(rows.values[keep], -scaling.of_X)
        limits = None
        if rows.limits is not None:
            unit = -scaling.of_X
            limits = rows.limits.at(keep).mapped(partial(_times, unit))
        yield chosen, scaling, CsrRows.of(indptr, rows.indices[keep], x, rows.weights[keep], limits)


def _times(exponent: int, values: FloatArray) -> FloatArray:
    """Return values times a power of two."""
    return np.ldexp(values, exponent)


def _blocks(observations: Observations, entries: int) -> Iterator[slice]:
    """Yield ranges of rows with about as many entries as a block may have."""
    m = observations.shape[0]
    rows = max(1, min(m, entries * m // max(observations.n_observed, 1)))
    for start in range(0, m, rows):
        yield slice(start, min(start + rows, m))
