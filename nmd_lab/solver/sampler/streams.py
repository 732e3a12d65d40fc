"""Random numbers inside compiled code: a stream of its own for each row of each sweep.

A stream is an array of four 64-bit integers, the state of xoshiro256++ (D. Blackman and S. Vigna,
"Scrambled linear pseudorandom number generators", 2021).  `start_stream` derives it from a seed,
the number of the sweep, the kind of the draw and the row, so that draws do not depend on the number
of threads.
"""

from __future__ import annotations

import math

import numpy as np

from nmd_lab._numba import compile_inner

UNIT = 2.0**-53
TWO_PI = 2 * math.pi

ROWS, COLUMNS, LATENT, HYPER, LIMITS = range(5)
"""Kinds of random numbers."""


def _mixed(z):  # type: ignore[no-untyped-def]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


_mix = compile_inner(_mixed)


def _start(stream, seed, sweep, kind, row):  # type: ignore[no-untyped-def]
    key = np.uint64(seed)
    for number in (sweep, kind, row):
        key = _mix(key + np.uint64(0x9E3779B97F4A7C15) * (np.uint64(number) + np.uint64(1)))
    for i in range(4):
        key += np.uint64(0x9E3779B97F4A7C15)
        stream[i] = _mix(key)


def _next_uniform(stream):  # type: ignore[no-untyped-def]
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    total = s0 + s3
    bits = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    return (np.float64(bits >> np.uint64(11)) + 0.5) * UNIT


start_stream = compile_inner(_start)
"""``start_stream(stream, seed, sweep, kind, row)`` sets the state of a stream."""

uniform = compile_inner(_next_uniform)
"""``uniform(stream)`` returns a number between 0 and 1, neither of which it is."""


def _normals(stream, out):  # type: ignore[no-untyped-def]
    for i in range(0, out.size, 2):
        radius = math.sqrt(-2.0 * math.log(uniform(stream)))
        angle = TWO_PI * uniform(stream)
        out[i] = radius * math.cos(angle)
        if i + 1 < out.size:
            out[i + 1] = radius * math.sin(angle)


fill_normal = compile_inner(_normals)
"""``fill_normal(stream, out)`` fills a flat array with standard normal numbers."""


def _index(logs, stream):  # type: ignore[no-untyped-def]
    logs -= logs.max()
    logs[:] = np.exp(logs)
    rest = uniform(stream) * logs.sum()
    for k in range(logs.size):
        rest -= logs[k]
        if rest < 0:
            return k
    return logs.size - 1


draw_index = compile_inner(_index)
"""``draw_index(logs, stream)``: a position, by the logarithms of probabilities up to a constant."""
