"""Methods of other papers find known answers: the tables of docs/paper.md need them."""

import numpy as np
import pytest

import nmd_lab
from benchmarks import methods
from benchmarks.methods._coordinate_kernels import best_relu_change
from benchmarks.methods._iterations import BaselineRun
from nmd_lab.data.inputs import observe_dense

NEEDS = {"adam": "torch", "rtrmc": "pymanopt"}


def method_of(name):
    """Return a method, or skip the test if its library is missing."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    return getattr(methods, name)


@pytest.fixture
def rng():
    return np.random.default_rng(20240229)


@pytest.fixture
def noisy(rng):
    """A 40 x 30 matrix near rank 3, and which 60 % of it are seen."""
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30))
    return X + 0.3 * rng.normal(size=X.shape), rng.random(X.shape) < 0.6


@pytest.mark.parametrize(
    ("name", "bound"),
    [("anmd", 1e-12), ("nmd_3b", 1e-12), ("ebcd", 1e-7), ("em_nmd", 1e-12), ("adam", 1e-6),
     ("coordinate_descent", 1e-3), ("csf", 1e-6)],
)  # fmt: skip
def test_an_exact_decomposition_is_found_again(name, bound, rng):
    W, H = rng.normal(size=(60, 3)), rng.normal(size=(3, 50))
    X = np.square(W @ H) if name == "csf" else np.maximum(W @ H, 0)
    start = W + 0.1 * rng.normal(size=W.shape), H + 0.1 * rng.normal(size=H.shape)
    max_iter = 40 if name in ("coordinate_descent", "csf") else 500
    assert method_of(name)(X, 3, init=start, max_iter=max_iter, tol=0).relative_error < bound


def test_a_coordinate_takes_its_global_minimum(rng):
    for trial in range(200):
        x = np.where(rng.random(12) < 0.4, 0, rng.normal(size=12) + (trial % 2))
        p, h = rng.normal(size=12), rng.normal(size=12) * (rng.random(12) < 0.8)
        seen = rng.random(12) < 0.9
        best = best_relu_change(x, p, h, seen)
        changes = [[best], np.linspace(-20, 20, 4001), best + np.linspace(-1e-3, 1e-3, 201)]
        models = np.maximum(p + np.outer(np.concatenate(changes), h), 0)
        objective = np.sum((x - models)[:, seen] ** 2, axis=1)
        assert objective[0] <= objective.min() + 1e-12


@pytest.mark.parametrize("name", ["lmafit", "wlra", "rtrmc"])
def test_the_linear_methods_find_the_same_stationary_point(name, noisy):
    X, seen = noisy
    fit = method_of(name)(X, 3, observed=seen, max_iter=3000, tol=1e-14)
    W, H = fit._factors
    residual = np.where(seen, X - W @ H, 0)
    size = np.linalg.norm(residual)
    assert np.linalg.norm(residual @ H.T) < 1e-5 * size * np.linalg.norm(H)
    assert np.linalg.norm(W.T @ residual) < 1e-5 * size * np.linalg.norm(W)
    reference = methods.wlra(X, 3, observed=seen, max_iter=3000, tol=1e-15)
    np.testing.assert_allclose(fit.reconstruct(), reference.reconstruct(), atol=1e-5)


def test_bmf_stays_within_its_bounds_and_is_least_squares_without_them(noisy):
    X, seen = noisy
    models = []
    methods.bmf(X, 3, observed=seen, low=0.0, high=0.5, tol=0, max_iter=30, random_state=0,
                callback=lambda at: models.append(at.W @ at.H))  # fmt: skip
    assert -1e-13 <= np.min(models) <= np.max(models) <= 0.5 + 1e-13
    pair = np.ones((40, 1)), np.linspace(-1, 1, 30)[None, :]
    free = methods.bmf(X, 1, observed=seen, low=-1e6, high=1e6, init=pair, max_iter=3, tol=0)
    other = methods.wlra(X, 1, observed=seen, init=pair, max_iter=3, tol=0)
    np.testing.assert_allclose(free.reconstruct(), other.reconstruct(), rtol=1e-9, atol=1e-12)


def a_run(X, f=None, loss=None, **options):
    f, loss = f or nmd_lab.Identity(), loss or nmd_lab.Frobenius()
    return BaselineRun(observe_dense(X), f, loss, **{"max_iter": 9} | options)


def follow(run, factors):
    """Record a start and then one pair of factors after another, until the run stops."""
    start = np.ones((2, 1)), np.ones((1, 2))
    assert run.record(*start)
    for c in factors:
        if not run.record(start[0], np.full((1, 2), float(c))):
            break
    return run.result(method="given", init=start, rank_of_start=np.int64(1), random_state=None)


def test_a_run_records_every_iterate_and_returns_the_best():
    fit = follow(a_run(np.full((2, 2), 3.0), max_iter=4), [2, 4.5, 3.5, 1, 3])
    np.testing.assert_allclose(fit.history.objective, [2, 4.5, 0.5, 8])
    np.testing.assert_allclose(fit.history.relative_error, [1 / 3, 0.5, 1 / 6, 2 / 3])
    assert list(fit.history.iteration) == [1, 2, 3, 4]
    assert np.all(np.diff(fit.history.seconds) >= 0)
    assert fit.stop_reason == "max_iter: 4 iterations done"
    assert fit.parameters["iteration"] == 3
    assert fit.objective == 0.5
    np.testing.assert_array_equal(fit.reconstruct(), np.full((2, 2), 3.5))
    assert fit.parameters["init"] == "given tuple"
    assert type(fit.parameters["rank_of_start"]) is int
    assert fit.parameters["random_state"] is None


@pytest.mark.parametrize(
    ("options", "reason", "n_iter"),
    [
        ({"tol": 0.1}, "converged: the objective changed by no more than tol=0.1 of itself", 3),
        ({"callback": lambda at: at.iteration == 2}, "callback: stopped after 2 iterations", 2),
        ({"time_limit": 0}, "time_limit: 0 s passed", 1),
    ],
)
def test_a_run_ends(options, reason, n_iter):
    fit = follow(a_run(np.full((2, 2), 3.0), **options), [1, 2, 2.01, 3])
    assert (fit.stop_reason, fit._n_iter) == (reason, n_iter)
    assert fit.stop_reason.code == reason.split(":")[0]


def test_a_run_that_overflows_keeps_the_best_finite_iterate():
    fit = follow(a_run(np.full((2, 2), 3.0)), [2, 1, np.nan])
    assert fit.stop_reason == "not finite: iteration 3 overflowed"
    assert (fit._n_iter, fit.parameters["iteration"]) == (2, 1)
    with pytest.raises(FloatingPointError, match="iteration 1 overflowed: scale X down"):
        follow(a_run(np.full((2, 2), 3.0)), [1e300])
    with pytest.raises(RuntimeError, match="no iterate yet"):
        a_run(np.ones((2, 2))).result(method="none")
