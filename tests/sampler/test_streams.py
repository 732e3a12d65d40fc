"""Standard normal numbers against their distribution, in the middle and far in the tails."""

import numpy as np
from densities import many_draws
from scipy import stats

from nmd_lab.sampler.random_numbers import TAIL, normal

NUMBER = 2_000_000
SIGNIFICANT = 1e-4
"""A correct generator fails a test of this file with this probability, for another seed."""


def numbers():
    return many_draws(normal)((), NUMBER, 3)


def test_numbers_of_a_stream_are_normal():
    ends = np.concatenate([[-np.inf], np.linspace(-TAIL, TAIL, 400), [np.inf]])
    counts = np.histogram(numbers(), ends)[0]
    assert stats.chisquare(counts, NUMBER * np.diff(stats.norm.cdf(ends))).pvalue > SIGNIFICANT


def test_numbers_beyond_the_last_layer_are_those_of_the_tail():
    z = np.abs(numbers())
    beyond = z[z > TAIL]
    assert beyond.size > 400
    shares = stats.norm.sf(beyond) / stats.norm.sf(TAIL)
    assert stats.kstest(shares, "uniform").pvalue > SIGNIFICANT


def test_numbers_that_follow_each_other_are_independent():
    z = numbers()
    for before, after in ((z[:-1], z[1:]), (z[:-1] ** 2, z[1:] ** 2)):
        assert abs(np.corrcoef(before, after)[0, 1]) < 5 / np.sqrt(NUMBER)
