"""The split variable T and its dual U at the stored entries, and their update.

This is the only part of an iteration that sees X, f and d.  It works on flat arrays of entries and
does not know whether they come from a dense or a sparse matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from nmd_lab._numba import compile_kernel, compile_scalar
from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.proximal import Pair, Structure, compile_t_update

from .stored_entries import Entries


class Splitting(Entries):
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

    def __init__(self, observations: Observations, pair: Pair, *, everywhere: bool) -> None:
        super().__init__(observations, pair)
        self.T = self.preimage(pair.nonlinearity)
        self.U = np.zeros_like(self.T)
        self.dual_scale = 1.0  # what U is to be multiplied with, since ρ has changed
        self.A = np.zeros_like(self.T) if everywhere else None
        kind = f"{self.kind}_{'off' if everywhere else 'on'}"
        self.kernel, self.projecting_kernel = (
            update_kernel(pair, f"{kind}{projecting}") for projecting in ("", "_projecting")
        )

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
        weights = self.weights_of(entries)
        previous = None if self.A is None else self.A[entries]
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
