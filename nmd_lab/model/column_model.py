"""One kind of entries: a nonlinearity, a loss, and the units in which they are taken.

With centre c, size s and weight w, an entry x is modelled by f(c + s (WH)) and has the loss
w d(x, f(c + s (WH))).  In a table of several kinds, WH then has no unit, WH = 0 is the best
constant of each column, and no column drowns another.  Without units, c = 0, s = 1 and w = 1.

**The loss of an entry of which only limits are known, under Gaussian noise**
(`nmd_lab.model.ordinal.CensoredFrobenius`).

Of an entry x is known that it lies between `low` and `high`; one of the two may be infinite.  With
noise of standard deviation σ around the modelled value y, this has the probability

    P(y) = Φ((high - y) / σ) - Φ((low - y) / σ),

and the loss is -σ² log P(y), in the units of the squared loss (x - y)²/2.  It is convex in y, and
for σ → 0 it is the squared distance of y to the interval, halved.  Its derivative is y - m(y), with
the expected value m(y) of x between the limits.

Source: J. Tobin, "Estimation of relationships for limited dependent variables", Econometrica 26,
1958.

**Mean and variance of f(T) for a normal variable T.**  For a piecewise-linear f they are sums over
the pieces: with the standard normal distribution function Φ and density φ, and a piece from a to b
in units of the standard deviation σ around the mean μ,

    E [s T + c; a < T < b] = (s μ + c) (Φ(b) - Φ(a)) - s σ (φ(b) - φ(a)),

the mean of a rectified or doubly clipped normal variable.  For t² they are μ² + σ² and
2 σ² (2 μ² + σ²).  Any other f is integrated by Gauss-Hermite quadrature.
"""

from __future__ import annotations

import math
import re
from ast import literal_eval
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._runtime.checks import check_word
from nmd_lab._runtime.compiler import is_ours

from .curve_search import curve_of
from .loss import Array, FloatArray, Loss
from .losses import LOSSES, Frobenius, as_loss
from .nonlinearities import NONLINEARITY_CLASSES, Square, as_nonlinearity
from .nonlinearity import Nonlinearity, Piece
from .ordinal import CensoredFrobenius, interval_mass

MAX_COMPILED_PIECES = 4
"""Number of pieces up to which each has compiled code of its own; more sloped ones share a loop."""


class Structure(NamedTuple):
    """Everything that the compiled code of a kind depends on; the same structure shares the code.

    Attributes
    ----------
    nonlinearity, loss : type
        Classes of f and d.
    flat : tuple of bool
        Whether each piece of f within the domain of d is flat; empty if they are not used.
    """

    nonlinearity: type[Nonlinearity]
    loss: type[Loss]
    flat: tuple[bool, ...]

    @property
    def name(self) -> str:
        """Part of the names of compiled code."""
        flat = "".join("f" if each else "s" for each in self.flat)
        return f"{self.nonlinearity.name}_{self.loss.name}_{flat or 'closed'}"

    @property
    def is_ours(self) -> bool:
        """Whether both classes belong to this package."""
        return is_ours(self.nonlinearity, self.loss)


class LimitModel(NamedTuple):
    """What is known of all entries with limits.

    Attributes
    ----------
    smallest : float
        Smallest value that an entry of X may have; no bound by default.
    sd : float
        Standard deviation of the noise in the units of X, for a loss that has a form for limits
        (`nmd_lab.model.column_model`).  0: any value within the limits is as good as another.
    """

    smallest: float = -math.inf
    sd: float = 0.0


