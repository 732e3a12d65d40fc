"""Integrals of a normal variable: the loss of an entry with limits, and the moments of f(T).

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
from typing import Any

import numpy as np

from .loss import Array
from .losses import Frobenius, Loss
from .nonlinearities import Nonlinearity, Piece, Square
from .ordinal import CensoredFrobenius, interval_mass

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
