"""New rows of a fit to sparse zeros, with H fixed and without a dense loop for each row.

The rows of a batch take Newton steps together: the products with H are those of BLAS.  A row has
its own damping and its own end, and does not depend on the others, up to rounding.  The steps
descend on the Moreau envelope with U = 0 (`nmd_lab.solver.refinement.moreau_envelope`), first for a
small ρ and then for ever larger ones.  The W of lowest objective is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, starmap

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import CsrRows
from nmd_lab.model.model import Model

from .devices import HOST
from .refinement.moreau_envelope import outer_products, symmetric
from .unit_rows import UnitRows

Array = NDArray[np.floating]

PENALTIES = (10.0, 1e3, 1e5, 1e7, 1e9)  # ρ of each stage, in natural ones of a row
STEPS = 20  # largest number of steps of a stage
DECREASE = 1e-4  # relative decrease of a row's envelope at or below which its stage ends
DAMPING = 1e-5  # first damping, relative to ρ times the Gram matrix of H
SUCCESS = 0.2  # factor of the damping after a step that lowers the envelope
FAILURE = 10.0  # factor of the damping after any other step
MOST = 1e6  # damping from which a row ends its stage
RANDOM_STARTS = 2  # in addition to one of least squares, unless f is the identity
COLUMNS_ENTRIES = 1 << 20  # numbers of outer products of columns of H at a time: 8 MiB


@dataclass
class _Point:
    """Envelope, objective, gradient and normal matrix of each row of a batch."""

    value: Array
    objective: Array
    gradient: Array
    normal: Array

    def take(self, other: _Point, mine: NDArray[np.intp], its: NDArray[np.bool_]) -> None:
        """Put some rows of another point in the place of mine."""
        for name in ("value", "objective", "gradient", "normal"):
            getattr(self, name)[mine] = getattr(other, name)[its]


def solve_zeros(unit: UnitRows) -> Array:
    """Return the best W found of rows of which the nonzero entries are given."""
    rows, natural = _ZeroRows(unit), unit.natural_penalties()
    best: Array = np.zeros(unit.shape)
    lowest: Array = np.full(unit.shape[0], np.inf)
    for start in rows.starts():
        for positions, W, objective in rows.descend(start, natural):
            better = objective < lowest[positions]
            best[positions[better]] = W[better]
            lowest[positions[better]] = objective[better]
    return best


class _ZeroRows:
    """The problem of some new rows that share one unit."""

    def __init__(self, unit: UnitRows) -> None:
        self.unit, self.model, self.Ht, self.ridge = unit, unit.model, unit.Ht, unit.ridge
        self.alpha = float(unit.alphas[0])
        self.H, self.gram = np.ascontiguousarray(self.Ht.T), self.Ht.T @ self.Ht
        self.envelope_pass = HOST.envelope_pass(self.model, "float64_every")
        self.curvature_pass = HOST.curvature_pass(self.model, "float64_every")
        self.zero_pass = HOST.zero_pass(self.model, np.dtype(np.float64))
        self.zeros = np.zeros(len(self.Ht))

    def starts(self) -> Iterator[Array]:
        """Yield the least-squares fit to the starting T, and random W unless f is the identity."""
        rows = self.unit.rows
        absent = float(self.model.pseudo_inverse(np.zeros(1))[0])
        T = self.unit.starting_T - absent
        whole = np.tile(absent * self.H.sum(axis=1), (self.unit.shape[0], 1))
        for i, stored in enumerate(_slices(rows)):
            whole[i] += T[stored] @ self.Ht[rows.indices[stored]]
        damped: Array = self.gram + (self.ridge + self.alpha) * np.eye(len(self.gram))
        start = np.linalg.lstsq(damped, whole.T, rcond=None)[0].T
        yield start
        rng, scale = np.random.default_rng(0), np.sqrt(np.mean(start**2, axis=1, keepdims=True))
        for _ in range(0 if self.model.nonlinearity.linear else RANDOM_STARTS):
            yield scale * rng.standard_normal((1, len(self.gram)))

    def descend(self, W: Array, natural: Array) -> Iterator[tuple[NDArray[np.intp], Array, Array]]:
        """Yield the positions of some rows, a W of each, and their objectives."""
        rows, everywhere = self.unit.rows, np.arange(len(natural))
        W = np.broadcast_to(W, (len(natural), W.shape[1])).copy()
        for penalty in PENALTIES:
            rho, active = penalty * natural, everywhere
            damping = np.full(len(W), DAMPING)
            at = self._point(rows, W, rho)
            yield everywhere, W, at.objective
            for _ in range(STEPS):
                weight = (damping * rho)[active][:, None, None]
                normal = at.normal[active] + weight * self.gram
                step = -np.linalg.solve(normal, at.gradient[active][:, :, None])[:, :, 0]
                trial = self._point(rows.take(active), W[active] + step, rho[active])
                yield active, W[active] + step, trial.objective
                lower = trial.value < at.value[active]
                gain = np.where(lower, at.value[active] - trial.value, np.inf)
                W[active[lower]] += step[lower]
                at.take(trial, active[lower], lower)
                damping[active] *= np.where(lower, SUCCESS, FAILURE)
                little = gain <= DECREASE * np.abs(trial.value)
                active = active[~little & (damping[active] < MOST)]
                if not active.size:
                    break

    def _point(self, rows: CsrRows, W: Array, rho: Array) -> _Point:
        """Return the envelope at W, with a ρ for each row."""
        A = W @ self.H
        C, value = A.copy(), 0.5 * self.alpha * np.sum(W * W, axis=1)
        objective = value.copy()
        for i, stored in enumerate(_slices(rows)):
            sums = self._slopes(A[i], C[i], rows.indices[stored], rows.values[stored], rho[i])
            value[i] += sums[0]
            objective[i] += sums[1]
        normal = symmetric(self._weighted_products(C), len(self.gram))
        smallest = rho[:, None, None] * self.ridge + np.finfo(float).tiny
        normal += (self.alpha + smallest) * np.eye(len(self.gram))
        return _Point(value, objective, A @ self.Ht + self.alpha * W, normal)

    def _slopes(
        self, a: Array, c: Array, columns: NDArray[np.integer], x: Array, rho: float
    ) -> tuple[float, float]:
        """Turn WH of a row into slopes and curvatures, and return envelope and loss."""
        none, model = (None, None, None, None), self.model.numbers
        stored, curvatures, U = a[columns], c[columns], np.zeros(x.size)
        self.curvature_pass(self.zeros, c, *none, self.zeros, rho, model)
        at_zero = self.zero_pass(np.zeros(1), rho)
        a[columns] = 0
        sums = np.array(self.zero_pass(a, rho)) - x.size * np.array(at_zero)
        if x.size:
            self.curvature_pass(x, curvatures, *none, U, rho, model)
            sums += self.envelope_pass(x, stored, *none, U, rho, 0.0, model)
            a[columns], c[columns] = stored, curvatures
        return float(sums[0]), float(sums[1])

    def _weighted_products(self, C: Array) -> Array:
        """Return Σ c_j h_j h_jᵀ for each row, as lower triangles, some columns at a time."""
        rank = len(self.gram)
        triangle = rank * (rank + 1) // 2
        total, width = np.zeros((len(C), triangle)), max(1, COLUMNS_ENTRIES // triangle)
        for first in range(0, len(self.Ht), width):
            chunk = slice(first, first + width)
            total += C[:, chunk] @ outer_products(self.Ht[chunk])
        return total


def handles_rows(model: Model) -> bool:
    """Return whether Newton steps suit a model: one smooth loss, and an f within its domain."""
    if model.is_mixed or not model.smooth:
        return False
    if model.only.pieces:
        return model.only.pieces == model.nonlinearity.pieces()
    (low, high), (smallest, largest) = model.loss.domain, model.nonlinearity.range
    return low <= smallest and largest <= high


def _slices(rows: CsrRows) -> Iterator[slice]:
    """Yield the entries of each row."""
    return starmap(slice, pairwise(rows.indptr.tolist()))