class ColumnModel(NamedTuple):
    """A nonlinearity and a loss, prepared for compiled code, with their units.

    Attributes
    ----------
    nonlinearity : Nonlinearity
        Nonlinearity f.
    loss : Loss
        Loss d, with what is learned.
    structure : Structure
        Everything that the code itself depends on.
    pieces : tuple of Piece
        Pieces of f within the domain of d; empty if they are not used.
    limits : LimitModel
        What is known of all entries with limits.
    centre, size : float
        An entry is modelled by f(centre + size (WH)); size > 0.
    weight : float
        Factor of the loss, > 0.
    """

    nonlinearity: Nonlinearity
    loss: Loss
    structure: Structure
    pieces: tuple[Piece, ...]
    limits: LimitModel = LimitModel()
    centre: Any = 0.0
    size: Any = 1.0
    weight: Any = 1.0

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Run-time arguments of compiled code: pieces, numbers of f, numbers of d.

        Whoever keeps them keeps the kind, too, since a number may be the address of a
        table.  An f that is searched has its curve in the place of the pieces.
        """
        table: tuple[Any, ...] = tuple(tuple(map(float, piece)) for piece in self.pieces)
        form = FORMS.get(self.structure.loss, self.structure.loss)  # of entries with limits
        if is_searched(self.structure._replace(loss=form)):
            table = curve_of(self.nonlinearity).numbers
        return table, self.nonlinearity.numbers, self.loss.numbers

    @property
    def numbers(self) -> tuple[Any, ...]:
        """All numbers without the units, as `nmd_lab.model.entry` takes them."""
        pieces, pf, pd = self.arguments
        if len(self.pieces) > MAX_COMPILED_PIECES:
            pieces = np.array(pieces)
        return pieces, pf, pd, self.loss.floors, tuple(map(float, self.limits))

    def with_limits(self, limits: LimitModel) -> ColumnModel:
        """Return the kind with what is known of entries with limits, in the units of X.

        A standard deviation of NaN, one that is to be estimated, counts as 0.
        """
        sd = limits.sd if type(self.loss) in FORMS and limits.sd > 0 else 0.0
        return self._replace(limits=limits._replace(sd=sd))

    @property
    def learns(self) -> bool:
        """Whether f or the loss is learned."""
        return self.nonlinearity.learns or self.loss.learns

    def learned(self, x: FloatArray, t: FloatArray, weights: FloatArray) -> ColumnModel:
        """Return the kind with f, and then a loss, learned from entries and values of WH.

        Each is kept if the sum of the losses falls.
        """
        t, f, loss = self.centre + self.size * t, self.nonlinearity, self.loss

        def total(f: Nonlinearity, loss: Loss) -> float:
            return float(np.sum(weights * loss(x, f(t))))

        if f.learns:
            learned = f.learned(loss.target(x), t, weights)
            f = min(f, learned, key=lambda each: total(each, loss))
        if loss.learns:
            loss = min(loss, loss.learned(x, f(t), weights), key=lambda each: total(f, each))
        return self.with_functions(f, loss)

    def with_functions(self, nonlinearity: Nonlinearity, loss: Loss) -> ColumnModel:
        """Return a kind with another f and loss, and the same limits and units."""
        units = {name: getattr(self, name) for name in ("limits", "centre", "size", "weight")}
        return make_column_model(nonlinearity, loss)._replace(**units)

    def modelled(self, t: FloatArray) -> FloatArray:
        """Return f(centre + size t)."""
        return self.nonlinearity(self.centre + self.size * t)

    def expected(self, t: FloatArray) -> FloatArray:
        """Return the expected x, in the units of X."""
        return self.loss.expected(self.modelled(t))

    def losses(self, x: FloatArray, t: FloatArray) -> FloatArray:
        """Return the weighted loss of each entry."""
        return np.asarray(self.weight * self.loss(x, self.modelled(t)))

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return the starting T, finite, with f near what suits x, in the units of WH."""
        start = self.nonlinearity.pseudo_inverse(self.loss.target(x))
        return np.asarray((start - self.centre) / self.size)

    def in_units(self, errors: FloatArray) -> FloatArray:
        """Return errors of X in the units of the column, whose weight is one there."""
        return np.asarray(errors * self.weight**0.5)


