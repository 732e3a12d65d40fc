"""A nonlinearity as a table of polynomials, and the T-update that searches it.

The T-update of a smooth f needs f and its first three derivatives a few times for each entry.  A
polynomial of degree 5 on a small cell gives all of them at the cost of a few multiplications.  The
table also has bounds of f, f' and f'' on each block of cells.  A cell on which f is no such
polynomial, because of a kink, a jump or an infinite value, holds NaN, and the search uses f itself.
The cells have the width 1/64 near t = 0 and double it when |t| + 4 doubles, so that the bits of
|t| + 4 are the number of the cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._runtime.compiler import compile_scalar, number_at

from .loss import Array, Loss
from .losses import Frobenius
from .nonlinearity import Nonlinearity

OFFSET = 4.0
CELLS_PER_BINADE = 256
BINADES = 8
DEGREE = 5
CELL, ROW = 8, 5  # numbers of a cell and of a block
BLOCK = 8  # cells that share one row of bounds
MAX_TABLED = OFFSET * 2.0**BINADES - OFFSET  # largest |t| / scale in the table
SIDE = CELLS_PER_BINADE * BINADES
N_BLOCKS = 2 * SIDE // BLOCK


class Curve(NamedTuple):
    """The table of a function.

    Attributes
    ----------
    cells : ndarray (n_cells, CELL)
        For each cell from left to right its centre and the coefficients of a polynomial in the
        distance from it; NaN where f is not smooth.
    blocks : ndarray (N_BLOCKS + 1, ROW)
        For each block of cells its left end, the least f'', the largest f'', the largest |f'|, and
        the longest step of a scan.
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
    exponents = 0, -4, 4, -8, 8, -14, 14  # the first that suits is taken
    curves = (_tabulate(f, 2.0**exponent) for exponent in exponents)
    near = slice(SIDE - CELLS_PER_BINADE, SIDE + CELLS_PER_BINADE)
    first = next(curves)
    smooth = (c for c in (first, *curves) if np.isfinite(c.cells[near, 1]).mean() > 0.9)
    return next(smooth, first)


def _tabulate(f: Nonlinearity, scale: float) -> Curve:
    """Return the table of f in this unit of t."""
    binade = np.repeat(OFFSET * 2.0 ** np.arange(BINADES), CELLS_PER_BINADE)
    share = np.tile(np.arange(CELLS_PER_BINADE) / CELLS_PER_BINADE, BINADES)
    right = scale * np.append(binade * (1 + share) - OFFSET, MAX_TABLED)
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
        # Errors relative to the largest |f| on the cell, and where f almost vanishes near 0, too.
        good = (error <= 1e-13 * peak) | ((error <= 1e-16 * size) & (error <= 1e-11 * peak))
        good &= peak < 1e100
        # A poor polynomial still gives bounds, and the ends of a cell bound a monotone f.
        rough = good | (error <= 1e-2 * np.ptp(exact, axis=1)) | (f.monotone & np.isfinite(peak))
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
    # The longest step of a scan is |f'| / |f''|, a sixth of a period.
    step = (bounds(slope, rough, 1e-9)[1] + flat) / bounds(np.abs(bend), rough, 0.0)[1]
    blocks = np.zeros((N_BLOCKS + 1, ROW))
    steepest = bounds(slope, good, 1e-9)[1]
    blocks[:-1, 1:] = np.stack([*bounds(bend, good, 1e-9), steepest, step], 1)
    return blocks


@compile_scalar
def cell_of(t: float, per_scale: float) -> Any:
    """Return the number of the cell that holds t; -1 beyond the table."""
    size = abs(t) * per_scale
    if not size < MAX_TABLED:
        return np.int64(-1)
    # 44 bits fewer leave 8 of the mantissa, one of 256 cells; those of 4.0 are 1025 << 8.
    number = (np.float64(size + OFFSET).view(np.int64) >> 44) - (1025 << 8)
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


ScalarMap = Callable[..., Any]
"""A compiled function of scalars."""

GOLDEN_SHARE = 0.5 * (3.0 - math.sqrt(5.0))  # of the longer side, at which golden sections look


