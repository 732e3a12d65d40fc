"""The completion baselines: independent algorithms, optimality conditions, one another, CBCL."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.io import loadmat

import nmd_lab
from nmd_lab.baselines import bmf, lmafit, rtrmc, soft_impute, wlra
from nmd_lab.baselines._residuals import ObservedMatrices
from nmd_lab.baselines.rtrmc import SubspaceProblem
from nmd_lab.data.inputs import observe_dense

LINEAR = [lmafit, wlra, rtrmc]
COMPLETIONS = [*LINEAR, soft_impute, bmf]


@pytest.fixture
def exact(rng):
    """A 40 x 30 matrix of rank 3, and which 60 % of it are seen."""
    return rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30)), rng.random((40, 30)) < 0.6


@pytest.fixture
def noisy(exact, rng):
    X, seen = exact
    return X + 0.3 * rng.normal(size=X.shape), seen


# --- what the methods find


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("method", LINEAR)
def test_an_exact_low_rank_matrix_is_recovered(method, transposed, exact):
    X, seen = (part.T if transposed else part for part in exact)
    fit = method(np.where(seen, X, np.nan), 3, max_iter=2000, tol=0,
                 callback=lambda at: at.relative_error < 1e-9)  # fmt: skip
    # λ = 1e-4 draws RTRMC's missing entries to 0 by λ²
    bound = 1e-6 if method is rtrmc else 1e-7
    assert np.abs(fit.reconstruct() - X).max() < bound


@pytest.mark.parametrize("init", ["svd", "random"])
@pytest.mark.parametrize("method", LINEAR)
def test_the_linear_methods_find_the_same_stationary_point(method, init, noisy):
    X, seen = noisy
    fit = method(X, 3, observed=seen, init=init, max_iter=3000, tol=1e-14, random_state=1)
    W, H = fit.factors
    residual = np.where(seen, X - W @ H, 0)
    size = np.linalg.norm(residual)
    assert np.linalg.norm(residual @ H.T) < 1e-5 * size * np.linalg.norm(H)
    assert np.linalg.norm(W.T @ residual) < 1e-5 * size * np.linalg.norm(W)
    reference = wlra(X, 3, observed=seen, max_iter=3000, tol=1e-15)
    np.testing.assert_allclose(fit.reconstruct(), reference.reconstruct(), atol=1e-5)


@pytest.mark.parametrize("method", LINEAR)
def test_without_holes_the_singular_value_decomposition_is_found(method, rng):
    X = rng.normal(size=(12, 9))
    fit = method(X, 4, init="random", max_iter=2000, tol=1e-15, random_state=0)
    best = np.linalg.norm(np.linalg.svd(X, compute_uv=False)[4:])
    assert np.linalg.norm(X - fit.reconstruct()) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("method", COMPLETIONS)
def test_the_objective_never_rises(method, noisy):
    X, seen = noisy
    objective = method(
        X, 3, observed=seen, random_state=0, init="random", tol=0, max_iter=40
    ).history
    falls = np.diff(objective["objective"])
    assert np.all(falls <= 1e-12 * objective["objective"][0].item())


# --- step by step


def least_squares_rows(X, weights, H):
    """The rows of W, each by LAPACK's least squares over what is observed."""
    solutions = []
    for x, weight in zip(X, weights, strict=True):
        root = np.sqrt(weight[weight > 0])
        columns = H[:, weight > 0].T * root[:, None]
        solutions.append(np.linalg.lstsq(columns, x[weight > 0] * root, rcond=None)[0])
    return np.array(solutions)


@pytest.mark.parametrize("binary", [True, False])
def test_wlra_is_alternating_weighted_least_squares(binary, noisy, rng):
    X, seen = noisy
    weights = seen.astype(float) if binary else seen * rng.random(X.shape)
    W, H = rng.normal(size=(40, 3)), rng.normal(size=(3, 30))
    fit = wlra(X, 3, weights=weights, init=(W, H), max_iter=4, tol=0)
    for _ in range(4):
        W = least_squares_rows(X, weights, H)
        H = least_squares_rows(X.T, weights.T, W.T).T
    np.testing.assert_allclose(fit.reconstruct(), W @ H, rtol=1e-9, atol=1e-9)
    assert fit.objective == pytest.approx(0.5 * np.sum(weights * (X - W @ H) ** 2))


def test_the_ridge_of_wlra_is_that_of_complete(noisy):
    X, seen = noisy
    ours = wlra(X, 3, observed=seen, alpha=2.0, max_iter=2000, tol=1e-15)
    other = nmd_lab.complete(X, 3, observed=seen, alpha=2.0, max_iter=3000, tol=1e-12)
    assert ours.objective == pytest.approx(other.objective, rel=1e-9)
    np.testing.assert_allclose(ours.reconstruct(), other.reconstruct(), atol=1e-5)