def make_column_model(nonlinearity: str | Nonlinearity, loss: str | Loss) -> ColumnModel:
    """Return a nonlinearity and a loss without units, if they are compatible."""
    f, d = as_nonlinearity(nonlinearity), as_loss(loss)
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
    flat = tuple(piece.slope == 0 for piece in pieces)
    if not any(flat):
        flat = flat[: MAX_COMPILED_PIECES + 1]  # the code is the same for any larger number
    return ColumnModel(f, d, Structure(type(f), type(d), flat), pieces)


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
    return not (d in f.closed_forms or flat or (f.periodic and d.is_solved_on_pieces()))


def named_model(name: str, text: Any) -> Any:
    """Return the nonlinearity or loss for a text such as "minmax(1, 5)"; a name alone as it is."""
    if isinstance(text, list):
        return [named_model(name, each) for each in text]
    call = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", text) if isinstance(text, str) else None
    if call is None:
        return text
    models: dict[str, Any] = dict(NONLINEARITY_CLASSES if name == "nonlinearity" else LOSSES)
    check_word(name, call[1], models)
    try:
        finite = re.sub(r"\binf(inity)?\b", "1e999", call[2], flags=re.IGNORECASE)
        return models[call[1]](*literal_eval(f"[{finite}]"))
    except (SyntaxError, TypeError, ValueError) as error:
        raise ValueError(f"{name}={text!r} makes no sense: {error}") from error


FORMS: dict[type[Loss], type[Loss]] = {Frobenius: CensoredFrobenius}
"""The form of a loss for entries with limits, under noise of a known size."""


FAR = 40.0
"""Standard deviations beyond which the normal density is 0."""


def all_pieces(nonlinearity: Nonlinearity) -> tuple[Piece, ...] | None:
    """Return the pieces of f on the whole line; None if f is not piecewise linear."""
    pieces = nonlinearity.pieces()
    if pieces is None:
        return None
    chosen = tuple(p for p in pieces if p.low <= p.high and p.low < math.inf and p.high > -math.inf)
    if not nonlinearity.even:
        return chosen
    return tuple(Piece(-p.high, -p.low, -p.slope, p.intercept) for p in chosen) + chosen


def moments(nonlinearity: Nonlinearity, v: Array, sd: Array) -> tuple[Array, Array]:
    """Return the mean and the variance of f(T) for T ~ N(v, sd²)."""
    if isinstance(nonlinearity, Square):
        return v**2 + sd**2, 2 * sd**2 * (2 * v**2 + sd**2)
    pieces = all_pieces(nonlinearity)
    if pieces is not None and len(pieces) == 1:
        return pieces[0].slope * v + pieces[0].intercept, pieces[0].slope ** 2 * sd**2 + 0 * v
    centre = np.asarray(nonlinearity(v), dtype=np.float64)
    if pieces is not None:
        return piecewise_moments(v, sd, np.array(pieces), centre)
    first, second = np.zeros_like(v), np.zeros_like(v)
    points, weights = np.polynomial.hermite_e.hermegauss(40)  # nodes of the quadrature
    for point, weight in zip(points, weights / weights.sum(), strict=True):
        change = nonlinearity(v + point * sd) - centre
        first += weight * change
        second += weight * change**2
    return centre + first, np.maximum(second - first**2, 0)


def piecewise_moments(v: Array, sd: Array, pieces: Any, centre: Array) -> tuple[Array, Array]:
    """Return mean and variance of f(T) for T ~ N(v, sd²) and a piecewise-linear f."""
    first, second = np.zeros_like(v), np.zeros_like(v)
    for low, high, slope, intercept in pieces:
        with np.errstate(over="ignore"):
            ends = [np.clip((end - v) / sd, -FAR, FAR) for end in (low, high)]
        below, above = (np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi) for z in ends)
        mass = interval_mass(*ends)
        level, rise, linear = slope * v + intercept - centre, slope * sd, below - above
        first += level * mass + rise * linear
        second += level**2 * mass + 2 * level * rise * linear
        second += rise**2 * (mass + ends[0] * below - ends[1] * above)
    return centre + first, np.maximum(second - first**2, 0)
