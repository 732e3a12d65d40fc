"""The best rows of W for new rows of X, with H fixed.

With H fixed the rows of X do not depend on one another.  Each is a small problem of its own,

    minimise over w   Σ over the row's entries of weight · d(x, f(w·h + base)) + alpha/2 ‖w‖²,

so that its result does not depend on the rows that come with it.  It is solved by the iteration of
a fit: the T- and U-update, and the w-step, in one compiled loop (`nmd_lab.solver.row_kernel`).
Under a constraint the w-step is that of a fit (`nmd_lab.solver.constraints.new_rows`), and sparse
zeros have the envelope of a fit to them (`nmd_lab.solver.zeros.zero_rows`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_size
from nmd_lab._runtime.machine import all_threads
from nmd_lab.data.entries import CsrRows, FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.data.split import nonzero_rows
from nmd_lab.model.fitted_values import RowModel

from .constraints.base import couples_rows
from .constraints.factor_constraints import constraint_from
from .constraints.new_rows import solve_constrained
from .row_kernel import solve_free
from .unit_rows import UnitRows, rows_by_unit
from .zeros.zero_rows import handles_rows, solve_zeros

BLOCK_ENTRIES = 1 << 16  # stored entries of the rows that a thread solves at a time
BATCH_ENTRIES = 1 << 22  # entries of WH of these rows with implicit zeros: 32 MiB of doubles


def solve_new_rows(
    fitted: RowModel,
    observations: Observations,
    columns: NDArray[np.intp],
    *,
    threads: int | None = None,
) -> tuple[FloatArray, FloatArray | None]:
    """Return W (m, rank) of new rows, and their offsets (m,) if the fit has row offsets.

    `columns` has the position in H of each column of the new rows.
    """
    model, (rank, n), has_offsets = fitted.model, fitted.H.shape, fitted.offsets.rows is not None
    sizes = [np.abs(x).max() for x, _ in observations.observed_blocks() if x.size]
    check_size("X", float(max(sizes, default=0)), observations.dtype)
    constraint = constraint_from(fitted.constraint)
    constraint = None if couples_rows(constraint) else constraint  # it says nothing of single rows
    complete = observations.n_observed == math.prod(observations.shape)
    plain = complete and observations.limits is None and observations.weights is None
    zeros = fitted.absent_are_zeros and plain and constraint is None and handles_rows(model)

    Ht = np.ascontiguousarray(fitted.H.T, dtype=np.float64)
    ones = math.sqrt(np.mean(Ht * Ht)) or 1.0
    Ht = np.hstack([np.full((n, 1), ones), Ht]) if has_offsets else Ht[columns] if zeros else Ht
    base = fitted.offsets.mean + fitted.offsets.of_columns(n, float) + np.zeros(n)
    epsilon = max(fitted.epsilon, np.finfo(float).eps)
    W = np.empty((observations.shape[0], Ht.shape[1]))

    def solve_block(block: slice) -> None:
        if zeros:
            entries = nonzero_rows(observations, block)
        else:
            entries = _in_order_of_H(observations.csr_rows(block), columns)
        for chosen, scaling, rows in rows_by_unit(entries, model):
            size = scaling.exponent
            H, offset = np.ldexp(Ht, -size), np.ldexp(base, -2 * size)
            alphas = np.full(H.shape[1], scaling.scaled_alpha(fitted.alpha))
            if has_offsets:
                constant = math.ldexp(ones, -size)
                alphas[0] = scaling.scaled_offset_alpha(fitted.offset_alpha, constant)
            ridge = epsilon * float(np.sum(H * H))
            unit = UnitRows(rows, scaling, H, offset, alphas, ridge, zeros)
            if zeros:
                found = solve_zeros(unit)
            elif constraint is not None:
                found = solve_constrained(unit, constraint, rank)
            else:
                found = solve_free(unit)
            W[block][chosen] = np.ldexp(found, size)

    most = BATCH_ENTRIES if zeros else BLOCK_ENTRIES
    with ThreadPoolExecutor(threads or all_threads()) as pool:
        list(pool.map(solve_block, _blocks(observations, most)))
    W[:, 0] *= ones if has_offsets else 1.0
    W = W.astype(fitted.H.dtype)
    return (W[:, 1:], W[:, 0]) if has_offsets else (W, None)


def _in_order_of_H(rows: CsrRows, columns: NDArray[np.intp]) -> CsrRows:
    """Return rows with the columns of H, ascending, so that the order of X changes no bit."""
    rows = rows._replace(indices=columns[rows.indices])
    if np.all(columns[1:] > columns[:-1]):
        return rows
    return rows.entries_at(np.lexsort((rows.indices, rows.row_of_entry)))


def _blocks(observations: Observations, entries: int) -> Iterator[slice]:
    """Yield ranges of rows with about as many entries as a block may have."""
    m = observations.shape[0]
    rows = max(1, min(m, entries * m // max(observations.n_observed, 1)))
    for start in range(0, m, rows):
        yield slice(start, min(start + rows, m))
