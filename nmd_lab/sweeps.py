"""One pass over the data, block of rows by block of rows.

Within a block everything happens while it is in cache: A = WH, the T- and U-update, the block's
next rows of W, and its share of what the H-step needs.  Only those sums cross blocks.

All steps are written with S = T + U - WH, the part of Z = T + U that is not low-rank.  Then

    Z Hᵀ = W (H Hᵀ) + S Hᵀ,    so    W⁺ = W + (S Hᵀ - ridge W) (H Hᵀ + ridge I)⁻¹,

and likewise for H.  S is zero wherever nothing is observed, so the same steps serve data that are
dense, masked or sparse; and they lose no digits when the change of W is small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .compilation import compile_kernel, compile_scalar
from .observations import FloatArray, Observations
from .proximal import Pair, compile_t_update

BLOCK_ENTRIES = 1 << 16  # 512 KiB of doubles: a block and its state stay in a second-level cache


@dataclass
class Pass:
    """What one sweep leaves behind.

    Attributes
    ----------
    W : ndarray (m, rank)
        The next rows of W.
    WtS : ndarray (rank, n)
        The next W transposed times S, for the H-step.
    data_term, primal, change : float
        Weighted loss of f(WH); ‖T - WH‖ and ‖T - T_previous‖, squared.
    projected_change : float
        ‖Wᵀ(T - T_previous)‖, squared, if it was asked for.
    """

    W: FloatArray
    WtS: FloatArray
    data_term: float = 0.0
    primal: float = 0.0
    change: float = 0.0
    projected_change: float = 0.0


@dataclass(frozen=True)
class Ridge:
    """The ridge terms of both factor steps: epsilon ‖other factor‖² + alpha / ρ."""

    epsilon: float
    alpha: float

    def __call__(self, other: FloatArray, penalty: float) -> float:
        """Return the ridge, never quite zero so that a factor of zeros stays finite."""
        norm = float(np.vdot(other, other))
        smallest = float(np.finfo(other.dtype).tiny) * 16
        return self.epsilon * norm + self.alpha / penalty + smallest


def inverse(normal: FloatArray, ridge: float) -> FloatArray:
    """Return (normal + ridge I)⁻¹ in double precision, or NaN where there is none."""
    matrix = normal.astype(np.float64) + ridge * np.eye(normal.shape[0])
    try:
        return cho_solve(cho_factor(matrix, check_finite=False), np.eye(normal.shape[0]))
    except (np.linalg.LinAlgError, ValueError):
        return np.full_like(matrix, np.nan)


class DenseState:
    """T and U of a dense or masked problem, and the sweep over its blocks of rows.

    Parameters
    ----------
    observations : Observations
        The data.
    pair : Pair
        The nonlinearity and the loss.
    ridge : Ridge
        The ridge terms of the factor steps.
    """

    def __init__(self, observations: Observations, pair: Pair, ridge: Ridge) -> None:
        values, weights = observations.values, observations.weights
        self.values, self.weights = values, weights
        self.ridge = ridge
        self.T = np.array(pair.nonlinearity.preimage(values), dtype=values.dtype, order="C")
        if weights is not None:
            self.T[weights == 0] = 0
        self.U = np.zeros_like(values)
        self.dual_scale = 1.0  # what U is to be multiplied with, since ρ has changed
        self.kernel = update_kernel(pair, values.dtype, weights)
        self.arguments = (*pair.arguments, pair.loss.floor)
        m, n = values.shape
        self.block_rows = max(1, min(BLOCK_ENTRIES // n, m))
        self.buffer, self.change = np.empty((2, self.block_rows, n), dtype=values.dtype)

    def rescale(self, factor: float) -> None:
        """Multiply U, whose unit is 1/ρ, when ρ changes."""
        self.dual_scale *= factor

    def sweep(
        self,
        W: FloatArray,
        H: FloatArray,
        penalty: float,
        *,
        update: bool = True,
        projected: bool = False,
    ) -> Pass:
        """Go over all rows once.

        Parameters
        ----------
        W, H : ndarray
            The factors that make A = WH.
        penalty : float
            ρ of this iteration and, it is assumed, of the next W-step.
        update : bool
            Whether T and U are updated before the next rows of W follow from them.
        projected : bool
            Whether Wᵀ(T - T_previous) is wanted.
        """
        ridge = self.ridge(H, penalty)
        solve = inverse(H @ H.T, ridge).astype(H.dtype)
        result = Pass(np.empty_like(W), np.zeros_like(H))
        sums, WtC = np.zeros(3), np.zeros_like(H)
        for start in range(0, W.shape[0], self.block_rows):
            rows = slice(start, start + self.block_rows)
            S = np.dot(W[rows], H, out=self.buffer[: W.shape[0] - start])
            if update:
                sums += self._update(rows, S, penalty)
                if projected:
                    WtC += W[rows].T @ self.change[: S.shape[0]]
            else:
                self._refresh(rows, S)
            result.W[rows] = W[rows] + (S @ H.T - ridge * W[rows]) @ solve
            result.WtS += result.W[rows].T @ S
        if update:
            self.dual_scale = 1.0
        result.data_term, result.primal, result.change = sums.tolist()
        result.projected_change = float(np.vdot(WtC, WtC))
        return result

    def _update(self, rows: slice, A: FloatArray, penalty: float) -> tuple[float, float, float]:
        """Update T and U of a block and turn A into S."""
        weights = None if self.weights is None else self.weights[rows].ravel()
        flat = (self.values[rows], A, self.T[rows], self.U[rows], self.change[: A.shape[0]])
        x, a, t, u, change = (array.ravel() for array in flat)
        numbers = (penalty, self.dual_scale, *self.arguments)
        sums: tuple[float, float, float] = self.kernel(x, a, weights, t, u, change, *numbers)
        return sums

    def _refresh(self, rows: slice, A: FloatArray) -> None:
        """Turn A into S with T and U as they stand."""
        np.subtract(self.T[rows], A, out=A)
        A += self.dual_scale * self.U[rows]


def next_H(result: Pass, W: FloatArray, H: FloatArray, ridge: float) -> FloatArray:
    """Return the next H from a sweep made with W and H: (WᵀW + ridge I)⁻¹ WᵀZ with the next W."""
    new = result.W
    step = result.WtS - (new.T @ (new - W)) @ H - ridge * H
    return H + (inverse(new.T @ new, ridge) @ step).astype(H.dtype, copy=False)


def update_kernel(pair: Pair, dtype: Any, weights: Any) -> Callable[..., Any]:
    """Return the compiled T- and U-update of a flat block.

    It takes (x, a, weights, t, u, change, penalty, dual_scale, *pair.arguments, floor), updates t
    and u, puts S into a and T - T_previous into change, and returns the weighted loss of f(a),
    ‖T - A‖² and ‖T - T_previous‖².
    """
    kind = "every" if weights is None else str(weights.dtype)
    name = f"update_{pair.name}_{np.dtype(dtype)}_{kind}"
    return _update_kernel(pair.structure, name, pair.is_ours)


@cache
def _update_kernel(structure: tuple[Any, ...], name: str, cached: bool) -> Callable[..., Any]:
    solve = compile_t_update(structure)
    value = compile_scalar(structure[1].value)
    forward = compile_scalar(structure[0].forward)

    def update(  # type: ignore[no-untyped-def]
        x, a, weights, t, u, change, penalty, dual_scale, pieces, pf, pd, floor
    ):
        data_term, primal, moved = 0.0, 0.0, 0.0
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
            residual, step = new - a[i], new - t[i]
            primal += residual * residual
            moved += step * step
            t[i], u[i] = new, new - v
            a[i], change[i] = residual + (new - v), step
        return data_term, primal, moved

    return compile_kernel(update, name, cached=cached)
