"""A nonlinearity as a table of polynomials, exact to rounding where f is smooth.

The T-update of a smooth f needs f and its first three derivatives a few times for each entry.  A
polynomial of degree 5 on a small cell gives all of them at the cost of a few multiplications, and
the table also knows how strongly f bends on each stretch of the line.

The cells have the width 1/64 near t = 0 and double it when |t| + 4 doubles, so that the bits of
|t| + 4 are the number of the cell.  A cell on which f is no such polynomial, because of a kink, a
jump or an infinite value, holds NaN: there the search uses f itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from nmd_lab._numba import compile_scalar, number_at

from .nonlinearity import Nonlinearity

Array = NDArray[np.float64]


class Curve(NamedTuple):
    """The table of a function.

    Attributes
    ----------
    cells : ndarray (n_cells, 8)
        For each cell from left to right its centre and the coefficients of a polynomial in the
        distance from it; NaN where f is not smooth.
    bounds : ndarray (n_blocks, 4)
        For each block of cells the least f'', the largest f'' and the largest |f'|.
    least, largest : float
        Bounds of f'' for the longest stretch without NaN.
    per_scale : float
        1 / scale, with the unit of t for which the cells were made.
    left, right : float
        Ends of this stretch.
    """

    cells: Array
    bounds: Array
    least: float
    largest: float
    per_scale: float
    left: float
    right: float

    @property
    def numbers(self) -> tuple[Any, ...]:
        """What compiled functions take: the addresses of the arrays, and the other numbers.

        Curves are kept for good (`curve_of`), so that the addresses stay valid.
        """
        return self.cells.ctypes.data, self.bounds.ctypes.data, *self[2:]


OFFSET = 4.0
CELLS_PER_BINADE = 256
BINADES = 8
DEGREE = 5
TOLERANCE = 1e-13
"""Largest error of a polynomial, relative to the largest |f| on its cell."""

TINY, LOOSE = 1e-16, 1e-8
"""Where f almost vanishes: largest error, relative to |f| near t = 0, and to |f| on the cell."""

CELL = 8
"""Numbers of a cell."""

BLOCK = 16
"""Cells that share one row of bounds."""

LARGEST = OFFSET * 2.0**BINADES - OFFSET
"""Largest |t| / scale in the table."""

_SIDE = CELLS_PER_BINADE * BINADES
_SHIFT = 52 - 8  # leaves 8 bits of the mantissa, one of 256 cells
_FIRST = 1025 << 8  # those bits of 4.0

CHOSEN_SCALES = (1.0, 2.0**-4, 2.0**4, 2.0**-8, 2.0**8, 2.0**-14, 2.0**14)
"""Units of t among which the table takes the first on which f is smooth near t = 0."""


def curve_of(f: Nonlinearity) -> Curve:
    """Return the curve of f.

    Parameters
    ----------
    f : Nonlinearity
        Nonlinearity; two that are equal share one curve.

    Returns
    -------
    Curve
        Its table, which is kept as long as the process lives.
    """
    return _curve_of(f)


@cache
def _curve_of(f: Nonlinearity) -> Curve:
    best: Curve | None = None
    for scale in CHOSEN_SCALES:
        curve = _tabulate(f, scale)
        near = curve.cells[_SIDE - CELLS_PER_BINADE : _SIDE + CELLS_PER_BINADE, 1]
        if best is None or np.mean(np.isfinite(near)) > 0.9:
            best = curve
        if np.mean(np.isfinite(near)) > 0.9:
            break
    return cast(Curve, best)


def _tabulate(f: Nonlinearity, scale: float) -> Curve:
    """Return the cells of f in this unit of t, and their bounds."""
    side = OFFSET * 2.0 ** np.repeat(np.arange(BINADES), CELLS_PER_BINADE)
    width = scale * side / CELLS_PER_BINADE
    left = scale * side * (1 + np.tile(np.arange(CELLS_PER_BINADE) / CELLS_PER_BINADE, BINADES))
    centre = left - OFFSET * scale + width / 2
    centre = np.concatenate([-centre[::-1], centre])
    half = np.concatenate([width[::-1], width])[:, None] / 2

    def values(points: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(f(centre[:, None] + half * points), dtype=np.float64)

    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    powers = np.arange(DEGREE + 1)
    with np.errstate(all="ignore"):
        local = values(nodes) @ np.linalg.inv(nodes[:, None] ** powers).T
        points = np.linspace(-1, 1, 7)
        exact = values(points)
        error = np.abs(local @ (points[:, None] ** powers).T - exact).max(axis=1)
        peak = np.abs(exact).max(axis=1)
        size = peak[np.abs(centre) < scale].max()
        good = error <= TOLERANCE * peak
        good |= (error <= TINY * size) & (error <= LOOSE * peak)
        good &= peak < 1e100
        coefficients = np.where(good[:, None], local / half**powers, np.nan)
    cells = np.full((centre.size, CELL), np.nan)
    cells[:, 0], cells[:, 1 : DEGREE + 2] = centre, coefficients
    return _with_bounds(cells, half, scale)


def _with_bounds(cells: Array, half: Array, scale: float) -> Curve:
    """Return the curve with bounds of f'' and |f'| for the whole table and each block of cells."""
    points = half * np.linspace(-1, 1, 5)
    c = cells[:, 1:, None]
    d = points[:, None, :].swapaxes(1, 2)[:, :, 0]
    slope = sum(k * c[:, k] * d ** (k - 1) for k in range(1, DEGREE + 1))
    bend = sum(k * (k - 1) * c[:, k] * d ** (k - 2) for k in range(2, DEGREE + 1))
    spread = 0.1 * (np.max(bend, axis=1) - np.min(bend, axis=1)) + 1e-9 * np.abs(cells[:, 1])
    least, largest = np.min(bend, axis=1) - spread, np.max(bend, axis=1) + spread
    steepest = 1.01 * np.max(np.abs(slope), axis=1) + 1e-9 * np.abs(cells[:, 1])
    least, largest = np.nan_to_num(least, nan=-np.inf), np.nan_to_num(largest, nan=np.inf)
    steepest = np.nan_to_num(steepest, nan=np.inf)
    bounds = np.zeros((cells.shape[0] // BLOCK, 4))
    bounds[:, 0] = least.reshape(-1, BLOCK).min(axis=1)
    bounds[:, 1] = largest.reshape(-1, BLOCK).max(axis=1)
    bounds[:, 2] = steepest.reshape(-1, BLOCK).max(axis=1)
    stretch = _longest_stretch(np.isfinite(cells[:, 1]))
    if stretch.stop == stretch.start:
        return Curve(cells, bounds, -np.inf, np.inf, 1.0 / scale, 0.0, 0.0)
    last = stretch.stop - 1
    return Curve(
        cells,
        bounds,
        float(np.min(least[stretch])),
        float(np.max(largest[stretch])),
        1.0 / scale,
        float(cells[stretch.start, 0] - half[stretch.start, 0]),
        float(cells[last, 0] + half[last, 0]),
    )


def _longest_stretch(good: NDArray[np.bool_]) -> slice:
    """Return the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], good.astype(int), [0]])))
    if not edges.size:
        return slice(0, 0)
    first, last = edges[::2], edges[1::2]
    longest = np.argmax(last - first)
    return slice(int(first[longest]), int(last[longest]))


@compile_scalar
def cell_of(t: float, per_scale: float) -> Any:
    """Return the number of the cell that holds t; -1 beyond the table."""
    size = abs(t) * per_scale
    if not size < LARGEST:
        return np.int64(-1)
    number = (np.float64(size + OFFSET).view(np.int64) >> _SHIFT) - _FIRST
    return _SIDE + number if t >= 0.0 else _SIDE - 1 - number


@compile_scalar
def curve_at(t, curve):  # type: ignore[no-untyped-def]
    """Return f, f', f'' and f''' at t; NaN where the table does not know f."""
    cells, per_scale = curve[0], curve[4]
    k = cell_of(t, per_scale)
    if k < 0:
        return np.nan, np.nan, np.nan, np.nan
    k *= CELL
    d = t - number_at(cells, k)
    c0, c1, c2 = number_at(cells, k + 1), number_at(cells, k + 2), number_at(cells, k + 3)
    c3, c4, c5 = number_at(cells, k + 4), number_at(cells, k + 5), number_at(cells, k + 6)
    y = c0 + d * (c1 + d * (c2 + d * (c3 + d * (c4 + d * c5))))
    slope = c1 + d * (2.0 * c2 + d * (3.0 * c3 + d * (4.0 * c4 + d * (5.0 * c5))))
    bend = 2.0 * c2 + d * (6.0 * c3 + d * (12.0 * c4 + d * (20.0 * c5)))
    return y, slope, bend, 6.0 * c3 + d * (24.0 * c4 + d * (60.0 * c5))


@compile_scalar
def value_at(t, curve):  # type: ignore[no-untyped-def]
    """Return f at t; NaN where the table does not know f."""
    cells, per_scale = curve[0], curve[4]
    k = cell_of(t, per_scale)
    if k < 0:
        return np.nan
    k *= CELL
    d = t - number_at(cells, k)
    c0, c1, c2 = number_at(cells, k + 1), number_at(cells, k + 2), number_at(cells, k + 3)
    c3, c4, c5 = number_at(cells, k + 4), number_at(cells, k + 5), number_at(cells, k + 6)
    return c0 + d * (c1 + d * (c2 + d * (c3 + d * (c4 + d * c5))))


@compile_scalar
def bounds_at(block, curve):  # type: ignore[no-untyped-def]
    """Return the least f'', the largest f'' and the largest |f'| of a block of cells."""
    first = 4 * block
    bounds = curve[1]
    return number_at(bounds, first), number_at(bounds, first + 1), number_at(bounds, first + 2)