def value_inside(d: type[Loss]) -> ScalarMap:
    """Return compiled d, infinite outside the domain of the loss and where it is no number."""
    (low, high), value = d.domain, compile_scalar(d.value)

    def inside(x, y, p):  # type: ignore[no-untyped-def]
        attained = value(x, y, p) if low <= y <= high else math.inf
        return attained if attained > -math.inf else math.inf

    return compile_scalar(inside)


def newton_proximal(derivatives: ScalarMap, least_at: ScalarMap) -> ScalarMap:
    """Return the compiled minimiser of d(x, y) + rho/2 (y - q)^2, whose derivative has one root.

    It takes Newton's steps, and bisects where they leave the bracket or do not become shorter.
    Where d is least at an infinite y, it is convex.
    """
    derivatives, least_at = compile_scalar(derivatives), compile_scalar(least_at)

    def proximal(q, x, rho, p):  # type: ignore[no-untyped-def]
        slope, curvature = derivatives(x, 1.0 * q, p)
        end, y, step, rise = least_at(x, p), 1.0 * q, math.inf, slope
        if math.isinf(end):
            end = q - slope / rho  # d' falls on the way
        left, right = min(q, end), max(q, end)
        for _ in range(200):
            if rise > 0.0:
                right = y
            else:
                left = y
            bend, last = rho + curvature, step
            new = y - rise / bend if 0.0 < bend < math.inf else math.inf
            if not left <= new <= right or abs(new - y) > 0.5 * last:
                new = 0.5 * (left + right)
            y, step = new, abs(new - y)
            # After such a step the next one is about its square.
            if step <= 1e-6 * abs(y - q) + 1e-15 * abs(y):
                break
            slope, curvature = derivatives(x, y, p)
            rise = slope + rho * (y - q)
        return y

    return compile_scalar(proximal)


def formula_with(loss: type[Loss], forward: ScalarMap, inverse: ScalarMap) -> Callable[..., float]:
    """Return the T-update of an f with a loss, if its derivative has one root.

    `forward` returns f and its two derivatives at t, and `inverse` a finite t for each y.
    """
    derivatives, least = compile_scalar(loss.derivatives), compile_scalar(loss.least_at)
    forward, inverse = compile_scalar(forward), compile_scalar(inverse)

    def of_t(x, t, p):  # type: ignore[no-untyped-def]
        y, slope, bend = forward(t)
        first, second = derivatives(x, y, p)
        return first * slope, second * slope * slope + first * bend

    def least_at(x, p):  # type: ignore[no-untyped-def]
        return inverse(least(x, p))

    proximal = newton_proximal(of_t, least_at)

    def formula(v, x, rho, pf, pd):  # type: ignore[no-untyped-def]
        return proximal(v, x, rho, pd)

    return formula


def compile_search(forward: ScalarMap, d: type[Loss]) -> ScalarMap:
    """Return the compiled T-update ``(v, x, rho, curve, pf, pd) -> t``."""
    value = value_inside(d)
    has_slopes = d.derivatives is not Loss.derivatives
    slopes, newton = compile_scalar(d.derivatives), _compile_newton(d)
    is_tried, has_kink = d.convex and has_slopes, not d.smooth

    def objective(t, v, x, rho, curve, pf, pd):  # type: ignore[no-untyped-def]
        return value(x, forward(t, curve, pf), pd) + 0.5 * rho * (t - v) * (t - v)

    scan = _compile_scan(forward, compile_scalar(objective), d, newton if has_slopes else None)

    def search(v, x, rho, curve, pf, pd):  # type: ignore[no-untyped-def]
        at_v = curve_at(v, curve)
        drop = value(x, at_v[0], pd) - min(value(x, x, pd), 0.0)
        if drop < math.inf:
            radius = math.sqrt(2.02 * drop / rho)
            if is_convex(v, rho, radius, slopes(x, at_v[0], pd)[0], curve):
                t = newton(v, at_v, v - radius, v + radius, has_kink, v, x, rho, curve, pd)
                if abs(t - v) <= radius:
                    return t
        return scan(v, x, rho, curve, pf, pd)

    return compile_scalar(search) if is_tried else scan


