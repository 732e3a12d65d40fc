"""The T-update as the best of the solutions on linear pieces, or on branches of a period.

`nearest_values` gives the rises between knots of the rising, piecewise-linear f that is nearest to
data.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from nmd_lab._runtime.compiler import compile_scalar

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


Array = NDArray[np.float64]

PULL = 1e-3
"""Weight of the present rises, as a share of that of all data, where few data say what they are."""

TURN = 0.05
"""Usual change of slope at a knot, as a share of the slope.  With more, f becomes a staircase where
data are few and noisy, since WH moves to its steps; with less, it stays nearly what it was."""


def nearest_values(
    knots: Array, values: Array, slowest: Array, t: Array, x: Array, weights: Array
) -> Array:
    """Return values at the knots of the smooth f that is nearest to data, by least squares.

    The rises are at least `slowest`, and their sum stays what it is: otherwise a ridge would bring
    WH to zero, and f would become ever steeper.  Changes of slope count like data, with the noise
    of these around the present f.

    Parameters
    ----------
    knots, values : ndarray (k,)
        Knots and present values of f there, both ascending.
    slowest : ndarray (k - 1,)
        Smallest rises, at most the present ones.
    t, x, weights : ndarray (n,)
        Arguments of f, what f should be there, and weights of the squared differences.

    Returns
    -------
    ndarray (k,)
        Values of f at the knots.
    """
    rises = np.diff(values)
    free = float((rises - slowest).sum())
    if not free > 0 or not weights.sum() > 0:
        return values
    # f is values[0] + shift + Σ rise of the part of each interval that lies below t.
    root = _root_of_gram(knots, t, x - values[0], weights)
    steps = np.tril(np.ones((knots.size, knots.size - 1)), -1)
    columns = root @ np.vstack([steps, np.zeros(steps.shape[1])])
    constant = root[:, :-1].sum(axis=1)
    misfit = root[:, -1] - columns @ slowest
    pull = np.sqrt(PULL * np.square(root[:, :-1]).sum() / rises.size)
    off = misfit - columns @ (rises - slowest)
    off -= constant * (constant @ off) / (constant @ constant)
    bends = _bends(knots, rises) * np.sqrt(np.square(off).sum() / weights.sum())
    # Each vertex of the simplex of rises is a column of differences to the data.
    vertices = free * columns - misfit[:, None]
    vertices -= np.outer(constant, constant @ vertices) / (constant @ constant)
    beside = pull * (np.diag(np.full(rises.size, free)) - (rises - slowest)[:, None])
    bent = free * bends + (bends @ slowest)[:, None]
    vertices = np.vstack([vertices, beside, bent])
    # The nearest point of a simplex to 0 is a problem of nonnegative least squares.
    size = np.abs(vertices).max() or 1.0
    target = np.append(np.zeros(vertices.shape[0]), 1.0)
    shares = nnls(np.vstack([vertices / size, np.ones(rises.size)]), target)[0]
    best = slowest + free * shares / shares.sum()
    off = misfit - columns @ (best - slowest)
    shift = float(constant @ off / (constant @ constant))
    nearest: Array = values[0] + shift + np.concatenate([[0.0], np.cumsum(best)])
    return nearest


def _bends(knots: Array, rises: Array) -> Array:
    """Return the matrix from rises to changes of slope, in units of the usual ones."""
    slopes = rises / np.diff(knots)
    mean = rises.sum() / (knots[-1] - knots[0])
    usual = TURN * np.maximum(mean, np.maximum(slopes[1:], slopes[:-1]))
    bends: Array = np.diff(np.diag(1 / np.diff(knots)), axis=0) / usual[:, None]
    return bends


def _root_of_gram(knots: Array, t: Array, x: Array, weights: Array) -> Array:
    """Return R with RᵀR the weighted sums of products of the hat functions at t and of x."""
    n = knots.size
    k = np.clip(np.searchsorted(knots, t) - 1, 0, n - 2)
    right = (t - knots[k]) / (knots[k + 1] - knots[k])  # beyond the ends, tails are straight
    left = 1 - right
    gram = np.zeros((n + 1, n + 1))
    at = np.arange(n)
    for first, a in ((0, left), (1, right)):
        for second, b in ((0, left), (1, right)):
            sums = np.bincount(k, weights * a * b, minlength=n)
            np.add.at(gram, (at[: n - 1] + first, at[: n - 1] + second), sums[: n - 1])
        gram[first : n - 1 + first, n] += np.bincount(k, weights * a * x, minlength=n)[: n - 1]
    gram[n, :n] = gram[:n, n]
    gram[n, n] = float(np.sum(weights * x * x))
    values, vectors = np.linalg.eigh(gram)
    root: Array = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    return root
