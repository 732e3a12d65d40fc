"""The split variable T and its dual U at the stored entries, and their update.

This is the only part of an iteration that uses X, f and d.  It works on flat arrays of entries and
does not depend on how they are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._numba import compile_inlined, compile_kernel
from nmd_lab.data.base import BLOCK, EntryLimits, FloatArray, Observations
from nmd_lab.model.entry import AnyStructure, compile_entry
from nmd_lab.model.mixed import AnyPair
from nmd_lab.model.proximal import Pair


class StoredEntries:
    """Values and weights of the stored entries, as kernels take them.

    Parameters
    ----------
    observations : Observations
        Data.
    pair : Pair or MixedPair
        Nonlinearity and loss.

    Attributes
    ----------
    x : EntryReader
        Values; a slice gives an array.  They may be anything where an entry is missing.
    weights : WeightReader or None
        Weights, read likewise; 0 where an entry is missing.
    limits : EntryLimits or None
        Entries of which only limits are known.
    which : ndarray of int or None
        Position of the pair of each entry in a mixed pair; None for a plain one.
    kind : str
        Argument types of a kernel over the entries, a part of its name.
    model : tuple
        Run-time argument of the pair.
    """

    def __init__(self, observations: Observations, pair: AnyPair) -> None:
        self.x = observations.reader()
        self.weights = observations.weight_reader()
        self.limits = observations.limit_reader()
        self.which = which_pair(observations, pair)
        weighted = "every" if self.weights is None else str(self.weights.dtype)
        self.kind = f"{observations.dtype}_{weighted}{kind_of(self.limits)}"
        self.model = pair.model

    def marks_of(self, entries: slice) -> tuple[Any, Any, Any]:
        """Return limits, upper values and parts of a block, None where there are none."""
        limits, which = self.limits, self.which
        codes = None if limits is None else limits.codes[entries]
        uppers = None if limits is None or limits.uppers is None else limits.uppers[entries]
        return codes, uppers, None if which is None else which[entries]

    def weights_of(self, entries: slice) -> FloatArray | None:
        """Return the weights of a block."""
        return None if self.weights is None else self.weights[entries]


class SplitVariable(StoredEntries):
    """T and U of a problem, as flat arrays.

    Parameters
    ----------
    observations : Observations
        Data.
    pair : Pair or MixedPair
        Nonlinearity and loss.
    beyond_stored : bool
        Whether T = WH is also imposed on entries that are not stored.  There T = WH holds at all
        times, so that T changes by the change of WH.  `update` then also returns the change of WH
        at the stored entries, which the caller subtracts from that at all entries.

    Attributes
    ----------
    T, U : ndarray (n_entries,)
        The split variable and its scaled dual.
    dual_scale : float
        Factor by which U is multiplied at the next update, because ρ has changed.
    """

    def __init__(self, observations: Observations, pair: AnyPair, *, beyond_stored: bool) -> None:
        super().__init__(observations, pair)
        self.T = preimages(observations, pair)
        for first in range(0, self.T.size, BLOCK) if self.weights is not None else ():
            block = slice(first, min(first + BLOCK, self.T.size))
            self.T[block][self.weights_of(block) == 0] = 0
        self.U = np.zeros_like(self.T)
        self.dual_scale = 1.0
        self.previous_A = np.zeros_like(self.T) if beyond_stored else None
        kind = f"{self.kind}_{'off' if beyond_stored else 'on'}"
        self.kernel, self.projecting_kernel = (
            update_kernel(pair, f"{kind}{projecting}") for projecting in ("", "_projecting")
        )

    def rescale(self, factor: float) -> None:
        """Multiply U = Λ/ρ by ρ_old / ρ_new, at the next update."""
        self.dual_scale *= factor

    def update(
        self, entries: slice, A: FloatArray, penalty: float, change: FloatArray | None
    ) -> tuple[float, float, float, float]:
        """Update T and U of a block, and turn A = WH into S = T + U - A.

        Parameters
        ----------
        entries : slice
            Flat entries of the block.
        A : ndarray
            WH at these entries; overwritten by S.
        penalty : float
            ρ.
        change : ndarray, optional
            Output: T - T_previous, minus WH - WH_previous if `beyond_stored`.

        Returns
        -------
        tuple of float
            Weighted loss of f(A), ‖T - A‖², ‖T - T_previous‖², and ‖A - A_previous‖² (0 unless
            `beyond_stored`).
        """
        weights = self.weights_of(entries)
        previous = None if self.previous_A is None else self.previous_A[entries]
        state = (self.T[entries], self.U[entries], previous, change)
        numbers = (penalty, self.dual_scale, self.model)
        kernel = self.kernel if change is None else self.projecting_kernel
        return kernel(self.x[entries], A, weights, *self.marks_of(entries), *state, *numbers)

    def keep(self, entries: slice, A: FloatArray) -> None:
        """Turn A = WH of a block into S = T + U - A, without an update of T and U.

        Where nothing is observed, T becomes A: at the start, A has the offsets, and T is still 0.
        """
        weights = self.weights_of(entries)
        if weights is not None:
            np.copyto(self.T[entries], A, where=weights == 0)
        if self.previous_A is not None:
            self.previous_A[entries] = A
        np.subtract(self.T[entries], A, out=A)
        A += self.dual_scale * self.U[entries]


def which_pair(observations: Observations, pair: AnyPair) -> NDArray[np.int16] | None:
    """Return the position of each stored entry's pair in a mixed pair; None for a plain one."""
    if isinstance(pair, Pair):
        return None
    which: NDArray[np.int16] = pair.which_at(*observations.stored_positions()).astype(np.int16)
    return which


