"""A logarithm in plain arithmetic, so that loops over entries vectorise."""

from __future__ import annotations

from nmd_lab._numba import bits_of, compile_scalar, number_of

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
