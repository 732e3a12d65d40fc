"""What a sweep does with the entries: draws of T, of the rows, of the columns and of cut points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import BLOCK
from nmd_lab.solver.lowrank import RowBlocks
from nmd_lab.solver.storage import CsrStorage

from .cut_points import CutPoints, Levels, has_fixed_cut
from .entry_sums import sums_of_squares
from .latent_sweep import all_products, columns_by_kind, draw_T, products_of_kinds
from .noise import knows_T, levels_of
from .problem import SampledProblem
from .sides import BLOCK_ROWS, NO_LABELS, Key
from .state import ChainState
from .streams import COLUMNS, ROWS


class Work:
    """Work with the entries of a problem."""

    def __init__(self, problem: SampledProblem) -> None:
        self._problem = problem
        self._kinds = columns_by_kind(problem) if problem.by_column else []
        self._levels = [_levels(problem, k) for k in range(len(problem.noises))]

    def first_T(self) -> FloatArray | None:
        """Return T before the first sweep, NaN where it is drawn; None if it is always X itself."""
        problem, values = self._problem, self._problem.values
        if problem.limits is not None:
            return self._pseudo_inverses()
        if set(problem.noises) == {"gaussian"} and not problem.by_column:
            return None
        T = np.full_like(values, np.nan)
        kinds = zip(problem.noises, problem.model.kinds, problem.entries_of_kinds, strict=True)
        for noise, kind, at in kinds:
            if noise == "gaussian":
                T[at] = values[at]
            elif knows_T(noise, kind.nonlinearity):
                T[at] = kind.nonlinearity.pseudo_inverse(values[at])
        return T

    def _pseudo_inverses(self) -> FloatArray:
        """Return f⁻¹(X), which the draw of X within limits begins with."""
        problem = self._problem
        T = problem.values.copy()
        for kind, at in zip(problem.model.kinds, problem.entries_of_kinds, strict=True):
            T[at] = kind.nonlinearity.pseudo_inverse(T[at])
        return T

    def first_x(self) -> FloatArray | None:
        """Return X before the first sweep, of which a part is drawn; None if all is known."""
        return None if self._problem.limits is None else self._problem.values.copy()

    def first_cuts(self) -> list[CutPoints | None]:
        """Return the cut points of each kind before the first sweep."""
        return [None if each is None else CutPoints.first(each.counts) for each in self._levels]

    def draw_rows(self, state: ChainState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw T and the rows; return the sums of squares and losses that have the same noise."""
        problem = self._problem
        of_rows, losses = self.draw_T_and_rows(state)
        if not problem.by_column:
            return np.array([of_rows.sum()]), losses
        entries = T_of(problem, state), all_products(problem, state), problem.weights_of_T
        return sums_of_squares(*entries, problem.column_of, problem.counts.size), losses

    def draw_T_and_rows(self, state: ChainState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw T and then the rows; return the squares of each row, and the losses."""
        problem = self._problem
        losses = draw_T(problem, self._kinds, state)
        misfits: Any = problem.sides[0].draw(
            T_of(problem, state),
            problem.partner_of_rows(state.columns),
            state.row_prior,
            state.rho,
            Key(state.seed, state.sweep, ROWS),
            state.rows,
            NO_LABELS if state.groups is None else state.groups.labels,
        )
        return misfits, losses

    def draw_columns(self, state: ChainState) -> None:
        """Draw the columns."""
        self._problem.sides[1].draw(
            T_of(self._problem, state),
            self._problem.partner_of_columns(state.rows),
            state.column_prior,
            state.rho,
            Key(state.seed, state.sweep, COLUMNS),
            state.columns,
            NO_LABELS if self._problem.column_groups is None else self._problem.column_groups,
        )

    def draw_cut_points(self, state: ChainState, rng: np.random.Generator) -> None:
        """Draw the cut points of each kind with levels, and add their log-likelihood."""
        drawn = [k for k, cuts in enumerate(state.cuts) if cuts and not has_fixed_cut(cuts)]
        if not drawn:
            return
        products = products_of_kinds(self._problem, state, drawn)
        for k, of_kind in zip(drawn, products, strict=True):
            cuts, levels = state.cuts[k], self._levels[k]
            assert cuts is not None
            assert levels is not None
            levels.look(of_kind)
            state.log_likelihood += cuts.draw(levels, rng, tune=state.tuning > 0)

    def matrix(self, values: FloatArray, fill: float) -> LinearOperator:
        """Return numbers at the entries, 0 elsewhere, plus a number, as a linear operator."""
        shape = self._problem.shape
        entries = RowBlocks(entries_as_matrix(self._problem, values), fill, block_rows(shape[1]))

        def times(V: FloatArray) -> FloatArray:
            return entries.product(np.ascontiguousarray(V))

        def transposed_times(V: FloatArray) -> FloatArray:
            return entries.transposed_product(np.ascontiguousarray(V))

        both = {"matvec": times, "rmatvec": transposed_times}
        more = {"matmat": times, "rmatmat": transposed_times}
        return LinearOperator(shape, **both, **more, dtype=np.float64)


def _levels(problem: SampledProblem, k: int) -> Levels | None:
    """Return the entries of each level of a kind; None for numbers."""
    number = levels_of(problem.model.kinds[k].loss)
    if not number:
        return None
    at = problem.entries_of_kinds[k]
    low = high = problem.values[at]
    if problem.limits is not None:
        low, high = problem.limits.low[at], problem.limits.high[at]
    weights = None if problem.weights is None else problem.weights[at]
    return Levels(low, high, number, weights)


def entries_as_matrix(problem: SampledProblem, values: FloatArray) -> Any:
    """Return numbers at the stored entries, dense or sparse, in double precision."""
    values = values.astype(np.float64, copy=False)
    storage, shape = problem.storage, problem.shape
    if isinstance(storage, CsrStorage):
        return csr_array((values, storage.indices, storage.indptr), shape=shape)
    return values.reshape(shape)


def block_rows(n: int) -> int:
    """Return the number of rows of a dense block with n columns, a multiple of `BLOCK_ROWS`."""
    return max(BLOCK_ROWS, 1 << (max(BLOCK // n, 1).bit_length() - 1))


def T_of(problem: SampledProblem, state: ChainState) -> FloatArray:
    """Return T without units, which is X itself if there is no other."""
    if state.T is None:
        return problem.values
    if not problem.by_column:
        return state.T
    centre, size = problem.units_of_entries
    without_units: FloatArray = (state.T - centre) / size
    return without_units
