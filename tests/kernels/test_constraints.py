"""Constraints on the factors, against independent solvers of the same problems."""

import itertools

import numpy as np
import pytest
from helpers import NONNEGATIVE, some
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import best_rows, distance
from scipy import sparse
from scipy.linalg import polar
from scipy.optimize import minimize, nnls
from sklearn.decomposition import NMF

import nmd_lab as nmd
from nmd_lab.kernels.row_steps import ConstrainedColumns, solver_for


class Box(nmd.FactorConstraint):
    """Numbers from -0.5 to 1."""

    name = "box"

    def prox(self, rows, step):
        return np.clip(rows, -0.5, 1)


def parts(m=30, n=20, rank=3, noise=0.05, seed=0):
    """A nonnegative matrix of nonnegative parts, with noise."""
    rng = np.random.default_rng(seed)
    return np.abs(rng.random((m, rank)) @ rng.random((rank, n)) + noise * rng.normal(size=(m, n)))


def fulfils(constraint, rows, tol=1e-12):
    """Whether rows of W, or columns of H, are allowed."""
    name = constraint if isinstance(constraint, str) else getattr(constraint, "name", None)
    if name in ("nonnegative", "simplex") and not rows.min() >= 0:
        return False
    if name == "simplex":
        return bool(np.allclose(rows.sum(axis=1), 1, rtol=0, atol=tol))
    if name == "orthonormal":
        return bool(np.allclose(rows.T @ rows, np.eye(rows.shape[1]), rtol=0, atol=1e-6))
    return name != "box" or bool(rows.min() >= -0.5 and rows.max() <= 1)


# One factor step ----------------------------------------------------------------------------------


def row_problem(seed, rank=4, n=12, k=6):
    rng = np.random.default_rng(seed)
    H, Z = rng.normal(size=(rank, n)) + 0.5, rng.normal(size=(k, n))
    rows = np.abs(rng.normal(size=(k, rank)))
    return H, Z, rows, (Z - rows @ H) @ H.T


def solved(constraint, H, rows, gradient, rho=1.0, passes=300):
    """Rows after many steps of the solver, each from the rows before."""
    columns = ConstrainedColumns(constraint, slice(0, len(H)))
    solve = solver_for(columns, H @ H.T, np.zeros(len(H)), rho)
    start = rows
    for _ in range(passes):
        rows = solve(rows, gradient - (rows - start) @ H @ H.T)
    return rows


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_nonnegative_rows_are_those_of_nnls(seed):
    H, Z, rows, gradient = row_problem(seed)
    found = solved(nmd.NonNegative(), H, rows, gradient)
    np.testing.assert_allclose(found, [nnls(H.T, z)[0] for z in Z], atol=1e-7)
    assert found.min() >= 0


SUM = {"type": "eq", "fun": lambda w: w.sum() - 1}


@pytest.mark.parametrize(
    ("constraint", "rho", "bounds", "constraints"),
    [*((nmd.Simplex(), rho, (0, 1), SUM) for rho in (1.0, 3.0)), (Box(), 1.0, (-0.5, 1), ())],
)
def test_rows_are_those_of_a_quadratic_program(constraint, rho, bounds, constraints):
    H, Z, rows, gradient = row_problem(1)
    start = np.clip(rows, *bounds)
    found = solved(constraint, H, start, gradient + (rows - start) @ H @ H.T, rho)
    for row, z in zip(found, Z, strict=True):
        given = {"jac": True, "bounds": [bounds] * 4, "constraints": constraints, "method": "SLSQP"}
        given |= {"x0": np.full(4, 0.25), "options": {"ftol": 1e-14, "maxiter": 500}}
        best = minimize(lambda w, z=z: (np.sum((z - w @ H) ** 2) / 2, H @ (w @ H - z)), **given)
        np.testing.assert_allclose(row, best.x, atol=1e-5)


@pytest.mark.parametrize("rho", [0.5, 2.0])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_sparse_rows_meet_the_conditions_of_the_lasso(rho, nonnegative):
    weight, (H, Z, rows, gradient) = 3.0, row_problem(2)
    w = solved(nmd.SparseFactor(weight, nonnegative), H, rows, gradient, rho)
    slope = rho * (Z - w @ H) @ H.T  # of the loss, downhill
    zero = w == 0
    assert 0 < zero.sum() < zero.size
    np.testing.assert_allclose(slope[~zero], weight * np.sign(w[~zero]), atol=1e-6)
    assert np.all((slope if nonnegative else np.abs(slope))[zero] <= weight + 1e-6)


