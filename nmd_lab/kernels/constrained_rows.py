"""Factor steps under a constraint: a small constrained least-squares problem for each row.

In the form of `nmd_lab.kernels.sweep`, a row w moves to the minimiser z of

    1/2 (z - w)ᵀ G (z - w) - g·(z - w) + value(z) / ρ,

where G is the normal matrix with the ridge and g the negative gradient at w.  Bounds and l1
penalties are solved coordinate by coordinate, other constraints by accelerated proximal gradient
steps, both from the present row and not further than pays.  Orthonormal columns couple the rows:
there the step is the nearest orthonormal matrix to Z Hᵀ, which solves the problem if T = WH is
imposed on every entry, and lowers it if it is imposed on the observed ones.

Sources: N. Gillis and F. Glineur, "Accelerated multiplicative updates and hierarchical ALS
algorithms for nonnegative matrix factorization", 2012 (several sweeps over the coordinates); A.
Beck and M. Teboulle, "A fast iterative shrinkage-thresholding algorithm", 2009, with the restart of
B. O'Donoghue and E. Candès, 2015.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nmd_lab._runtime.compiler import cached_kernel, compile_inner
from nmd_lab.data.entries import FloatArray
from nmd_lab.request.constraints import Entrywise, FactorConstraint, couples_rows


@dataclass(frozen=True)
class Ridge:
    """The ridge of a factor step, epsilon ‖other factor‖² + alphas / ρ, for each solved column."""

    epsilon: float
    alphas: FloatArray

    def __call__(self, other: FloatArray, penalty: float) -> FloatArray:
        """Return the ridge (n_solved,); it is positive even if the other factor is zero."""
        squares = float(np.einsum("ij,ij->", other, other, dtype=np.float64))
        return self.for_norm(squares, other.dtype, penalty)

    def for_norm(self, squares: float, dtype: DTypeLike, penalty: float) -> FloatArray:
        """Return the ridge, given the squared norm of the other factor and its type."""
        smallest = float(np.finfo(np.dtype(dtype)).tiny) * 16
        return np.asarray(self.epsilon * squares + self.alphas / penalty + smallest)

    def objective(self, factor: FloatArray) -> float:
        """Return the term of the objective for the solved columns, (m, n_solved)."""
        return self.of_squares(np.einsum("ij,ij->j", factor, factor, dtype=np.float64))

    def of_squares(self, squares: FloatArray) -> float:
        """Return that term, given the squared norms of the columns."""
        return 0.5 * float(self.alphas @ squares)


RowSolver = Callable[[FloatArray, FloatArray], FloatArray]
"""Function of rows (k, n_solved) and their negative gradients that returns the next rows."""

MAX_SWEEPS = 8  # largest number of sweeps over the coordinates of a row
SWEEP_TOL = 1e-2  # decrease by a sweep, over that by the first one, at which a row ends


@dataclass(frozen=True)
class ConstrainedColumns:
    """A constraint on some of the columns that a factor step solves for."""

    constraint: FactorConstraint
    components: slice

    @property
    def couples_rows(self) -> bool:
        """Whether the constraint holds for all rows together."""
        return couples_rows(self.constraint)

    @property
    def entrywise(self) -> Entrywise | None:
        """The constraint, if it holds for each number by itself."""
        return self.constraint if isinstance(self.constraint, Entrywise) else None

    def project(self, rows: FloatArray) -> FloatArray:
        """Return rows (k, n_solved) whose components are the nearest that are allowed."""
        nearest = rows.copy()
        nearest[:, self.components] = self.constraint.project(rows[:, self.components])
        return nearest

    def value(self, rows: FloatArray) -> float:
        """Return the penalty of rows (k, n_solved)."""
        return float(self.constraint.value(rows[:, self.components]))

    def bounds(self, size: int, penalty: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the l1 weight over ρ and the lower bound of each solved column."""
        weights, lowest = np.zeros(size), np.full(size, -np.inf)
        assert self.entrywise is not None
        weights[self.components] = (self.entrywise.weight or 0.0) / penalty
        lowest[self.components] = self.entrywise.lowest
        return weights, lowest

    def row_solver(self, normals: FloatArray, penalty: float, sweeps: int) -> RowSolver:
        """Return the function of rows and their negative gradients that returns the next rows.

        `normals` are the normal matrices with the ridge: one for all rows, or one for each.
        """
        if self.couples_rows:
            return partial(self._coupled_rows, normals)
        if self.entrywise is not None:
            size = normals.shape[-1]
            bounds = self.bounds(size, penalty)
            numbers = normals.reshape(-1, size, size), *bounds, sweeps, SWEEP_TOL

            def descend_rows(rows: FloatArray, slopes: FloatArray) -> FloatArray:
                rows, slopes = (np.array(each, np.float64, order="C") for each in (rows, slopes))
                cached_kernel(_descend_rows, "constrained_rows")(rows, slopes, *numbers)
                return rows

            return descend_rows
        longest = np.linalg.eigvalsh(normals)[..., -1:]
        lengths = 1.0 / np.maximum(longest, np.finfo(float).tiny)

        def times_normal(change: FloatArray) -> FloatArray:
            shared, column = normals.ndim == 2, change[:, :, None]
            return np.asarray(change @ normals if shared else (normals @ column)[:, :, 0])

        return partial(self._proximal_gradient, times_normal, lengths, penalty)

    def _proximal_gradient(
        self,
        times_normal: Callable[[FloatArray], FloatArray],
        lengths: NDArray[np.float64],
        penalty: float,
        rows: FloatArray,
        gradient: FloatArray,
    ) -> FloatArray:
        """Return rows after accelerated proximal gradient steps."""
        begin, slope = rows.astype(np.float64), gradient.astype(np.float64)
        lengths = lengths * np.ones((len(rows), 1))
        current, ahead = begin, begin
        momentum, longest = np.ones((len(rows), 1)), np.zeros((len(rows), 1))
        active = np.ones((len(rows), 1), bool)
        for _ in range(40):
            following = ahead + lengths * (slope - times_normal(ahead - begin))
            following[:, self.components] = self.constraint.prox(
                following[:, self.components], lengths / penalty
            )
            following = np.where(active, following, current)
            step = following - current
            uphill = np.sum((ahead - following) * step, axis=1, keepdims=True) > 0
            momentum = np.where(uphill, 1.0, momentum)
            after = 0.5 + np.sqrt(0.25 + momentum * momentum)
            ahead = following + ((momentum - 1) / after) * step
            current, momentum = following, after
            moved = np.linalg.norm(step, axis=1, keepdims=True)
            longest = np.maximum(longest, moved)
            active &= moved > 1e-2 * longest  # other rows end
            if not active.any():
                break
        return current

    def _coupled_rows(self, normal: FloatArray, rows: FloatArray, slopes: FloatArray) -> FloatArray:
        """Return all rows of a factor, if the constraint couples them.

        The offsets move first, given the components; then the components move to the allowed
        matrix that is nearest to their sums.  A ridge does not change which one that is.
        """
        following, components = rows.astype(np.float64), self.components
        others = np.ones(len(normal), bool)
        others[components] = False
        for c in np.flatnonzero(others):
            step = slopes[:, c] / normal[c, c]
            following[:, c] += step
            slopes = slopes - step[:, None] * normal[c]
        sums = slopes[:, components] + rows[:, components] @ normal[components, components]
        following[:, components] = self.constraint.project(sums)
        return following


