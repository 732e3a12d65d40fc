"""The oracles agree with each other and with numbers worked out by hand."""

import numpy as np
import pytest
from oracles import PAIRS, brute_prox, exact_prox, subproblem


@pytest.mark.parametrize(("f", "loss"), PAIRS)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.5, 2.0)])
def test_brute_force_beats_a_naive_grid_and_meets_the_closed_form(f, loss, bounds, rng):
    n = 2000
    v = rng.normal(size=n) * 10 ** rng.uniform(-2, 1, n)
    x = rng.exponential(size=n) * (rng.random(n) < 0.8)
    rho = 10 ** rng.uniform(-4, 4, n)
    t, value = brute_prox(v, x, rho, f, loss, *bounds)
    np.testing.assert_allclose(value, subproblem(t, v, x, rho, f, loss, *bounds), rtol=1e-12)

    exact = subproblem(exact_prox(v, x, rho, f, loss, *bounds), v, x, rho, f, loss, *bounds)
    np.testing.assert_allclose(exact, value, rtol=1e-9, atol=1e-15)

    reach = np.abs(v) + np.abs(x) + 3
    parts = np.array_split(np.linspace(-reach, reach, 4001), 20)  # in little memory
    naive = np.min([subproblem(t, v, x, rho, f, loss, *bounds).min(0) for t in parts], axis=0)
    assert np.all(value <= naive * (1 + 1e-9))
