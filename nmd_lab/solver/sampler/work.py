"""What a sweep does with the entries: draws of T, of the rows and of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

from nmd_lab.data.base import BLOCK, FloatArray, Transform
from nmd_lab.solver.lowrank import RowBlocks
from nmd_lab.solver.storage import Block, CsrStorage

from .cut_points import Levels
from .latent import latent_kernel
from .limits import limit_kernel
from .model import Model
from .sides import BLOCK_ROWS, Key
from .state import ChainState
from .streams import COLUMNS, LATENT, LIMITS, ROWS


class Work:
    """Work with the entries of a model."""

    def __init__(self, model: Model, n_levels: int = 0) -> None:
        self._model = model
        self._levels = Levels(model.values, model.starts, n_levels) if n_levels else None

    def first_T(self) -> FloatArray | None:
        """Return T before the first sweep: NaN, and None if there is no T but X itself."""
        values = self._model.values
        none = self._model.kind == "gaussian"
        return None if none else np.full(values.size, np.nan, values.dtype)

    def draw_rows(self, state: ChainState, seed: int) -> tuple[float, float]:
        """Draw T and the rows, and return the sums of squares and of losses that they leave."""
        misfit, losses = draw_T_and_rows(self._model, state, seed)
        return float(misfit.sum()), float(losses.sum())

    def draw_columns(self, state: ChainState, seed: int) -> None:
        """Draw the columns."""
        self._model.sides[1].draw(
            T_of(self._model, state),
            self._model.partner_of_columns(state.rows),
            state.column_prior,
            state.rho,
            Key(seed, state.sweep, COLUMNS),
            state.columns,
        )

    def matrix(self, transform: Transform, fill: float) -> LinearOperator:
        """Return transform(X) at the entries, 0 elsewhere, plus a number, as a linear operator."""
        shape = self._model.shape
        entries = RowBlocks(entries_as_matrix(self._model, transform), fill, block_rows(shape[1]))

        def times(V: FloatArray) -> FloatArray:
            return entries.product(np.ascontiguousarray(V))

        def transposed_times(V: FloatArray) -> FloatArray:
            return entries.transposed_product(np.ascontiguousarray(V))

        both = {"matvec": times, "rmatvec": transposed_times}
        more = {"matmat": times, "rmatmat": transposed_times}
        return LinearOperator(shape, **both, **more, dtype=np.float64)

    def level_counts(self) -> NDArray[np.integer]:
        """Return the number of entries of each level of ordinal data."""
        assert self._levels is not None
        return self._levels.counts

    def look_at_levels(self, state: ChainState) -> None:
        """Compute WH with offsets, for `log_likelihood`."""
        assert self._levels is not None
        self._levels.look(all_products(self._model, state))

    def log_likelihood(self, level: int, low: float, high: float) -> float:
        """Return the log-likelihood of the entries of a level, for its two cut points."""
        assert self._levels is not None
        return float(self._levels.log_likelihoods(level, low, high).sum())


def entries_as_matrix(model: Model, transform: Transform) -> Any:
    """Return transform(X) at the stored entries, dense or sparse, in double precision."""
    values = transform(model.values).astype(np.float64, copy=False)
    if isinstance(model.storage, CsrStorage):
        return csr_array((values, model.storage.indices, model.storage.indptr), shape=model.shape)
    return values.reshape(model.shape)


def block_rows(n: int) -> int:
    """Return the number of rows of a dense block with n columns, a multiple of `BLOCK_ROWS`."""
    return max(BLOCK_ROWS, 1 << (max(BLOCK // n, 1).bit_length() - 1))


def draw_T_and_rows(model: Model, state: ChainState, seed: int) -> tuple[FloatArray, FloatArray]:
    """Draw T and then the rows in place."""
    losses = draw_T(model, state, seed)
    misfit = model.sides[0].draw(
        T_of(model, state),
        model.partner_of_rows(state.columns),
        state.row_prior,
        state.rho,
        Key(seed, state.sweep, ROWS),
        state.rows,
    )
    return misfit, losses


def T_of(model: Model, state: ChainState) -> FloatArray:
    """Return T, which is X itself if there is no other."""
    return model.values if state.T is None else state.T


def draw_T(model: Model, state: ChainState, seed: int) -> FloatArray:
    """Draw T in place, and return the sum of the weighted losses at f(T) in each row."""
    losses = np.zeros(model.shape[0])
    if model.limits is not None and model.kind == "after":
        draw_within_limits(model, state, seed)
    if model.kind == "gaussian":
        if model.limits is not None:
            draw_within_limits(model, state, seed)
        return losses
    pair = model.pair
    x = model.values if state.x is None else state.x
    T = T_of(model, state)
    kernel = latent_kernel(model.kind, pair, f"{T.dtype}")
    cuts = np.empty(0) if state.cuts is None else state.cuts.ends
    weights = np.empty(0, T.dtype) if model.weights is None else model.weights
    key = Key(seed, state.sweep, LATENT)
    numbers = (state.rho, state.beta, *pair.arguments, cuts, *key)
    A, B = model.augmented(state.rows, state.columns)

    def block(here: Block) -> None:
        rows = here.rows.start, here.rows.stop
        V = model.products(A, B, here)
        kernel(model.starts, *rows, x, weights, V, *numbers, T, losses)

    model.each_block(block)
    if model.limits is not None and model.kind == "before":
        draw_within_limits(model, state, seed)
    return losses


def draw_within_limits(model: Model, state: ChainState, seed: int) -> None:
    """Draw T in place where only limits are known; if the noise is after f, x given f(T)."""
    limits, pair = model.limits, model.pair
    assert limits is not None
    if state.x is None:
        state.x, state.T = model.values.copy(), T_of(model, state).copy()
        state.T[np.isnan(state.T)] = pair.nonlinearity.preimage(state.x)[np.isnan(state.T)]
    x, T = state.x, T_of(model, state)
    kernel = limit_kernel(model.kind, pair, f"{T.dtype}")
    weights = np.empty(0, T.dtype) if model.weights is None else model.weights
    pieces, pf, _ = pair.arguments
    key = Key(seed, state.sweep, LIMITS)
    numbers = (state.rho, state.beta, pieces, pf, *key)
    A, B = model.augmented(state.rows, state.columns)

    def block(here: Block) -> None:
        V = model.products(A, B, here)
        entries = (limits.limited, limits.low, limits.high, weights, V)
        kernel(model.starts, here.rows.start, here.rows.stop, *entries, *numbers, T, x)

    model.each_block(block)


def all_products(model: Model, state: ChainState) -> FloatArray:
    """Return WH with offsets at every stored entry, flat."""
    A, B = model.augmented(state.rows, state.columns)
    V = np.empty(model.values.size, A.dtype)

    def block(here: Block) -> None:
        V[here.entries] = model.products(A, B, here)

    model.each_block(block)
    return V
