"""A loss and a nonlinearity become one exact, compiled scalar map: the T-update.

For one entry the update is t = argmin d(x, f(t)) + rho/2 (t - v)^2.  Three constructions serve
every pair, and `compile_t_update` picks the first that applies:

1. a closed form that the nonlinearity offers for the loss (Square);
2. for a piecewise-linear f, the best of its pieces.  On a piece f(t) = s t + c with s != 0 put
   y = s t + c: the problem is the loss's own proximal map at s v + c with penalty rho/s^2, clipped
   to what f takes on the piece.  On a flat piece, t is v clipped to it.  This is exact for every
   convex loss;
3. a search over a bracket that is known to hold the minimiser.

The maps replace the case lists of the paper's appendix, some of which miss the minimum.

>>> import nmd_lab as nmd
>>> float(nmd.prox(7.2, 3.0, 0.095, nonlinearity="relu", loss="l1"))
3.0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmd_lab._numba import compile_kernel, compile_scalar, is_ours

from .losses import Loss, as_loss
from .nonlinearities import Nonlinearity, Piece, as_nonlinearity

ScalarMap = Callable[..., Any]
Structure = tuple[type[Nonlinearity], type[Loss], tuple[bool, ...]]


class Pair(NamedTuple):
    """What compiled code needs to know of a nonlinearity and a loss.

    `pieces`, `nonlinearity_parameters`, `loss_parameters` and `floor` are run-time numbers;
    `structure` is what the code itself depends on.
    """

    nonlinearity: Nonlinearity
    loss: Loss
    structure: Structure
    pieces: tuple[Piece, ...]

    @property
    def name(self) -> str:
        """A name for the compiled code: two pairs that share it share the code."""
        kinds = "".join("f" if flat else "s" for flat in self.structure[2])
        return f"{self.nonlinearity.name}_{self.loss.name}_{kinds or 'closed'}"

    @property
    def is_ours(self) -> bool:
        """Whether both classes are this package's own."""
        return is_ours(type(self.nonlinearity), type(self.loss))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The run-time numbers, in the order in which compiled code takes them."""
        table = tuple(tuple(float(number) for number in piece) for piece in self.pieces)
        parameters = (self.nonlinearity.parameters, self.loss.parameters)
        return table, *(tuple(map(float, numbers)) for numbers in parameters)


def make_pair(nonlinearity: str | Nonlinearity, loss: str | Loss) -> Pair:
    """Check that a nonlinearity and a loss go together and prepare them.

    Raises
    ------
    ValueError
        If a name is unknown, or f takes no value at which the loss is finite.
    """
    f, d = as_nonlinearity(nonlinearity), as_loss(loss)
    pieces = tuple(_feasible_pieces(f, d))
    closed = type(d) in f.closed_forms
    if not closed and f.pieces() is not None and not pieces:
        raise ValueError(
            f"nonlinearity={f!r} takes no value in {d.domain}, where the loss {d.name!r} is "
            "finite: change the bounds or the loss."
        )
    flat = tuple(piece.slope == 0 for piece in pieces)
    return Pair(f, d, (type(f), type(d), () if closed else flat), () if closed else pieces)


def _feasible_pieces(f: Nonlinearity, d: Loss) -> list[Piece]:
    """Return the pieces of f, cut to where the loss is finite."""
    feasible = []
    smallest, largest = d.domain
    for low, high, slope, intercept in f.pieces() or ():
        if slope == 0:
            inside = smallest <= intercept <= largest and math.isfinite(intercept)
        else:
            ends = ((smallest - intercept) / slope, (largest - intercept) / slope)
            low, high = max(low, min(ends)), min(high, max(ends))
            inside = low <= high
        if inside and low < math.inf and high > -math.inf:
            feasible.append(Piece(low, high, slope, intercept))
    return feasible


@cache
def compile_t_update(structure: Structure) -> ScalarMap:
    """Return the compiled T-update ``(v, x, rho, *pair.arguments) -> t`` of a pair's structure."""
    f, d, flat = structure
    if d in f.closed_forms:
        solve = _closed_form(f.closed_forms[d])
    elif flat:
        solve = _best_piece(flat, compile_scalar(d.value), compile_scalar(d.proximal))
    else:
        solve = _search(compile_scalar(f.forward), compile_scalar(d.value))
    return _with_sign_of_v(solve) if f.even else solve


