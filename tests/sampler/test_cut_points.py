"""Posteriors of cut points for known WH, against integration on a grid."""

import numpy as np
import pytest
from scipy import stats

from nmd_lab.sampler.latent_draws import Levels, first_cuts


def levels_of(v, cuts, rng):
    return np.digitize(v + rng.standard_normal(v.size), cuts).astype(float)


def log_likelihood(codes, v, ends):
    """Return the log-likelihood of all levels, from SciPy's normal distribution."""
    level = codes.astype(int)
    mass = stats.norm.cdf(ends[level + 1] - v) - stats.norm.cdf(ends[level] - v)
    with np.errstate(divide="ignore"):
        return float(np.log(mass).sum())


def weight_on(grid, codes, v, first):
    """Return the density, up to a factor, of the other cut points on a grid of each of them."""
    number = int(codes.max())
    shape = (grid.size,) * (number - 1)
    logs = np.full(shape, -np.inf)
    for at in np.ndindex(shape):
        cuts = np.concatenate([[first], grid[list(at)]])
        if np.all(np.diff(cuts) > 0):
            ends = np.concatenate([[-np.inf], cuts, [np.inf]])
            logs[at] = log_likelihood(codes, v, ends)
    return np.exp(logs - logs.max())


def chain_of(codes, number, v, sweeps, tune=500):
    """Return draws of the cut points, the last log-likelihood, and the cut points at the end."""
    rng = np.random.default_rng(1)
    levels = Levels(codes, codes, number)
    ends, steps = (each[0] for each in first_cuts([levels]))
    for _ in range(tune):
        levels.draw(v, ends, steps, rng, tune=True)
    kept = np.empty((sweeps, ends.size - 2))
    for k in range(sweeps):
        likelihood = levels.draw(v, ends, steps, rng, tune=False)
        kept[k] = ends[1:-1]
    return kept, likelihood, ends


@pytest.mark.parametrize(("cuts", "step"), [([-0.5, 0.9], 0.005), ([-0.5, 0.3, 1.1], 0.03)])
def test_cut_points_have_their_posterior(cuts, step):
    rng = np.random.default_rng(0)
    v = rng.normal(size=60)
    codes = levels_of(v, cuts, rng)
    kept, _, ends = chain_of(codes, len(cuts) + 1, v, 12_000)
    first = ends[1]
    assert (kept[:, 0] == first).all()
    thinned = kept[::20, 1:]
    grid = np.arange(first + step / 2, first + 4, step)
    weight = weight_on(grid, codes, v, first)
    for axis, own in enumerate(thinned.T):
        others = tuple(other for other in range(weight.ndim) if other != axis)
        marginal = np.cumsum(weight.sum(axis=others))
        law = np.interp(own, grid + step / 2, marginal / marginal[-1])
        assert stats.kstest(law, "uniform").pvalue > 1e-3


def test_a_level_that_no_entry_has_keeps_the_order():
    rng = np.random.default_rng(0)
    v = rng.normal(size=50)
    codes = np.where(v > 0, 3.0, 0.0)
    kept, _, _ = chain_of(codes, 4, v, 500)
    assert (np.diff(kept, axis=1) > 0).all()


def test_steps_are_accepted_about_half_the_time():
    rng = np.random.default_rng(0)
    v = rng.normal(size=400)
    kept, _, _ = chain_of(levels_of(v, [-0.5, 0.5, 1.5], rng), 4, v, 2000)
    moved = np.mean(np.diff(kept[:, 1:], axis=0) != 0, axis=0)
    assert ((moved > 0.3) & (moved < 0.6)).all()


def test_weights_and_intervals_of_levels():
    """A weight is a precision of T; of an interval of levels only its two ends count."""
    rng = np.random.default_rng(0)
    v, weights = rng.normal(size=90), rng.uniform(0.5, 2, 90)
    low = levels_of(v, [-0.8, 0.2, 1.0], rng)
    high = np.where(rng.random(90) < 0.3, np.minimum(low + rng.integers(0, 4, 90), 3), low)
    levels = Levels(low, high, 4, weights)
    ends, steps = (each[0] for each in first_cuts([levels]))
    for _ in range(30):
        likelihood = levels.draw(v, ends, steps, rng, tune=True)
    of_entries = (ends[each.astype(int)] for each in (low, high + 1))
    below, above = (stats.norm.cdf(np.sqrt(weights) * (end - v)) for end in of_entries)
    assert likelihood == pytest.approx(np.log(above - below).sum(), rel=1e-9)
    assert (low < high).any()
