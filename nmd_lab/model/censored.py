"""Integrals of a normal variable: the loss of an entry with limits, and the moments of f(T).

**The loss of an entry of which only limits are known, under Gaussian noise.**

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

import numpy as np

from nmd_lab._runtime.compiler import cached_kernel, compile_scalar

from .loss import Array
from .losses import Frobenius, Loss
from .nonlinearities import Nonlinearity, Piece, Square
from .ordinal import LOG_ROOT, log_probability

STEP_TOL = 1e-9
"""Relative step after which the search ends; the next step would be about its square."""


@compile_scalar
def moments_between(y: float, low: float, high: float, sd: float) -> tuple[float, float]:
    """Return the mean of x ~ N(y, sd²) between two limits, and its variance over sd²."""
    a, b = (low - y) / sd, (high - y) / sd
    # In a narrower interval, in units in which the density changes, it counts as flat.
    if (b - a) * (1.0 + 0.5 * abs(a + b)) < 1e-4:
        return 0.5 * (low + high), (b - a) * (b - a) / 12.0
    log_mass = log_probability(a, b)
    first, second = 0.0, 0.0  # the densities at the limits, divided by the probability
    mean, variance = 0.0, 1.0
    if a > -math.inf:
        first = math.exp(-0.5 * a * a - LOG_ROOT - log_mass)
        variance += a * first
    if b < math.inf:
        second = math.exp(-0.5 * b * b - LOG_ROOT - log_mass)
        variance -= b * second
    mean = y + sd * (first - second)
    variance -= (first - second) * (first - second)
    return min(max(mean, low), high), min(max(variance, 0.0), 1.0)


class CensoredFrobenius(Loss):
    """-σ² log P(low <= x <= high | y): what the squared loss is for an entry with limits.

    The parameters `p` are low, high and σ > 0; the argument x has no influence.
    """

    name = "frobenius_limits"
    smooth = True
    smallest_at_x = False

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return -σ² log P."""
        low, high, sd = p
        log_mass: float = log_probability((low - y) / sd, (high - y) / sd)
        return -sd * sd * log_mass

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the root of y - m(y) + rho (y - q), by Newton steps within a bracket."""
        low, high, sd = p
        inverse = 1.0 / (1.0 + rho)
        # m(y) lies between the limits, and so does the root between these two numbers:
        left, right = (low + rho * q) * inverse, (high + rho * q) * inverse
        y = q
        if not left <= y <= right:
            y = left if y < left else right
        for _ in range(60):
            mean, variance = moments_between(y, low, high, sd)
            slope: float = y - mean + rho * (y - q)
            if slope > 0.0:
                right = y
            else:
                left = y
            step = slope / (1.0 + rho - variance)
            new: float = y - step
            if not left <= new <= right:  # both are finite if a step leaves them
                new = 0.5 * (left + right)
            if abs(new - y) <= STEP_TOL * (abs(new) + sd):
                return new
            y = new
        return y

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return y - m(y) and its slope."""
        mean, variance = moments_between(y, p[0], p[1], p[2])
        return y - mean, 1.0 - variance

    @staticmethod
    def least_at(x: float, p: tuple[float, ...]) -> float:
        """Return the middle between the limits."""
        return 0.5 * p[0] + 0.5 * p[1]


@compile_scalar
def square_between(v: float, rho: float, low: float, high: float, sd: float) -> float:
    """Return the minimiser t >= 0 of the loss of y = t² plus rho/2 (t - v)², for v >= 0.

    Its derivative over t, 2 (t² - m(t²)) + rho - rho v / t, increases, so that there is one root.
    """
    left, right = 0.0, max(v, math.sqrt(max(high, 0.0)) if high < math.inf else 1.0)
    while high == math.inf:  # until the derivative is positive
        mean, _ = moments_between(right * right, low, high, sd)
        if 2.0 * right * (right * right - mean) + rho * (right - v) > 0.0:
            break
        left, right = right, 2.0 * right
    t = min(max(v, 0.5 * right), right)
    for _ in range(200):
        mean, variance = moments_between(t * t, low, high, sd)
        slope: float = 2.0 * t * (t * t - mean) + rho * (t - v)
        if slope > 0.0:
            right = t
        else:
            left = t
        bend: float = 2.0 * (t * t - mean) + 4.0 * t * t * (1.0 - variance) + rho
        new: float = t - slope / bend if bend > 0.0 else left
        if not left < new < right:
            new = 0.5 * (left + right)
        if abs(new - t) <= STEP_TOL * STEP_TOL + 1e-2 * STEP_TOL * t:
            return new
        t = new
    return t


FORMS: dict[type[Loss], type[Loss]] = {Frobenius: CensoredFrobenius}
"""The form of a loss for entries with limits, under noise of a known size."""


MAX_DEVIATIONS = 9.0
"""Standard deviations beyond which there is less than the rounding of what lies within."""


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


@compile_scalar
def upper_tail(z: float) -> float:
    """Return the standard normal probability above z."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


@compile_scalar
def bell(z: float) -> float:
    """Return the standard normal density."""
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def _fill_moments(v, sd, pieces, centre, mean, variance):  # type: ignore[no-untyped-def]
    """Fill in mean and variance of a piecewise-linear f of normal numbers."""
    for s in range(v.shape[0]):
        for p in range(v.shape[1]):
            first, second, width = 0.0, 0.0, sd[s, p if sd.shape[1] > 1 else 0]
            end, tail, height, moment = -math.inf, 1.0, 0.0, 0.0
            for piece in range(pieces.shape[0]):
                low, high, slope, intercept = pieces[piece]
                if low != end:
                    z = (low - v[s, p]) / width
                    tail, height = upper_tail(z), bell(z)
                    moment = z * height
                mass, linear, square = tail, height, moment
                end, z = high, (high - v[s, p]) / width
                if z < -MAX_DEVIATIONS:  # nothing lies on this piece
                    tail, height, moment = 1.0, 0.0, 0.0
                    continue
                tail, height, moment = 0.0, 0.0, 0.0
                if z < MAX_DEVIATIONS:
                    tail, height = upper_tail(z), bell(z)
                    moment = z * height
                if mass == 0.0:
                    continue
                mass, linear = mass - tail, linear - height
                square += mass - moment
                level = slope * v[s, p] + intercept - centre[s, p]
                rise = slope * width
                first += rise * linear + level * mass
                second += rise * rise * square + 2 * rise * level * linear
                second += level * level * mass
            mean[s, p] = centre[s, p] + first
            variance[s, p] = max(second - first * first, 0.0)


def piecewise_moments(v: Array, sd: Array, pieces: Array, centre: Array) -> tuple[Array, Array]:
    """Return mean and variance of f(T) for T ~ N(v, sd²) and a piecewise-linear f."""
    mean, variance = np.empty_like(v), np.empty_like(v)
    kernel = cached_kernel(_fill_moments, "piecewise_moments")
    kernel(v, np.ascontiguousarray(sd), pieces, centre, mean, variance)
    return mean, variance
