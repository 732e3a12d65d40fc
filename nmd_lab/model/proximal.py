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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmd_lab._runtime.compiler import compile_kernel, compile_scalar

from .column_model import ColumnModel, Structure, is_searched, make_column_model
from .curve_search import ScalarMap, compile_golden, compile_search, value_at, value_inside
from .loss import FloatArray, Loss
from .nonlinearity import Nonlinearity


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
        solve = best_piece(flat, d, compile_proximal(d))  # type: ignore[arg-type]
    elif f.periodic and d.is_solved_on_pieces():
        solve = best_branch(compile_scalar(f.forward), d, compile_proximal(d))  # type: ignore[arg-type]
    else:
        solve = compile_search(compile_forward(structure), d)
    return _with_sign_of_v(solve) if f.even else solve


def best_piece(flat: tuple[bool, ...], loss: type[Loss], proximal: ScalarMap) -> ScalarMap:
    """Return the best of the solutions on each piece, which are in a tuple or in an array."""
    value, convex, some_flat = compile_scalar(loss.value), loss.convex, any(flat)
    within = proximal if convex else compile_scalar(loss.proximal_within)

    def on_flat(v, x, rho, piece, pd):  # type: ignore[no-untyped-def]
        low, high, intercept = piece[0], piece[1], piece[3]
        t = min(max(v, low), high)
        return t, value(x, intercept, pd) + 0.5 * rho * (t - v) * (t - v)

    def on_slope(v, x, rho, piece, pd):  # type: ignore[no-untyped-def]
        low, high, slope, intercept = piece[0], piece[1], piece[2], piece[3]
        inverse = 1.0 / slope
        first, last = slope * low + intercept, slope * high + intercept
        q, there = slope * v + intercept, rho * inverse * inverse
        if convex:
            y = within(q, x, there, pd)
        else:
            y = within(q, x, there, min(first, last), max(first, last), pd)
        t = min(max((y - intercept) * inverse, low), high)
        return t, value(x, slope * t + intercept, pd) + 0.5 * rho * (t - v) * (t - v)

    best_on_flat, best_on_slope = compile_scalar(on_flat), compile_scalar(on_slope)

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        best, lowest = v, math.inf
        for k in range(len(flat) if some_flat else len(pieces)):
            if some_flat and flat[k]:
                t, objective = best_on_flat(v, x, rho, pieces[k], pd)
            else:
                t, objective = best_on_slope(v, x, rho, pieces[k], pd)
            if k == 0 or objective < lowest:
                best, lowest = t, objective
        return best

    return compile_scalar(solution)


def best_branch(forward: ScalarMap, loss: type[Loss], proximal: ScalarMap) -> ScalarMap:
    """Return the best of the solutions on the branch of v and on both its neighbours."""
    value, convex = compile_scalar(loss.value), loss.convex
    smallest, largest = loss.domain

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        period, start = pf
        middle = math.floor((v - start) / period)
        best, lowest = v, math.inf
        for step in (0.0, -1.0, 1.0):  # from the branch of v
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


@cache
def _array_map(structure: Structure) -> Callable[..., None]:
    """Return the compiled loop of a T-update over flat arrays."""
    solve = compile_t_update(structure)
    forward, value = compile_scalar(structure[0].forward), compile_scalar(structure[1].value)

    def update(
        v: Any, x: Any, rho: Any, narrow: Any, pieces: Any, pf: Any, pd: Any, out: Any
    ) -> None:
        for i in range(v.size):
            t = solve(v[i], x[i], rho[i], pieces, pf, pd)
            out[i] = t
            lowest = math.inf
            for step in range(3 if narrow else 0):
                # Rounded to float32, t may cross a jump or leave the domain: a neighbour does not.
                near = np.float32(t)
                if step > 0:
                    near = np.nextafter(near, np.float32(math.inf if step == 1 else -math.inf))
                gap = float(near) - v[i]
                objective = value(x[i], forward(float(near), pf), pd) + 0.5 * rho[i] * gap * gap
                if objective < lowest:
                    out[i], lowest = near, objective

    return compile_kernel(update, f"prox_{structure.name}", cached=structure.is_ours)


