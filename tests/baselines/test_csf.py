"""Component-wise square factorisation: exact steps, exact recovery."""

from __future__ import annotations

import numpy as np
import pytest

import nmd_lab
from nmd_lab.baselines import csf
from nmd_lab.baselines._coordinate_kernels import best_square_change, real_roots


def squared(seed, uniform, m=100, n=80, rank=5):
    rng = np.random.default_rng(seed)
    draw = rng.random if uniform else rng.standard_normal
    return np.square(draw((m, rank)) @ draw((rank, n)))


@pytest.mark.parametrize("seed", range(3))
def test_an_easy_factorisation_is_found_again(seed):
    """The paper's regime (a): uniform factors, so that no entry of WH changes its sign."""
    X = squared(seed, uniform=True)
    fit = csf(X, 5, max_iter=200, tol=0)
    assert fit.relative_error < 1e-12
    np.testing.assert_allclose(fit.reconstruct(), X, rtol=1e-10)
    assert fit.nonlinearity == nmd_lab.Square()


def test_a_hard_factorisation_needs_several_starts():
    """The paper's regime (b): Gaussian factors of rank 2, whose signs have to be found."""
    X = squared(0, uniform=False, m=10, n=10, rank=2)
    errors = [
        csf(X, 2, init="random", random_state=seed, max_iter=500, tol=0).relative_error
        for seed in range(10)
    ]
    assert min(errors) < 1e-8
    assert max(errors) > 0.01


def test_hidden_entries_are_completed(rng):
    X = squared(0, uniform=True)
    seen = rng.random(X.shape) < 0.7
    fit = csf(np.where(seen, X, np.nan), 5, max_iter=500, tol=0)
    assert fit.relative_error < 1e-6
    np.testing.assert_allclose(fit.reconstruct().values[~seen], X[~seen], rtol=1e-3)
    again = csf(np.where(seen, X, -7), 5, observed=seen, max_iter=500, tol=0)
    np.testing.assert_array_equal(again.W, fit.W)


def test_a_coordinate_takes_its_global_minimum(rng):
    for trial in range(300):
        x = rng.normal(size=9) ** 2 - 0.2 * (trial % 2)
        p, h = rng.normal(size=9), rng.normal(size=9) * (rng.random(9) < 0.8)
        seen = rng.random(9) < 0.9

        best = best_square_change(x, p, h, seen)
        changes = [[best], np.linspace(-20, 20, 4001), best + np.linspace(-1e-3, 1e-3, 201)]
        models = np.square(p + np.outer(np.concatenate(changes), h))
        objective = np.sum((x - models)[:, seen] ** 2, axis=1)
        assert objective[0] <= objective.min() + 1e-12


def test_a_coordinate_without_a_say_stays():
    x, nothing, everywhere = np.ones(3), np.zeros(3), np.ones(3, bool)
    assert best_square_change(x, x, nothing, everywhere) == 0
    assert best_square_change(x, x, x, ~everywhere) == 0
    assert best_square_change(x, x, x, everywhere) == 0
    assert abs(best_square_change(x, nothing, x, everywhere)) == pytest.approx(1)


@pytest.mark.parametrize(
    "roots",
    [(1, 2, 3), (-5, 0, 1e-3), (2, 2, -1), (4, 4, 4), (0, 0, 0), (1e3, 1e-3, -1),
     (7, 1 + 2j, 1 - 2j), (-1e4, 1e-2j, -1e-2j), (3, 1j, -1j)],
)  # fmt: skip
def test_roots_of_a_cubic(roots):
    _, b, c, d = np.real(np.poly(roots))
    found = np.sort(np.unique(real_roots(b, c, d)))
    real = np.sort([root.real for root in np.array(roots, complex) if root.imag == 0])
    scale = np.abs(real).max()
    for root in real:  # a double root is known to half the digits, a triple to a third
        assert np.abs(found - root).min() <= 1e-5 * scale + 1e-12
    for root in found:
        assert np.abs(real - root).min() <= 1e-5 * scale + 1e-12


@pytest.mark.parametrize("init", ["svd", "random"])
def test_the_objective_never_rises(init):
    X = squared(3, uniform=False, m=20, n=15, rank=3)
    fit = csf(X, 3, init=init, random_state=0, max_iter=80, tol=0)
    objective = fit.history.objective.values
    assert np.all(np.diff(objective) <= 1e-12 * objective[0])


def test_precision_and_seeds():
    X = squared(4, uniform=True, m=20, n=15, rank=3).astype(np.float32)
    before = X.copy()
    fit, again, other = (csf(X, 3, init="random", random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(X, before)
    assert fit.W.dtype == fit.H.dtype == np.float32
    np.testing.assert_array_equal(fit.H, again.H)
    assert not np.array_equal(fit.H, other.H)
    assert csf(X, 3).relative_error < 1e-5
    assert csf(X, 3).parameters["method"] == "csf"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 4}, "rank=4 exceeds"),
        ({"init": "zeros"}, "init='zeros' is unknown"),
        ({"tol": -1}, "tol=-1 is out of range"),
        ({"observed": np.zeros((4, 3), bool)}, "no observed entry"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        csf(np.ones((4, 3)), **{"rank": 1} | options)
