"""Random numbers inside compiled code: a stream of its own for each row of each sweep.

A stream is one 64-bit integer, that of SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, "Fast
splittable pseudorandom number generators", 2014).  `start_of` derives it from a seed, the number of
the sweep, the kind of the draw and the row, so that draws do not depend on the number of threads.
New rows have a hash of their entries in the place of their position: what is drawn for one of them
does not depend on the others.

The integer is on the stack of the kernel that calls `new_stream`.  The references of an array would
be counted at each call, which takes longer than a normal number.

Of a normal variable between two limits, a number is drawn until it is accepted where the mean lies
between wide limits, or near them.  Elsewhere the distance from a limit is drawn from a uniform or
an exponential distribution and accepted by rejection (C. P. Robert, "Simulation of truncated normal
variables", Statistics and Computing 5, 1995), so that a draw at 40 standard deviations costs no
more than one at two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import compile_inner, compile_scalar, inlined
from nmd_lab.data.matching import mixed

UNIT, SIGNED_UNIT = 2.0**-53, 2.0**-52
N_LAYERS, TAIL, LAYER = 256, 3.6541528853610088, 0.00492867323399
"""Layers below exp(-z²/2), where the tail begins, and the area of each layer."""

TRIES = 10_000  # ends loops if an argument is NaN; at least a quarter of all tries is accepted

ROWS, COLUMNS, LATENT, HYPER = range(4)
"""Kinds of random numbers."""


NO_KEYS: NDArray[np.int64] = np.empty(0, np.int64)
"""Keys of rows, or of entries, where positions stand for them."""


def numbers(seed: int, sweep: int, kind: int) -> np.random.Generator:
    """Return the random numbers of one kind of a sweep for NumPy."""
    return np.random.Generator(np.random.Philox(key=[seed, sweep * 8 + kind]))


GOLDEN = 0x9E3779B97F4A7C15
STATE: Any = types.CPointer(types.uint64)  # type: ignore[no-untyped-call]

_mix = inlined(mixed)


def _new(typing_context, start):  # type: ignore[no-untyped-def]
    """Return a stream, which the calling kernel keeps until it returns."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        stream = cgutils.alloca_once(builder, ir.IntType(64))  # type: ignore[no-untyped-call]
        builder.store(arguments[0], stream)
        return stream

    return STATE(types.uint64), generate


def _next(typing_context, stream):  # type: ignore[no-untyped-def]
    """Return the next integer of a stream, not mixed."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        bits = builder.add(builder.load(arguments[0]), ir.IntType(64)(GOLDEN))
        builder.store(bits, arguments[0])
        return bits

    return types.uint64(STATE), generate


new_stream: Any = intrinsic(_new)
next_bits: Any = intrinsic(_next)


@inlined
def start_of(seed, sweep, kind, row):  # type: ignore[no-untyped-def]
    """Return where a stream starts."""
    key = np.uint64(seed)
    for number in (sweep, kind, row):
        key = _mix(key + np.uint64(GOLDEN) * (np.uint64(number) + np.uint64(1)))
    return key


@compile_scalar
def uniform(stream):  # type: ignore[no-untyped-def]
    """Return a uniform number in (0, 1)."""
    return (np.float64(_mix(next_bits(stream)) >> np.uint64(11)) + 0.5) * UNIT


@compile_inner
def draw_index(logs, stream):  # type: ignore[no-untyped-def]
    """Return a position, given the logarithms of probabilities up to a constant.

    It is that of the largest one after a Gumbel number was added to each.
    """
    highest, chosen = -math.inf, 0
    for k in range(logs.size):
        value = logs[k] - math.log(-math.log(uniform(stream)))
        if value > highest:
            highest, chosen = value, k
    return chosen


@compile_scalar
def _distance(a, width, stream):  # type: ignore[no-untyped-def]
    """Return how far beyond `a` a normal number is that lies between a and a + width."""
    # The rate `a` is best for narrow intervals and far tails, the other one close to the mean.
    near = 0.0 < a < 100.0 and width > 1.0
    rate = 0.5 * (a + math.sqrt(a * a + 4.0)) if near else max(a, 0.0)
    share, shift = -math.expm1(-rate * width), rate - a
    distance = 0.0
    for _ in range(TRIES):
        u = uniform(stream)
        distance = -math.log1p(-u * share) / rate if rate * width > 1e-10 else u * width
        off = distance - shift
        if uniform(stream) <= math.exp(-0.5 * off * off):
            break
    return distance


def _layers() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the layers and the heights there, from the lowest layer to the top."""
    ends = [LAYER / math.exp(-0.5 * TAIL**2), TAIL]
    while len(ends) < N_LAYERS:
        height = LAYER / ends[-1] + math.exp(-0.5 * ends[-1] ** 2)
        ends.append(math.sqrt(-2.0 * math.log(height)))
    found = np.array([*ends, 0.0])
    return found, np.exp(-0.5 * found**2)


ENDS, HEIGHTS = _layers()


@compile_inner
def normal(stream):  # type: ignore[no-untyped-def]
    """Return a standard normal number.

    It is the ziggurat of G. Marsaglia and W. W. Tsang, "The ziggurat method for generating random
    variables", Journal of Statistical Software 5, 2000, whose layer, place and height come from
    different bits.
    """
    for _ in range(TRIES):
        bits = _mix(next_bits(stream))
        layer = np.int64(bits & np.uint64(N_LAYERS - 1))
        z = np.float64(np.int64(bits) >> np.int64(11)) * SIGNED_UNIT * ENDS[layer]
        if abs(z) < ENDS[layer + 1]:
            return z
        if layer == 0:
            return math.copysign(TAIL + _distance(TAIL, math.inf, stream), z)
        height = HEIGHTS[layer] + (HEIGHTS[layer + 1] - HEIGHTS[layer]) * uniform(stream)
        if height < math.exp(-0.5 * z * z):
            return z
    return 0.0


@compile_scalar
def draw_between(v, sd, low, high, stream):  # type: ignore[no-untyped-def]
    """Return a draw of N(v, sd²) between two limits, of which either may be infinite.

    With sd = 0, or with low = high, it is v, clipped to the limits.
    """
    if not (sd > 0.0 and low < high):
        t = v
    elif high - low >= 2.5 * sd and max(low - v, v - high) < 0.6 * sd:  # accepted often enough
        t = v + sd * normal(stream)
        for _ in range(TRIES):
            if low <= t <= high:
                break
            t = v + sd * normal(stream)
    elif high < v:
        t = high - sd * _distance((v - high) / sd, (high - low) / sd, stream)
    else:
        t = low + sd * _distance((low - v) / sd, (high - low) / sd, stream)
    return min(max(t, low), high)
