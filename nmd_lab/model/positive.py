"""Losses of positive data and counts, and closed forms of their T-updates.

The losses are Kullback-Leibler, Itakura-Saito, squared logarithmic and negative binomial.  The
closed forms are those of f(t) = t^2 for v >= 0, and of clipped functions with KL, where a piece
wins by the signs of a few differences or by one logarithm.  The logarithm is plain arithmetic, so
that loops vectorise.

Three functions have at most two local minima.  Their derivatives have the same shape: they rise and
are concave, fall, then rise and are convex; or they rise throughout, first concave, then convex.  A
local minimum is a root on one of the two rising parts.  On the concave part Newton's iterates from
its left end rise to the root, on the convex part those from its right end fall to it, and none
leaps over it.  Where a part has no root, they end at any point, which is not lower.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, xlogy

from nmd_lab._runtime.compiler import compile_scalar

from .loss import POISSON, FloatArray, Loss


def square_frobenius(v: float, x: float, rho: float) -> float:
    """Return the positive root of t^3 + (rho/2 - x) t - rho v/2.

    The start is within 40 % of the root.  Each of Halley's steps then makes the error about its
    third power, so that their number is fixed and loops over entries vectorise.
    """
    linear, constant = 0.5 * rho - x, 0.5 * rho * v
    if constant <= 1e-200:  # squares of smaller numbers are 0
        return math.sqrt(max(-linear, 0.0))
    root = about_cube_root(constant)
    square = root * root
    t = constant / (linear + square) if linear > 0.0 else math.sqrt(square - linear)
    for _ in range(4):
        gap, slope = t * (t * t + linear) - constant, 3.0 * t * t + linear
        t -= 2.0 * gap * slope / (2.0 * slope * slope - 6.0 * t * gap)
    return t


@compile_scalar
def about_cube_root(x):  # type: ignore[no-untyped-def]
    """Return the cube root of a positive double up to 6 %: a third of its exponent."""
    # The number is two thirds of the bits of 1.0, less the mean error
    third = np.int64(np.float64(x).view(np.int64) * (1.0 / 3.0))
    return np.int64(third + 3071218439534640469).view(np.float64)


def square_l1(v: float, x: float, rho: float) -> float:
    """Return √x, clipped to the two t at which a slope of |x - t^2| balances the quadratic."""
    t = max(math.sqrt(max(x, 0.0)), rho * v / (rho + 2.0))
    return min(t, rho * v / (rho - 2.0)) if rho > 2.0 else t


def square_kl(v: float, x: float, rho: float) -> float:
    """Return the positive root of (rho + 2) t^2 - rho v t - 2 x."""
    b = rho * v
    return (b + math.sqrt(b * b + 8.0 * x * (rho + 2.0))) / (2.0 * (rho + 2.0))


@compile_scalar
def root_of_kl(q: float, x: float, rho: float) -> float:
    """Return the positive root of rho y^2 + (1 - rho q) y - x, free of cancellation."""
    b = 1.0 - rho * q
    root = math.sqrt(b * b + 4.0 * rho * x)
    return 2.0 * x / (b + root) if b > 0.0 else (root - b) / (2.0 * rho)


def relu_kl(v: float, x: float, rho: float) -> float:
    """Return the T-update of ReLU.

    For x > 0 the flat piece has an infinite divergence.  For x = 0 the divergence is max(0, t).
    """
    positive: float = root_of_kl(v, x, rho)
    return positive if x > 0.0 else min(v, max(v - 1.0 / rho, 0.0))


def minmax_kl(
    v: float, x: float, rho: float, bounds: tuple[float, float], pd: tuple[float, ...]
) -> float:
    """Return the T-update of MinMax with bounds a and b, b >= 0.

    A flat piece can win only where v lies beyond its bound e, as t = v.  It does so if
    d(x, e) - d(x, t) <= ρ/2 (t - v)² for the best t between the bounds.
    """
    low, high = max(bounds[0], 0.0), bounds[1]
    t = min(max(root_of_kl(v, x, rho), low), high)
    bound = high if v > high else low
    ratio = t / max(bound, 1e-300)
    log = ratio - 1.0 - excess_over_log(ratio - 1.0, ratio)
    gain = x * log + bound - t if x > 0.0 else bound - t
    gain = math.inf if bound == 0.0 and x > 0.0 else gain
    beyond = v > high or (v < bounds[0] and bounds[0] >= 0.0)
    return v if beyond and gain <= 0.5 * rho * (t - v) * (t - v) else t


@compile_scalar
def excess_over_log(excess, ratio):  # type: ignore[no-untyped-def]
    """Return excess - log(ratio), where ratio = 1 + excess is a positive double of full precision.

    With ratio = 2^k (1 + f), 1/√2 < 1 + f < √2, and s = f / (2 + f),

        log(1 + f) = 2 artanh(s) = 2 s (1 + s²/3 + s⁴/5 + ...),

    whose terms after s^20 are below rounding.  For k = 0 the difference of excess and 2 s is excess
    times s, without cancellation.
    """
    bits = np.float64(ratio).view(np.int64)
    exponent = (bits >> 52) - 1023
    # The bits of the fraction, with the exponent of 1.0.
    mantissa = np.int64((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000).view(np.float64)
    large = mantissa > 2.0**0.5
    mantissa = 0.5 * mantissa if large else mantissa
    exponent = exponent + 1 if large else exponent
    f = excess if exponent == 0 else mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    tail = 1.0 / 19.0 + z * (1.0 / 21.0)
    tail = 1.0 / 15.0 + z * (1.0 / 17.0 + z * tail)
    tail = 1.0 / 11.0 + z * (1.0 / 13.0 + z * tail)
    tail = 1.0 / 7.0 + z * (1.0 / 9.0 + z * tail)
    tail = 2.0 * s * z * (1.0 / 3.0 + z * (1.0 / 5.0 + z * tail))
    # The number is log(2).
    first = excess * s if exponent == 0 else (excess - exponent * 0.6931471805599453) - 2.0 * s
    return first - tail


def compile_minimum(slopes: Callable[..., Any], cost: Callable[..., Any]) -> Callable[..., float]:
    """Return the compiled minimiser of a function between two points, given some numbers.

    `slopes` returns its derivative times something positive, and the derivative of this product,
    at a point; `cost` its value.  The left end may be infinite if there is one minimum.
    """
    slopes, cost = compile_scalar(slopes), compile_scalar(cost)

    def from_end(side, y, left, right, numbers):  # type: ignore[no-untyped-def]
        for _ in range(200):
            slope, bend = slopes(y, numbers)
            if bend <= 0.0:
                break
            before, y = y, min(max(y - slope / bend, left), right)
            if side * (y - before) <= 1e-15 * abs(y):  # it has arrived, or there is no root
                break
        return y

    newton = compile_scalar(from_end)

    def minimum(left, right, numbers):  # type: ignore[no-untyped-def]
        low = newton(1.0, left if left > -math.inf else right, left, right, numbers)
        high = newton(-1.0, right, left, right, numbers)
        return low if cost(low, numbers) <= cost(high, numbers) else high

    return compile_scalar(minimum)


def _exponential_slopes(u, numbers):  # type: ignore[no-untyped-def]
    """Return a (u - c) + b e^u (e^u - q), and its derivative."""
    a, c, b, q = numbers
    z = math.exp(u)
    return a * (u - c) + b * z * (z - q), a + b * z * (2.0 * z - q)


def _exponential_cost(u, numbers):  # type: ignore[no-untyped-def]
    """Return a/2 (u - c)^2 + b/2 (e^u - q)^2."""
    a, c, b, q = numbers
    return 0.5 * a * (u - c) * (u - c) + 0.5 * b * (math.exp(u) - q) ** 2


minimum_of_exponential = compile_minimum(_exponential_slopes, _exponential_cost)


@compile_scalar
def exponential_minimum(a: float, c: float, b: float, q: float, low: float, high: float) -> float:
    """Return the minimiser of a/2 (u - c)^2 + b/2 (e^u - q)^2 over low <= u <= high; a, b > 0."""
    # Beyond both centres the function only rises; and far above, the exponential outweighs c.
    log_q = math.log(q) if q > 0.0 else -math.inf
    bound = math.log(max(1.0, 2.0 * q, math.sqrt(2.0 * a * abs(c) / b)))
    right = min(max(c, log_q), bound) if c > bound else max(c, log_q)
    left, right = max(min(c, log_q), low), min(right, high)
    if left >= right:  # both centres lie on one side of the interval
        return min(max(left, low), high)
    return minimum_of_exponential(left, right, (a, c, b, q))


MIN_RATIO = 1e-6
"""Smallest f(WH) in a reported objective, as a fraction of x.  The solver has no such bound."""


class _PositiveLoss(Loss):
    """A loss of counts or positive numbers, for y > 0."""

    smooth = True
    link = "exp"
    domain = (0.0, math.inf)
    floor = 0.0
    relative_floor = MIN_RATIO


class CountLoss(_PositiveLoss):
    """A loss of counts x >= 0 with mean y, and a variance of this."""

    residual_name = "Pearson residual"

    def check_data(self, smallest: float, largest: float) -> None:
        """Raise ValueError if some data are negative."""
        if smallest < 0:
            raise ValueError(
                f"X holds the negative value {smallest:g}, which the loss {self.name!r} does not "
                "define: shift or clip X, or use loss='frobenius' or 'l1'."
            )

    def residuals(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return x - y over its deviation where y > 0; a mean of 0 has none to divide by."""
        positive = y > self.relative_floor * x
        mean = y[positive]
        return np.asarray((x[positive] - mean) / np.sqrt(self._variance(mean)))

    def _variance(self, mean: FloatArray) -> FloatArray:
        """Return the variance of counts with these means."""
        return mean


