"""What a sweep does with the entries: draws of T, of the rows, of the columns and of cut points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

from nmd_lab.data.base import BLOCK, FloatArray
from nmd_lab.solver.lowrank import RowBlocks
from nmd_lab.solver.storage import CsrStorage

from .cut_points import CutPoints, Levels, has_fixed_cut
from .latent_sweep import all_products, columns_by_kind, draw_T
from .model import Model, levels_of
from .sides import BLOCK_ROWS, NO_LABELS, Key
from .state import ChainState
from .streams import COLUMNS, ROWS


class Work:
    """Work with the entries of a model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._kinds = columns_by_kind(model) if model.by_column else []
        self._levels = [_levels(model, k) for k in range(len(model.noises))]

    def first_T(self) -> FloatArray | None:
        """Return T before the first sweep, NaN where it is drawn; None if it is always X itself."""
        model, values = self._model, self._model.values
        if model.limits is not None:
            return self._pseudo_inverses()
        if set(model.noises) == {"gaussian"} and not model.by_column:
            return None
        T = np.full_like(values, np.nan)
        for noise, at in zip(model.noises, model.entries_of_kinds, strict=True):
            if noise == "gaussian":
                T[at] = values[at]
        return T

    def _pseudo_inverses(self) -> FloatArray:
        """Return f⁻¹(X), which the draw of X within limits begins with."""
        model = self._model
        T = model.values.copy()
        for kind, at in zip(model.pair.kinds, model.entries_of_kinds, strict=True):
            T[at] = kind.nonlinearity.pseudo_inverse(T[at])
        return T

    def first_x(self) -> FloatArray | None:
        """Return X before the first sweep, of which a part is drawn; None if all is known."""
        return None if self._model.limits is None else self._model.values.copy()

    def first_cuts(self) -> list[CutPoints | None]:
        """Return the cut points of each kind before the first sweep."""
        return [None if each is None else CutPoints.first(each.counts) for each in self._levels]

    def draw_rows(self, state: ChainState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw T and the rows; return the sums of squares and of losses of each kind."""
        model = self._model
        of_rows, losses = self.draw_T_and_rows(state)
        if not model.by_column:
            return np.array([of_rows.sum()]), losses
        squares = np.square(T_of(model, state) - all_products(model, state), dtype=np.float64)
        if model.weights_of_T is not None:
            squares *= model.weights_of_T
        misfits: Any = np.bincount(model.column_of, squares, model.shape[1])
        return misfits, losses

    def draw_T_and_rows(self, state: ChainState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw T and then the rows; return the squares of each row, the losses of each kind."""
        model = self._model
        losses = draw_T(model, self._kinds, state)
        misfits: Any = model.sides[0].draw(
            T_of(model, state),
            model.partner_of_rows(state.columns),
            state.row_prior,
            state.rho,
            Key(state.seed, state.sweep, ROWS),
            state.rows,
            NO_LABELS if state.groups is None else state.groups.labels,
        )
        return misfits, losses

    def draw_columns(self, state: ChainState) -> None:
        """Draw the columns."""
        self._model.sides[1].draw(
            T_of(self._model, state),
            self._model.partner_of_columns(state.rows),
            state.column_prior,
            state.rho,
            Key(state.seed, state.sweep, COLUMNS),
            state.columns,
        )

    def draw_cut_points(self, state: ChainState, rng: np.random.Generator) -> None:
        """Draw the cut points of each kind with levels, and add their log-likelihood."""
        if all(cuts is None or has_fixed_cut(cuts) for cuts in state.cuts):
            return
        model, V = self._model, all_products(self._model, state)
        of_column = V[model.columns[1]] if model.by_column else V
        ends = model.columns[0].indptr if model.by_column else np.array([0, V.size])
        for k, (levels, cuts) in enumerate(zip(self._levels, state.cuts, strict=True)):
            if levels is not None and cuts is not None and not has_fixed_cut(cuts):
                levels.look(of_column[ends[k] : ends[k + 1]])
                state.log_likelihood += cuts.draw(levels, rng, tune=state.tuning > 0)

    def matrix(self, values: FloatArray, fill: float) -> LinearOperator:
        """Return numbers at the entries, 0 elsewhere, plus a number, as a linear operator."""
        shape = self._model.shape
        entries = RowBlocks(entries_as_matrix(self._model, values), fill, block_rows(shape[1]))

        def times(V: FloatArray) -> FloatArray:
            return entries.product(np.ascontiguousarray(V))

        def transposed_times(V: FloatArray) -> FloatArray:
            return entries.transposed_product(np.ascontiguousarray(V))

        both = {"matvec": times, "rmatvec": transposed_times}
        more = {"matmat": times, "rmatmat": transposed_times}
        return LinearOperator(shape, **both, **more, dtype=np.float64)


def _levels(model: Model, k: int) -> Levels | None:
    """Return the entries of each level of a kind; None for numbers."""
    number = levels_of(model.pair.kinds[k].loss)
    if not number:
        return None
    at = model.entries_of_kinds[k]
    starts = np.array([0, at.size]) if model.by_column else model.starts
    low = high = model.values[at]
    if model.limits is not None:
        low, high = model.limits.low[at], model.limits.high[at]
    weights = None if model.weights is None else model.weights[at]
    return Levels(low, high, starts, number, weights)


def entries_as_matrix(model: Model, values: FloatArray) -> Any:
    """Return numbers at the stored entries, dense or sparse, in double precision."""
    values = values.astype(np.float64, copy=False)
    if isinstance(model.storage, CsrStorage):
        return csr_array((values, model.storage.indices, model.storage.indptr), shape=model.shape)
    return values.reshape(model.shape)


def block_rows(n: int) -> int:
    """Return the number of rows of a dense block with n columns, a multiple of `BLOCK_ROWS`."""
    return max(BLOCK_ROWS, 1 << (max(BLOCK // n, 1).bit_length() - 1))


def T_of(model: Model, state: ChainState) -> FloatArray:
    """Return T without units, which is X itself if there is no other."""
    if state.T is None:
        return model.values
    if not model.by_column:
        return state.T
    centre, size = model.units_of_entries
    without_units: FloatArray = (state.T - centre) / size
    return without_units
