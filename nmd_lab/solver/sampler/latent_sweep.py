"""The state of a chain, and its draw of T at all stored entries.

Entries of one kind are drawn by blocks of rows.  In a table of several kinds the columns of each
kind are drawn together, in the units of their kind and each with its noise levels, by the same
compiled loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.storage import Block

from .cut_points import CutPoints, ends_in_rows
from .latent_draws import Segments, latent_kernel
from .priors import NO_PRIOR, Groups, RowPrior
from .problem import SampledProblem
from .row_updates import each_share
from .streams import NO_KEYS

Doubles = NDArray[np.float64]


@dataclass
class ChainState:
    """All that the next sweep depends on.

    Attributes
    ----------
    rows, columns : ndarray (m, rank [+ 1]) and (n, rank [+ 1])
        Vectors of the rows of X and of its columns: components, and the offset if there is one.
    rho, beta : ndarray (n_levels,)
        Precisions of the noise before f and after it, of all entries or of each column.
    T : ndarray (n_entries,) or None
        T at the stored entries, with the units of its kind; None if it is X itself.
    seed : int
        Seed of its random numbers.
    tuning : int
        Number of further sweeps in which the step widths of cut points are tuned.
    sweep : int
        Number of sweeps so far.
    row_prior, column_prior : RowPrior
        Priors of the rows and of the columns.
    groups : Groups or None
        Groups of the rows; None before the first sweep, or if there is one.
    x : ndarray (n_entries,) or None
        X at the stored entries, drawn where only limits are known; None if all values are known.
    cuts : list of CutPoints or None
        Cut points of each kind, None for a kind without levels.
    log_likelihood : float
        Log-likelihood of the data given T and of T given WH, up to a constant; for three or
        more ordered levels that of the levels given WH.
    """

    rows: FloatArray
    columns: FloatArray
    rho: NDArray[np.float64]
    beta: NDArray[np.float64]
    T: FloatArray | None
    seed: int = 0
    tuning: int = 0
    sweep: int = 0
    row_prior: RowPrior = NO_PRIOR
    column_prior: RowPrior = NO_PRIOR
    groups: Groups | None = None
    cuts: list[CutPoints | None] = field(default_factory=lambda: [None])
    x: FloatArray | None = None
    log_likelihood: float = math.nan


def draw_T(problem: SampledProblem, state: ChainState) -> Doubles:
    """Draw T in place, and return sums of the weighted losses at f(T) that have the same noise."""
    losses = np.zeros(problem.shape[problem.by_column])
    if state.T is None:  # X itself
        return losses[:1]
    if problem.by_column:
        _draw_columns(problem, state, state.T, losses)
        return losses
    segments = problem.segments[0]
    x = segments.x if state.x is None else state.x
    draw = _loop(problem, state, segments, x, state.T, losses)
    A, B = problem.augmented(state.rows, state.columns)

    def block(here: Block) -> None:
        draw(problem.products(A, B, here), here.rows.start, here.rows.stop)

    problem.each_block(block)
    return np.array([losses.sum()])


def _draw_columns(
    problem: SampledProblem, state: ChainState, T: FloatArray, losses: Doubles
) -> None:
    """Draw T of each column in its units."""
    products = all_products(problem, state) if problem.segments else T
    for each in problem.segments:
        at, V, of_columns = each.entries, products.take(each.entries), np.zeros(len(each.kinds))
        x = each.x if state.x is None else state.x.take(at)
        T_here = np.empty_like(x)  # of levels, whatever it was
        if each.units:
            centre, size = each.units
            T_here, V = T.take(at), centre + size * V
        draw = _loop(problem, state, each, x, T_here, of_columns)

        def share(first: int, last: int, draw=draw, V=V, starts=each.starts) -> None:  # type: ignore[no-untyped-def]
            draw(V[starts[first] : starts[last]], first, last)

        each_share(each.starts, problem.threads, share)
        T[at] = T_here
        if state.x is not None:
            state.x[at] = x
        losses[each.kinds] = of_columns


def _loop(
    problem: SampledProblem,
    state: ChainState,
    segments: Segments,
    x: FloatArray,
    T: FloatArray,
    losses: Doubles,
) -> Callable[[FloatArray, int, int], None]:
    """Return a function of WH with offsets, and of the first and last row or column there."""
    kind, kinds, starts, limits = segments.kind, segments.kinds, segments.starts, segments.limits
    at = kinds if problem.by_column else slice(None)
    sizes = problem.units_of_kinds[kinds, 1]
    levels = state.rho[at] / sizes**2, state.beta[at], ends_in_rows([state.cuts[k] for k in kinds])
    kernel = latent_kernel(segments.noise, kind, f"{T.dtype}", limited=bool(limits.limited.size))
    keys = problem.keys.entries[segments.entries] if problem.keys.entries.size else NO_KEYS.entries
    key = state.seed, state.sweep, segments.shift, keys
    arguments = levels, kind.arguments, tuple(limits), key

    def draw(V: FloatArray, first: int, last: int) -> None:
        kernel(starts, first, last, x, segments.weights, V, *arguments, T, losses)

    return draw


def all_products(problem: SampledProblem, state: ChainState) -> FloatArray:
    """Return WH with offsets at every stored entry, flat."""
    A, B = problem.augmented(state.rows, state.columns)
    if problem.positions is not None:
        return np.asarray((A @ B.T).ravel().take(problem.positions))
    V = np.empty(problem.values.size, A.dtype)

    def block(here: Block) -> None:
        V[here.entries] = problem.products(A, B, here)

    problem.each_block(block)
    return V
