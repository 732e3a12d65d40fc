"""The T-update: one exact, compiled scalar map for each pair of a nonlinearity and a loss.

For one entry the update is t = argmin d(x, f(t)) + rho/2 (t - v)^2.  `compile_t_update` takes the
first of three constructions that applies to the pair:

1. A closed form of the nonlinearity for the loss (Square).
2. The best piece of a piecewise-linear f.  On a piece f(t) = s t + c with s != 0, put y = s t + c.
   The solution is the loss's proximal map at s v + c with penalty rho/s^2, clipped to the values of
   f on the piece.  On a flat piece, t is v clipped to the piece.  This is exact for every convex
   loss.
3. A search over a bracket that contains the minimiser.

These maps replace the case lists of the paper's appendix, some of which miss the minimum.

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

from ._search import ScalarMap, compile_search
from .losses import Loss, as_loss
from .nonlinearities import Nonlinearity, Piece, as_nonlinearity

Structure = tuple[type[Nonlinearity], type[Loss], tuple[bool, ...]]
"""Structure of compiled code: class of f, class of d, and for each piece whether it is flat."""


class LimitModel(NamedTuple):
    """What is known of all entries with limits.

    Attributes
    ----------
    smallest : float
        Smallest value that an entry of X may have; no bound by default.
    sd : float
        Standard deviation of the noise in the units of X, for a loss that has a form for limits
        (`nmd_lab.model.censored`).  0: any value within the limits is as good as another.
    """

    smallest: float = -math.inf
    sd: float = 0.0


NO_LIMIT_MODEL = LimitModel()
"""Nothing is known."""


class Pair(NamedTuple):
    """A nonlinearity and a loss, prepared for compiled code.

    Attributes
    ----------
    nonlinearity : Nonlinearity
        Nonlinearity f.
    loss : Loss
        Loss d.
    structure : tuple
        Everything that the code itself depends on: class of f, class of d, and for each piece
        whether it is flat.
    pieces : tuple of Piece
        Pieces of f within the domain of d; empty if they are not used.
    limits : LimitModel
        What is known of all entries with limits.
    """

    nonlinearity: Nonlinearity
    loss: Loss
    structure: Structure
    pieces: tuple[Piece, ...]
    limits: LimitModel = NO_LIMIT_MODEL

    @property
    def name(self) -> str:
        """Name of the compiled code; pairs with the same name share the code."""
        kinds = "".join("f" if flat else "s" for flat in self.structure[2])
        return f"{self.nonlinearity.name}_{self.loss.name}_{kinds or 'closed'}"

    @property
    def is_ours(self) -> bool:
        """Whether both classes belong to this package."""
        return is_ours(type(self.nonlinearity), type(self.loss))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Run-time arguments of compiled code: pieces, parameters of f, parameters of d."""
        table = tuple(tuple(float(number) for number in piece) for piece in self.pieces)
        parameters = (self.nonlinearity.parameters, self.loss.parameters)
        return table, *(tuple(map(float, numbers)) for numbers in parameters)

    @property
    def model(self) -> tuple[Any, ...]:
        """All numbers of the pair, as `nmd_lab.model.entry` takes them."""
        return *self.arguments, self.loss.floors, tuple(map(float, self.limits))


def make_pair(nonlinearity: str | Nonlinearity, loss: str | Loss) -> Pair:
    """Return a nonlinearity and a loss as a pair, if they are compatible.

    Parameters
    ----------
    nonlinearity : str or Nonlinearity
        Nonlinearity f, by name or as an object.
    loss : str or Loss
        Loss d, by name or as an object.

    Raises
    ------
    ValueError
        If a name is unknown, or if the loss is infinite at every value of f.
    """
    f, d = as_nonlinearity(nonlinearity), as_loss(loss)
    if d.pair is not None:  # the losses of a mixed pair
        return d.pair  # type: ignore[no-any-return]
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
    """Return the pieces of f, restricted to the domain of the loss."""
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
    """Return the compiled T-update ``(v, x, rho, *pair.arguments) -> t`` of a structure."""
    f, d, flat = structure
    if d in f.closed_forms:
        solve = _closed_form(f.closed_forms[d])
    elif flat:
        solve = _best_piece(flat, compile_scalar(d.value), compile_scalar(d.proximal))
    else:
        solve = compile_search(compile_scalar(f.forward), compile_scalar(d.value))
    return _with_sign_of_v(solve) if f.even else solve


def _with_sign_of_v(solve: ScalarMap) -> ScalarMap:
    """Return the T-update of an even f: the solution for t >= 0 with the sign of v."""

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        return math.copysign(solve(abs(v), x, rho, pieces, pf, pd), v)

    return compile_scalar(solution)


def _closed_form(formula: Callable[[float, float, float], float]) -> ScalarMap:
    """Return a closed form with the signature of every T-update."""
    formula = compile_scalar(formula)

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        return formula(v, x, rho)

    return compile_scalar(solution)


def _best_piece(flat: tuple[bool, ...], value: ScalarMap, proximal: ScalarMap) -> ScalarMap:
    """Return the best of the solutions on each piece."""
    # A chain of functions instead of a loop, because each piece has compiled code of its own.
    best = _piece_candidate(0, flat[0], value, proximal)
    for index in range(1, len(flat)):
        best = _better_of(best, _piece_candidate(index, flat[index], value, proximal))

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        return best(v, x, rho, pieces, pd)[0]

    return compile_scalar(solution)


def _piece_candidate(index: int, flat: bool, value: ScalarMap, proximal: ScalarMap) -> ScalarMap:
    """Return a compiled function whose values are the minimiser on a piece and its objective."""
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
    """Return a compiled function for the candidate with the lower objective."""

    def better(v, x, rho, pieces, pd):  # type: ignore[no-untyped-def]
        t_first, objective_first = first(v, x, rho, pieces, pd)
        t_second, objective_second = second(v, x, rho, pieces, pd)
        if objective_second < objective_first:
            return t_second, objective_second
        return t_first, objective_first

    return compile_scalar(better)


@cache
def _array_map(structure: Structure, name: str, cached: bool) -> Callable[..., None]:
    """Return the compiled loop of a T-update over flat arrays."""
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
    This is the T-update of Algorithm 1 and of the paper's appendix.

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
    common = np.result_type(arrays["v"].dtype, arrays["x"].dtype)
    dtype = np.float32 if common == np.float32 else np.float64
    inputs = [np.array(a, dtype=np.float64) for a in np.broadcast_arrays(*arrays.values())]
    out = np.empty(inputs[0].shape)
    update = _array_map(pair.structure, pair.name, pair.is_ours)
    update(*(a.ravel() for a in inputs), *pair.arguments, out.ravel())
    return out.astype(dtype)