def test_lmafit_is_the_dense_algorithm(noisy, rng):
    """Without over-relaxation: fill the holes with WH, then move each factor once."""
    X, seen = noisy
    W, H = rng.normal(size=(40, 3)), rng.normal(size=(3, 30))
    fit = lmafit(X, 3, observed=seen, init=(W, H), max_iter=5, tol=0, increment=0)
    for _ in range(5):
        Z = np.where(seen, X, W @ H)
        W = Z @ np.linalg.pinv(H)
        H = np.linalg.pinv(W) @ Z
    np.testing.assert_allclose(fit.reconstruct(), W @ H, rtol=1e-9, atol=1e-9)


def test_over_relaxation_saves_iterations(noisy):
    X, seen = noisy
    plain, relaxed = (
        lmafit(X, 3, observed=seen, max_iter=5000, tol=1e-10, increment=growth).n_iter
        for growth in (0, 1)
    )
    assert relaxed < plain / 2


def test_rtrmc_has_the_gradient_and_the_hessian_of_its_cost(noisy, rng):
    X, seen = noisy
    search = SubspaceProblem(ObservedMatrices.of(observe_dense(X, observed=seen)), 0.1)
    U = np.linalg.qr(rng.normal(size=(30, 3)))[0]
    direction = rng.normal(size=U.shape)
    direction -= U @ (U.T @ direction)
    h = 1e-5
    ahead, behind = (polar(U + step * direction) for step in (h, -h))
    slope = (search.cost(ahead) - search.cost(behind)) / (2 * h)
    assert np.sum(search.gradient(U) * direction) == pytest.approx(slope, rel=1e-6)
    change = (search.gradient(ahead) - search.gradient(behind)) / (2 * h)
    change -= U @ (U.T @ change)
    tolerance = 1e-6 * np.abs(change).max()
    np.testing.assert_allclose(search.hessian(U, direction), change, atol=tolerance)


def polar(Y):
    """The nearest matrix with orthonormal columns."""
    U, _, Vt = np.linalg.svd(Y, full_matrices=False)
    return U @ Vt


# --- soft-impute and bounded factorisation


def test_soft_impute_meets_the_optimality_conditions_of_the_nuclear_norm(noisy):
    """The residual on the holes' complement is λ times a subgradient of the norm at M."""
    X, seen = noisy
    shrinkage = 8.0
    fit = soft_impute(X, 12, shrinkage=shrinkage, observed=seen, max_iter=5000, tol=1e-15)
    M = fit.reconstruct().values
    U, singular, Vt = np.linalg.svd(M)
    rank = int(np.sum(singular > 1e-6))
    assert 1 < rank < 12  # so the bound on the rank does not matter
    G = np.where(seen, X - M, 0) / shrinkage
    inner = U.T @ G @ Vt.T
    np.testing.assert_allclose(inner[:rank, :rank], np.eye(rank), atol=1e-5)
    np.testing.assert_allclose(inner[rank:, :rank], 0, atol=1e-5)
    np.testing.assert_allclose(inner[:rank, rank:], 0, atol=1e-5)
    assert np.linalg.norm(inner[rank:, rank:], 2) < 1
    value = 0.5 * np.sum((X - M)[seen] ** 2) + shrinkage * singular.sum()
    assert fit.objective == pytest.approx(value, rel=1e-6)


def test_soft_impute_without_holes_shrinks_the_singular_values(rng):
    X = rng.normal(size=(9, 7))
    U, singular, Vt = np.linalg.svd(X, full_matrices=False)
    expected = (U * np.maximum(singular - 2, 0)) @ Vt
    fit = soft_impute(X, 7, shrinkage=2, max_iter=5000, tol=1e-15)
    np.testing.assert_allclose(fit.reconstruct(), expected, atol=1e-5)


