"""The loss of an entry of which only limits are known, under Gaussian noise.

Of an entry x is known that it lies between `low` and `high`; one of the two may be infinite.  With
noise of standard deviation σ around the modelled value y, this has the probability

    P(y) = Φ((high - y) / σ) - Φ((low - y) / σ),

and the loss is -σ² log P(y), in the units of the squared loss (x - y)²/2.  It is convex in y, and
for σ → 0 it is the squared distance of y to the interval, halved.  Its derivative is y - m(y), with
the expected value m(y) of x between the limits.

Source: J. Tobin, "Estimation of relationships for limited dependent variables", Econometrica 26,
1958.
"""

from __future__ import annotations

import math

from nmd_lab._numba import compile_scalar

from .losses import Frobenius, Loss

LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
NARROW = 1e-4
"""Width of an interval, in units in which the density changes, below which it counts as flat."""
SETTLED = 1e-9
"""Relative step after which the search ends; the next step would be about its square."""


@compile_scalar
def log_below(z: float) -> float:
    """Return log Φ(z), the logarithm of the standard normal probability below z."""
    if z > -10.0:
        if z > 0.0:
            return math.log1p(-0.5 * math.erfc(z / math.sqrt(2.0)))
        return math.log(0.5 * math.erfc(-z / math.sqrt(2.0)))
    # The asymptotic series of the ratio of tail and density; its next term is below 1e-11 / z².
    s = 1.0 / (z * z)
    series = 1.0 - s * (1.0 - 3.0 * s * (1.0 - 5.0 * s * (1.0 - 7.0 * s * (1.0 - 9.0 * s))))
    series += 10395.0 * s**6 * (1.0 - 13.0 * s * (1.0 - 15.0 * s))
    return -0.5 * z * z - LOG_ROOT_TWO_PI - math.log(-z) + math.log(series)


@compile_scalar
def log_between(a: float, b: float) -> float:
    """Return log(Φ(b) - Φ(a)) for a < b; both may be infinite."""
    if a > 0.0 or (a + b > 0.0):
        a, b = -b, -a  # the side on which the probabilities are small
    if a == -math.inf:
        return 0.0 if b == math.inf else float(log_below(b))
    width, middle = b - a, 0.5 * (a + b)
    if width * (1.0 + abs(middle)) < NARROW:
        return -0.5 * middle * middle - LOG_ROOT_TWO_PI + math.log(width)
    if b > 0.0:  # then a < -b: subtract both tails
        root = math.sqrt(0.5)
        return math.log1p(-0.5 * math.erfc(-a * root) - 0.5 * math.erfc(b * root))
    above: float = log_below(b)
    return above + math.log(-math.expm1(log_below(a) - above))


@compile_scalar
def moments_between(y: float, low: float, high: float, sd: float) -> tuple[float, float]:
    """Return the mean of x ~ N(y, sd²) between two limits, and its variance over sd²."""
    a, b = (low - y) / sd, (high - y) / sd
    if (b - a) * (1.0 + 0.5 * abs(a + b)) < NARROW:
        return 0.5 * (low + high), (b - a) * (b - a) / 12.0
    log_mass = log_between(a, b)
    first, second = 0.0, 0.0  # the densities at the limits, divided by the probability
    mean, variance = 0.0, 1.0
    if a > -math.inf:
        first = math.exp(-0.5 * a * a - LOG_ROOT_TWO_PI - log_mass)
        variance += a * first
    if b < math.inf:
        second = math.exp(-0.5 * b * b - LOG_ROOT_TWO_PI - log_mass)
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
        log_mass: float = log_between((low - y) / sd, (high - y) / sd)
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
            if abs(new - y) <= SETTLED * (abs(new) + sd):
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
        if abs(new - t) <= SETTLED * SETTLED + 1e-2 * SETTLED * t:
            return new
        t = new
    return t


FORMS: dict[type[Loss], type[Loss]] = {Frobenius: CensoredFrobenius}
"""The form of a loss for entries with limits, under noise of a known size."""