# Whole problems -----------------------------------------------------------------------------------


@pytest.mark.parametrize("refine", [True, False])
def test_frobenius_ends_at_or_below_scikit_learn(refine):
    X = parts(60, 40, 5, 0.1)
    theirs = NMF(5, init="nndsvda", tol=1e-10, max_iter=5000).fit(X).reconstruction_err_ ** 2 / 2
    options = {"tol": 0, "random_state": 0, "solver": nmd.ADMM(refine=refine)}
    fit = nmd.decompose(X, 5, "identity", **NONNEGATIVE, max_iter=1500, **options)
    W, H = fit._factors
    assert W.min() >= 0 <= H.min()
    assert 0.5 * np.sum((X - W @ H) ** 2) <= theirs * (1 + (1e-3 if refine else 0.01))
    assert np.isclose(float(fit.objective), 0.5 * np.sum((X - W @ H) ** 2))


def test_the_divergence_ends_at_or_below_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.poisson(3 * rng.random((50, 4)) @ rng.random((4, 30))).astype(float)
    options = {"init": "nndsvda", "solver": "mu", "beta_loss": "kullback-leibler"}
    theirs = NMF(4, **options, tol=0, max_iter=3000).fit(X).reconstruction_err_ ** 2 / 2
    fit = nmd.decompose(X, 4, "identity", "kl", **NONNEGATIVE, tol=0, max_iter=1000, random_state=0)
    assert np.isclose(float(fit.objective), distance("kl", X, np.matmul(*fit._factors)).sum())
    assert fit.objective <= theirs * (1 + 1e-6)
    assert fit.parameters["optimality"] < 1e-3


def test_orthonormal_components_of_least_squares_are_singular_vectors():
    X = np.random.default_rng(0).normal(size=(25, 12)) @ np.diag(np.arange(12, 0, -1.0))
    U, sizes, Vt = np.linalg.svd(X, full_matrices=False)
    for side, vectors in (("w_constraint", U[:, :3]), ("h_constraint", Vt[:3].T)):
        fit = nmd.decompose(X, 3, "identity", **{side: "orthonormal"}, tol=1e-9, max_iter=2000)
        assert np.isclose(float(fit.objective), 0.5 * np.sum(sizes[3:] ** 2), rtol=1e-6)
        basis = fit.W.values if side == "w_constraint" else fit.H.values.T
        np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-10)
        np.testing.assert_allclose(basis @ basis.T, vectors @ vectors.T, atol=1e-3)


def orthonormal_rows(Z, W, H, seen, steps):
    """Orthonormal W nearest to Z Hᵀ, with WH in the place of what is not seen; and that again."""
    for _ in range(steps):
        W = polar(np.where(seen, Z, W @ H) @ H.T)[0]
    return W


@pytest.mark.parametrize("split", ["everywhere", "observed"])
@pytest.mark.parametrize("side", ["w_constraint", "h_constraint"])
def test_steps_with_an_orthonormal_factor_are_those_of_dense_matrices(side, split, monkeypatch):
    monkeypatch.setattr("nmd_lab.kernels.sweep.MIN_SHARE_ENTRIES", 100)
    X, rng = parts(), np.random.default_rng(0)
    mask = rng.random(X.shape) < 0.7
    W, H = np.linalg.qr(rng.normal(size=(30, 3)))[0], np.linalg.qr(rng.normal(size=(20, 3)))[0].T
    options = {"init": (W, H), "max_iter": 4, "tol": 0, "alpha": 0, side: "orthonormal"}
    options["solver"] = nmd.ADMM(rho=1.0, epsilon=0, split=split)
    options["compute"] = nmd.Compute(threads=2)
    fit = nmd.decompose(X, 3, "identity", observed=mask, **options)
    everywhere = split == "everywhere"
    seen, steps = mask | everywhere, 1 if everywhere else 3
    A = W @ H if side == "w_constraint" else np.zeros_like(X)
    T, U = np.where(mask, X, A), np.zeros_like(X)
    for _ in range(4):
        Z = T + U
        if side == "w_constraint":
            W = orthonormal_rows(Z, W, H, seen, steps)
            H = best_rows(W.T, Z.T, seen.T, 0).T
        else:
            W = best_rows(H, Z, seen, 0)
            H = orthonormal_rows(Z.T, H.T, W.T, seen.T, steps).T
        V = W @ H - U
        T = np.where(mask, (X + V) / 2, V)
        U = T - V
    np.testing.assert_allclose(np.matmul(*fit._factors), W @ H, atol=1e-9)