KL_FLOOR = 1e-12
"""Smallest f(WH) in a *reported* KL objective, as a fraction of x.  Without it, f(WH) = 0 at x > 0
would give infinity.  The optimisation itself uses the exact divergence."""


class KL(CountLoss):
    """Kullback-Leibler divergence, d(x, y) = x log(x/y) - x + y (y if x = 0): counts.

    Both x and y must be non-negative.  The relative error is the divergence, divided by that of the
    constant matrix that holds the mean of X (the paper's section on synthetic data).  Reported
    objectives use max(f(WH), `KL_FLOOR` x).

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> float(nmd.prox(0.0, 2.0, 1.0, nonlinearity="identity", loss=nmd.KL()))
    1.0
    """

    name = "kl"
    label = "Kullback-Leibler"
    noise = "Poisson"
    noise_model, likelihood = POISSON, True
    degree = 1
    of_zero = "absolute"
    relative_floor = KL_FLOOR

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return x log(x/y) - x + y."""
        inside = x * excess_over_log((y - x) / x, y / x)  # it does not cancel near y = x
        inside = math.inf if y == 0.0 else inside
        inside = y if x == 0.0 else inside
        return math.inf if y < 0.0 or y == math.inf else inside

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the positive root of rho y^2 + (1 - rho q) y - x."""
        y: float = root_of_kl(q, x, rho)
        return y

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return 1 - x/y and x/y^2."""
        ratio = x / y
        return 1.0 - ratio, ratio / y

    def log_scores(self, losses: FloatArray, x: FloatArray) -> FloatArray:
        """Return the scores of Poisson counts."""
        return np.asarray(losses + x - xlogy(x, x) + gammaln(x + 1))


class _RatioLoss(_PositiveLoss):
    """A loss of x / y, for x > 0 and y > 0."""

    convex = False

    def check_data(self, smallest: float, largest: float) -> None:
        """Raise ValueError if some data are not positive."""
        if smallest <= 0:
            raise ValueError(
                f"X holds the value {smallest:g}, which the loss {self.name!r} does not define: "
                "add a small constant to X, mask such entries, or use loss='frobenius'."
            )

    def target(self, x: FloatArray) -> FloatArray:
        """Return x, and 1 where an entry is missing and its value therefore 0."""
        return np.where(x > 0, x, x.dtype.type(1))


def _ratio_slopes(z, numbers):  # type: ignore[no-untyped-def]
    """Return z^2 times the derivative of x/z - log(x/z) + weight/2 (z - q)^2, a cubic, and its."""
    weight, x, q = numbers
    return weight * z * z * (z - q) + z - x, weight * z * (3.0 * z - 2.0 * q) + 1.0


def _ratio_cost(z, numbers):  # type: ignore[no-untyped-def]
    """Return x/z - log(x/z) - 1 + weight/2 (z - q)^2."""
    weight, x, q = numbers
    return excess_over_log((x - z) / z, x / z) + 0.5 * weight * (z - q) * (z - q)


minimum_of_ratio = compile_minimum(_ratio_slopes, _ratio_cost)


class ItakuraSaito(_RatioLoss):
    """Itakura-Saito divergence, d(x, y) = x/y - log(x/y) - 1: power spectra, gamma noise.

    Both x and y must be positive.  A multiple of X has the same loss, so that weak and strong
    entries count alike.  Reported objectives use max(f(WH), 1e-6 x).

    Notes
    -----
    C. Févotte, N. Bertin and J.-L. Durrieu, "Nonnegative matrix factorization with the
    Itakura-Saito divergence", Neural Computation 21, 2009.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.ItakuraSaito()([1.0, 10.0], [2.0, 20.0]).round(4)
    array([0.1931, 0.1931])
    """

    name = "itakura_saito"
    label = "Itakura-Saito"
    noise = "gamma"
    residual_name = "relative residual"

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return x/y - log(x/y) - 1."""
        if y <= 0.0 or y == math.inf:
            return math.inf
        value: float = excess_over_log((x - y) / y, x / y)
        return value

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return (1 - x/y) / y and (2 x/y - 1) / y^2."""
        ratio = x / y
        return (1.0 - ratio) / y, (2.0 * ratio - 1.0) / (y * y)

    @staticmethod
    def proximal_within(
        q: float, x: float, rho: float, low: float, high: float, p: tuple[float, ...]
    ) -> float:
        """Return the lower of at most two minima."""
        left, right = min(q, x), max(q, x)
        left, right = max(left, low, 0.0), min(right, high)
        if left >= right:
            return min(max(left, low), high)
        size = right  # roots of a cubic in y / size keep their digits
        numbers = rho * size * size, x / size, q / size
        best = size * minimum_of_ratio(left / size, 1.0, numbers)
        return min(max(best, low), high)

    def residuals(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return x / y - 1."""
        return np.asarray(x / np.maximum(y, MIN_RATIO * x) - 1)


