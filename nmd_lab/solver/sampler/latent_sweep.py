"""The draw of T at all stored entries: block by block of rows, or column by column.

Entries of one kind are drawn by rows.  In a table of several kinds the columns of each kind are
drawn together, in the units of their kind and each with its noise levels, by the same compiled
loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray
from nmd_lab.model.kind import Kind, make_kind
from nmd_lab.solver.storage import Block

from .cut_points import CutPoints
from .limits import SampledLimits, limit_kernel
from .noise import NoiseKind, knows_T
from .problem import SampledProblem
from .sides import each_share
from .state import ChainState
from .streams import LATENT, LIMITS
from .t_draw import latent_kernel

LEVEL = make_kind("identity", "frobenius")
"""Stands for a kind of ordered levels in compiled code, to which their number does not matter."""

Doubles = NDArray[np.float64]


class Conditional(NamedTuple):
    """The distribution of T given WH and X, on lines of one kind of entries.

    Attributes
    ----------
    noise : NoiseKind
        Where the noise is.
    kind : Kind
        Nonlinearity and loss.
    rho, beta : ndarray (n_lines,) or (1,)
        Precisions of the noise before f, in the units of the kind, and after it.
    cuts : ndarray (n_lines, n_ends) or (1, n_ends)
        Ends of the levels, if there are any.
    """

    noise: NoiseKind
    kind: Kind
    rho: Doubles
    beta: Doubles
    cuts: Doubles


@dataclass
class Lines:
    """Stored entries by rows, or by columns, with what is drawn there.

    Attributes
    ----------
    starts : ndarray of int
        Position of the first entry of each line, and behind the last.
    x, T : ndarray (n_entries,)
        X, and T in the units of its kind, which are overwritten.
    weights : ndarray (n_entries,)
        Weights; empty if every one is 1.
    limits : SampledLimits or None
        Limits.
    losses : ndarray (n_lines,)
        Sums of the weighted losses at f(T), which are overwritten.
    shift : int
        Number of the first line in streams of random numbers.
    """

    starts: NDArray[np.integer]
    x: FloatArray
    T: FloatArray
    weights: FloatArray
    limits: SampledLimits | None
    losses: Doubles
    shift: int = 0

    def draw(
        self, first: int, last: int, V: FloatArray, conditional: Conditional, key: tuple[int, int]
    ) -> None:
        """Draw T in some lines, given WH with offsets there, and x after f within limits."""
        noise, kind, rho, beta, cuts = conditional
        (pieces, pf, pd), lines = kind.arguments, (self.starts, first, last)
        if noise == "after":
            self._draw_within_limits(lines, V, conditional, key)
        if noise != "gaussian":
            numbers = (rho, beta, pieces, pf, pd, cuts, *key, LATENT, self.shift)
            kernel = latent_kernel(noise, kind, f"{self.T.dtype}")
            kernel(*lines, self.x, self.weights, V, *numbers, self.T, self.losses)
        if noise != "after":
            self._draw_within_limits(lines, V, conditional, key)

    def _draw_within_limits(
        self,
        lines: tuple[Any, int, int],
        V: FloatArray,
        conditional: Conditional,
        key: tuple[int, int],
    ) -> None:
        """Draw T where only limits are known; if the noise is after f, x given f(T)."""
        if self.limits is None:
            return
        noise, kind, rho, beta, cuts = conditional
        pieces, pf, _ = kind.arguments
        numbers = (rho, beta, pieces, pf, cuts, *key, LIMITS, self.shift)
        entries = (self.limits.limited, self.limits.low, self.limits.high, self.weights, V)
        kernel = limit_kernel(noise, kind, f"{self.T.dtype}")
        kernel(*lines, *entries, *numbers, self.T, self.x)


@dataclass(frozen=True)
class ColumnsOfKind:
    """Columns whose T is drawn by the same compiled loop.

    Attributes
    ----------
    noise, kind : NoiseKind, Kind
        Where the noise is, and nonlinearity and loss.
    columns : ndarray of int (n_columns,)
        Positions of the columns.
    starts, entries : ndarray of int
        Position of the first entry of each column, and behind the last; the entries column by
        column, by their positions among those by row.
    x, weights : ndarray (n_entries,)
        X; and weights, empty if every one is 1.
    centre, size : ndarray (n_entries,)
        Units of T.
    shift : int
        Number of columns of kinds before.
    """

    noise: NoiseKind
    kind: Kind
    columns: NDArray[np.intp]
    starts: NDArray[np.integer]
    entries: NDArray[np.integer]
    x: FloatArray
    weights: FloatArray
    centre: FloatArray
    size: FloatArray
    shift: int


def columns_by_kind(problem: SampledProblem) -> list[ColumnsOfKind]:
    """Return the columns in which T is drawn, by kind."""
    alike: dict[Any, list[int]] = {}
    for j, (noise, kind) in enumerate(zip(problem.noises, problem.model.kinds, strict=True)):
        is_fixed = problem.limits is None and knows_T(noise, kind.nonlinearity)
        if is_fixed or not problem.counts[j]:
            continue
        kind = LEVEL if noise == "ordinal" else kind
        arguments = tuple(np.asarray(each).tobytes() for each in kind.arguments)
        alike.setdefault((noise, kind.name, arguments), []).append(j)
    found, shift = [], 0
    for (noise, *_), columns in alike.items():
        entries = np.concatenate([problem.entries_of_kinds[j] for j in columns])
        starts = np.concatenate([[0], np.cumsum(problem.counts[columns])])
        kind = LEVEL if noise == "ordinal" else problem.model.kinds[columns[0]]
        weights, (centre, size) = weights_of(problem), problem.units_of_entries
        found.append(
            ColumnsOfKind(
                noise,
                kind,
                np.array(columns),
                starts,
                entries,
                problem.values[entries],
                weights[entries] if weights.size else weights,
                centre[entries],
                size[entries],
                shift,
            )
        )
        shift += len(columns)
    return found


def draw_T(problem: SampledProblem, kinds: list[ColumnsOfKind], state: ChainState) -> Doubles:
    """Draw T in place, and return sums of the weighted losses at f(T) that have the same noise."""
    if problem.by_column:
        return _draw_columns(problem, kinds, state)
    if state.T is None:  # X itself
        return np.zeros(problem.counts.size)
    losses = np.zeros(problem.shape[0])
    x = problem.values if state.x is None else state.x
    lines = Lines(problem.starts, x, state.T, weights_of(problem), problem.limits, losses)
    conditional, key = conditional_of(problem, state, [0]), (state.seed, state.sweep)
    A, B = problem.augmented(state.rows, state.columns)

    def block(here: Block) -> None:
        lines.draw(here.rows.start, here.rows.stop, problem.products(A, B, here), conditional, key)

    problem.each_block(block)
    return np.array([losses.sum()])


def _draw_columns(
    problem: SampledProblem, kinds: list[ColumnsOfKind], state: ChainState
) -> Doubles:
    """Draw T of each column in its units."""
    assert state.T is not None
    all_losses = np.zeros(problem.shape[1])
    if not kinds:
        return all_losses
    products = all_products(problem, state)
    for each in kinds:
        at, is_level = each.entries, each.noise == "ordinal"  # in units of 1, whatever T was
        lines = Lines(
            each.starts,
            each.x if state.x is None else state.x[at],
            np.empty_like(each.x) if is_level else state.T[at],
            each.weights,
            None if problem.limits is None else problem.limits.at(at),
            np.zeros(each.columns.size),
            each.shift,
        )
        V = products.take(at)
        if not is_level:
            V = each.centre + each.size * V
        conditional = conditional_of(problem, state, each.columns)

        def share(
            first: int,
            last: int,
            lines: Lines = lines,
            V: FloatArray = V,
            conditional: Conditional = conditional,
        ) -> None:
            here = V[lines.starts[first] : lines.starts[last]]
            lines.draw(first, last, here, conditional, (state.seed, state.sweep))

        each_share(each.starts, problem.threads, share)
        state.T[at] = lines.T
        if state.x is not None:
            state.x[at] = lines.x
        all_losses[each.columns] = lines.losses
    return all_losses


def conditional_of(problem: SampledProblem, state: ChainState, kinds: Any) -> Conditional:
    """Return the distribution of T at entries of like kinds, with the noise levels of a state."""
    first, noise = problem.model.kinds[kinds[0]], problem.noises[kinds[0]]
    sizes = problem.units_of_kinds[kinds, 1]
    at = kinds if problem.by_column else slice(None)
    cuts = ends_in_rows([state.cuts[k] for k in kinds])
    return Conditional(
        noise,
        LEVEL if noise == "ordinal" else first,
        state.rho[at] / sizes**2,
        state.beta[at],
        cuts if problem.by_column else np.repeat(cuts, state.rho.size, axis=0),
    )


def ends_in_rows(cuts: list[CutPoints | None]) -> Doubles:
    """Return the ends of the levels of each kind in a row, with infinity behind the last."""
    ends = [np.empty(0) if each is None else each.ends for each in cuts]
    rows: Doubles = np.full((len(ends), max(each.size for each in ends)), np.inf)
    for row, each in zip(rows, ends, strict=True):
        row[: each.size] = each
    return rows


def weights_of(problem: SampledProblem) -> FloatArray:
    """Return the weights for compiled code; empty if every one is 1."""
    return np.empty(0, problem.dtype) if problem.weights is None else problem.weights


def all_products(problem: SampledProblem, state: ChainState) -> FloatArray:
    """Return WH with offsets at every stored entry, flat."""
    A, B = problem.augmented(state.rows, state.columns)
    if problem.positions is not None:
        products: FloatArray = (A @ B.T).ravel().take(problem.positions)
        return products
    V = np.empty(problem.values.size, A.dtype)

    def block(here: Block) -> None:
        V[here.entries] = problem.products(A, B, here)

    problem.each_block(block)
    return V


def products_of_kinds(
    problem: SampledProblem, state: ChainState, kinds: list[int]
) -> list[FloatArray]:
    """Return WH with offsets at the stored entries of some kinds, in the order of these."""
    if not problem.by_column or problem.positions is None:
        V = all_products(problem, state)
        return [V[problem.entries_of_kinds[k]] for k in kinds]
    A, B = problem.augmented(state.rows, state.columns)
    indptr, rows = problem.columns[0].indptr, problem.columns[0].indices
    return [(A @ B[k]).take(rows[indptr[k] : indptr[k + 1]]) for k in kinds]
