"""Fits with a loss and a nonlinearity for each column, or for each entry."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.solver.columns import mixed_model

LOSSES = {"smoker": "logistic", "visits": "kl", "income": "l1"}
FUNCTIONS = {"visits": "exp"}
ALL = np.arange(5)


def table(m=40, seed=0, holes=0.2):
    """Return numbers of two kinds, 0/1 and counts, that two components explain, with holes."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, 2)) @ rng.normal(size=(2, 5))
    X = pd.DataFrame(
        {
            "height": 170 + 10 * Z[:, 0] + rng.normal(size=m),
            "weight": 70 + 8 * Z[:, 1] + rng.normal(size=m),
            "smoker": (rng.random(m) < 1 / (1 + np.exp(-2 * Z[:, 2]))).astype(float),
            "visits": rng.poisson(np.exp(0.5 + 0.5 * np.clip(Z[:, 3], -3, 3))).astype(float),
            "income": 3000 + 900 * Z[:, 4],
        }
    )
    return X.mask(rng.random(X.shape) < holes)


def pair_of(X, loss=LOSSES, nonlinearity=FUNCTIONS):
    return mixed_model(nonlinearity, loss, observe(X))


def test_kinds_of_columns():
    X = table()
    pair = pair_of(X)
    kinds = [(kind.nonlinearity.name, kind.loss.name) for kind in pair.kinds]
    assert kinds == [
        ("identity", "frobenius"),
        ("identity", "frobenius"),
        ("identity", "logistic"),
        ("exp", "kl"),
        ("identity", "l1"),
    ]


def test_zero_stands_for_the_best_constant():
    X = table()
    constants = pair_of(X).expected(np.zeros(5), columns=ALL)
    X = X.to_numpy()
    for j in (0, 1, 2, 3):  # the mean is best for squares, probabilities and counts
        assert constants[j] == pytest.approx(np.nanmean(X[:, j]), rel=1e-5)
    assert np.nansum(np.abs(X[:, 4] - constants[4])) == pytest.approx(
        np.nansum(np.abs(X[:, 4] - np.nanmedian(X[:, 4]))), rel=1e-5
    )


def test_the_units_of_a_column_change_nothing():
    X = table()
    other = X.assign(height=X["height"] / 100, income=X["income"] * 1000 + 5)
    options = {"loss": LOSSES, "nonlinearity": FUNCTIONS, "alpha": 0.5, "random_state": 0}
    fit, same = nmd.complete(X, 2, **options), nmd.complete(other, 2, **options)
    found, expected = same.reconstruct().to_pandas(), fit.reconstruct().to_pandas()
    expected = expected.assign(height=expected.height / 100, income=expected.income * 1000 + 5)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize("loss", [LOSSES, {"smoker": "logistic"}])
@pytest.mark.exhaustive
def test_the_objective_is_as_low_as_that_of_lbfgs(loss):
    X = table().drop(columns=["income"])  # its loss has kinks
    loss = {name: each for name, each in loss.items() if name in X}
    functions = {name: f for name, f in FUNCTIONS.items() if name in loss}
    rank, alpha = 2, 0.3
    observations = observe(X)
    pair, (rows, columns, x) = pair_of(X, loss, functions), observations.entries()
    m, n = observations.shape

    def objective(z):
        W, H = z[: m * rank].reshape(m, rank), z[m * rank :].reshape(rank, n)
        t = np.einsum("ik,ki->i", W[rows], H[:, columns])
        return np.sum(pair.losses(x, t, rows, columns)) + alpha / 2 * (z @ z)

    def gradient(z):
        W, H = z[: m * rank].reshape(m, rank), z[m * rank :].reshape(rank, n)
        t = np.einsum("ik,ki->i", W[rows], H[:, columns])
        h = 1e-5
        up, down = (pair.losses(x, t + step, rows, columns) for step in (h, -h))
        slopes = np.zeros((m, n))
        slopes[rows, columns] = (up - down) / (2 * h)
        return np.concatenate([(slopes @ H.T + alpha * W).ravel(), (W.T @ slopes).ravel()
                               + alpha * H.ravel()])  # fmt: skip

    rng = np.random.default_rng(0)
    starts = [rng.normal(size=(m + n) * rank) for _ in range(4)]
    best = min(minimize(objective, z, jac=gradient, method="L-BFGS-B").fun for z in starts)
    fit = nmd.complete(X, rank, loss=loss, nonlinearity=functions, alpha=alpha, offsets="none",
                       tol=1e-8, max_iter=3000, random_state=0)  # fmt: skip
    reached = objective(np.concatenate([fit.W.values.ravel(), fit.H.values.ravel()]))
    assert fit.objective == pytest.approx(reached, rel=1e-8)
    assert reached <= best * (1 + 1e-4)


def test_the_objective_never_rises_in_a_plain_fit():
    fit = nmd.complete(table(), 2, loss=LOSSES, nonlinearity=FUNCTIONS, alpha=0.5, random_state=0)
    best = np.minimum.accumulate(fit.history.objective.values)
    assert fit.objective == pytest.approx(best[-1], rel=1e-12)


