"""The step of each row of a factor: sums over its entries, and the small problem solved with them.

**Constraints.**  In the form of `nmd_lab.kernels.sweep`, a row w moves to the minimiser z of

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

**Sums.**  A row operator moves row w of a factor to the minimiser of a least-squares problem with T
+ U,

    (Σ p_j p_jᵀ + ridge I) step = Σ s_j p_j - ridge w,

where p_j is a row of the other factor and the sums are over the entries that the row stores: the
normal matrix and the gradient of the row.  If every row has all entries, there is one normal matrix
H Hᵀ, and the gradients are a product of matrices (`nmd_lab.kernels.sweep`).

The entries of a column lie far from each other in arrays that are ordered by rows.  In a pass over
whole columns of large data, nearly every access would miss the cache.  The sums of all columns then
grow while one chunk of rows after another is in the cache.

With the sums each row w moves to the minimiser z of

    1/2 (z - w)ᵀ G (z - w) - g·(z - w) + value(z) / ρ,

where G and g are the normal matrix and the gradient, with the ridge: by a Cholesky factor without a
constraint, in a compiled loop, since the call of a routine of LAPACK takes longer than the
computation, and by `ConstrainedColumns.solver` with one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, starmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg.lapack import dposv

from nmd_lab._runtime.compiler import cached_kernel, compile_inner
from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.data.observations import row_borders
from nmd_lab.devices import HOST, Device
from nmd_lab.request.constraints import Entrywise, FactorConstraint, couples_rows

from .products import CsrStorage


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

    def of_squares(self, squares: FloatArray) -> float:
        """Return the term of the objective, given the squared norms of the solved columns."""
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

    def solver(self, normals: FloatArray, penalty: float, sweeps: int) -> RowSolver:
        """Return the function of rows and their negative gradients that returns the next rows.

        `normals` are the normal matrices with the ridge: one for all rows, or one for each.  Both
        arguments of the function are in double precision, and may be overwritten.
        """
        if self.couples_rows:
            return partial(self._coupled_rows, normals)
        if self.entrywise is None:
            return self._proximal_gradient(normals, penalty)
        size = normals.shape[-1]
        numbers = normals.reshape(-1, size, size), *self.bounds(size, penalty), sweeps, SWEEP_TOL
        return partial(cached_kernel(_descend_rows, "constrained_rows"), *numbers)

    def _proximal_gradient(self, normals: FloatArray, penalty: float) -> RowSolver:
        """Return the function that takes accelerated proximal gradient steps."""
        shared, largest = normals.ndim == 2, np.linalg.eigvalsh(normals)[..., -1:]
        step_lengths = 1.0 / np.maximum(largest, np.finfo(float).tiny)

        def next_rows(begin: FloatArray, slopes: FloatArray) -> FloatArray:
            ones = np.ones((len(begin), 1))
            lengths, current, ahead = step_lengths * ones, begin, begin
            momentum, longest, active = ones, 0 * ones, ones > 0
            for _ in range(40):
                change = ahead - begin
                curved = change @ normals if shared else (normals @ change[:, :, None])[:, :, 0]
                following = ahead + lengths * (slopes - curved)
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

        return next_rows

    def _coupled_rows(self, normal: FloatArray, rows: FloatArray, slopes: FloatArray) -> FloatArray:
        """Return all rows of a factor, if the constraint couples them.

        The offsets move first, given the components; then the components move to the allowed
        matrix that is nearest to their sums.  A ridge does not change which one that is.
        """
        following, components = rows.copy(), self.components
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
    rows: FloatArray, gradient: FloatArray, length: float, constrained: ConstrainedColumns | None
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


def _descend_rows(normals, weights, lowest, sweeps, settled, rows, slopes):  # type: ignore[no-untyped-def]
    inverse, each = np.empty(rows.shape[1]), normals.shape[0] > 1
    for i in range(rows.shape[0]):
        normal = normals[i if each else 0]
        if each or i == 0:
            invert_diagonal(normal, inverse)
        descend(rows[i], slopes[i], normal, inverse, weights, lowest, sweeps, settled)
    return rows


def penalty_of(rows: FloatArray, ridge: Ridge, constrained: ConstrainedColumns | None) -> float:
    """Return the ridge and the penalty of what is solved for in a factor, (k, n_solved)."""
    squares = np.einsum("ij,ij->j", rows, rows, dtype=np.float64)
    return ridge.of_squares(squares) + (0.0 if constrained is None else constrained.value(rows))


ENTRIES = 1 << 21  # entries of a chunk of rows, 16 MiB of doubles
MIN_CHUNKS = 4  # smallest number of chunks; fewer entries are no problem for the cache
MAX_MEMORY = 0.5  # largest size of all normal matrices, in numbers for each entry
NUMBERS = 1 << 16  # of normal matrices that are made at a time, 512 KiB


class Chunk(NamedTuple):
    """Entries of rows, all of them or those of a range of partners.

    Attributes
    ----------
    indptr : ndarray of int (n_rows + 1,)
        Row i has the entries indptr[i] to indptr[i + 1].
    partners : ndarray of int (n_entries,)
        Rows of the other factor, from the first one of the chunk.
    positions : ndarray of int (n_entries,) or None
        Positions of the entries in S, from the first entry of the chunk; None if entries are in
        the order of the rows.
    first_partner, first_entry : int
        First partner, and first entry in S.
    """

    indptr: IntArray
    partners: IntArray
    positions: IntArray | None = None
    first_partner: int = 0
    first_entry: int = 0


def chunk_of_rows(storage: CsrStorage) -> Chunk:
    """Return the entries of all rows of a storage."""
    return Chunk(storage.indptr, storage.indices)


def chunks_of_columns(storage: CsrStorage, size: int, device: Device = HOST) -> list[Chunk]:
    """Return the entries of all columns of a storage: several chunks of large data.

    The normal matrices of all columns, of a given size, are then held at the same time.  On a
    device with arrays in files the entries lie there, too.
    """
    m, n = storage.shape
    ends: Any = []
    if storage.n_entries >= max(MIN_CHUNKS * ENTRIES, n * size**2 / MAX_MEMORY):
        ends = np.arange(ENTRIES, storage.n_entries, ENTRIES)
    borders = np.unique([0, *np.searchsorted(storage.indptr, ends), m]).tolist()
    return [_chunk(storage, device, *pair) for pair in pairwise(borders)]


def _chunk(storage: CsrStorage, device: Device, first: int, last: int) -> Chunk:
    """Return the entries of all columns in a range of rows."""
    begin, end = int(storage.indptr[first]), int(storage.indptr[last])
    indptr = storage.indptr[first : last + 1] - storage.indptr[first]
    shape = (last - first, storage.shape[1])
    columns, positions = CsrStorage(shape, indptr, storage.indices[begin:end]).transposed()
    arrays: list[Any] = [device.get(device.put(each)) for each in (columns.indices, positions)]
    return Chunk(columns.indptr, arrays[0], arrays[1], first, begin)


def shares_of_rows(chunks: list[Chunk], shares: int) -> list[slice]:
    """Return ranges of rows with about as many entries."""
    indptr = sum((chunk.indptr for chunk in chunks[1:]), start=chunks[0].indptr)
    return list(starmap(slice, pairwise(row_borders(indptr, shares))))


def row_sums(
    chunks: list[Chunk], S: FloatArray, partners: FloatArray, rows: slice
) -> tuple[FloatArray, FloatArray]:
    """Return the normal matrices, as lower triangles, and the gradients of some rows."""
    count, size = rows.stop - rows.start, partners.shape[1]
    normals, gradients = np.zeros((count, size, size)), np.zeros((count, size))
    for chunk in chunks:
        indptr = chunk.indptr[rows.start : rows.stop + 1]
        here, indices, at = slice(indptr[0], indptr[-1]), chunk.partners, chunk.positions
        values = S[here] if at is None else S[chunk.first_entry :][at[here]]
        add = cached_kernel(_add_entries, f"sums_{S.dtype}_{indices.dtype}")
        add(indptr, indices, values, partners[chunk.first_partner :], normals, gradients)
    return normals, gradients


def _add_entries(indptr, indices, S, partners, normals, gradients):  # type: ignore[no-untyped-def]
    """Add the entries of rows to their gradients and the lower triangles of normal matrices.

    S begins with the first of these entries.  The inner loops run from 0 over views of rows: the
    compiler vectorises them only if no index can be negative.
    """
    base = indptr[0]
    for i in range(gradients.shape[0]):
        normal, gradient, begin, end = normals[i], gradients[i], indptr[i], indptr[i + 1]
        whole = end - (end - begin) % 4
        for k in range(begin, whole, 4):  # four at a time: each sum is loaded and stored once
            h0, h1 = partners[indices[k]], partners[indices[k + 1]]
            h2, h3 = partners[indices[k + 2]], partners[indices[k + 3]]
            s0, s1, s2, s3 = S[k - base], S[k + 1 - base], S[k + 2 - base], S[k + 3 - base]
            for a in range(gradient.size):
                row, a0, a1, a2, a3 = normal[a], h0[a], h1[a], h2[a], h3[a]
                gradient[a] += s0 * a0 + s1 * a1 + s2 * a2 + s3 * a3
                for c in range(a + 1):
                    row[c] += a0 * h0[c] + a1 * h1[c] + a2 * h2[c] + a3 * h3[c]
        for k in range(whole, end):
            h, s = partners[indices[k]], S[k - base]
            for a in range(gradient.size):
                row, weight = normal[a], h[a]
                gradient[a] += s * weight
                for c in range(a + 1):
                    row[c] += weight * h[c]


def update_rows(
    constrained: ConstrainedColumns | None,
    chunks: list[Chunk],
    S: FloatArray,
    partners: FloatArray,
    ridge: FloatArray,
    penalty: float,
    rows: slice,
    solved: slice,
    out: FloatArray,
) -> None:
    """Move some rows of `out`, which have normal matrices of their own, in place."""
    step, number = max(1, NUMBERS // max(1, partners.shape[1]) ** 2), rows.stop - rows.start
    # Each of several chunks is in the cache once.
    whole = row_sums(chunks, S, partners, rows) if len(chunks) > 1 else None
    for begin in range(0, number, step):
        at = slice(begin, min(begin + step, number))
        some = slice(rows.start + at.start, rows.start + at.stop)
        sums = row_sums(chunks, S, partners, some) if whole is None else [w[at] for w in whole]
        improve = solver_for(constrained, sums[0], ridge, penalty)
        out[some, solved] = improve(out[some, solved], sums[1])


def solver_for(
    constrained: ConstrainedColumns | None,
    normals: FloatArray,
    ridge: FloatArray,
    penalty: float,
    *,
    sweeps: int = MAX_SWEEPS,
) -> RowSolver:
    """Return the finish of rows, whose gradients have no ridge, from sums over their entries.

    `normals` is one matrix for all rows, or has the lower triangle of one for each.
    """
    shared, dtype = normals.ndim == 2, normals.dtype
    if constrained is not None and not shared:
        normals = normals + np.tril(normals, -1).transpose(0, 2, 1)
    if constrained is not None or shared:
        normals = normals.astype(np.float64) + np.diag(ridge)
    if constrained is not None:
        improve = constrained.solver(normals, penalty, sweeps)
    elif shared:
        _, inverse, failed = dposv(normals, np.eye(ridge.size))
        inverse = (inverse * np.nan if failed else inverse).astype(dtype)

    def solve(rows: FloatArray, gradients: FloatArray) -> FloatArray:
        gradients = gradients - ridge.astype(gradients.dtype) * rows
        if constrained is not None:
            wide = (np.array(each, np.float64, order="C") for each in (rows, gradients))
            return improve(*wide).astype(rows.dtype, copy=False)
        if shared:
            return np.asarray(rows + gradients @ inverse)
        cached_kernel(_solve, "solve_rows")(normals, ridge, gradients)
        return np.asarray(rows + gradients)

    return solve


def _solve(normals, ridge, steps):  # type: ignore[no-untyped-def]
    L = np.empty((ridge.size, ridge.size))
    for i in range(steps.shape[0]):
        factorize(normals[i], ridge, L)
        substitute(L, steps[i])


@compile_inner
def factorize(normal, ridge, L):  # type: ignore[no-untyped-def]
    """Put the Cholesky factor of normal + diag(ridge) into the lower triangle of L.

    In a direction without data the pivot is zero, up to rounding.  It is replaced by infinity, so
    that solutions are zero in that direction.  `normal` and `L` may be the same array.
    """
    for j in range(normal.shape[0]):
        diagonal = normal[j, j]
        pivot = diagonal + ridge[j]
        for k in range(j):
            pivot -= L[j, k] * L[j, k]
        pivot = math.sqrt(pivot) if pivot > 1e-15 * diagonal + 1e-300 else math.inf
        L[j, j] = pivot
        for i in range(j + 1, normal.shape[0]):
            total = normal[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / pivot


@compile_inner
def substitute(L, b):  # type: ignore[no-untyped-def]
    """Overwrite b with the solution y of L Lᵀ y = b."""
    for i in range(b.size):
        total = b[i]
        for k in range(i):
            total -= L[i, k] * b[k]
        b[i] = total / L[i, i]
    for i in range(b.size - 1, -1, -1):
        row = L[i]
        b[i] /= row[i]
        for k in range(i):
            b[k] -= row[k] * b[i]
