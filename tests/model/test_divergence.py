"""The closed form of MinMax for the divergence: nothing is better, with bounds < 0 or infinite."""

import numpy as np
import pytest
from scipy.special import kl_div

import nmd_lab as nmd
from nmd_lab.model.column_model import make_column_model
from nmd_lab.model.proximal import t_update

FUNCTIONS = [
    nmd.MinMax(-1, 0.8),
    nmd.MinMax(0.7, 0.7),
    nmd.MinMax(0, np.inf),
    nmd.MinMax(-np.inf, 1),
    nmd.MinMax(-1, 0),
]


@pytest.mark.parametrize("f", FUNCTIONS, ids=str)
def test_nothing_is_better_than_the_closed_form(f):
    rng, size = np.random.default_rng(0), 20_000
    x = np.abs(rng.normal(size=size)) * (rng.random(size) < 0.7)
    v, rho = 2 * rng.normal(size=size), 10 ** rng.uniform(-4, 4, size)
    for exact in (f.a, f.b):
        if np.isfinite(exact):
            v[:50], x[50:100] = exact, max(exact, 0)
    t = t_update(make_column_model(f, "kl"), v, x, rho)
    assert np.isfinite(t).all()

    def objective(t):
        return kl_div(x, np.asarray(f(t))) + rho / 2 * (t - v) ** 2  # infinite where it must be

    best = objective(t)
    ends = [end for end in (f.a, f.b) if np.isfinite(end)]
    near = [t * (1 + step) for step in (1e-2, -1e-2, 1e-4, -1e-4)]
    random = [2 * np.abs(rng.normal(size=size)) for _ in range(30)]
    for other in [v, *(np.full(size, end) for end in ends), *near, *random]:
        theirs = objective(other)
        finite = np.isfinite(theirs)
        assert np.isfinite(best[finite]).all()
        assert np.all(best[finite] <= theirs[finite] * (1 + 1e-12) + 1e-14)