def _with_sign_of_v(solve: ScalarMap) -> ScalarMap:
    """For even f: solve for t >= 0, then give t the sign of v."""

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        return math.copysign(solve(abs(v), x, rho, pieces, pf, pd), v)

    return compile_scalar(solution)


def _closed_form(formula: Callable[[float, float, float], float]) -> ScalarMap:
    """Give a nonlinearity's own formula the common signature."""
    formula = compile_scalar(formula)

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        return formula(v, x, rho)

    return compile_scalar(solution)


def _best_piece(flat: tuple[bool, ...], value: ScalarMap, proximal: ScalarMap) -> ScalarMap:
    """Solve on each piece and keep the best; the chain is unrolled when it is compiled."""
    best = _piece_candidate(0, flat[0], value, proximal)
    for index in range(1, len(flat)):
        best = _better_of(best, _piece_candidate(index, flat[index], value, proximal))

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        return best(v, x, rho, pieces, pd)[0]

    return compile_scalar(solution)


def _piece_candidate(index: int, flat: bool, value: ScalarMap, proximal: ScalarMap) -> ScalarMap:
    """Return a compiled function for (minimiser on the piece, objective there)."""
    if flat:

        def candidate(v, x, rho, pieces, pd):  # type: ignore[no-untyped-def]
            low, high, _, intercept = pieces[index]
            t = min(max(v, low), high)
            return t, value(x, intercept, pd) + 0.5 * rho * (t - v) * (t - v)

    else:

        def candidate(v, x, rho, pieces, pd):  # type: ignore[no-untyped-def]
            low, high, slope, intercept = pieces[index]
            inverse = 1.0 / slope
            y = proximal(slope * v + intercept, x, rho * inverse * inverse, pd)
            t = min(max((y - intercept) * inverse, low), high)
            return t, value(x, slope * t + intercept, pd) + 0.5 * rho * (t - v) * (t - v)

    return compile_scalar(candidate)


def _better_of(first: ScalarMap, second: ScalarMap) -> ScalarMap:
    def better(v, x, rho, pieces, pd):  # type: ignore[no-untyped-def]
        t_first, objective_first = first(v, x, rho, pieces, pd)
        t_second, objective_second = second(v, x, rho, pieces, pd)
        if objective_second < objective_first:
            return t_second, objective_second
        return t_first, objective_first

    return compile_scalar(better)


_GRID = 48  # points of a search on each side of v
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def _search(forward: ScalarMap, value: ScalarMap) -> ScalarMap:
    """Search for the minimiser of any f and d.

    No t farther from v than the bracket's radius can beat the best point seen.  A grid that is
    dense near v and reaches the bracket's ends finds the best cell; a golden-section search ends
    it.  A minimum narrower than a cell can be missed, so an exact construction is to be preferred.
    """

    def _objective(t, v, x, rho, pf, pd):  # type: ignore[no-untyped-def]
        return value(x, forward(t, pf), pd) + 0.5 * rho * (t - v) * (t - v)

    objective: ScalarMap = compile_scalar(_objective)

    def feasible(v, x, rho, pf, pd):  # type: ignore[no-untyped-def]
        best, lowest, reach = v, objective(v, v, x, rho, pf, pd), 1e-6 * (1.0 + abs(v))
        while not lowest < math.inf and reach < 1e30:  # f(v) outside the loss's domain
            reach *= 2.0
            for t in (v - reach, v + reach):
                if objective(t, v, x, rho, pf, pd) < lowest:
                    best, lowest = t, objective(t, v, x, rho, pf, pd)
        return best, lowest

    first_guess = compile_scalar(feasible)

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        best, lowest = first_guess(v, x, rho, pf, pd)
        radius = math.sqrt(2.0 * max(lowest, 0.0) / rho)
        left, right = best, best
        previous = v - radius
        for k in range(-_GRID, _GRID + 1):
            t = v + radius * (k / _GRID) * abs(k / _GRID)
            if k > -_GRID and objective(t, v, x, rho, pf, pd) <= lowest:
                lowest, best, left = objective(t, v, x, rho, pf, pd), t, previous
                ahead = (k + 1) / _GRID
                right = v + radius * ahead * abs(ahead)
            previous = t
        for _ in range(90):
            width = _GOLDEN * (right - left)
            if width <= 1e-15 * (1.0 + abs(best)):
                break
            inner_left, inner_right = right - width, left + width
            value_left = objective(inner_left, v, x, rho, pf, pd)
            value_right = objective(inner_right, v, x, rho, pf, pd)
            if value_left < value_right:
                right = inner_right
            else:
                left = inner_left
            if min(value_left, value_right) < lowest:
                best = inner_left if value_left < value_right else inner_right
                lowest = min(value_left, value_right)
        return best

    return compile_scalar(solution)