@compile_scalar
def is_convex(v, rho, radius, pull, curve):  # type: ignore[no-untyped-def]
    """Return whether g is certainly convex within a radius of v, with d' = pull at f(v)."""
    _, _, per_scale, least, largest, left, right = curve
    steepest, allowed = abs(pull), 0.9 * rho  # that the harmful bend may reach
    harm = max(-least if pull > 0.0 else largest, 0.0)
    if v - radius >= left and v + radius <= right and steepest * harm <= allowed:
        return True
    for _ in range(3):
        first, last = cell_of(v - radius, per_scale), cell_of(v + radius, per_scale)
        if first < 0 or last < 0:
            return False
        harm, slope = 0.0, 0.0
        for k in range(first // BLOCK, last // BLOCK + 1):
            harm = max(harm, -bound_at(k, 1, curve) if pull > 0.0 else bound_at(k, 2, curve))
            slope = max(slope, bound_at(k, 3, curve))
        if steepest * harm <= allowed:
            return True
        nearer = 1.01 * steepest * slope / rho  # since rho (t - v) = -d' f'
        if not nearer < 0.7 * radius:
            return False
        radius = nearer
    return False


def _compile_newton(d: type[Loss]) -> ScalarMap:
    """Return compiled Newton steps from t to a minimum between two points; NaN without one.

    They take what `curve_at` returns at t.  Guarded steps stay in the bracket.  Where d has a kink
    at y = x, a step ends there if the gradient changes its sign.
    """
    slopes, has_kink, (lowest, highest) = compile_scalar(d.derivatives), not d.smooth, d.domain
    # Squares of the last step in the norm of g'', relative to rho (t - v)^2: of Newton's method,
    # where the error of a step is about its square, and of a bisection or at a kink of d.
    enough, kink_tol = 1e-5 if d is Frobenius else 1e-10, 1e-20
    free_steps = 12  # after which it bisects a bracket

    def newton(t, at, left, right, guarded, v, x, rho, curve, pd):  # type: ignore[no-untyped-def]
        y, slope, bend, third = at
        for k in range(60 if guarded else free_steps):
            if not lowest <= y <= highest:
                return np.nan
            if has_kink and y == x:
                return t
            first, second = slopes(x, y, pd)
            gradient = first * slope + rho * (t - v)
            curvature = second * slope * slope + first * bend + rho
            # Halley's step; the derivative of d'' is left out.
            square = curvature * curvature
            higher = 0.5 * gradient * (3.0 * second * slope * bend + first * third)
            damped = min(max(square - higher, 0.25 * square), 4.0 * square)
            other, allowed = t - gradient * curvature / damped, enough
            if guarded:
                if gradient > 0.0:
                    right = t
                else:
                    left = t
                if has_kink:
                    kink = t + (x - y) / slope
                    beyond = slopes(x, x + (x - y), pd)[0] * slope + rho * (kink - v)
                    passed = (kink - t) * (other - kink) >= 0.0
                    other = kink if passed and gradient * beyond <= 0.0 else other
                if not left <= other <= right or k > free_steps:
                    other, allowed = 0.5 * (left + right), kink_tol
            step, moved, t = other - t, other - v, other
            if not has_kink and step * step * max(curvature, rho) <= allowed * rho * moved * moved:
                return t
            y, slope, bend, third = curve_at(t, curve)
            if has_kink and step * step <= kink_tol * moved * moved:
                kink = t + (x - y) / slope
                return kink if abs(kink - t) <= 1e-8 * abs(moved) else t
        return t if guarded else np.nan

    return compile_scalar(newton)


def _compile_scan(
    forward: ScalarMap, objective: ScalarMap, d: type[Loss], newton: ScalarMap | None
) -> ScalarMap:
    """Return the compiled scan of both sides of v."""
    value, least_at, (smallest, largest) = value_inside(d), compile_scalar(d.least_at), d.domain
    refine = _compile_refinement(objective, newton)

    def one_side(side, before, at_before, at_v, best, lowest, v, x, rho, curve, pf, pd):  # type: ignore[no-untyped-def]
        target, bottom = min(max(least_at(x, pd), smallest), largest), min(value(x, x, pd), 0.0)
        middle, at_middle = v, at_v
        above = forward(v, curve, pf) > target
        for _ in range(5_000):  # on each side of v
            if 0.5 * rho * (middle - v) * (middle - v) + bottom >= lowest:
                break
            after = next_block(middle, side, curve)
            y, square = forward(after, curve, pf), 0.5 * rho * (after - v) * (after - v)
            at_after = value(x, y, pd) + square
            passed = (y > target) != above or square + bottom >= lowest
            a, t, at_t = before, middle, at_middle
            is_low = at_t <= at_before and at_t <= at_after
            if passed and at_after < at_middle:
                a, t, at_t, is_low = middle, after, at_after, True
            if is_low and at_t < math.inf:
                t, at_t = refine(a, t, after, at_t, v, x, rho, curve, pf, pd)
            if at_t < lowest:
                best, lowest = t, at_t
            if passed:
                break
            before, at_before, middle, at_middle = middle, at_middle, after, at_after
        return best, lowest

    side_of = compile_scalar(one_side)

    def scan(v, x, rho, curve, pf, pd):  # type: ignore[no-untyped-def]
        at_v = objective(v, v, x, rho, curve, pf, pd)
        best, lowest, step = v, at_v, 1e-6 * (1.0 + abs(v))  # first distance from v
        while not lowest < math.inf and abs(step) < 1e30:  # f(v) outside the loss's domain
            at = objective(v + step, v, x, rho, curve, pf, pd)
            if at < lowest:
                best, lowest = v + step, at
            step *= -1.5
        before = next_block(v, -1.0, curve)
        at_before = objective(before, v, x, rho, curve, pf, pd)
        for side in (1.0, -1.0):
            best, lowest = side_of(
                side, before, at_before, at_v, best, lowest, v, x, rho, curve, pf, pd
            )
            at_before = -math.inf  # a minimum at v has been refined
        return best

    return compile_scalar(scan)


@compile_scalar
def next_block(t, side, curve):  # type: ignore[no-untyped-def]
    """Return the end of the block that begins at t."""
    scale = 1.0 / curve[2]
    cell = cell_of(t + side * 1e-9 * (scale + abs(t)), curve[2])
    if cell < 0:
        # Beyond the table, a block is 1/32 of |t| long.
        size, edge = abs(t), MAX_TABLED * scale
        inwards = side * t < 0.0 and size > edge
        far = max(size * (31.0 / 32.0), edge) if inwards else size * (33.0 / 32.0)
        return math.copysign(far, t)
    block = cell // BLOCK
    end = bound_at(block + 1 if side > 0.0 else block, 0, curve)
    step = bound_at(block, 4, curve)
    return t + side * step if step < abs(end - t) else end


def _compile_refinement(objective: ScalarMap, newton: ScalarMap | None) -> ScalarMap:
    """Return the compiled search for a minimum between a and b, no higher than that at t."""
    golden = compile_golden(objective)
    if newton is None:
        return golden
    steps = newton

    def refine(a, t, b, at_t, v, x, rho, curve, pf, pd):  # type: ignore[no-untyped-def]
        left, right = min(a, b), max(a, b)
        found = steps(t, curve_at(t, curve), left, right, True, v, x, rho, curve, pd)
        if found != found:
            return golden(a, t, b, at_t, v, x, rho, curve, pf, pd)
        attained = objective(found, v, x, rho, curve, pf, pd)
        return (found, attained) if attained < at_t else (t, at_t)

    return compile_scalar(refine)


def compile_golden(objective: ScalarMap) -> ScalarMap:
    """Return the compiled golden sections between a and b around t, where g is finite."""

    def golden(a, t, b, at_t, v, x, rho, curve, pf, pd):  # type: ignore[no-untyped-def]
        for _ in range(120):
            if abs(b - a) <= 1e-15 * abs(t):  # width of the last bracket
                break
            to_b = abs(b - t) > abs(a - t)
            other = t + GOLDEN_SHARE * ((b if to_b else a) - t)
            attained = objective(other, v, x, rho, curve, pf, pd)
            if attained < at_t:
                a, t, at_t, b = (t, other, attained, b) if to_b else (a, other, attained, t)
            else:
                a, b = (a, other) if to_b else (other, b)
        return t, at_t

    return compile_scalar(golden)
