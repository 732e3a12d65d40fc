"""Global minima in one variable of two functions with at most two local minima.

Both derivatives have the same shape: they rise and are concave, fall, then rise and are convex; or
they rise throughout, first concave, then convex.  A local minimum is a root on one of the two
rising parts.  On the concave part Newton's iterates from its left end rise to the root, on the
convex part those from its right end fall to it, and none leaps over it.
"""

from __future__ import annotations

import math

from nmd_lab._numba import compile_scalar

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
