"""The T-update: one exact, compiled scalar map for each pair of a nonlinearity and a loss.

For one entry the update is t = argmin d(x, f(t)) + rho/2 (t - v)^2.  `compile_t_update` takes the
first of four constructions that applies to the pair:

1. A formula of the nonlinearity for the loss (Square; Exp with some losses; ReLU and MinMax with
   KL).
2. The best piece of a piecewise-linear f.  On a piece f(t) = s t + c with s != 0, put y = s t + c.
   The solution is the loss's proximal map at s v + c with penalty rho/s^2, clipped to the values of
   f on the piece.  On a flat piece, t is v clipped to the piece.  This is exact for every convex
   loss.  A loss that is not convex has its own map of an interval instead.
3. The best of three branches of a periodic f.  On the branch of v the quadratic has its centre, and
   a branch that lies farther away than its neighbour is not better than this.
4. A search over a bracket that contains the minimiser: Newton steps on a table of f where the
   objective is convex, else a scan.

These maps replace the case lists of the paper's appendix, some of which miss the minimum.

>>> import nmd_lab as nmd
>>> float(nmd.prox(7.2, 3.0, 0.095, nonlinearity="relu", loss="l1"))
3.0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from inspect import signature

from nmd_lab._runtime.compiler import compile_scalar

from .column_model import Structure, is_searched
from .curve_search import (
    ScalarMap,
    compile_golden,
    compile_search,
    newton_proximal,
    value_at,
    value_inside,
)
from .loss import Loss


@cache
def compile_forward(structure: Structure) -> ScalarMap:
    """Return compiled f ``(t, pieces, pf) -> y``, by its curve if the T-update uses it.

    Near the end of a domain, where d may be infinite, a part of the largest f is no exact value.
    """
    forward = compile_scalar(structure[0].forward)
    if not is_searched(structure) or structure[1].domain != Loss.domain:

        def exact(t, pieces, pf):  # type: ignore[no-untyped-def]
            return forward(t, pf)

        return compile_scalar(exact)

    def tabulated(t, pieces, pf):  # type: ignore[no-untyped-def]
        y = value_at(t, pieces)
        return y if y == y else forward(t, pf)  # NaN: not in the table

    return compile_scalar(tabulated)


@cache
def compile_t_update(structure: Structure) -> ScalarMap:
    """Return the compiled T-update ``(v, x, rho, *kind.arguments) -> t`` of a structure."""
    f, d, flat = structure
    if d in f.closed_forms:
        solve = _closed_form(f.closed_forms[d])
    elif flat:
        solve = best_piece(flat, d)
    elif f.periodic and d.is_solved_on_pieces():
        solve = best_branch(d)
    else:
        solve = compile_search(compile_forward(structure), d)
    return _with_sign_of_v(solve) if f.even else solve


def best_piece(flat: tuple[bool, ...], loss: type[Loss]) -> ScalarMap:
    """Return the best of the solutions on each piece, which are in a tuple or in an array."""
    value, within, some_flat = compile_scalar(loss.value), compile_within(loss), any(flat)

    def on_slope(v, x, rho, piece, pd):  # type: ignore[no-untyped-def]
        low, high, slope, intercept = piece[0], piece[1], piece[2], piece[3]
        inverse = 1.0 / slope
        first, last = slope * low + intercept, slope * high + intercept
        q, there = slope * v + intercept, rho * inverse * inverse
        y = within(q, x, there, min(first, last), max(first, last), pd)
        return (y - intercept) * inverse

    on_a_slope = compile_scalar(on_slope)

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        best, lowest = v, math.inf
        for k in range(len(flat) if some_flat else len(pieces)):
            low, high, slope, intercept = pieces[k][0], pieces[k][1], pieces[k][2], pieces[k][3]
            t = v if some_flat and flat[k] else on_a_slope(v, x, rho, pieces[k], pd)
            t = min(max(t, low), high)
            objective = value(x, slope * t + intercept, pd) + 0.5 * rho * (t - v) * (t - v)
            if k == 0 or objective < lowest:
                best, lowest = t, objective
        return best

    return compile_scalar(solution)


def best_branch(loss: type[Loss]) -> ScalarMap:
    """Return the best of the solutions on the branch of v and on both its neighbours."""
    solve, (smallest, largest) = best_piece((False,), loss), loss.domain

    def branch(shift, period, start):  # type: ignore[no-untyped-def]
        # Just inside the ends, since f jumps there and t is rounded.
        margin = 4e-16 * (abs(shift) + abs(start) + period)
        low, high = max(start + margin, smallest), min(start + period - margin, largest)
        return low + shift, high + shift, 1.0, -shift

    piece = compile_scalar(branch)

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        period, start = pf
        middle = period * math.floor((v - start) / period)
        here, before = piece(middle, period, start), piece(middle - period, period, start)
        after = piece(middle + period, period, start)
        return solve(v, x, rho, (here, before, after), pf, pd)

    return compile_scalar(solution)


def _with_sign_of_v(solve: ScalarMap) -> ScalarMap:
    """Return the T-update of an even f: the solution for t >= 0 with the sign of v."""

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        return math.copysign(solve(abs(v), x, rho, pieces, pf, pd), v)

    return compile_scalar(solution)


def _closed_form(formula: Callable[..., float]) -> ScalarMap:
    """Return a formula with the signature of every T-update."""
    with_parameters = len(signature(formula).parameters) == 5
    formula = compile_scalar(formula)

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        return formula(v, x, rho)

    def solution_with_parameters(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        return formula(v, x, rho, pf, pd)

    return compile_scalar(solution_with_parameters if with_parameters else solution)


def compile_within(d: type[Loss]) -> ScalarMap:
    """Return the compiled map ``(q, x, rho, low, high, p) -> y`` of a loss on an interval.

    That of a convex loss leaves the interval out: the solution is the point that is nearest to y.
    """
    if not d.convex:
        return compile_scalar(d.proximal_within)
    proximal = compile_proximal(d)

    def anywhere(q, x, rho, low, high, p):  # type: ignore[no-untyped-def]
        return proximal(q, x, rho, p)

    return compile_scalar(anywhere)


def compile_proximal(d: type[Loss]) -> ScalarMap:
    """Return the compiled proximal map ``(q, x, rho, p) -> y`` of a convex loss."""
    if d.has_proximal_map():
        return compile_scalar(d.proximal)
    if d.smooth and d.derivatives is not Loss.derivatives and d.domain == Loss.domain:
        return newton_proximal(d.derivatives, d.least_at)
    return _golden_proximal(d)


def _golden_proximal(d: type[Loss]) -> ScalarMap:
    """Return the compiled proximal map by golden sections, for a loss without derivatives."""
    low, high = d.domain
    value, least_at = value_inside(d), compile_scalar(d.least_at)

    def objective(y, q, x, rho, curve, pf, p):  # type: ignore[no-untyped-def]
        return value(x, y, p) + 0.5 * rho * (y - q) * (y - q)

    cost = compile_scalar(objective)
    golden = compile_golden(cost)

    def proximal(q, x, rho, p):  # type: ignore[no-untyped-def]
        start = min(max(q, low), high)  # the minimiser lies between it and where d is least
        at_start = cost(start, q, x, rho, (), (), p)
        reach = math.sqrt(2.0 * max(at_start - min(value(x, x, p), 0.0), 0.0) / rho)
        end = min(max(least_at(x, p), max(q - reach, low)), min(q + reach, high))
        at_end = cost(end, q, x, rho, (), (), p)
        y, at_y = (start, at_start) if at_start < at_end else (end, at_end)
        return golden(start, y, end, at_y, q, x, rho, (), (), p)[0]

    return compile_scalar(proximal)