def test_dense_and_sparse_input_give_the_same_fit():
    X = table().to_numpy()
    which = np.array([0, 0, 1, 2, 3])
    losses = ["frobenius", "logistic", "kl", "l1"]
    rows, columns = np.nonzero(~np.isnan(X))
    stored = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
    options = {"loss": (losses, which), "alpha": 0.5, "random_state": 0, "max_iter": 50}
    dense, few = nmd.complete(X, 2, **options), nmd.complete(stored, 2, **options)
    np.testing.assert_allclose(few.reconstruct(), dense.reconstruct(), rtol=1e-6, atol=1e-8)


def test_positions_of_entries_are_positions_of_columns():
    X = table().to_numpy()
    which = np.array([0, 0, 1, 0, 0])
    options = {"alpha": 0.5, "random_state": 0, "max_iter": 30}
    fit = nmd.complete(X, 2, loss=(["frobenius", "logistic"], np.tile(which, (40, 1))), **options)
    probability = fit.reconstruct().values[:, 2]
    assert np.all((probability > 0) & (probability < 1))
    with pytest.raises(ValueError, match="a loss for each entry"):
        fit.probabilities(2)


def test_new_rows_are_those_of_the_fit():
    X = table()
    fit = nmd.complete(X, 2, loss={"smoker": "logistic"}, alpha=0.5, offsets="none", tol=1e-8,
                       max_iter=3000, random_state=0)  # fmt: skip
    W = fit.fold_in(X.iloc[:6])
    np.testing.assert_allclose(W, fit.W[:6], atol=2e-2)


def test_new_rows_under_a_constraint_are_the_best_allowed():
    X = table(holes=0.1)
    fit = nmd.complete(X, 2, loss={"smoker": "logistic"}, alpha=0.5, offsets="none",
                       w_constraint="nonnegative", max_iter=60, random_state=0)  # fmt: skip
    H, W = fit.H.values, fit.fold_in(X.iloc[:3]).values
    for w, x in zip(W, X.iloc[:3].to_numpy(), strict=True):
        seen = ~np.isnan(x)

        def objective(w, x=x, seen=seen):
            losses = fit.kinds.losses(np.where(seen, x, 0.0), w @ H, 0, ALL)
            return losses[seen].sum() + 0.25 * w @ w

        starts = [0.1, 0.1], [1.0, 0.0], [0.0, 1.0], w
        best = min(minimize(objective, each, bounds=[(0, None)] * 2).fun for each in starts)
        assert w.min() >= 0
        assert objective(w) <= best * (1 + 1e-5) + 1e-9


def test_a_fit_is_read_back(tmp_path):
    X = table()
    fit = nmd.complete(X, 2, loss=LOSSES, nonlinearity=FUNCTIONS, alpha=0.5, random_state=0)
    fit.save(tmp_path / "fit.nc")
    read = nmd.load(tmp_path / "fit.nc")
    assert read.loss == fit.loss
    assert (read.kinds, read.nonlinearity) == (fit.kinds, fit.nonlinearity)
    np.testing.assert_array_equal(read.reconstruct(), fit.reconstruct())


def test_what_a_fit_shows_can_be_given_to_another():
    X = table()
    options = {"alpha": 0.5, "random_state": 0, "max_iter": 20}
    fit = nmd.complete(X, 2, loss=LOSSES, nonlinearity=FUNCTIONS, **options)
    assert [loss.name for loss in fit.loss] == ["frobenius"] * 2 + ["logistic", "kl", "l1"]
    again = nmd.complete(X, 2, fit.nonlinearity, fit.loss, **options)
    np.testing.assert_array_equal(again.reconstruct(), fit.reconstruct())


@pytest.mark.exhaustive
def test_settings_are_chosen():
    fit = nmd.complete(table(40), loss=LOSSES, nonlinearity=FUNCTIONS, random_state=0)
    assert 1 <= fit.rank <= 4
    assert fit.selection.sizes["trial"] > 3


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"loss": {"sex": "logistic"}}, ValueError, "loss has the column 'sex'"),
        ({"loss": {"height": "logistic"}}, ValueError, "In column 'height', X holds the value"),
        ({"loss": {"income": "kl"}}, ValueError, "In column 'income'"),
        ({"loss": ["frobenius"] * 3}, ValueError, "loss has 3 parts: give one for each of the 5"),
        ({"loss": (["l1"], np.array([0, 0, 0, 1, 0]))}, ValueError, "position 1 in a list of 1"),
        ({"loss": (["l1"], np.zeros(3, int))}, ValueError, "shape"),
        ({"nonlinearity": {"height": "tan"}}, ValueError, "tan"),
    ],
)
def test_what_makes_no_sense_is_refused(options, error, said):
    X = table().assign(income=-1.0)
    with pytest.raises(error, match=said):
        nmd.complete(X, 2, alpha=0.5, **options)