def test_the_objective_has_the_penalties():
    X = parts()
    fit = nmd.decompose(X, 3, "identity", h_constraint=nmd.SparseFactor(0.3), alpha=0.2)
    W, H = fit._factors
    expected = 0.5 * np.sum((X - W @ H) ** 2) + 0.1 * (np.sum(W**2) + np.sum(H**2))
    assert np.isclose(float(fit.objective), expected + 0.3 * np.abs(H).sum())
    assert (H == 0).any()


def test_a_sparse_factor_cannot_escape_into_the_other():
    X = parts()
    fit = nmd.decompose(X, 3, "identity", w_constraint=nmd.SparseFactor(0.1))
    W, H = fit._factors
    assert fit.parameters["constraint_ridges"] == [0.0, 0.1]
    expected = 0.5 * np.sum((X - W @ H) ** 2) + 0.1 * np.abs(W).sum() + 0.05 * np.sum(H**2)
    assert np.isclose(float(fit.objective), expected)
    # at the minimum over the split of scale between W and H, the two terms balance
    assert np.isclose(0.1 * np.abs(W).sum(), 0.1 * np.sum(H**2), rtol=0.05)


CONSTRAINTS = ["nonnegative", "simplex", "orthonormal", "sparse", Box()]
PAIRS = [("identity", "frobenius"), ("relu", "l1"), ("identity", "kl"), ("square", "frobenius")]


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.OverfitWarning")
@pytest.mark.parametrize(("f", "loss"), PAIRS)
@pytest.mark.parametrize(
    "kind", ["dense", "masked", "observed", "weights", "sparse", "float32", "large"]
)
def test_every_constraint_holds_for_every_storage(f, loss, kind):
    X = parts(noise=0.02).astype(np.float32 if kind == "float32" else float)
    mask = np.random.default_rng(1).random(X.shape) < 0.7
    arguments = {
        "masked": {"observed": mask, "solver": nmd.ADMM(split="everywhere")},
        "observed": {"observed": mask, "solver": nmd.ADMM(split="observed")},
        "weights": {"weights": 0.5 + mask},
    }.get(kind, {})
    X = sparse.csr_array(X * mask) if kind == "sparse" else X
    X = X * 2.0**40 if kind == "large" else X
    for one in CONSTRAINTS:
        for side in ("w_constraint", "h_constraint"):
            how = {side: one, "max_iter": 15, "random_state": 0} | arguments
            fit = nmd.decompose(X, 3, f, loss, **how)
            rows = fit.W.values if side == "w_constraint" else fit.H.values.T
            assert fulfils(one, rows.astype(float), 1e-6 if kind == "float32" else 1e-12), one
            assert np.isfinite(fit.history.objective).all()
            assert rows.dtype == (np.float32 if kind == "float32" else np.float64)


PAIRS_OF_CONSTRAINTS = [*itertools.product(CONSTRAINTS[:4], repeat=2)]
PAIRS_OF_CONSTRAINTS.remove(("orthonormal", "orthonormal"))


@pytest.mark.parametrize(("left", "right"), PAIRS_OF_CONSTRAINTS)
def test_two_constraints_hold_together(left, right):
    fit = nmd.decompose(parts(), 3, "identity", w_constraint=left, h_constraint=right, max_iter=30)
    assert fulfils(left, fit.W.values)
    assert fulfils(right, fit.H.values.T)


