"""The stored entries of a problem, flat: what a loop over them needs to know of X, f and d."""

from __future__ import annotations

import numpy as np

from nmd_lab.data.observations import FloatArray
from nmd_lab.data.sparse import AnyObservations, SparseObservations
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.model.proximal import Pair


class Entries:
    """Values and weights of the stored entries.

    Parameters
    ----------
    observations : Observations or SparseObservations
        The data.
    pair : Pair
        The nonlinearity and the loss.

    Attributes
    ----------
    x : ndarray or ZeroFilled
        Values.
    weights : ndarray or None
        Their weights; 0 is missing.
    kind : str
        The argument types of a kernel over them, for its name.
    arguments : tuple
        The run-time numbers of the pair, as kernels take them.
    """

    def __init__(self, observations: AnyObservations, pair: Pair) -> None:
        weights = observations.weights
        self.weights = None if weights is None else weights.ravel()
        self.x: FloatArray | ZeroFilled
        if isinstance(observations, SparseObservations) and observations.absent_are_zeros:
            self.x = ZeroFilled(observations)
        else:
            self.x = observations.values.ravel()
        weighted = "every" if weights is None else str(weights.dtype)
        self.kind = f"{observations.values.dtype}_{weighted}"
        self.arguments = (*pair.arguments, pair.loss.floor)

    def weights_of(self, entries: slice) -> FloatArray | None:
        """Return the weights of a block."""
        return None if self.weights is None else self.weights[entries]

    def preimage(self, f: Nonlinearity) -> FloatArray:
        """Return the starting T: a preimage of X on Ω, and 0 elsewhere."""
        if isinstance(self.x, ZeroFilled):
            T = self.x.preimage(f)
        else:
            T = np.array(f.preimage(self.x), dtype=self.x.dtype)
        if self.weights is not None:
            T[self.weights == 0] = 0
        return T


class ZeroFilled:
    """A sparse matrix whose absent entries are zeros, read as dense rows, a few at a time."""

    def __init__(self, observations: SparseObservations) -> None:
        self.matrix = observations.to_csr()

    def __getitem__(self, entries: slice) -> FloatArray:
        """Return the values of whole rows, flat."""
        n = self.matrix.shape[1]
        block = self.matrix[entries.start // n : entries.stop // n]
        values: FloatArray = block.toarray().ravel()
        return values

    def preimage(self, f: Nonlinearity) -> FloatArray:
        """Return the starting T, flat; only the stored entries are worked out one by one."""
        matrix = self.matrix
        absent = f.preimage(np.zeros(1, dtype=matrix.dtype))[0]
        T = np.full(matrix.shape, absent, dtype=matrix.dtype)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        T[rows, matrix.indices] = f.preimage(matrix.data)
        return T.ravel()
