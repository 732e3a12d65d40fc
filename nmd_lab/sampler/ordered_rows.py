"""Rows in order: an autoregression of each component, and the draw of all rows together.

Component k of row t, in units of its prior, follows that of the row before it in its series:

    w_tk = a_tk w_{t-1,k} + √(1 - a_tk²) η_tk,     a_tk = φ_k^Δ,     η_tk ~ N(0, 1),

where Δ is the step between the two rows in units of the median step.  The first row of a series has
a = 0, so that all rows have variance 1.  With φ = 0 the rows are independent.

With the P_t and b_t of `row_draws`, the rows have the block tridiagonal precision matrix

    D_t = P_t + diag(1 / (1 - a_t²) + a_{t+1}² / (1 - a_{t+1}²)),

and -diag(c_t) with c_t = a_t / (1 - a_t²) next to the diagonal.  They are drawn by its Cholesky
factor, block by block: S_1 = D_1, m_1 = b_1, and

    S_t = D_t - diag(c_t) S_{t-1}⁻¹ diag(c_t),      m_t = b_t + c_t S_{t-1}⁻¹ m_{t-1},
    w_t ~ N(S_t⁻¹ (m_t + c_{t+1} w_{t+1}), S_t⁻¹)      from the last row to the first.

A row whose vector is known, such as one that was fitted before new rows came, is a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nmd_lab._runtime.compiler import cached_kernel, compile_inner
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.row_places import RowPlaces
from nmd_lab.kernels.products import CsrStorage

from .priors import Doubles, RowPrior
from .random_numbers import new_stream, start_of
from .row_draws import CHUNK, add_entries, draw_solved, half_solve
from .row_updates import Labels, RowInputs

PHIS = np.concatenate([np.linspace(0, 0.6, 7), 1 - np.logspace(-0.44, -3.3, 41)])
"""Values of φ."""

ENDS_OF_PHIS = np.concatenate([[0, 0], 0.5 * (PHIS[1:-1] + PHIS[2:]), PHIS[-1:]])
"""Ends of the ranges of φ for which the values stand; that of 0 is 0 alone."""

SIZES = np.exp(np.linspace(-1.5, 1.5, 61))
"""Factors by which a component may grow."""

SHORTEST = 1e-3
"""Shortest step, in units of the median step."""


@dataclass(frozen=True)
class RowOrder:
    """The order of the rows.

    Attributes
    ----------
    sequence : ndarray of int (m,)
        Rows of one series after another, each from its first to its last.
    steps : ndarray (m,)
        Step from the row before, in units of the median step; infinite for the first of a series.
    is_known : ndarray of bool (m,)
        Rows whose vectors are not drawn.
    phases : ndarray of int (m,)
        Phase of each row in the season.
    period : int
        Number of phases, some of which may have no row; 0 if there is no season.
    """

    sequence: NDArray[np.int64]
    steps: Doubles
    is_known: NDArray[np.bool_]
    phases: NDArray[np.int64]
    period: int = 0

    @classmethod
    def of(cls, places: RowPlaces, fitted: RowPlaces | None = None, period: int = 0) -> RowOrder:
        """Return the order of rows at some places, with fitted rows, which are known, behind them.

        The unit is the median step of the fitted rows.
        """
        both = places if fitted is None else places.followed_by(fitted)
        unit = (fitted or places).median_step
        is_known = np.arange(both.times.size) >= places.times.size
        steps = np.maximum(both.steps / unit, SHORTEST)
        return cls(both.sequence, steps, is_known, both.phases, period)

    @cached_property
    def _densities(self) -> tuple[Doubles, Doubles, Doubles]:
        """Coefficients (φ, m) of the squares of a row, of the row before and of both."""
        a = PHIS[:, None] ** self.steps
        variances = 1 - a**2
        return 1 / variances, a**2 / variances, a / variances

    def draw_phi(self, scaled: Doubles, rng: np.random.Generator) -> Doubles:
        """Return a draw of φ of each component, given the rows in units of their prior."""
        constants, squares = self._log_densities(scaled)
        logs = constants[:, None] - 0.5 * squares
        which = np.argmax(logs + rng.gumbel(size=logs.shape), axis=0)
        return np.asarray(rng.uniform(ENDS_OF_PHIS[which], ENDS_OF_PHIS[which + 1]))

    def _log_densities(self, scaled: Doubles) -> tuple[Doubles, Doubles]:
        """Return constants (φ,) and squares (φ, rank) of the log-density of components."""
        here, before, both = self._densities
        w = scaled[self.sequence]
        earlier = np.concatenate([w[:1], w[:-1]])
        squares = here @ w**2 + before @ earlier**2 - 2 * both @ (w * earlier)
        return 0.5 * np.log(here).sum(axis=1), squares

    def draw_sizes(
        self,
        scaled: Doubles,
        columns: FloatArray,
        prior: RowPrior,
        groups: Labels,
        rng: np.random.Generator,
    ) -> Doubles:
        """Return a factor c of each component of W, by which H is divided.

        The product stays the same.  Given φ and all rows, their size would hardly move; here φ is
        integrated out: c has the density Σ_φ p(c w | φ) p(h / c) c^(m - n) in log c.
        """
        (m, rank), n = scaled.shape, len(columns)
        constants, squares = self._log_densities(scaled)
        of_rows = constants[:, None, None] - 0.5 * squares[:, :, None] * SIZES**2
        logs = logsumexp(of_rows, axis=0) + (m - n) * np.log(SIZES)
        logs += rng.gumbel(size=logs.shape)
        group = groups if groups.size else np.zeros(n, np.int64)
        H, mean, P = columns.astype(np.float64), prior.mean[group], prior.precision[group]
        sizes = np.ones(rank)
        for a in range(rank):
            square = np.sum(P[:, a, a] * H[:, a] ** 2)
            both = np.sum(H[:, a] * np.einsum("jb,jb->j", H - mean, P[:, a])) - square
            which = np.argmax(logs[a] - 0.5 * square / SIZES**2 - both / SIZES)
            sizes[a] = SIZES[which]
            H[:, a] /= sizes[a]
        return sizes


def draw_ordered_rows(
    order: RowOrder,
    storage: CsrStorage,
    weights: FloatArray | None,
    target: FloatArray,
    inputs: RowInputs,
    rows: FloatArray,
) -> None:
    """Draw all rows but the known ones in place; see `SparseUpdate.draw`."""
    other, prior, rho, key, _ = inputs
    assert prior.phi is not None
    m, d = rows.shape
    a = np.zeros((m + 1, d))  # nothing follows the last row
    a[:m] = prior.phi ** order.steps[:, None]
    precision = np.diag(prior.precision[0])
    alone, coupling = precision / (1 - a**2), precision * a / (1 - a**2)
    diagonal = alone[:m] + (a * coupling)[1:]
    weights = np.empty(0, target.dtype) if weights is None else weights
    entries = storage.indptr, storage.indices, target, weights
    types = f"{rows.dtype}_{target.dtype}_{storage.indices.dtype}"
    kernel = cached_kernel(_draw_rows, f"draw_ordered_rows_{types}")
    of_order = order.sequence, order.is_known, diagonal, coupling
    work = np.empty((m, d, d)), np.empty((m, d))
    by_column = np.broadcast_to(rho, len(other.vectors)).copy()
    kernel(of_order, entries, tuple(other), by_column, tuple(key), *work, rows)


@compile_inner
def add_earlier(L, y, coupling, inverse, P, b):  # type: ignore[no-untyped-def]
    """Subtract diag(c) S⁻¹ diag(c) from P and add c S⁻¹ m to b, given L and y = L⁻¹ m of S."""
    d = b.size
    for a in range(d):  # row a of `inverse` is column a of L⁻¹
        inverse[a, a] = 1 / L[a, a]
        for e in range(a + 1, d):
            total = 0.0
            for g in range(a, e):
                total -= L[e, g] * inverse[a, g]
            inverse[a, e] = total / L[e, e]
    for a in range(d):
        for e in range(a + 1):
            total = 0.0
            for g in range(a, d):
                total += inverse[a, g] * inverse[e, g]
            P[a, e] -= coupling[a] * total * coupling[e]
        total = 0.0
        for g in range(a, d):
            total += inverse[a, g] * y[g]
        b[a] += coupling[a] * total


@compile_inner
def add_known(coupling, row, b):  # type: ignore[no-untyped-def]
    """Add what a neighbour that is known says of a row."""
    for a in range(b.size):
        b[a] += coupling[a] * row[a]


@compile_inner
def add_later(L, coupling, row, half, y):  # type: ignore[no-untyped-def]
    """Add L⁻¹ c w to y, where w is the row behind."""
    for a in range(y.size):
        total = coupling[a] * row[a]
        for e in range(a):
            total -= L[a, e] * half[e]
        half[a] = total / L[a, a]
        y[a] += half[a]


def _draw_rows(order, entries, other, rho, key, roots, linear, rows):  # type: ignore[no-untyped-def]
    """Draw the rows; `roots` and `linear` get the Cholesky factors of S_t and L_t⁻¹ m_t."""
    sequence, is_known, diagonal, coupling = order
    indptr, indices, target, weights = entries
    vectors, constants, mean = other
    seed, sweep, kind, keys = key
    (n, d), last = vectors.shape, sequence.size - 1
    y, no_ridge, half, inverse = np.empty(n), np.zeros(d), np.empty(d), np.zeros((d, d))
    scratch = np.empty((CHUNK, d), vectors.dtype), np.empty((d, d), vectors.dtype)
    for t in range(last + 1):
        i = sequence[t]
        if is_known[i]:
            continue
        P, b = roots[i], linear[i]
        for a in range(d):
            b[a] = 0.0
            for c in range(d):
                P[a, c] = diagonal[t, a] if a == c else 0.0
        begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        for k in range(begin, end):
            y[k - begin] = target[k] - constants[indices[k]] - mean
        add_entries(indices, begin, end, y, weights, 1.0, (rho, vectors), scratch, P, b)
        before = sequence[max(t - 1, 0)]
        if t > 0 and is_known[before]:
            add_known(coupling[t], rows[before], b)
        elif t > 0:
            add_earlier(roots[before], linear[before], coupling[t], inverse, P, b)
        behind = sequence[min(t + 1, last)]
        if is_known[behind]:
            add_known(coupling[t + 1], rows[behind], b)
        half_solve(P, no_ridge, b)
    for t in range(last, -1, -1):
        i, behind = sequence[t], sequence[min(t + 1, last)]
        if is_known[i]:
            continue
        L, b = roots[i], linear[i]
        if t < last and not is_known[behind]:
            add_later(L, coupling[t + 1], rows[behind], half, b)
        draw_solved(L, b, new_stream(start_of(seed, sweep, kind, keys[i] if keys.size else i)))
        for a in range(d):
            rows[i, a] = b[a]