@pytest.mark.parametrize("loss", ["frobenius", "kl"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_descent_is_monotone(loss, dtype):
    X = parts(50, 40, 4, 0.1).astype(dtype)
    fit = nmd.decompose(X, 4, "identity", loss, **NONNEGATIVE, tol=0, max_iter=200, random_state=1)
    objective = fit.history.objective.values
    assert np.all(np.diff(objective) <= 1e-12 * objective[0])
    assert objective[-1] < 0.9 * objective[0]


@pytest.mark.parametrize("loss", ["frobenius", "kl"])
def test_holes_are_not_fitted(loss):
    """A hole filled with nonsense changes nothing, and the parts are found without it."""
    X, rng = parts(noise=0), np.random.default_rng(0)
    mask = rng.random(X.shape) < 0.6
    wrong = np.where(mask, X, 1e3)
    options = {"observed": mask, "alpha": 0, "tol": 1e-8, "max_iter": 1500, "random_state": 0}
    fit = nmd.complete(wrong, 3, "identity", loss, **NONNEGATIVE, **options)
    other = nmd.complete(np.where(mask, X, 0), 3, "identity", loss, **NONNEGATIVE, **options)
    np.testing.assert_array_equal(fit.W.values, other.W.values)
    assert np.abs(fit.reconstruct().values - X)[~mask].mean() < 0.02


def test_a_descent_on_the_divergence_takes_weights_as_repetitions():
    rng = np.random.default_rng(0)
    X = rng.poisson(2 * rng.random((20, 3)) @ rng.random((3, 15))).astype(float)
    options = {"tol": 0, "max_iter": 15, **NONNEGATIVE}
    start = rng.random((20, 3)), rng.random((3, 15))
    weights = np.ones_like(X)
    weights[4] = 2
    weighted = nmd.decompose(X, 3, "identity", "kl", weights=weights, init=start, **options)
    repeated = np.vstack([start[0], start[0][4]]), start[1]
    twice = nmd.decompose(np.vstack([X, X[4]]), 3, "identity", "kl", init=repeated, **options)
    np.testing.assert_allclose(weighted.H, twice.H, rtol=1e-8)
    np.testing.assert_allclose(weighted.W, twice.W[:20], rtol=1e-8)


# Around a fit -------------------------------------------------------------------------------------


def test_given_factors_are_first_moved_to_the_nearest_that_are_allowed():
    X, rng = parts(), np.random.default_rng(0)
    W, H = rng.normal(size=(30, 3)), rng.normal(size=(3, 20))
    options = {"tol": 0, "max_iter": 5, "solver": nmd.ADMM(rho=1.0)}
    fit = nmd.decompose(X, 3, "identity", init=(W, H), **NONNEGATIVE, **options)
    allowed = np.maximum(W, 0), np.maximum(H, 0)
    same = nmd.decompose(X, 3, "identity", init=allowed, **NONNEGATIVE, **options)
    np.testing.assert_array_equal(fit.W, same.W)
    assert fit.W.min() >= 0


@pytest.mark.parametrize("constraint", ["nonnegative", "simplex", nmd.SparseFactor(0.1), Box()])
def test_new_rows_honour_the_constraint(constraint, read_back):
    X = parts()
    fit = nmd.decompose(X, 3, "identity", w_constraint=constraint, random_state=0)
    new = np.random.default_rng(5).random((4, 20))
    W, H = fit.fold_in(new).values, fit.H.values
    assert fulfils(constraint, W, 1e-9)
    if constraint == "nonnegative":
        np.testing.assert_allclose(W, [nnls(H.T, x)[0] for x in new], atol=1e-6)
    alone = fit.fold_in(new[2:3]).values[0]
    np.testing.assert_allclose(alone, W[2], rtol=1e-9, atol=1e-12)
    loaded = read_back(fit)
    assert loaded.parameters["w_constraint"] == fit.parameters["w_constraint"]
    if isinstance(constraint, Box):
        with pytest.raises(ValueError, match="class of your own"):
            loaded.fold_in(new)
    else:
        np.testing.assert_array_equal(loaded.fold_in(new), W)


@pytest.mark.parametrize(("constraint", "nearest"), [("simplex", 1 / 3), ("nonnegative", 0)])
@pytest.mark.parametrize("split", ["everywhere", "observed"])
def test_rows_and_columns_without_an_entry_keep_what_is_allowed_near_0(split, constraint, nearest):
    X = parts()
    X[3], X[:, 5] = np.nan, np.nan
    options = {"alpha": 0.1, "solver": nmd.ADMM(split=split), "max_iter": 20, "tol": 0}
    for side in NONNEGATIVE:
        with pytest.warns(nmd.warnings.UnobservedWarning):
            fit = nmd.complete(X, 3, "identity", **{side: constraint}, **options)
        found = fit.W.values[3] if side == "w_constraint" else fit.H.values[:, 5]
        np.testing.assert_allclose(found, nearest, rtol=1e-12)


CHOICES = [{"offsets": "both", "alpha": 0.01}, {"rank": "auto", "alpha": 0.01}, {"alpha": "auto"}]


@pytest.mark.parametrize("given", some(CHOICES, 2))
def test_what_is_chosen_is_chosen_under_the_constraints(given):
    X = parts(40, 30, 2)
    mask = np.random.default_rng(0).random(X.shape) < 0.7
    options = {"rank": 2, "nonlinearity": "identity", "random_state": 0} | given
    fit = nmd.complete(X, observed=mask, **NONNEGATIVE, **options)
    assert fit.W.min() >= 0 <= fit.H.min()
    error = np.sqrt(np.mean((fit.reconstruct().values - X)[~mask] ** 2))
    assert error < 0.1 < X.std()
