"""The draw of T at all stored entries: block by block of rows, or column by column.

Entries of one kind are drawn by rows.  In a table of several kinds each column is drawn for itself,
in the units of its kind and with its noise levels, by the same compiled loops.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.base import FloatArray
from nmd_lab.model.kind import Kind, make_kind
from nmd_lab.solver.storage import Block

from .latent import latent_kernel
from .limits import SampledLimits, limit_kernel
from .model import Model
from .noise import NoiseKind
from .sides import each_share
from .state import ChainState
from .streams import LATENT, LIMITS

LEVEL = make_kind("identity", "frobenius")
"""Stands for a kind of ordered levels in compiled code, to which their number does not matter."""


class Conditional(NamedTuple):
    """The distribution of T given WH and X, of one kind of entries.

    Attributes
    ----------
    noise : NoiseKind
        Where the noise is.
    kind : Kind
        Nonlinearity and loss.
    rho, beta : float
        Precisions of the noise before f, in the units of the kind, and after it.
    cuts : ndarray
        Ends of the levels; empty if there are none.
    """

    noise: NoiseKind
    kind: Kind
    rho: float
    beta: float
    cuts: NDArray[np.float64]


class Lines(NamedTuple):
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
    """

    starts: NDArray[np.integer]
    x: FloatArray
    T: FloatArray
    weights: FloatArray
    limits: SampledLimits | None
    losses: NDArray[np.float64]

    def draw(
        self, first: int, last: int, V: FloatArray, conditional: Conditional, key: tuple[int, int]
    ) -> None:
        """Draw T in some lines, given WH with offsets there, and x after f within limits."""
        noise, kind, rho, beta, cuts = conditional
        kind = LEVEL if noise == "ordinal" else kind
        (pieces, pf, pd), lines = kind.arguments, (self.starts, first, last)
        if noise == "after":
            self._draw_within_limits(lines, V, conditional, kind, key)
        if noise != "gaussian":
            numbers = (rho, beta, pieces, pf, pd, cuts, *key, LATENT)
            kernel = latent_kernel(noise, kind, f"{self.T.dtype}")
            kernel(*lines, self.x, self.weights, V, *numbers, self.T, self.losses)
        if noise != "after":
            self._draw_within_limits(lines, V, conditional, kind, key)

    def _draw_within_limits(
        self,
        lines: tuple[Any, int, int],
        V: FloatArray,
        conditional: Conditional,
        kind: Kind,
        key: tuple[int, int],
    ) -> None:
        """Draw T where only limits are known; if the noise is after f, x given f(T)."""
        if self.limits is None:
            return
        pieces, pf, _ = kind.arguments
        numbers = (conditional.rho, conditional.beta, pieces, pf, conditional.cuts, *key, LIMITS)
        entries = (self.limits.limited, self.limits.low, self.limits.high, self.weights, V)
        kernel = limit_kernel(conditional.noise, kind, f"{self.T.dtype}")
        kernel(*lines, *entries, *numbers, self.T, self.x)


def draw_T(model: Model, state: ChainState) -> NDArray[np.float64]:
    """Draw T in place, and return the sum of the weighted losses at f(T) of each kind."""
    if model.by_column:
        return _draw_columns(model, state)
    losses = np.zeros(model.shape[0])
    if state.T is None:  # X itself
        return losses[:1]
    x = model.values if state.x is None else state.x
    lines = Lines(model.starts, x, state.T, weights_of(model), model.limits, losses)
    conditional, key = conditional_of(model, state, 0), (state.seed, state.sweep)
    A, B = model.augmented(state.rows, state.columns)

    def block(here: Block) -> None:
        lines.draw(here.rows.start, here.rows.stop, model.products(A, B, here), conditional, key)

    model.each_block(block)
    return np.array([losses.sum()])


def _draw_columns(model: Model, state: ChainState) -> NDArray[np.float64]:
    """Draw T of each column in its units."""
    storage, order = model.columns
    assert state.T is not None
    x = model.values if state.x is None else state.x
    weights, limits = weights_of(model), model.limits
    lines = Lines(
        storage.indptr,
        x[order],
        state.T[order],
        weights[order] if weights.size else weights,
        None if limits is None else limits.at(order),
        np.zeros(model.shape[1]),
    )
    A, B = model.augmented(state.rows, state.columns)
    is_drawn = [noise != "gaussian" or limits is not None for noise in model.noises]

    def share(first: int, last: int) -> None:
        for j in range(first, last):
            entries = slice(int(storage.indptr[j]), int(storage.indptr[j + 1]))
            if not is_drawn[j] or entries.start == entries.stop:
                continue
            conditional, v = (
                conditional_of(model, state, j),
                np.empty(entries.stop - entries.start, A.dtype),
            )
            storage.products(Block(slice(j, j + 1), entries), B, A, v)
            V = (conditional.kind.centre + conditional.kind.size * v).astype(A.dtype, copy=False)
            lines.draw(j, j + 1, V, conditional, (state.seed, state.sweep))

    each_share(storage.indptr, model.threads, share)
    state.T[order] = lines.T
    if state.x is not None:
        state.x[order] = lines.x
    return lines.losses


def conditional_of(model: Model, state: ChainState, k: int) -> Conditional:
    """Return the distribution of T of a kind, with the noise levels of a state."""
    kind, cuts = model.pair.kinds[k], state.cuts[k]
    rho, beta = float(state.rho[k]) / kind.size**2, float(state.beta[k])
    return Conditional(model.noises[k], kind, rho, beta, np.empty(0) if cuts is None else cuts.ends)


def weights_of(model: Model) -> FloatArray:
    """Return the weights for compiled code; empty if every one is 1."""
    return np.empty(0, model.dtype) if model.weights is None else model.weights