def prox(
    v: ArrayLike,
    x: ArrayLike,
    rho: ArrayLike,
    *,
    nonlinearity: str | Nonlinearity,
    loss: str | Loss,
) -> FloatArray:
    """Return the T-update, argmin over t of d(x, f(t)) + rho/2 (t - v)^2.

    It is a formula or, for an f that is not piecewise linear, a bounded search to rounding.

    Parameters
    ----------
    v : array_like
        Centres of the quadratic; v = a - λ/ρ in the paper's notation.
    x : array_like
        Observed values.
    rho : array_like
        Penalties, > 0.
    nonlinearity : str or Nonlinearity
        Nonlinearity f: "relu", "square", "minmax" (0..1), "modulus", "identity" or an object.
    loss : str or Loss
        Loss d: "frobenius", "l1", "kl" or an object.

    Returns
    -------
    ndarray
        Minimisers, of the broadcast shape of `v`, `x` and `rho`.  They are float32 if `v` and `x`
        are, and float64 otherwise.  Of two minimisers, one is returned.

    Raises
    ------
    ValueError
        If a penalty is not positive, an input is not finite, or the loss is not defined for some x.
    TypeError
        If an input does not hold real numbers.

    Notes
    -----
    Algorithm 1 has it; three of the paper's twelve formulas miss a minimum (:doc:`/paper`).

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.prox([-1.0, 0.5, 2.0], 1.0, 1.0, nonlinearity="relu", loss="frobenius")
    array([-1.  ,  0.75,  1.5 ])
    """
    kind = make_column_model(nonlinearity, loss)
    arrays = {name: np.asanyarray(a) for name, a in (("v", v), ("x", x), ("rho", rho))}
    for name, array in arrays.items():
        if array.dtype.kind not in "buif":
            raise TypeError(f"{name} has dtype {array.dtype}: give real numbers.")
        if np.ma.is_masked(array) or not np.all(np.isfinite(array)):
            raise ValueError(f"{name} holds NaN, infinity or a masked one: give finite numbers.")
    if not np.all(arrays["rho"] > 0):
        raise ValueError(f"rho={arrays['rho'].min():g} is not positive: give a penalty > 0.")
    if arrays["x"].size:
        kind.loss.check_data(float(arrays["x"].min()), float(arrays["x"].max()))
        kind = make_column_model(
            kind.nonlinearity, kind.loss.for_data(arrays["x"].ravel().astype(float))
        )
    common = np.result_type(arrays["v"].dtype, arrays["x"].dtype)
    narrow = common == np.float32
    inputs = [np.array(a, dtype=np.float64) for a in np.broadcast_arrays(*arrays.values())]
    flat_v, flat_x, flat_rho = (a.ravel() for a in inputs)
    t = t_update(kind, flat_v, flat_x, flat_rho, narrow=narrow).reshape(inputs[0].shape)
    return t.astype(np.float32) if narrow else t


def t_update(
    kind: ColumnModel,
    v: NDArray[np.float64],
    x: NDArray[np.float64],
    rho: NDArray[np.float64],
    *,
    narrow: bool = False,
) -> NDArray[np.float64]:
    """Return the T-update of flat arrays, without checks, rounded to float32 if `narrow`."""
    out = np.empty_like(v)
    _array_map(kind.structure)(v, x, rho, narrow, *kind.arguments, out)
    return out


@cache
def compile_proximal(d: type[Loss]) -> ScalarMap:
    """Return the compiled proximal map ``(q, x, rho, p) -> y`` of a loss."""
    low, high = d.domain
    if d.convex and d.has_proximal_map():
        return compile_scalar(d.proximal)
    if d.has_proximal_map():
        within = compile_scalar(d.proximal_within)

        def proximal_in_domain(q, x, rho, p):  # type: ignore[no-untyped-def]
            return within(q, x, rho, low, high, p)

        return compile_scalar(proximal_in_domain)
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
