"""The T-update as the best of the solutions on linear pieces, or on branches of a period."""

from __future__ import annotations

import math

from nmd_lab._numba import compile_scalar

from ._search import ScalarMap
from .loss import Loss

FEW = 4
"""Number of sloped pieces up to which each has compiled code of its own; more share a loop."""


def best_piece(flat: tuple[bool, ...], loss: type[Loss], proximal: ScalarMap) -> ScalarMap:
    """Return the best of the solutions on each piece."""
    if len(flat) > FEW and not any(flat):
        return _best_of_many(_piece_candidate(False, loss, proximal))
    # A chain of functions instead of a loop, because each piece has compiled code of its own.
    best = _at(0, _piece_candidate(flat[0], loss, proximal))
    for index in range(1, len(flat)):
        best = _better_of(best, _at(index, _piece_candidate(flat[index], loss, proximal)))

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        return best(v, x, rho, pieces, pd)[0]

    return compile_scalar(solution)


def _best_of_many(candidate: ScalarMap) -> ScalarMap:
    """Return the best of the solutions on any number of pieces, in a tuple or in an array."""

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        best, lowest = candidate(v, x, rho, pieces[0], pd)
        for k in range(1, len(pieces)):
            t, objective = candidate(v, x, rho, pieces[k], pd)
            if objective < lowest:
                best, lowest = t, objective
        return best

    return compile_scalar(solution)


def _at(index: int, candidate: ScalarMap) -> ScalarMap:
    """Return a compiled function for the solution on the piece at an index."""

    def there(v, x, rho, pieces, pd):  # type: ignore[no-untyped-def]
        return candidate(v, x, rho, pieces[index], pd)

    return compile_scalar(there)


def _piece_candidate(flat: bool, loss: type[Loss], proximal: ScalarMap) -> ScalarMap:
    """Return a compiled function whose values are the minimiser on a piece and its objective."""
    value = compile_scalar(loss.value)
    within = compile_scalar(loss.proximal_within)
    if flat:

        def candidate(v, x, rho, piece, pd):  # type: ignore[no-untyped-def]
            low, high, intercept = piece[0], piece[1], piece[3]
            t = min(max(v, low), high)
            return t, value(x, intercept, pd) + 0.5 * rho * (t - v) * (t - v)

    elif not loss.convex:

        def candidate(v, x, rho, piece, pd):  # type: ignore[no-untyped-def]
            low, high, slope, intercept = piece[0], piece[1], piece[2], piece[3]
            inverse = 1.0 / slope
            first, last = slope * low + intercept, slope * high + intercept
            smallest, largest = min(first, last), max(first, last)
            q, weight = slope * v + intercept, rho * inverse * inverse
            y = within(q, x, weight, smallest, largest, pd)
            t = min(max((y - intercept) * inverse, low), high)
            return t, value(x, slope * t + intercept, pd) + 0.5 * rho * (t - v) * (t - v)

    else:

        def candidate(v, x, rho, piece, pd):  # type: ignore[no-untyped-def]
            low, high, slope, intercept = piece[0], piece[1], piece[2], piece[3]
            inverse = 1.0 / slope
            y = proximal(slope * v + intercept, x, rho * inverse * inverse, pd)
            t = min(max((y - intercept) * inverse, low), high)
            return t, value(x, slope * t + intercept, pd) + 0.5 * rho * (t - v) * (t - v)

    return compile_scalar(candidate)


def _better_of(first: ScalarMap, second: ScalarMap) -> ScalarMap:
    """Return a compiled function for the candidate with the lower objective."""

    def better(v, x, rho, pieces, pd):  # type: ignore[no-untyped-def]
        t_first, objective_first = first(v, x, rho, pieces, pd)
        t_second, objective_second = second(v, x, rho, pieces, pd)
        if objective_second < objective_first:
            return t_second, objective_second
        return t_first, objective_first

    return compile_scalar(better)


BRANCHES = (0.0, -1.0, 1.0)
"""Branches of a periodic f that can hold the minimiser, from that of v."""


def best_branch(forward: ScalarMap, loss: type[Loss], proximal: ScalarMap) -> ScalarMap:
    """Return the best of the solutions on the branch of v and on both its neighbours."""
    value, convex = compile_scalar(loss.value), loss.convex
    smallest, largest = loss.domain

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        period, start = pf
        middle = math.floor((v - start) / period)
        best, lowest = v, math.inf
        for step in BRANCHES:
            shift = (middle + step) * period
            # Just inside the ends, since f jumps there and t is rounded.
            margin = 4e-16 * (abs(shift) + abs(start) + period)
            low = max(start + margin, smallest)
            high = min(start + period - margin, largest)
            y = proximal_on(v - shift, x, rho, low, high, pd)
            t = min(max(y, low), high) + shift
            objective = value(x, forward(t, pf), pd) + 0.5 * rho * (t - v) * (t - v)
            if objective < lowest:
                best, lowest = t, objective
        return best

    def clipped(q, x, rho, low, high, pd):  # type: ignore[no-untyped-def]
        return min(max(proximal(q, x, rho, pd), low), high)

    proximal_on = compile_scalar(clipped if convex else loss.proximal_within)
    return compile_scalar(solution)
