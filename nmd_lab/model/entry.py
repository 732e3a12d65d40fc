"""The compiled functions of one entry: its T-update, and its loss.

**The T-update** is one exact scalar map for each pair of a nonlinearity and a loss.  For one entry
the update is t = argmin d(x, f(t)) + rho/2 (t - v)^2.  `compile_t_update` takes the first of four
constructions that applies to the pair:

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

Limits and classes are added to this map.

**Limits.**  Of an entry may be known only that it is at most x, at least x, or between x and an
upper value.  The loss is then 0 where f(t) satisfies this, and the loss to the nearest limit
elsewhere.  Let f be continuous and d smallest at y = x.  If f(v) satisfies the limit, t = v is
optimal.  Otherwise the limit that f(v) violates is active: on the way from v to any t, f(t) passes
this limit, where the loss is already smallest.  So the T-update to an entry that is equal to the
limit is optimal.  The exact map of a pair therefore serves its limits, too.

Where the noise is known, a loss may have another form for entries with limits: minus the logarithm
of the probability of what is known (`nmd_lab.model.column_model`), as a class has it always.

**Classes.**  A class with an order, such as an ordinal level, is an interval of a latent variable;
its limits are ends of a longer interval.  A limit of one of two classes is the class itself, or
has no effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from inspect import signature

import numpy as np
from numpy.typing import ArrayLike

from nmd_lab._runtime.compiler import compile_kernel, compile_scalar

from .column_model import FORMS, ColumnModel, Structure, is_searched, make_column_model
from .curve_search import (
    ScalarMap,
    compile_golden,
    compile_search,
    curve_at,
    newton_proximal,
    value_inside,
)
from .loss import Array, FloatArray, Loss, values_of
from .nonlinearity import Nonlinearity
from .ordinal import CensoredFrobenius, Ordinal


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
        y = curve_at(t, pieces)[0]  # the compiler leaves out the derivatives
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
    if d.proximal is not Loss.proximal:
        proximal = compile_scalar(d.proximal)
    elif d.smooth and d.derivatives is not Loss.derivatives and d.domain == Loss.domain:
        proximal = newton_proximal(d.derivatives, d.least_at)
    else:
        proximal = _golden_proximal(d)

    def anywhere(q, x, rho, low, high, p):  # type: ignore[no-untyped-def]
        return proximal(q, x, rho, p)

    return compile_scalar(anywhere)


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


EXACT, AT_MOST, AT_LEAST, BETWEEN = range(4)
"""What is known of an entry: its value x, an upper limit x, a lower limit x, or both limits."""


@cache
def compile_entry(structure: Structure, limited: bool) -> tuple[ScalarMap, ScalarMap]:
    """Return the compiled T-update and loss of one entry, with the floors on f(a).

    Without `limited` the compiler leaves out what is for entries with limits.
    """
    update, forward = compile_t_update(structure), compile_forward(structure)
    value, ends = compile_scalar(structure.loss.value), _compile_ends(structure)
    is_class, form = has_classes(structure.loss), FORMS.get(structure.loss)
    if issubclass(structure.loss, Ordinal):
        form = CensoredFrobenius
    has_form, update_form, value_form = form is not None, update, value
    if form is not None:
        update_form = compile_t_update(structure._replace(loss=form))
        value_form = compile_scalar(form.value)

    def known(x, y, limit, upper, model):  # type: ignore[no-untyped-def]
        # What is known where f is y: anything, or an interval with noise, or the value x
        _, _, pd, _, (smallest, sd) = model
        low, high = ends(x, limit, upper, smallest, pd)
        sd = 1.0 if is_class else sd
        by_form = has_form and sd > 0.0 and low < high
        free = low == -math.inf and high == math.inf
        if not is_class and not by_form:
            free, x = low <= y <= high, 0.0 * x + min(max(y, low), high)
        return free, by_form, (low, high, sd), x

    what_is_known = compile_scalar(known)

    def solve(v, x, rho, limit, upper, model):  # type: ignore[no-untyped-def]
        pieces, pf, pd, _, _ = model
        if limited and limit != EXACT:
            y = forward(v, pieces, pf)
            free, by_form, interval, x = what_is_known(x, y, limit, upper, model)
            if free:
                return v + 0.0 * x
            if by_form:
                return update_form(v, x, rho, pieces, pf, interval) + 0.0 * x
        return update(v, x, rho, pieces, pf, pd)

    def loss(x, a, limit, upper, model):  # type: ignore[no-untyped-def]
        pieces, pf, pd, floors, _ = model
        y = max(forward(a, pieces, pf), floors[0] + floors[1] * abs(x))
        if limited and limit != EXACT:
            free, by_form, interval, end = what_is_known(x, y, limit, upper, model)
            if free:
                return 0.0
            if by_form:
                return value_form(x, y, interval)
            if not is_class:
                return value(end, y, pd) - value(end, end, pd)
        return value(x, y, pd)

    return compile_scalar(solve), compile_scalar(loss)


def has_classes(loss: type[Loss]) -> bool:
    """Return whether x is a class with an order, an interval of a latent variable."""
    return loss.latent_ends is not Loss.latent_ends


def _compile_ends(structure: Structure) -> ScalarMap:
    """Return the function that gives the interval of an entry, or of its latent variable."""
    lowest, highest = map(float, structure.loss.domain)

    def of_number(x, limit, upper, smallest, pd):  # type: ignore[no-untyped-def]
        low = max(lowest, min(smallest, x)) if limit == AT_MOST else 1.0 * x
        high = highest if limit == AT_LEAST else (1.0 * upper if limit == BETWEEN else 1.0 * x)
        return low, high

    latent_ends = compile_scalar(structure.loss.latent_ends)

    def of_class(x, limit, upper, smallest, pd):  # type: ignore[no-untyped-def]
        low, high = latent_ends(1.0 * x, pd)
        if limit == BETWEEN:
            high = latent_ends(1.0 * upper, pd)[1]
        return -math.inf if limit == AT_MOST else low, math.inf if limit == AT_LEAST else high

    return compile_scalar(of_class if has_classes(structure.loss) else of_number)


@cache
def losses_within(structure: Structure) -> Callable[..., None]:
    """Return the compiled loop of the losses of f(a), at entries with limits.

    It takes (x, a, limits, uppers, numbers of the kind, out), flat arrays of float64.
    """
    _, loss = compile_entry(structure, True)

    def losses(x, a, limits, uppers, model, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = loss(x[i], a[i], limits[i], uppers[i], model)

    return compile_kernel(losses, f"losses_{structure.name}", cached=structure.is_ours)


@cache
def _updates(structure: Structure) -> Callable[..., None]:
    """Return the compiled loop of T-updates; it takes (v, x, rho, numbers of the kind, out)."""
    solve, _ = compile_entry(structure, False)

    def updates(v, x, rho, model, out):  # type: ignore[no-untyped-def]
        for i in range(v.size):
            out[i] = solve(v[i], x[i], rho[i], 0, x[i], model)

    return compile_kernel(updates, f"updates_{structure.name}", cached=structure.is_ours)


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
    inputs = [np.array(a, dtype=np.float64) for a in np.broadcast_arrays(*arrays.values())]
    flat_v, flat_x, flat_rho = (a.ravel() for a in inputs)
    t = t_update(kind, flat_v, flat_x, flat_rho)
    if common == np.float32:
        # Rounded, t may cross a jump or leave the domain, and a neighbour does not
        near = t.astype(np.float32)
        ends = (np.nextafter(near, np.float32(end)) for end in (math.inf, -math.inf))
        each = np.stack([near, *ends])
        y = np.asarray(kind.nonlinearity(each.astype(np.float64)), np.float64)
        values = values_of(kind.loss, np.tile(flat_x, 3), y.ravel()).reshape(y.shape)
        costs = np.nan_to_num(values + 0.5 * flat_rho * (each - flat_v) ** 2, nan=math.inf)
        t = np.take_along_axis(each, costs.argmin(axis=0)[None], axis=0)
    return t.reshape(inputs[0].shape)


def t_update(kind: ColumnModel, v: Array, x: Array, rho: Array) -> Array:
    """Return the T-update of flat arrays, without checks."""
    out = np.empty_like(v)
    _updates(kind.structure)(v, x, rho, kind.numbers, out)
    return out
