"""A nonlinearity as a table of polynomials, exact to rounding where f is smooth.

The T-update of a smooth f needs f and its first three derivatives a few times for each entry.  A
polynomial of degree 5 on a small cell gives all of them at the cost of a few multiplications.  The
table also has bounds of f, f' and f'' on each block of cells.

The cells have the width 1/64 near t = 0 and double it when |t| + 4 doubles, so that the bits of
|t| + 4 are the number of the cell.  A cell on which f is no such polynomial, because of a kink, a
jump or an infinite value, holds NaN: there the search uses f itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import compile_scalar, number_at

from .nonlinearity import Nonlinearity

Array = NDArray[np.float64]

OFFSET = 4.0
CELLS_PER_BINADE = 256
BINADES = 8
DEGREE = 5
TOLERANCE = 1e-13  # largest error of a polynomial, relative to the largest |f| on its cell
TINY, LOOSE = 1e-16, 1e-11  # the same where f almost vanishes, relative to |f| near 0 and there
ROUGH = 1e-2  # largest error of a polynomial that gives bounds, relative to the range on its cell
SCALES = (1.0, 2.0**-4, 2.0**4, 2.0**-8, 2.0**8, 2.0**-14, 2.0**14)  # the first that suits is taken
CELL, ROW = 8, 7  # numbers of a cell and of a block
BLOCK = 8  # cells that share one row of bounds
STEP = 1.0  # longest step of a scan, in units of |f'| / |f''|: a sixth of a period
LARGEST = OFFSET * 2.0**BINADES - OFFSET  # largest |t| / scale in the table
SIDE = CELLS_PER_BINADE * BINADES
N_BLOCKS = 2 * SIDE // BLOCK
_SHIFT = 52 - 8  # leaves 8 bits of the mantissa, one of 256 cells
_FIRST = 1025 << 8  # those bits of 4.0


class Curve(NamedTuple):
    """The table of a function.

    Attributes
    ----------
    cells : ndarray (n_cells, CELL)
        For each cell from left to right its centre and the coefficients of a polynomial in the
        distance from it; NaN where f is not smooth.
    blocks : ndarray (N_BLOCKS + 1, ROW)
        For each block of cells its left end, the least f'', the largest f'', the largest |f'|, the
        least f, the largest f, and the longest step of a scan.
    per_scale : float
        1 / scale, with the unit of t for which the cells were made.
    least, largest : float
        Bounds of f'' on the stretch without NaN around t = 0.
    left, right : float
        Ends of this stretch.
    """

    cells: Array
    blocks: Array
    per_scale: float
    least: float
    largest: float
    left: float
    right: float

    @property
    def numbers(self) -> tuple[Any, ...]:
        """What compiled functions take: the addresses of the arrays, and the other numbers.

        Curves are kept for good (`curve_of`), so that the addresses stay valid.
        """
        return self.cells.ctypes.data, self.blocks.ctypes.data, *self[2:]


@cache
def curve_of(f: Nonlinearity) -> Curve:
    """Return the curve of f, which is kept as long as the process lives."""
    curves = (_tabulate(f, scale) for scale in SCALES)
    near = slice(SIDE - CELLS_PER_BINADE, SIDE + CELLS_PER_BINADE)
    first = next(curves)
    smooth = (c for c in (first, *curves) if np.isfinite(c.cells[near, 1]).mean() > 0.9)
    return next(smooth, first)


def _tabulate(f: Nonlinearity, scale: float) -> Curve:
    """Return the table of f in this unit of t."""
    binade = np.repeat(OFFSET * 2.0 ** np.arange(BINADES), CELLS_PER_BINADE)
    share = np.tile(np.arange(CELLS_PER_BINADE) / CELLS_PER_BINADE, BINADES)
    right = scale * np.append(binade * (1 + share) - OFFSET, LARGEST)
    edges = np.concatenate([-right[:0:-1], right])
    centre, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges)[:, None] / 2
    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    powers, points = np.arange(DEGREE + 1), np.linspace(-1, 1, 7)
    with np.errstate(all="ignore"):
        at_nodes, exact = (
            np.asarray(f(centre[:, None] + half * u), dtype=np.float64) for u in (nodes, points)
        )
        local = at_nodes @ np.linalg.inv(nodes[:, None] ** powers).T
        error = np.abs(local @ (points[:, None] ** powers).T - exact).max(axis=1)
        peak = np.abs(exact).max(axis=1)
        size = peak[np.abs(centre) < scale].max()
        good = (error <= TOLERANCE * peak) | ((error <= TINY * size) & (error <= LOOSE * peak))
        good &= peak < 1e100
        # A poor polynomial still gives bounds, and the ends of a cell bound a monotone f.
        rough = good | (error <= ROUGH * np.ptp(exact, axis=1)) | (f.monotone & np.isfinite(peak))
        cells = np.full((centre.size, CELL), np.nan)
        cells[:, 0], cells[:, 1 : DEGREE + 2] = centre, local / half**powers
        blocks = _bounds(cells, half * np.linspace(-1, 1, 5), exact, good, rough)
    blocks[:, 0] = edges[::BLOCK]
    cells[~good, 1:] = np.nan
    bad = np.flatnonzero(~good)
    at = np.searchsorted(bad, SIDE)
    first = -(-(bad[at - 1] + 1) // BLOCK) if at else 0
    last = bad[at] // BLOCK if at < bad.size else N_BLOCKS
    ends: tuple[float, ...] = -np.inf, np.inf, 0.0, 0.0
    if first < last:
        within = blocks[first:last]
        ends = within[:, 1].min(), within[:, 2].max(), blocks[first, 0], blocks[last, 0]
    return Curve(cells, blocks, 1.0 / scale, *ends)


def _bounds(cells: Array, d: Array, values: Array, good: Any, rough: Any) -> Array:
    """Return the bounds of each block, a little wider for safety, at distances d from centres."""
    k, c, d = np.arange(2.0, DEGREE + 1), cells[:, None, 3 : DEGREE + 2], d[:, :, None]
    slope = np.abs(cells[:, None, 2] + np.sum(k * c * d ** (k - 1), axis=2))
    bend = np.sum(k * (k - 1) * c * d ** (k - 2), axis=2)

    def bounds(samples: Array, usable: Any, slack: float) -> tuple[Array, Array]:
        spread = 0.1 * np.ptp(samples, axis=1) + slack * np.abs(values[:, 3])
        low = np.where(usable, samples.min(axis=1) - spread, -np.inf)
        high = np.where(usable, samples.max(axis=1) + spread, np.inf)
        return low.reshape(-1, BLOCK).min(axis=1), high.reshape(-1, BLOCK).max(axis=1)

    flat = 1e-9 * np.abs(values[SIDE - CELLS_PER_BINADE : SIDE + CELLS_PER_BINADE]).max()
    step = STEP * (bounds(slope, rough, 1e-9)[1] + flat) / bounds(np.abs(bend), rough, 0.0)[1]
    f_bounds, bend_bounds = bounds(values, rough, 1e-12), bounds(bend, good, 1e-9)
    blocks = np.zeros((N_BLOCKS + 1, ROW))
    blocks[:-1, 1:] = np.stack([*bend_bounds, bounds(slope, good, 1e-9)[1], *f_bounds, step], 1)
    return blocks


@compile_scalar
def cell_of(t: float, per_scale: float) -> Any:
    """Return the number of the cell that holds t; -1 beyond the table."""
    size = abs(t) * per_scale
    if not size < LARGEST:
        return np.int64(-1)
    number = (np.float64(size + OFFSET).view(np.int64) >> _SHIFT) - _FIRST
    return SIDE + number if t >= 0.0 else SIDE - 1 - number


@compile_scalar
def bound_at(block, k, curve):  # type: ignore[no-untyped-def]
    """Return a number of a block, as `Curve.blocks` has them."""
    return number_at(curve[1], ROW * block + k)


@compile_scalar
def curve_at(t, curve):  # type: ignore[no-untyped-def]
    """Return f, f', f'' and f''' at t; NaN outside the table."""
    cells = curve[0]
    k = CELL * cell_of(t, curve[2])
    if k < 0:
        return np.nan, np.nan, np.nan, np.nan
    d = t - number_at(cells, k)
    c0, c1, c2 = number_at(cells, k + 1), number_at(cells, k + 2), number_at(cells, k + 3)
    c3, c4, c5 = number_at(cells, k + 4), number_at(cells, k + 5), number_at(cells, k + 6)
    y = c0 + d * (c1 + d * (c2 + d * (c3 + d * (c4 + d * c5))))
    slope = c1 + d * (2.0 * c2 + d * (3.0 * c3 + d * (4.0 * c4 + d * (5.0 * c5))))
    bend = 2.0 * c2 + d * (6.0 * c3 + d * (12.0 * c4 + d * (20.0 * c5)))
    return y, slope, bend, 6.0 * c3 + d * (24.0 * c4 + d * (60.0 * c5))


@compile_scalar
def value_at(t, curve):  # type: ignore[no-untyped-def]
    """Return f at t; NaN outside the table."""
    return curve_at(t, curve)[0]  # the compiler leaves out the derivatives
