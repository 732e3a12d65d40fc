"""Losses of positive data and counts, and closed forms of their T-updates.

The losses are Itakura-Saito, squared logarithmic and negative binomial.  The closed forms are those
of f(t) = t^2 for v >= 0, and of clipped functions with KL, where a piece wins by the signs of a few
differences or by one logarithm.  The logarithm is plain arithmetic, so that loops vectorise.

Two functions have at most two local minima.  Both derivatives have the same shape: they rise and
are concave, fall, then rise and are convex; or they rise throughout, first concave, then convex.  A
local minimum is a root on one of the two rising parts.  On the concave part Newton's iterates from
its left end rise to the root, on the convex part those from its right end fall to it, and none
leaps over it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from nmd_lab._runtime.compiler import compile_scalar

from .loss import FloatArray, Loss


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


def relu_kl(v: float, x: float, rho: float) -> float:
    """Return the T-update of ReLU.

    For x > 0 the flat piece has an infinite divergence.  For x = 0 the divergence is max(0, t).
    """
    b = 1.0 - rho * v
    root = math.sqrt(b * b + 4.0 * rho * x)
    positive = 2.0 * x / (b + root) if b > 0.0 else (root - b) / (2.0 * rho)
    return positive if x > 0.0 else min(v, max(-b / rho, 0.0))


def minmax_kl(
    v: float, x: float, rho: float, bounds: tuple[float, float], pd: tuple[float, ...]
) -> float:
    """Return the T-update of MinMax with bounds a and b, b >= 0.

    A flat piece can win only where v lies beyond its bound e, as t = v.  It does so if
    d(x, e) - d(x, t) <= ρ/2 (t - v)² for the best t between the bounds.
    """
    low, high = max(bounds[0], 0.0), bounds[1]
    b = 1.0 - rho * v
    root = math.sqrt(b * b + 4.0 * rho * x)
    t = 2.0 * x / (b + root) if b > 0.0 else (root - b) / (2.0 * rho)
    t = min(max(t, low), high)
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


MAX_STEPS = 200


@compile_scalar
def cubic(y: float, a: float, b: float, c: float, d: float) -> float:
    """Return a y^3 + b y^2 + c y + d."""
    return ((a * y + b) * y + c) * y + d


@compile_scalar
def cubic_root(y: float, a: float, b: float, c: float, d: float) -> float:
    """Return the root of a y^3 + b y^2 + c y + d to which Newton's iterates from y converge."""
    for _ in range(MAX_STEPS):
        slope = (3.0 * a * y + 2.0 * b) * y + c
        if slope <= 0.0:
            break
        step = cubic(y, a, b, c, d) / slope
        y -= step
        if abs(step) <= 1e-15 * abs(y):
            break
    return y


def compile_minima(
    slope: Callable[..., float], root: Callable[..., float]
) -> Callable[..., tuple[float, float]]:
    """Return the compiled candidates for the minimum of a function between two points.

    Its slope, with four numbers, rises up to `first`, falls up to `second` and rises again; `root`
    gives that to which Newton's iterates converge.  One candidate is on each of the rising parts;
    where there is none, it is the other one.
    """

    def minima(left, right, first, second, a, b, c, d):  # type: ignore[no-untyped-def]
        low, high = math.nan, math.nan
        end, begin = min(first, right), max(second, left)
        if slope(left, a, b, c, d) >= 0.0:
            low = left
        elif end > left and slope(end, a, b, c, d) >= 0.0:
            low = min(max(root(left, a, b, c, d), left), end)
        if slope(right, a, b, c, d) <= 0.0:
            high = right
        elif begin < right and slope(begin, a, b, c, d) <= 0.0:
            high = max(min(root(right, a, b, c, d), right), begin)
        return (high if math.isnan(low) else low), (low if math.isnan(high) else high)

    return compile_scalar(minima)


minima_of_cubic = compile_minima(cubic, cubic_root)


@compile_scalar
def cubic_minima(
    left: float, right: float, a: float, b: float, c: float, d: float
) -> tuple[float, float]:
    """Return two candidates for the minimum between left and right of a function, often the same.

    Its derivative is a y^3 + b y^2 + c y + d, a > 0, times something positive.
    """
    first = second = -b / (3.0 * a)  # ends of the falling part
    discriminant = b * b - 3.0 * a * c
    if discriminant > 0.0:
        far = -(b + math.copysign(math.sqrt(discriminant), b))  # free of cancellation
        one, other = far / (3.0 * a), c / far
        first, second = min(one, other), max(one, other)
    return minima_of_cubic(left, right, first, second, a, b, c, d)


