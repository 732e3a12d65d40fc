"""Densities of T by numerical integration, loops of draws, and laws of draws, for their tests.

The densities use the formulas of `oracles` alone.
"""

import math
from functools import cache

import numpy as np
from oracles import distance, forward
from scipy import stats

from nmd_lab._runtime.compiler import compile_kernel
from nmd_lab.model.model import make_model
from nmd_lab.sampler.latent_draws import compile_t_draw
from nmd_lab.sampler.random_numbers import new_stream, start_of

NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)
STEPS = 10.0 ** np.arange(-12, 4, 0.05)
SIGNIFICANT = 1e-4
"""A correct sampler fails one of its tests with this probability, for another seed."""


def assert_standard_normal(z):
    """Test numbers (number, draw), each for itself and together with the others."""
    limit = 5 / np.sqrt(z.shape[1])
    for number in z:
        assert stats.kstest(number, "norm").pvalue > SIGNIFICANT
    np.testing.assert_allclose(z.mean(axis=1), 0, atol=limit)
    np.testing.assert_allclose(z.var(axis=1), 1, atol=1.2 * limit)
    np.testing.assert_allclose(np.corrcoef(z), np.eye(len(z)), atol=limit)


def p_of_truncated(t, v, sd, low, high):
    """Return the p-value of draws from N(v, sd²) between two limits, which they keep."""
    assert np.all((t >= low) & (t <= high))
    return stats.kstest(t, stats.truncnorm((low - v) / sd, (high - v) / sd, v, sd).cdf).pvalue


class Distribution:
    """The distribution with density exp(-energy), up to a factor, by integration on a fine grid."""

    def __init__(self, energy, special, centre, sd, *, within=(-math.inf, math.inf)):
        special = np.concatenate([np.atleast_1d(special), [centre]])
        around = [special[:, None] + sign * STEPS for sign in (-1, 1)]
        wide = [centre + sd * np.linspace(-60, 60, 8001), special, *(a.ravel() for a in around)]
        points = np.unique(np.clip(np.concatenate(wide), *within))
        energies = energy(points)
        kept = np.flatnonzero(energies < energies.min() + 45)
        first, last = max(kept[0] - 1, 0), min(kept[-1] + 1, points.size - 1)
        inner = np.linspace(points[first], points[last], 4001)
        self.points = np.unique(np.concatenate([points[first : last + 1], inner]))
        half = np.diff(self.points) / 2
        middle = (self.points[1:] + self.points[:-1]) / 2
        density = np.exp(energies.min() - energy(middle[:, None] + half[:, None] * NODES))
        self.mass = density @ WEIGHTS * half
        self.total = float(self.mass.sum())
        self.below = np.concatenate([[0.0], np.cumsum(self.mass)]) / self.total

    def cdf(self, t):
        return np.interp(t, self.points, self.below)

    def sample(self, u):
        """Return the draws that belong to uniform numbers."""
        return np.interp(u, self.below, self.points)


def density_of(f, loss, v, x, rho, beta):
    """Return the distribution of T given x, for a pair of the oracles."""

    def energy(t):
        return beta * distance(loss, np.full_like(t, x), forward(f, t)) + rho / 2 * (t - v) ** 2

    root = math.sqrt(max(x, 0))
    return Distribution(energy, [0, 1, x, -x, root, -root], v, 1 / math.sqrt(rho))


def any_inputs(n, loss, seed):
    """Yield v, x, rho and beta, of many sizes; some x are zero, and some negative."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        x = rng.exponential() * rng.choice([0, 0.3, 1, 3], p=[0.15, 0.25, 0.4, 0.2])
        if loss != "kl" and rng.random() < 0.2:
            x = -x
        v = rng.normal() * 10 ** rng.uniform(-1, 1)
        yield v, x, 10 ** rng.uniform(-2, 3), 10 ** rng.uniform(-1.5, 3)


@cache
def many_draws(draw):
    """Return a function for many draws: ``(arguments, n, seed) -> ndarray``."""

    def loop(arguments, seed, out):
        stream = new_stream(start_of(seed, 0, 0, 0))
        for i in range(out.size):
            out[i] = draw(*arguments, stream)

    compiled = compile_kernel(loop, "draws", cached=False)

    def sample(arguments, n, seed):
        out = np.empty(n)
        compiled(arguments, seed, out)
        return out

    return sample


@cache
def t_draws(f, loss):
    """Return the draws of a pair: ``(v, x, rho, beta, n, seed, t_old=f⁻¹(x), steps) -> ndarray``.

    They are independent of one another: each begins at t_old, which it forgets in 40 steps.
    """
    pair = make_model(f, loss)
    draw = compile_t_draw(pair.structure)

    def loop(arguments, seed, steps, t):
        stream = new_stream(start_of(seed, 0, 0, 0))
        for i in range(t.size):
            for _ in range(steps):
                t[i] = draw(t[i], *arguments, stream)

    compiled = compile_kernel(loop, "steps", cached=False)

    def sample(v, x, rho, beta, n, seed, t_old=None, steps=40):
        first = pair.nonlinearity.pseudo_inverse(np.array(float(x))) if t_old is None else t_old
        t = np.array(np.broadcast_to(first, n), float)
        compiled(
            (float(v), float(x), float(rho), float(beta), *pair.only.arguments), seed, steps, t
        )
        return t

    return sample
