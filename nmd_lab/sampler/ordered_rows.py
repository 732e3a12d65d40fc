"""Rows in order: an autoregression of each component, and the draw of all rows together.

Component k of row t, in units of its prior, follows that of the row before it in its series:

    w_tk = a_tk w_{t-1,k} + √(1 - a_tk²) η_tk,     a_tk = φ_k^Δ,     η_tk ~ N(0, 1),

where Δ is the step between the two rows in units of the median step.  The first row of a series has
a = 0, so that all rows have variance 1.  With φ = 0 the rows are independent.

With the P_t and b_t of `row_draws`, the rows have the block tridiagonal precision matrix

    D_t = P_t + diag(1 / (1 - a_t²) + a_{t+1}² / (1 - a_{t+1}²)),

and -diag(c_t) with c_t = a_t / (1 - a_t²) next to the diagonal.  Its entries are in a band, and so
are those of its Cholesky factor L.  With standard normal noise z, all rows are

    w = (L Lᵀ)⁻¹ (b + L z).

A row whose vector is known, such as one that was fitted before new rows came, is a constant.

**A season** is an offset of each column at each phase of a period.  A sensor has a day of its own,
which components that it shares with others describe badly.  With the phase s(t) of row t, and the
spread of each column as unit,

    T_tj = (WH)_tj + b_j + S_{s(t), j} + noise,     S_sj ~ N(0, τ_j),     τ_j ~ inverse Gamma.

The period is found in the data: the shortest lag at which rows resemble each other nearly as well
as at any other lag, much better than at the lags before, and again at twice the lag.  A column
without a season has a small τ_j, which shrinks S there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.sparse import csr_array, dia_array
from scipy.special import logsumexp

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.matching import RowPlaces
from nmd_lab.data.observations import Observations
from nmd_lab.kernels.products import CsrStorage

from .priors import Doubles, RowPrior
from .random_numbers import numbers
from .row_updates import OtherFactor, StreamId

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
        self, scaled: Doubles, columns: FloatArray, prior: RowPrior, rng: np.random.Generator
    ) -> Doubles:
        """Return a factor c of each component of W, by which H is divided, given its priors.

        The product stays the same.  Given φ and all rows, their size would hardly move; here φ is
        integrated out: c has the density Σ_φ p(c w | φ) p(h / c) c^(m - n) in log c.
        """
        (m, rank), n = scaled.shape, len(columns)
        constants, squares = self._log_densities(scaled)
        of_rows = constants[:, None, None] - 0.5 * squares[:, :, None] * SIZES**2
        logs = logsumexp(of_rows, axis=0) + (m - n) * np.log(SIZES)
        logs += rng.gumbel(size=logs.shape)
        H, mean, P = columns.astype(np.float64), prior.mean, prior.precision
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
    rows: FloatArray,
    storage: CsrStorage,
    weights: FloatArray | None,
    target: FloatArray,
    other: OtherFactor,
    prior: RowPrior,
    rho: Doubles,
    key: StreamId,
) -> None:
    """Draw all rows but the known ones in place, given T."""
    vectors, constants = other
    assert prior.phi is not None
    (m, d), n, sequence = rows.shape, len(vectors), order.sequence
    a = np.zeros((m + 1, d))  # nothing follows the last row
    a[:m] = prior.phi ** order.steps[:, None]
    precision = np.diag(prior.precision[0])
    alone, coupling = precision / (1 - a**2), precision * a / (1 - a**2)

    known, between = order.is_known[sequence], coupling[1:m]
    fixed, linear = np.where(known[:, None], rows[sequence], 0.0), np.zeros((m, d))
    linear[1:] += between * fixed[:-1]
    linear[:-1] += between * fixed[1:]
    drawn = np.flatnonzero(~known)
    links = np.where(np.diff(drawn)[:, None] == 1, coupling[drawn[1:]], 0.0)

    tau = np.broadcast_to(rho, n)[storage.indices] * (1 if weights is None else weights)
    y = target - constants[storage.indices]
    precisions, sums = (
        csr_array((each, storage.indices, storage.indptr), shape=storage.shape)[sequence[drawn]]
        for each in (tau, tau * y)
    )
    squares = np.einsum("ja,jb->jab", vectors, vectors, dtype=np.float64).reshape(n, d * d)
    P, b = (precisions @ squares).reshape(-1, d, d), sums @ vectors.astype(np.float64)
    diagonal = alone[:m] + (a * coupling)[1:]
    rng = numbers(key.seed, key.sweep, key.kind)
    rows[sequence[drawn]] = _draw_chain(P, b + linear[drawn], diagonal[drawn], links, rng)


def _draw_chain(
    P: Doubles, b: Doubles, diagonal: Doubles, links: Doubles, rng: np.random.Generator
) -> Doubles:
    """Return rows (m, d), given the blocks of their precision, what is added, and what couples."""
    m, d = b.shape
    band = np.zeros((d + 1, m, d))  # diagonals of the lower triangle
    for e in range(d):
        band[e, :, : d - e] = np.diagonal(P, -e, 1, 2)
    band[0] += diagonal
    band[d, :-1] = -links
    L = cholesky_banded(band.reshape(d + 1, m * d), overwrite_ab=True, lower=True)
    noise = dia_array((L, -np.arange(d + 1)), shape=(m * d, m * d)) @ rng.standard_normal(m * d)
    return np.asarray(cho_solve_banded((L, True), b.ravel() + noise).reshape(m, d))


PROMINENCE, STANDARD_ERRORS, NEARLY = 0.2, 3.0, 0.25
"""How much larger than before the correlation at the period is, with so many standard errors, and
how far below the largest one it may be, as a share of the range of all."""

FEWEST_PERIODS = 3
"""Number of periods that the rows have at least."""

MAX_ROWS = 1 << 17
"""Rows of an evenly spaced grid up to which a period is looked for."""


def find_period(observations: Observations, places: RowPlaces) -> int:
    """Return the period in steps between rows; 0 if there is none."""
    at = places.on_grid_of(places)
    series = np.unique(places.series, return_inverse=True)[1]
    length = int(at.max(initial=0)) + 1
    i, j, x = observations.entries()
    if length * (series.max(initial=0) + 1) > MAX_ROWS or length < 2 * FEWEST_PERIODS:
        return 0
    longest = length // FEWEST_PERIODS
    products, counts = np.zeros((2, 2 * longest + 1))
    order, ends = np.argsort(j, kind="stable"), np.cumsum(observations.counts(0))
    for here in np.split(order, ends[:-1]):
        values = x[here].astype(np.float64)
        if values.size < 2 or np.ptp(values) == 0:
            continue
        z, seen = np.zeros((2, series.max() + 1, 2 * length))
        z[series[i[here]], at[i[here]]] = (values - values.mean()) / values.std()
        seen[series[i[here]], at[i[here]]] = 1.0
        for sums, of_rows in ((products, z), (counts, seen)):
            power = np.square(np.abs(np.fft.rfft(of_rows))).sum(axis=0)
            sums += np.fft.irfft(power)[: sums.size]
    r = products / np.maximum(counts, 1.0)
    needed = PROMINENCE + STANDARD_ERRORS / np.sqrt(len(at))
    peaks = [p for p in range(2, longest + 1) if _is_peak(r, p, needed)]
    if not peaks:
        return 0
    nearly = r[peaks].max() - NEARLY * np.ptp(r)
    return next(p for p in peaks if r[p] >= nearly)


def _is_peak(r: Doubles, p: int, needed: float) -> bool:
    """Return whether a correlation is a peak, and that at twice the lag is one as well."""
    rise, again = r[p] - r[:p].min(), r[2 * p - 1 : 2 * p + 2].max() - r[p : 2 * p].min()
    return bool(r[p] > r[p - 1] and r[p] >= r[p + 1] and min(rise, 2 * again) > needed)