@cache
def _array_map(structure: Structure, name: str, cached: bool) -> Callable[..., None]:
    """Compile the T-update over flat arrays."""
    solve = compile_t_update(structure)

    def update(v: Any, x: Any, rho: Any, pieces: Any, pf: Any, pd: Any, out: Any) -> None:
        for i in range(v.size):
            out[i] = solve(v[i], x[i], rho[i], pieces, pf, pd)

    return compile_kernel(update, f"prox_{name}", cached=cached)


def prox(
    v: ArrayLike,
    x: ArrayLike,
    rho: ArrayLike,
    *,
    nonlinearity: str | Nonlinearity,
    loss: str | Loss,
) -> NDArray[np.floating]:
    """Return the exact T-update, argmin over t of d(x, f(t)) + rho/2 (t - v)^2.

    Parameters
    ----------
    v : array_like
        Where the quadratic is centred, v = a - λ/ρ in the paper's letters.
    x : array_like
        Observed values.
    rho : array_like
        Penalties, positive.
    nonlinearity : str or Nonlinearity
        f: "relu", "square", "minmax" (0..1), "modulus", "identity" or an object.
    loss : str or Loss
        d: "frobenius", "l1", "kl" or an object.

    Returns
    -------
    ndarray
        The minimisers, of the broadcast shape of `v`, `x` and `rho`; float32 if `v` and `x` are,
        float64 otherwise.  Where two t are equally good, one of them.

    Raises
    ------
    ValueError
        If a penalty is not positive, an input is not finite, or the loss does not define d(x, ·).

    Notes
    -----
    The T-update of Algorithm 1 and of the paper's appendix, in one construction for every pair.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.prox([-1.0, 0.5, 2.0], 1.0, 1.0, nonlinearity="relu", loss="frobenius")
    array([-1.  ,  0.75,  1.5 ])
    """
    pair = make_pair(nonlinearity, loss)
    arrays = {name: np.asarray(a) for name, a in (("v", v), ("x", x), ("rho", rho))}
    for name, array in arrays.items():
        if array.dtype.kind not in "buif":
            raise TypeError(f"{name} has dtype {array.dtype}: give real numbers.")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{name} holds NaN or infinity: give finite numbers.")
    if not np.all(arrays["rho"] > 0):
        raise ValueError(f"rho={arrays['rho'].min():g} is not positive: give a penalty > 0.")
    if arrays["x"].size:
        pair.loss.check_data(float(arrays["x"].min()), float(arrays["x"].max()))
    both = np.result_type(arrays["v"].dtype, arrays["x"].dtype)
    dtype = np.float32 if both == np.float32 else np.float64
    flat = [np.array(a, dtype=np.float64) for a in np.broadcast_arrays(*arrays.values())]
    out = np.empty(flat[0].shape)
    update = _array_map(pair.structure, pair.name, pair.is_ours)
    update(*(a.ravel() for a in flat), *pair.arguments, out.ravel())
    return out.astype(dtype)
