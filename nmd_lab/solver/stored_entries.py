"""The stored entries of a problem, flat: what a loop over them needs to know of X, f and d."""

from __future__ import annotations

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.model.proximal import Pair


class Entries:
    """Values and weights of the stored entries.

    Parameters
    ----------
    observations : Observations
        The data.
    pair : Pair
        The nonlinearity and the loss.

    Attributes
    ----------
    x : EntryReader
        Values, to be read a range at a time.
    weights : ndarray or None
        Their weights; 0 is missing.
    kind : str
        The argument types of a kernel over them, for its name.
    arguments : tuple
        The run-time numbers of the pair, as kernels take them.
    """

    def __init__(self, observations: Observations, pair: Pair) -> None:
        weights = observations.weights
        self.transformed = observations.transformed
        self.weights = None if weights is None else weights.ravel()
        self.x = observations.reader()
        weighted = "every" if weights is None else str(weights.dtype)
        self.kind = f"{observations.values.dtype}_{weighted}"
        self.arguments = (*pair.arguments, pair.loss.floor)

    def weights_of(self, entries: slice) -> FloatArray | None:
        """Return the weights of a block."""
        return None if self.weights is None else self.weights[entries]

    def preimage(self, f: Nonlinearity) -> FloatArray:
        """Return the starting T: a preimage of X on Ω, and 0 elsewhere."""
        T = self.transformed(f.preimage)
        if self.weights is not None:
            T[self.weights == 0] = 0
        return T