@compile_scalar
def exponential_root(u: float, a: float, c: float, b: float, q: float) -> float:
    """Return the root of a (u - c) + b e^u (e^u - q) to which Newton's iterates converge."""
    for _ in range(MAX_STEPS):
        z = math.exp(u)
        slope = a + b * z * (2.0 * z - q)
        if slope <= 0.0:
            break
        step = (a * (u - c) + b * z * (z - q)) / slope
        u -= step
        if abs(step) <= 1e-15 * (1.0 + abs(u)):
            break
    return u


@compile_scalar
def exponential_slope(u: float, a: float, c: float, b: float, q: float) -> float:
    """Return a (u - c) + b e^u (e^u - q)."""
    z = math.exp(u)
    return a * (u - c) + b * z * (z - q)


minima_of_exponential = compile_minima(exponential_slope, exponential_root)


@compile_scalar
def exponential_minimum(a: float, c: float, b: float, q: float, low: float, high: float) -> float:
    """Return the minimiser of a/2 (u - c)^2 + b/2 (e^u - q)^2 over low <= u <= high; a, b > 0."""
    # Beyond both centres the function only rises; and far above, the exponential outweighs c.
    log_q = math.log(q) if q > 0.0 else -math.inf
    bound = math.log(max(1.0, 2.0 * q, math.sqrt(2.0 * a * abs(c) / b)))
    right = min(max(c, log_q), bound) if c > bound else max(c, log_q)
    left = min(c, log_q)
    if q <= 0.0:  # one minimum, on the convex part
        right = min(right, high)
        u = right
        if exponential_slope(right, a, c, b, q) > 0.0:
            u = exponential_root(right, a, c, b, q)
        return max(min(u, right), low)
    left, right = max(left, low), min(right, high)
    if left >= right:  # both centres lie on one side of the interval
        return min(max(left, low), high)
    first = second = math.log(0.25 * q)
    discriminant = q * q - 8.0 * a / b
    if discriminant > 0.0:
        large = 0.25 * (q + math.sqrt(discriminant))
        first, second = math.log(0.5 * a / b / large), math.log(large)
    one, other = minima_of_exponential(left, right, first, second, a, c, b, q)
    at_one = 0.5 * a * (one - c) * (one - c) + 0.5 * b * (math.exp(one) - q) ** 2
    at_other = 0.5 * a * (other - c) * (other - c) + 0.5 * b * (math.exp(other) - q) ** 2
    return one if at_one <= at_other else other


MIN_RATIO = 1e-6
"""Smallest f(WH) in a reported objective, as a fraction of x.  The solver has no such bound."""


@compile_scalar
def ratio_divergence(x: float, y: float) -> float:
    """Return x/y - log(x/y) - 1."""
    excess = (x - y) / y
    if abs(excess) < 0.5:  # near y = x the plain formula cancels
        return excess - math.log1p(excess)
    return excess - math.log(x / y)


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
        value: float = ratio_divergence(x, y)
        return value

    @staticmethod
    def proximal_within(
        q: float, x: float, rho: float, low: float, high: float, p: tuple[float, ...]
    ) -> float:
        """Return the better of the roots of rho y^3 - rho q y^2 + y - x that are minima."""
        left, right = min(q, x), max(q, x)
        left, right = max(left, low, 0.0), min(right, high)
        if left >= right:
            return min(max(left, low), high)
        size = right  # roots of a cubic in y / size keep their digits
        weight, data, centre = rho * size * size, x / size, q / size
        scaled = cubic_minima(left / size, 1.0, weight, -weight * centre, 1.0, -data)
        best, lowest = right, math.inf
        for z in scaled:
            if z > 0.0:
                objective = ratio_divergence(data, z)
                objective += 0.5 * weight * (z - centre) * (z - centre)
                if objective < lowest:
                    best, lowest = z * size, objective
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
    def proximal_within(
        q: float, x: float, rho: float, low: float, high: float, p: tuple[float, ...]
    ) -> float:
        """Return the better of two roots of a cubic.

        It is k y times the derivative: rho/k y^3 + rho (1 - q/k) y^2 + (1 - rho q) y - x, with
        k = 1 / dispersion.
        """
        left, right = max(min(q, x), low, 0.0), min(max(q, x), high)
        if left >= right:
            return min(max(left, low), high)
        weight = rho * p[0]
        minima = cubic_minima(left, right, weight, rho - weight * q, 1.0 - rho * q, -x)
        best, lowest = right, math.inf
        for y in minima:
            if y > 0.0 or x == 0.0:
                objective = deviance(x, y, 1.0 / p[0]) + 0.5 * rho * (y - q) * (y - q)
                if objective < lowest:
                    best, lowest = y, objective
        return min(max(best, low), high)

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
        best = NegativeBinomial(math.exp(found.x), learns=True)
        before, after = (float(np.sum(weights * loss(x, y))) for loss in (self, best))
        return best if after < before else self

    def _variance(self, mean: FloatArray) -> FloatArray:
        """Return mean + dispersion mean²."""
        return np.asarray(mean + self.parameters[0] * mean**2)
