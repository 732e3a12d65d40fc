"""The split variable T and its dual U at the stored entries, and their update.

Both are flat arrays of entries, which lie on a device.  They do not depend on how the entries are
stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import BLOCK, Observations
from nmd_lab.devices import HOST, Device
from nmd_lab.model.model import Model

from .passes import SortedBlock, sorted_block
from .products import storage_of


class StoredEntries:
    """Positions, values and weights of the stored entries, as the passes over them take them.

    Attributes
    ----------
    storage : DenseStorage or CsrStorage
        Their positions.
    x : EntryReader
        Values; a slice gives an array.  They may be anything where an entry is missing.
    weights : WeightReader or None
        Weights, read likewise; 0 where an entry is missing.
    limits : EntryLimits or None
        Entries of which only limits are known.
    model_index : ndarray of int or None
        Position of the kind of each entry; None if there is one.
    numbers : tuple
        Run-time argument of the model.
    """

    def __init__(self, observations: Observations, model: Model, device: Device = HOST) -> None:
        weights, limits = observations.weight_reader(), observations.limit_reader()
        self.storage, self.device = storage_of(observations, device), device
        self.dtype = observations.dtype
        self.x = device.read(observations.reader(), observations.n_stored)
        self.weights = None
        if weights is not None:
            self.weights = device.read(weights, observations.n_stored)
        self.limits = limits
        self.model_index: NDArray[np.int16] | None = None
        if model.is_mixed:
            self.model_index = model.index_at(*observations.stored_positions()).astype(np.int16)
        self.model, self.numbers = model, model.numbers  # which may hold addresses in the model
        self._sorted: dict[tuple[int, int], SortedBlock] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in vars(self).items() if name != "numbers"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.numbers = self.model.numbers  # whose addresses are those of this process

    def of_block(self, entries: slice, A: FloatArray) -> tuple[Any, ...]:
        """Return the arrays of a block with WH there; None where it has no weights, limits, ..."""
        limits, x, weights = self.limits, self.x[entries], self.weights_of(entries)
        if limits is None:
            return x, A, weights, None, None, self._sorted_block(entries, weights)
        uppers = x if limits.uppers is None else limits.uppers[entries]
        marks = limits.codes[entries], uppers, self._sorted_block(entries, weights)
        return x, A, weights, *marks

    def weights_of(self, entries: slice) -> FloatArray | None:
        """Return the weights of a block."""
        return None if self.weights is None else self.weights[entries]

    def _sorted_block(self, entries: slice, weights: FloatArray | None) -> SortedBlock | None:
        """Return the entries of a block by their kinds, which are sorted once."""
        if self.model_index is None:
            return None
        place = entries.start, entries.stop
        if place not in self._sorted:
            seen = None if weights is None else weights > 0
            self._sorted[place] = sorted_block(self.model, self.model_index[entries], seen)
        return self._sorted[place]


@dataclass
class Entries:
    """What an iteration changes at each stored entry, as flat arrays on the device.

    Attributes
    ----------
    T, U : array (n_entries,)
        The split variable and its scaled dual.
    norm_of_initial_T : float
        Norm of T at the start.
    previous_A : array (n_entries,) or None
        WH of the update before, where T = WH beyond the stored entries.
    S : array (n_entries,) or None
        T + U - WH, where the H-step needs it.
    """

    T: Any
    U: Any
    norm_of_initial_T: float
    previous_A: Any = None
    S: Any = None

    def on(self, device: Device) -> Entries:
        """Put arrays that were read from a file on a device."""
        for name in ("T", "U", "previous_A", "S"):
            if (array := getattr(self, name)) is not None:
                setattr(self, name, device.put(array))
        return self


class SplitVariable:
    """The update of T and U of a problem.

    Attributes
    ----------
    entries : StoredEntries
        What T and U belong to.
    state : Entries
        T and U.
    dual_scale : float
        Factor by which U is multiplied at the next update, because ρ has changed.
    """

    def __init__(
        self, entries: StoredEntries, state: Entries, *, constrains_all_entries: bool
    ) -> None:
        self.entries, self.device, self.state = entries, entries.device, state
        if constrains_all_entries and state.previous_A is None:
            state.previous_A = self.device.zeros(state.T.shape, entries.dtype)
        self.dual_scale = 1.0
        limited = entries.limits is not None
        self.update_pass = self.device.update_pass(entries.model, entries.dtype, limited=limited)

    def rescale(self, factor: float) -> None:
        """Multiply U = Λ/ρ by ρ_old / ρ_new, at the next update."""
        self.dual_scale *= factor

    def update(
        self, entries: slice, A: FloatArray, penalty: float, change: FloatArray | None
    ) -> tuple[float, ...]:
        """Update T and U of a block, and turn A = WH into S = T + U - A.

        `change` becomes T - T_previous, less the change of WH if T = WH beyond the entries.
        Returned are the sums of the loss and of the squares of T - WH, T - T_previous and of this
        change of WH.
        """
        state, T, shifted = self.state, self.state.T[entries], 0.0
        if change is not None:
            change[:] = -T
        if state.previous_A is not None:
            shift = A - state.previous_A[entries]
            shifted = float(shift @ shift)
            state.previous_A[entries] = A
            change = None if change is None else np.subtract(change, shift, out=change)
        numbers = (penalty, self.dual_scale, self.entries.numbers)
        sums = self.update_pass(*self.entries.of_block(entries, A), T, state.U[entries], *numbers)
        if change is not None:
            change += T
        return *sums, shifted

    def keep(self, entries: slice, A: FloatArray) -> None:
        """Turn A = WH of a block into S = T + U - A, without an update of T and U.

        Where nothing is observed, T becomes A: at the start, A has the offsets, and T is still 0.
        """
        weights, state = self.entries.weights_of(entries), self.state
        if weights is not None:
            self.device.fill(state.T[entries], A, weights == 0)
        if state.previous_A is not None:
            state.previous_A[entries] = A
        A *= -1
        A += state.T[entries]
        A += self.dual_scale * state.U[entries]


def starting_entries(observations: Observations, model: Model, device: Device) -> Entries:
    """Return T at its start, 0 where an entry is missing, and U = 0."""
    T, weights = pseudo_inverses(observations, model), observations.weight_reader()
    squares = 0.0
    for first in range(0, T.size, BLOCK):
        block = T[first : min(first + BLOCK, T.size)]
        if weights is not None:
            block[weights[first : first + block.size] == 0] = 0
        squares += float(np.sum(np.square(block, dtype=np.float64)))
    return Entries(device.put(T), device.zeros(T.shape, T.dtype), math.sqrt(squares))


def pseudo_inverses(observations: Observations, model: Model) -> FloatArray:
    """Return the starting T at the stored entries, as a new flat array."""
    if not model.is_mixed:
        return observations.transformed(model.pseudo_inverse)
    x = observations.transformed(lambda x: x)
    return model.pseudo_inverse(x, *observations.stored_positions()).astype(x.dtype, copy=False)