def test_soft_impute_with_no_shrinkage_is_plain_completion(exact):
    X, seen = exact
    fit = soft_impute(X, 3, shrinkage=0, observed=seen, max_iter=2000, tol=0,
                      callback=lambda at: at.relative_error < 1e-9)  # fmt: skip
    np.testing.assert_allclose(fit.reconstruct(), X, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bmf_stays_within_its_bounds(dtype, noisy):
    X, seen = noisy
    rounding = 100 * np.finfo(dtype).eps
    for bounds in ((-1.0, 2.0), (0.0, 0.5)):
        models = []
        fit = bmf(X.astype(dtype), 3, observed=seen, low=bounds[0], high=bounds[1], tol=0,
                  max_iter=30, random_state=0,
                  callback=lambda at, seen=models: seen.append(at.W @ at.H))  # fmt: skip
        assert len(models) == 30
        assert np.min(models) >= bounds[0] - rounding
        assert np.max(models) <= bounds[1] + rounding
        assert (fit.parameters["low"], fit.parameters["high"]) == bounds


def test_bmf_ends_where_no_entry_can_be_bettered_alone(rng):
    X = np.clip(rng.normal(size=(8, 2)) @ rng.normal(size=(2, 7)), -1, 1)
    seen = rng.random(X.shape) < 0.8
    fit = bmf(X, 2, observed=seen, max_iter=5000, tol=1e-14, random_state=0)
    low, high = X[seen].min(), X[seen].max()

    def objective(model):
        return 0.5 * np.sum((X - model)[seen] ** 2)

    for which in (0, 1):
        for place in np.ndindex(fit.factors[which].shape):
            for step in (-0.1, -1e-2, -1e-3, 1e-3, 1e-2, 0.1):
                factors = [factor.copy() for factor in fit.factors]
                factors[which][place] += step
                model = factors[0] @ factors[1]
                if low <= model.min() and model.max() <= high:
                    assert objective(model) >= fit.objective - 1e-9


def test_bmf_of_rank_one_with_wide_bounds_is_alternating_least_squares(noisy):
    X, seen = noisy
    pair = np.ones((40, 1)), np.linspace(-1, 1, 30)[None, :]
    free = bmf(X, 1, observed=seen, low=-1e6, high=1e6, init=pair, max_iter=3, tol=0)
    other = wlra(X, 1, observed=seen, init=pair, max_iter=3, tol=0)
    np.testing.assert_allclose(free.reconstruct(), other.reconstruct(), rtol=1e-9, atol=1e-12)


def test_bmf_with_wide_bounds_is_a_linear_fit(exact):
    X, seen = exact
    free = bmf(X, 3, observed=seen, low=-1e6, high=1e6, random_state=0,
               max_iter=3000, tol=0, callback=lambda at: at.relative_error < 1e-5)  # fmt: skip
    np.testing.assert_allclose(free.reconstruct(), X, atol=1e-2)


# --- the paper's table

MISSING = {0: 0.1025, 5: 0.1026, 10: 0.1026, 20: 0.1027, 50: 0.1037, 80: 0.1082}
"""LMaFit's test RMSE for each percentage of missing entries."""


@pytest.fixture(scope="module")
def faces(data_dir):
    """CBCL: 2429 faces of 361 pixels, divided by the largest value."""
    pytest.importorskip("pymanopt")  # RTRMC is among those that complete them
    X = np.ascontiguousarray(loadmat(data_dir / "cbcl" / "CBCL.mat")["X"].T, dtype=float)
    return X / X.max()


def split(faces, missing, seed):
    """The paper's protocol: of the kept entries 20 % are held out as the test set."""
    rng = np.random.default_rng(seed)
    known = rng.random(faces.shape) < 1 - missing / 100
    test = known & (rng.random(faces.shape) < 0.2)
    return known & ~test, test


def rmse(model, faces, test):
    return np.sqrt(np.mean((model - faces)[test] ** 2))


@pytest.mark.data
@pytest.mark.exhaustive
def test_the_linear_methods_tie_on_faces(faces):
    """At rank 5 WLRA is as good as the others; clipping is worth 1e-4 (the paper: 0.1024)."""
    errors = {method: [] for method in [*LINEAR, "clipped"]}
    for seed in range(3):
        train, test = split(faces, 0, seed)
        for method in LINEAR:
            fit = method(faces, 5, observed=train, max_iter=100, tol=1e-7)
            errors[method].append(rmse(fit.reconstruct().values, faces, test))
        clipped = lmafit(faces, 5, observed=train, max_iter=100, tol=1e-7, nonlinearity="minmax")
        errors["clipped"].append(rmse(clipped.reconstruct().values, faces, test))
    means = {method: np.mean(values) for method, values in errors.items()}
    for method in LINEAR:
        assert means[method] == pytest.approx(MISSING[0], abs=3e-4)
        assert means[method] == pytest.approx(means[lmafit], abs=1e-5)
    assert means[lmafit] - means["clipped"] == pytest.approx(1e-4, abs=5e-5)


@pytest.mark.data
@pytest.mark.exhaustive
@pytest.mark.parametrize("missing", MISSING)
def test_every_method_completes_faces(missing, faces):
    train, test = split(faces, missing, 1)
    for method, slack in ((lmafit, 1e-3), (wlra, 1e-3), (rtrmc, 1e-3), (soft_impute, 2e-3)):
        fit = method(faces, 5, observed=train, max_iter=30, tol=1e-6)
        assert rmse(fit.reconstruct().values, faces, test) == pytest.approx(
            MISSING[missing], abs=slack
        )
    fit = bmf(faces, 5, observed=train, low=0, high=1, max_iter=15, random_state=0)
    model = fit.reconstruct().values
    assert rmse(model, faces, test) == pytest.approx(MISSING[missing], abs=2e-3)
    assert -1e-12 <= model.min() <= model.max() <= 1 + 1e-12
