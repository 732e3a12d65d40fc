"""Normal numbers, and those between two limits: near the mean and far in the tails."""

import math
from itertools import pairwise

import numpy as np
import pytest
from densities import SIGNIFICANT, many_draws, p_of_truncated
from scipy import stats
from scipy.integrate import quad

from nmd_lab._runtime.compiler import compile_scalar
from nmd_lab.model.ordinal import mass_between
from nmd_lab.sampler.random_numbers import draw_between, normal

INF = math.inf
LIMITS = [
    (-INF, INF), (-INF, 0.3), (-0.01, INF), (0.5, INF), (-INF, -2), (4, INF), (-INF, -40),
    (40, INF), (1000, INF), (1e5, INF), (-1, 2), (-0.2, 0.1), (-8, 0.001), (0.3, 0.4), (0.3, 3),
    (2, 2.5), (-9, -3), (11.9, 12.1), (40, 40.001), (40, 41), (1e4, 1e4 + 1), (-3, 1e6),
]  # fmt: skip

SCALES = [
    (0.0, 1.0, 0.3, 0.3 + 1e-9), (-50.0, 1.0, 0.0, 1e-9), (0.5, 1e-9, 0.0, 1.0),
    (0.0, 1e-9, -INF, -1e-8), (3.0, 1e-6, 3.0 + 4e-5, 4.0), (1e6, 1e3, -INF, 9.6e5),
    (0.0, 1e9, -1.0, 2.0),
]  # fmt: skip
"""Mean, standard deviation and limits: narrow intervals, and numbers that are not near 1."""

draws = many_draws(draw_between)


def check(v, sd, low, high, seed):
    t = draws((float(v), float(sd), float(low), float(high)), 4000, seed)
    return p_of_truncated(t, v, sd, low, high)


def test_draws_follow_the_density():
    p = [check(0, 1, *limits, seed) for seed, limits in enumerate(LIMITS)]
    p += [check(0, 1, -b, -a, 50 + seed) for seed, (a, b) in enumerate(LIMITS)]
    p += [check(*each, 100 + seed) for seed, each in enumerate(SCALES)]
    assert min(p) > 1e-3 / len(p)
    assert stats.kstest(p, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("v", "sd", "low", "high", "t"),
    [
        (0.2, 0.0, -INF, INF, 0.2),
        (0.2, 0.0, 1.0, INF, 1.0),
        (5.0, 1.0, 2.0, 2.0, 2.0),
        (1e300, 1e-300, -INF, 0.0, 0.0),
        (-1e200, 1.0, 7.0, INF, 7.0),
    ],
)
def test_degenerate_arguments(v, sd, low, high, t):
    assert np.all(draws((v, sd, low, high), 10, 0) == t)
    for unknown in ((math.nan, sd), (v, math.nan)):  # which ends
        draws((*unknown, low, high), 1, 0)


def test_mass_agrees_with_integration():
    widths = [1e-14, 1e-9, 0.99e-4, 1.01e-4, 0.01, 0.5, 3, 60, INF]
    for a in (-30.0, -2.0, -1e-9, 0.0, 1e-3, 0.7, 5.0, 11.99, 12.01, 40.0, 1e5, 1e9):
        for width in widths:
            b = a + width
            if a <= 0 <= b:
                inside = np.clip([a, 0, b], -40, 40)
                wanted = sum(
                    quad(lambda z: math.exp(-z * z / 2), *ends, epsrel=1e-11)[0]
                    for ends in pairwise(inside)
                )
            else:
                near, size = (a, width) if a > 0 else (-b, width)
                scale = 1 / max(near, 1)

                def density(e, near=near, scale=scale):
                    return scale * math.exp(-near * scale * e - (scale * e) ** 2 / 2)

                wanted = quad(density, 0, min(size / scale, 60), epsrel=1e-11)[0]
            for mass in (mass_between(a, b, width), mass_between(-b, -a, width)):
                assert mass == pytest.approx(wanted, rel=1e-8, abs=1e-30), (a, width)
    assert mass_between(3.0, 3.0, 0.0) == mass_between(0.0, 0.0, 0.0) == 0.0


def test_draws_in_single_precision_stay_inside():
    @compile_scalar
    def single(v, stream):
        return np.float32(draw_between(v, 1.0, -np.inf, 0.0, stream))

    assert np.all(many_draws(single)((np.float32(30.0),), 1000, 0) <= 0)


NUMBER, TAIL = 2_000_000, 3.65


def test_numbers_of_a_stream_are_normal_in_the_tail_too_and_independent():
    z = many_draws(normal)((), NUMBER, 3)
    ends = np.concatenate([[-np.inf], np.linspace(-TAIL, TAIL, 400), [np.inf]])
    counts = np.histogram(z, ends)[0]
    assert stats.chisquare(counts, NUMBER * np.diff(stats.norm.cdf(ends))).pvalue > SIGNIFICANT
    beyond = np.abs(z)[np.abs(z) > TAIL]
    assert beyond.size > 400
    shares = stats.norm.sf(beyond) / stats.norm.sf(TAIL)
    assert stats.kstest(shares, "uniform").pvalue > SIGNIFICANT
    for before, after in ((z[:-1], z[1:]), (z[:-1] ** 2, z[1:] ** 2)):
        assert abs(np.corrcoef(before, after)[0, 1]) < 5 / np.sqrt(NUMBER)