class SquaredLog(_RatioLoss):
    """Squared logarithmic error, d(x, y) = (log x - log y)^2 / 2: log-normal noise.

    Both x and y must be positive.  A multiple of X has the same loss.  Reported objectives use
    max(f(WH), 1e-6 x).

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.SquaredLog()([1.0, 10.0], [2.0, 20.0]).round(4)
    array([0.2402, 0.2402])
    """

    name = "squared_log"
    label = "squared logarithm"
    noise = "log-normal"
    residual_name = "residual of the logarithm"

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return (log x - log y)^2 / 2."""
        if y <= 0.0 or y == math.inf:
            return math.inf
        excess = (x - y) / y
        r = math.log1p(excess) if abs(excess) < 0.5 else math.log(x / y)
        return 0.5 * r * r

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return log(y/x) / y and (1 - log(y/x)) / y^2."""
        r = math.log(y / x)
        return r / y, (1.0 - r) / (y * y)

    @staticmethod
    def proximal_within(
        q: float, x: float, rho: float, low: float, high: float, p: tuple[float, ...]
    ) -> float:
        """Return exp(u) for the minimiser u of (u - log x)^2 / 2 + rho/2 (exp(u) - q)^2."""
        first = math.log(low) if low > 0.0 else -math.inf
        last = math.log(high) if high > 0.0 else -math.inf
        u = exponential_minimum(1.0, math.log(x), rho, q, first, last)
        return min(max(math.exp(u), low), high)

    def residuals(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return log x - log y."""
        return np.asarray(np.log(x) - np.log(np.maximum(y, MIN_RATIO * x)))


@compile_scalar
def stirling_excess(z: float) -> float:
    """Return log Γ(z) minus Stirling's formula (z - 1/2) log z - z + log(2 π) / 2; z > 0."""
    if z > 30.0:
        square = z * z
        return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / z
    return math.lgamma(z) - (z - 0.5) * math.log(z) + z - 0.5 * math.log(2.0 * math.pi)


@compile_scalar
def smallest_value(x: float, size: float, excess: float) -> float:
    """Return the value at y = x > 0, in which large terms cancel in the usual formula."""
    terms: float = stirling_excess(x) + excess - stirling_excess(x + size)
    return 0.5 * (math.log(2.0 * math.pi * x) + math.log1p(x / size)) + terms


@compile_scalar
def deviance(x: float, y: float, size: float) -> float:
    """Return how much the value at y > 0 exceeds that at y = x."""
    if x == 0.0:
        return size * math.log1p(y / size)
    narrow, wide = (y - x) / (x + size), (y - x) / x
    if abs(wide) < 0.5:  # near y = x the plain formula cancels
        return x * (wide - math.log1p(wide)) - (x + size) * (narrow - math.log1p(narrow))
    if wide > 0.0:
        return (x + size) * math.log1p(narrow) - x * math.log(y / x)
    return (x + size) * math.log((y + size) / (x + size)) - x * math.log(y / x)


def _count_slopes(y, numbers):  # type: ignore[no-untyped-def]
    """Return y (1 + y / size) times the derivative of the cost, a cubic, and its derivative."""
    q, x, rho, _, dispersion = numbers
    growth, rise = y * (1.0 + dispersion * y), rho * (y - q)
    bend = rho * growth + rise * (1.0 + 2.0 * dispersion * y) + 1.0
    return rise * growth + y - x, bend


def _count_cost(y, numbers):  # type: ignore[no-untyped-def]
    """Return the deviance of counts plus rho/2 (y - q)^2."""
    q, x, rho, size, _ = numbers
    return deviance(x, y, size) + 0.5 * rho * (y - q) * (y - q)


minimum_of_counts = compile_minimum(_count_slopes, _count_cost)


class NegativeBinomial(CountLoss):
    """Counts of mean y and variance y + dispersion y^2: the negative log-likelihood.

    With k = 1 / dispersion,

        d(x, y) = log Γ(k) + log Γ(x + 1) - log Γ(x + k) + (x + k) log(1 + y/k) - x log(y/k).

    A dispersion of 0 would be the Poisson distribution, for which there is `KL`.  Reported
    objectives use max(f(WH), 1e-6 x).

    Parameters
    ----------
    dispersion : float, optional
        Dispersion, > 0; by default it is learned from X.
    learns : bool, optional
        Whether the dispersion is learned, from the given one on; by default only if none is given.

    Raises
    ------
    ValueError
        If the dispersion is not a positive, finite number.

    Notes
    -----
    The variance is that of J. M. Hilbe, *Negative Binomial Regression*, 2011, model NB2.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.NegativeBinomial(0.5)([0.0, 3.0], [1.0, 3.0]).round(4)
    array([0.8109, 1.9788])
    """

    name = "negative_binomial"
    label = "negative binomial"
    likelihood = True
    noise = "negative binomial"
    convex = False
    parameter_names = ("dispersion", "learns")

    def __init__(self, dispersion: float | None = None, learns: bool | None = None) -> None:
        if dispersion is not None and not 0 < float(dispersion) < math.inf:
            raise ValueError(
                f"dispersion={dispersion!r} is not positive: give a number > 0, or use loss='kl' "
                "for Poisson counts."
            )
        self.dispersion = None if dispersion is None else float(dispersion)
        self.learns = self.dispersion is None if learns is None else bool(learns)
        value = 1.0 if self.dispersion is None else self.dispersion
        # A constant of the value, which it would otherwise compute for each entry.
        self.parameters = (value, float(stirling_excess(1.0 / value)))

    @property
    def settings(self) -> tuple[float | bool | None, ...]:
        """Dispersion, and whether it is learned if that does not follow from it."""
        if self.learns == (self.dispersion is None):
            return () if self.dispersion is None else (self.dispersion,)
        return self.dispersion, self.learns

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return the negative log-likelihood of x for the mean y."""
        if y < 0.0 or y == math.inf:
            return math.inf
        if y == 0.0:
            return 0.0 if x == 0.0 else math.inf
        size = 1.0 / p[0]
        value: float = deviance(x, y, size)
        return value + (smallest_value(x, size, p[1]) if x > 0.0 else 0.0)

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return (x + k) / (y + k) - x/y, and its derivative."""
        of_size, of_y = (1.0 + p[0] * x) / (1.0 + p[0] * y), x / y
        return of_size - of_y, of_y / y - of_size * p[0] / (1.0 + p[0] * y)

    @staticmethod
    def proximal_within(
        q: float, x: float, rho: float, low: float, high: float, p: tuple[float, ...]
    ) -> float:
        """Return the lower of at most two minima."""
        left, right = max(min(q, x), low, 0.0), min(max(q, x), high)
        if left >= right:
            return min(max(left, low), high)
        return minimum_of_counts(left, right, (q, x, rho, 1.0 / p[0], p[0]))

    def for_data(self, x: FloatArray, weights: FloatArray | None = None) -> NegativeBinomial:
        """Return the loss with a first dispersion, that of the data around their mean."""
        if self.dispersion is not None:
            return self
        mean = float(np.average(x, weights=weights))
        variance = float(np.average(np.square(x - mean), weights=weights))
        rough = (variance - mean) / mean**2 if mean > 0 else 1.0
        return NegativeBinomial(min(max(rough, 1e-3), 10.0), learns=True)

    def learned(self, x: FloatArray, y: FloatArray, weights: FloatArray) -> NegativeBinomial:
        """Return the loss with the dispersion of highest likelihood."""
        if not self.learns:
            return self
        y = np.maximum(y, MIN_RATIO * x).astype(np.float64)
        counts, position = np.unique(x, return_inverse=True)
        totals = np.bincount(position.ravel(), weights, counts.size)
        total, sum_of_counts = float(totals.sum()), float(totals @ counts)

        def objective(logarithm: float) -> float:  # without the terms that stay
            size = math.exp(-logarithm)
            constants = float(totals @ (gammaln(counts + size) - gammaln(size)))
            growth = float(np.sum(weights * ((x + size) * np.log1p(y / size))))
            return (growth - constants - logarithm * sum_of_counts) / total

        present = math.log(self.dispersion or 1.0)
        ends = max(math.log(1e-8), present - 4), min(math.log(1e6), present + 4)
        found = minimize_scalar(objective, bounds=ends, method="bounded", options={"xatol": 1e-5})
        return NegativeBinomial(math.exp(found.x), learns=True)

    def _variance(self, mean: FloatArray) -> FloatArray:
        """Return mean + dispersion mean²."""
        return np.asarray(mean + self.parameters[0] * mean**2)
