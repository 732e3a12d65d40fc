"""The split variable T and its dual U at the stored entries, and their update.

This is the only part of an iteration that sees X, f and d.  It works on flat arrays of entries and
does not know whether they come from a dense or a sparse matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .compilation import compile_kernel, compile_scalar
from .nonlinearities import Nonlinearity
from .observations import FloatArray
from .proximal import Pair, Structure, compile_t_update
from .sparse_observations import AnyObservations, SparseObservations


class Splitting:
    """T and U of a problem, flat.

    Parameters
    ----------
    observations : Observations
        The data.
    pair : Pair
        The nonlinearity and the loss.
    everywhere : bool
        Whether T = WH is imposed on entries that are not stored too: there T = WH at all times,
        which the sums below are to leave out.
    """

    def __init__(self, observations: AnyObservations, pair: Pair, *, everywhere: bool) -> None:
        weights = observations.weights
        self.weights = None if weights is None else weights.ravel()
        self.x: FloatArray | ZeroFilled
        if isinstance(observations, SparseObservations) and observations.absent_are_zeros:
            self.x = ZeroFilled(observations)
            self.T = self.x.preimage(pair.nonlinearity)
        else:
            self.x = observations.values.ravel()
            self.T = np.array(pair.nonlinearity.preimage(self.x), dtype=self.x.dtype)
        if self.weights is not None:
            self.T[self.weights == 0] = 0
        self.U = np.zeros_like(self.T)
        self.dual_scale = 1.0  # what U is to be multiplied with, since ρ has changed
        self.A = np.zeros_like(self.T) if everywhere else None
        weighted = "every" if weights is None else str(weights.dtype)
        kind = f"{self.T.dtype}_{weighted}_{'off' if everywhere else 'on'}"
        self.kernel, self.projecting_kernel = (
            update_kernel(pair, f"{kind}{projecting}") for projecting in ("", "_projecting")
        )
        self.arguments = (*pair.arguments, pair.loss.floor)

    def rescale(self, factor: float) -> None:
        """Multiply U, whose unit is 1/ρ, when ρ changes."""
        self.dual_scale *= factor

    def update(
        self, entries: slice, A: FloatArray, penalty: float, change: FloatArray | None
    ) -> tuple[float, float, float, float]:
        """Update T and U of a block and turn A = WH into S = T + U - A.

        Parameters
        ----------
        entries : slice
            The block's flat entries.
        A : ndarray
            WH at these entries; overwritten by S.
        penalty : float
            ρ.
        change : ndarray, optional
            Receives T - T_previous, less WH - WH_previous if the constraint holds everywhere.

        Returns
        -------
        tuple of float
            The weighted loss of f(A), and the squared norms of T - A, T - T_previous and, if the
            constraint holds everywhere, A - A_previous.
        """
        optional = (None if a is None else a[entries] for a in (self.weights, self.A))
        weights, previous = optional
        state = (self.T[entries], self.U[entries], previous, change)
        numbers = (penalty, self.dual_scale, *self.arguments)
        kernel = self.kernel if change is None else self.projecting_kernel
        return kernel(self.x[entries], A, weights, *state, *numbers)

    def refresh(self, entries: slice, A: FloatArray) -> None:
        """Turn A into S with T and U as they stand."""
        if self.A is not None:
            self.A[entries] = A
        np.subtract(self.T[entries], A, out=A)
        A += self.dual_scale * self.U[entries]


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


def update_kernel(pair: Pair, kind: str) -> Callable[..., tuple[float, float, float, float]]:
    """Return the compiled update of a flat block, for arguments of one kind.

    It takes (x, a, weights, t, u, previous, change, penalty, dual_scale, *pair.arguments, floor).
    """
    return _update_kernel(pair.structure, f"update_{pair.name}_{kind}", pair.is_ours)


@cache
def _update_kernel(structure: Structure, name: str, cached: bool) -> Callable[..., Any]:
    solve = compile_t_update(structure)
    value = compile_scalar(structure[1].value)
    forward = compile_scalar(structure[0].forward)

    def update(  # type: ignore[no-untyped-def]
        x, a, weights, t, u, previous, change, penalty, dual_scale, pieces, pf, pd, floor
    ):
        data_term, primal, moved, shifted = 0.0, 0.0, 0.0, 0.0
        for i in range(x.size):
            v = a[i] - dual_scale * u[i]
            y = max(forward(a[i], pf), floor)
            if weights is None:
                new = solve(v, x[i], penalty, pieces, pf, pd)
                data_term += value(x[i], y, pd)
            else:
                weight = weights[i]
                new = solve(v, x[i], penalty / weight, pieces, pf, pd)
                new = new if weight > 0 else v
                data_term += weight * value(x[i], y, pd)
            residual, step, shift = new - a[i], new - t[i], 0.0
            if previous is not None:
                shift = a[i] - previous[i]
                previous[i] = a[i]
            if change is not None:
                change[i] = step - shift
            primal += residual * residual
            moved += step * step
            shifted += shift * shift
            t[i], u[i] = new, new - v
            a[i] = residual + (new - v)
        return data_term, primal, moved, shifted

    return compile_kernel(update, name, cached=cached)