def proximal_move(
    rows: FloatArray,
    gradient: FloatArray,
    length: float,
    constrained: ConstrainedColumns | None,
) -> FloatArray:
    """Return what a proximal gradient step takes from rows; 0 where a constraint holds them."""
    moved = rows.astype(np.float64) - length * gradient
    if constrained is not None:
        components = constrained.components
        step = np.full((len(rows), 1), length)
        moved[:, components] = constrained.constraint.prox(moved[:, components], step)
    return np.asarray(rows - moved)


@compile_inner
def descend(w, g, normal, inverse, weights, lowest, sweeps, settled):  # type: ignore[no-untyped-def]
    """Minimise over a row by sweeps over its coordinates; w and g are overwritten."""
    size, first = w.size, 0.0
    for sweep in range(sweeps):
        gain = 0.0
        for c in range(size):
            new = w[c] + g[c] * inverse[c]
            if weights[c] > 0.0:
                threshold = weights[c] * inverse[c]
                if new > threshold:
                    new -= threshold
                elif new < -threshold:
                    new += threshold
                else:
                    new = 0.0
            new = max(new, lowest[c])
            step = new - w[c]
            if step != 0.0:
                w[c] = new
                gain += step * step * normal[c, c]
                for other in range(size):
                    g[other] -= step * normal[c, other]
        if sweep == 0:
            first = gain
        if gain <= settled * first:
            break


@compile_inner
def invert_diagonal(normal, inverse):  # type: ignore[no-untyped-def]
    """Put 1 / diagonal into `inverse`, 0 where a component is dead."""
    for c in range(inverse.size):
        inverse[c] = 1.0 / normal[c, c] if normal[c, c] > 0.0 else 0.0


def _descend_rows(rows, slopes, normals, weights, lowest, sweeps, settled):  # type: ignore[no-untyped-def]
    inverse, each = np.empty(rows.shape[1]), normals.shape[0] > 1
    for i in range(rows.shape[0]):
        normal = normals[i if each else 0]
        if each or i == 0:
            invert_diagonal(normal, inverse)
        descend(rows[i], slopes[i], normal, inverse, weights, lowest, sweeps, settled)


def penalty_of(rows: FloatArray, ridge: Ridge, constrained: ConstrainedColumns | None) -> float:
    """Return the ridge and the penalty of what is solved for in a factor, (k, n_solved)."""
    return ridge.objective(rows) + (0.0 if constrained is None else constrained.value(rows))
