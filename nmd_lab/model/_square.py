"""Closed forms of the T-update of f(t) = t^2, for v >= 0 and one loss each."""

from __future__ import annotations

import math

from nmd_lab._numba import bits_of, compile_scalar, number_of

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