def kind_of(limits: EntryLimits | None) -> str:
    """Return what the limits add to the name of a kernel."""
    return "" if limits is None else "_limits" if limits.uppers is None else "_both"


def preimages(observations: Observations, pair: AnyPair) -> FloatArray:
    """Return the starting T at the stored entries, as a new flat array."""
    if isinstance(pair, Pair):
        return observations.transformed(pair.preimage)
    x = observations.transformed(lambda x: x)
    return pair.preimage(x, *observations.stored_positions()).astype(x.dtype, copy=False)


@cache
def compile_entry_update(structure: AnyStructure, limited: bool) -> Callable[..., Any]:
    """Return the compiled T-update of one entry.

    It takes (a, u, x, penalty, dual_scale, limit, upper, part, model) and returns v = a -
    dual_scale u, the new t, and the loss of f(a); the new u is t - v.
    """
    solve, loss = compile_entry(structure, limited)

    def update(a, u, x, penalty, dual_scale, limit, upper, part, model):  # type: ignore[no-untyped-def]
        v = a - dual_scale * u
        t = solve(v, x, penalty, limit, upper, part, model)
        return v, t, loss(x, a, limit, upper, part, model)

    return compile_inlined(update)


def update_kernel(pair: AnyPair, kind: str) -> Callable[..., tuple[float, float, float, float]]:
    """Return the compiled update of a flat block, for arguments of one kind.

    It takes (x, a, weights, limits, uppers, parts, t, u, previous, change, penalty, dual_scale,
    pair.model).
    """
    return _update_kernel(pair.structure, f"update_{pair.name}_{kind}", pair.is_ours)


@cache
def _update_kernel(structure: AnyStructure, name: str, cached: bool) -> Callable[..., Any]:
    update_entry = compile_entry_update(structure, has_limits(name))

    def update(  # type: ignore[no-untyped-def]
        x, a, weights, limits, uppers, parts, t, u, previous, change, penalty, dual_scale, model
    ):
        data_term, primal, dual, shifted = 0.0, 0.0, 0.0, 0.0
        for i in range(x.size):
            weight = 1.0 if weights is None else 1.0 * weights[i]
            limit = 0 if limits is None else limits[i]
            upper = x[i] if uppers is None else uppers[i]
            part = 0 if parts is None else parts[i]
            known = x[i] if weight > 0 else x.dtype.type(0)
            v, new, loss = update_entry(
                a[i], u[i], known, penalty / weight, dual_scale, limit, upper, part, model
            )
            new = new if weight > 0 else v
            data_term += weight * loss if weight > 0 else 0.0  # it may be infinite at x = 0
            residual, step, shift = new - a[i], new - t[i], 0.0
            if previous is not None:
                shift = a[i] - previous[i]
                previous[i] = a[i]
            if change is not None:
                change[i] = step - shift
            primal += residual * residual
            dual += step * step
            shifted += shift * shift
            t[i], u[i] = new, new - v
            a[i] = residual + (new - v)
        return data_term, primal, dual, shifted

    return compile_kernel(update, name, cached=cached)


def has_limits(name: str) -> bool:
    """Return whether the kernel of this name is one for entries with limits."""
    return "_limits" in name or "_both" in name
