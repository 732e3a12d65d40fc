"""Closed forms of T-updates, and global minima in one variable.

Of f(t) = t^2, for v >= 0 and one loss each.  Of clipped functions with KL: the comparison of pieces
would take a logarithm for each of them.  Here a piece wins by the signs of a few differences, or by
one logarithm.

The logarithm is plain arithmetic, so that loops over entries vectorise.

Two functions have at most two local minima.  Both derivatives have the same shape: they rise and
are concave, fall, then rise and are convex; or they rise throughout, first concave, then convex.  A
local minimum is a root on one of the two rising parts.  On the concave part Newton's iterates from
its left end rise to the root, on the convex part those from its right end fall to it, and none
leaps over it.
"""

from __future__ import annotations

import math

from nmd_lab._runtime.compiler import bits_of, compile_scalar, number_of

THIRDS = 3071218439534640469  # two thirds of the bits of 1.0, less the mean error


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
    return number_of(int(bits_of(x) * (1.0 / 3.0)) + THIRDS)


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


SQRT_2 = 2.0**0.5
LN_2 = 0.6931471805599453
ONE = 0x3FF0000000000000
"""Bits of 1.0."""
FRACTION = 0x000FFFFFFFFFFFFF
"""Bits of the fraction of a double."""


@compile_scalar
def excess_over_log(excess, ratio):  # type: ignore[no-untyped-def]
    """Return excess - log(ratio), where ratio = 1 + excess is a positive double of full precision.

    With ratio = 2^k (1 + f), 1/√2 < 1 + f < √2, and s = f / (2 + f),

        log(1 + f) = 2 artanh(s) = 2 s (1 + s²/3 + s⁴/5 + ...),

    whose terms after s^20 are below rounding.  For k = 0 the difference of excess and 2 s is excess
    times s, without cancellation.
    """
    bits = bits_of(ratio)
    exponent = (bits >> 52) - 1023
    mantissa = number_of((bits & FRACTION) | ONE)
    large = mantissa > SQRT_2
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
    first = excess * s if exponent == 0 else (excess - exponent * LN_2) - 2.0 * s
    return first - tail


MOST_STEPS = 200


@compile_scalar
def cubic(y: float, a: float, b: float, c: float, d: float) -> float:
    """Return a y^3 + b y^2 + c y + d."""
    return ((a * y + b) * y + c) * y + d


@compile_scalar
def cubic_root(y: float, a: float, b: float, c: float, d: float) -> float:
    """Return the root of a y^3 + b y^2 + c y + d to which Newton's iterates from y converge."""
    for _ in range(MOST_STEPS):
        slope = (3.0 * a * y + 2.0 * b) * y + c
        if slope <= 0.0:
            break
        step = cubic(y, a, b, c, d) / slope
        y -= step
        if abs(step) <= 1e-15 * abs(y):
            break
    return y


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
    at_left, at_right = cubic(left, a, b, c, d), cubic(right, a, b, c, d)
    low, high = math.nan, math.nan
    end, begin = min(first, right), max(second, left)
    if at_left >= 0.0:
        low = left
    elif end > left and cubic(end, a, b, c, d) >= 0.0:
        low = min(max(cubic_root(left, a, b, c, d), left), end)
    if at_right <= 0.0:
        high = right
    elif begin < right and cubic(begin, a, b, c, d) <= 0.0:
        high = max(min(cubic_root(right, a, b, c, d), right), begin)
    return (high if math.isnan(low) else low), (low if math.isnan(high) else high)


@compile_scalar
def exponential_root(u: float, a: float, c: float, b: float, q: float) -> float:
    """Return the root of a (u - c) + b e^u (e^u - q) to which Newton's iterates converge."""
    for _ in range(MOST_STEPS):
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
    one, other = math.nan, math.nan
    end, begin = min(first, right), max(second, left)
    if exponential_slope(left, a, c, b, q) >= 0.0:
        one = left
    elif end > left and exponential_slope(end, a, c, b, q) >= 0.0:
        one = min(max(exponential_root(left, a, c, b, q), left), end)
    if exponential_slope(right, a, c, b, q) <= 0.0:
        other = right
    elif begin < right and exponential_slope(begin, a, c, b, q) <= 0.0:
        other = max(min(exponential_root(right, a, c, b, q), right), begin)
    if math.isnan(one) or math.isnan(other):
        return one if math.isnan(other) else other
    at_one = 0.5 * a * (one - c) * (one - c) + 0.5 * b * (math.exp(one) - q) ** 2
    at_other = 0.5 * a * (other - c) * (other - c) + 0.5 * b * (math.exp(other) - q) ** 2
    return one if at_one <= at_other else other
