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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmd_lab._numba import compile_kernel, compile_scalar, is_ours

from ._curve import curve_of, value_at
from ._pieces import best_branch, best_piece
from ._proximal_map import compile_proximal
from ._search import ScalarMap, compile_search
from .loss import Loss
from .losses import as_loss
from .nonlinearities import as_nonlinearity
from .nonlinearity import Nonlinearity, Piece

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
        return f"{self.nonlinearity.code_name}_{self.loss.code_name}_{kinds or 'closed'}"

    @property
    def is_ours(self) -> bool:
        """Whether both classes belong to this package."""
        return is_ours(type(self.nonlinearity), type(self.loss))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Run-time arguments of compiled code: pieces, numbers of f, numbers of d.

        Whoever keeps them keeps the pair, too, since a number may be the address of a
        table.  An f that is searched has its curve in the place of the pieces.
        """
        table: tuple[Any, ...] = tuple(tuple(map(float, piece)) for piece in self.pieces)
        if is_searched(self.structure):
            table = curve_of(self.nonlinearity).numbers
        return table, self.nonlinearity.numbers, self.loss.numbers

    @property
    def model(self) -> tuple[Any, ...]:
        """All numbers of the pair, as `nmd_lab.model.entry` takes them."""
        return *self.arguments, self.loss.floors, tuple(map(float, self.limits))

    def preimage(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the initial T, finite, with f(T) near what suits X."""
        return self.nonlinearity.preimage(self.loss.target(x))


def make_pair(nonlinearity: str | Nonlinearity, loss: str | Loss) -> Pair:
    """Return a nonlinearity and a loss as a pair, if they are compatible."""
    f, d = as_nonlinearity(nonlinearity), as_loss(loss)
    if d.pair is not None:  # the losses of a mixed pair
        return d.pair  # type: ignore[no-any-return]
    pieces = tuple(_feasible_pieces(f, d))
    closed = type(d) in f.closed_forms
    none = not closed and f.pieces() is not None and not pieces
    if none or f.range[0] > d.domain[1] or f.range[1] < d.domain[0]:
        raise ValueError(
            f"nonlinearity={f!r} takes no value in {d.domain}, where the loss {d.name!r} is "
            "finite: change the bounds or the loss."
        )
    if (closed and f.pieces() is None) or not d.is_solved_on_pieces():
        pieces = ()
    return Pair(f, d, (type(f), type(d), tuple(piece.slope == 0 for piece in pieces)), pieces)


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


def is_searched(structure: Structure) -> bool:
    """Return whether the T-update of a structure is found along the curve of f."""
    f, d, flat = structure
    by_branches = f.periodic and d.is_solved_on_pieces()
    by_formula = d in f.closed_forms or bool(flat)
    return not (by_formula or by_branches)


@cache
def compile_forward(structure: Structure) -> ScalarMap:
    """Return compiled f ``(t, pieces, pf) -> y``, by its curve if the T-update uses it.

    Near the end of a domain, where d may be infinite, a share of the largest f is no exact value.
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
    """Return the compiled T-update ``(v, x, rho, *pair.arguments) -> t`` of a structure."""
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
def _array_map(structure: Structure, name: str, cached: bool) -> Callable[..., None]:
    """Return the compiled loop of a T-update over flat arrays."""
    solve = compile_t_update(structure)
    forward, value = compile_scalar(structure[0].forward), compile_scalar(structure[1].value)

    def update(v: Any, x: Any, rho: Any, pieces: Any, pf: Any, pd: Any, out: Any) -> None:
        for i in range(v.size):
            t = solve(v[i], x[i], rho[i], pieces, pf, pd)
            out[i] = t
            lowest = math.inf
            for step in range(3 if out.itemsize == 4 else 0):
                # Rounded to float32, t may cross a jump or leave the domain: a neighbour does not.
                near = np.float32(t)
                if step > 0:
                    near = np.nextafter(near, np.float32(math.inf if step == 1 else -math.inf))
                gap = float(near) - v[i]
                objective = value(x[i], forward(float(near), pf), pd) + 0.5 * rho[i] * gap * gap
                if objective < lowest:
                    out[i], lowest = near, objective

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
        pair = make_pair(pair.nonlinearity, pair.loss.for_data(arrays["x"].ravel().astype(float)))
    common = np.result_type(arrays["v"].dtype, arrays["x"].dtype)
    dtype = np.float32 if common == np.float32 else np.float64
    inputs = [np.array(a, dtype=np.float64) for a in np.broadcast_arrays(*arrays.values())]
    flat_v, flat_x, flat_rho = (a.ravel() for a in inputs)
    out = t_update(pair, flat_v, flat_x, flat_rho, dtype)
    return out.reshape(inputs[0].shape)


def t_update(
    pair: Pair,
    v: NDArray[np.float64],
    x: NDArray[np.float64],
    rho: NDArray[np.float64],
    dtype: type[np.floating] = np.float64,
) -> NDArray[np.floating]:
    """Return the T-update of flat arrays, without checks."""
    out = np.empty(v.size, dtype)
    update = _array_map(pair.structure, f"{pair.name}_{out.dtype}", pair.is_ours)
    update(v, x, rho, *pair.arguments, out)
    return out
