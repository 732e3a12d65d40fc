"""The baselines: known answers, the same input handling as `complete`, errors in a sentence."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import check_all_refused
from sklearn.decomposition import non_negative_factorization

import nmd_lab
from nmd_lab.baselines import mean_fill, nmf, soft_impute, truncated_svd

BASELINES = [mean_fill, truncated_svd, nmf, soft_impute]


@pytest.fixture
def noisy(rng):
    """A 40 x 30 matrix near rank 3, and which 60 % of it are seen."""
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30))
    return X + 0.3 * rng.normal(size=X.shape), rng.random(X.shape) < 0.6


def test_mean_fill_is_the_mean_of_the_observed_entries():
    X = np.array([[1.0, 2.0, np.nan], [6.0, 100.0, 3.0]])
    fit = mean_fill(X, observed=X != 100)
    np.testing.assert_allclose(fit.reconstruct(), np.full((2, 3), 3.0))
    assert fit.rank == 1
    # sum of (x - 3)² over 1, 2, 6, 3 is 14; of x² it is 50
    assert fit.relative_error == pytest.approx(np.sqrt(14 / 50))
    assert fit.objective == pytest.approx(7)
    weighted = mean_fill(np.array([[1.0, 5.0]]), weights=[[3.0, 1.0]])
    assert weighted.predict(0, 0) == pytest.approx(2)


def test_truncated_svd_reaches_the_bound_of_eckart_and_young(rng):
    X = rng.normal(size=(12, 9))
    singular = np.linalg.svd(X, compute_uv=False)
    for rank in (1, 4, 9):
        fit = truncated_svd(X, rank)
        error = np.linalg.norm(X - fit.reconstruct())
        assert error == pytest.approx(np.linalg.norm(singular[rank:]), abs=1e-12)
        assert fit.relative_error == pytest.approx(error / np.linalg.norm(X), abs=1e-12)
        assert fit.W.dims == ("row", "component")
        sizes = np.linalg.norm(fit.W, axis=0) * np.linalg.norm(fit.H, axis=1)
        np.testing.assert_allclose(sizes, singular[:rank])
        for row in fit.H.values:
            assert row[np.abs(row).argmax()] > 0
    seen = rng.random(X.shape) < 0.7
    of_means, of_holes = (
        truncated_svd(np.where(seen, X, hole), 2).reconstruct() for hole in (X[seen].mean(), np.nan)
    )
    xr.testing.assert_allclose(of_holes, of_means)


@pytest.mark.parametrize("loss", ["frobenius", "kl"])
def test_nmf_is_scikit_learns(rng, loss):
    X = rng.random((15, 10)) @ rng.random((10, 12))
    fit = nmf(X, 3, loss, random_state=0, max_iter=2000)
    name = {"frobenius": "frobenius", "kl": "kullback-leibler"}[loss]
    solver = "cd" if loss == "frobenius" else "mu"
    W, H, _ = non_negative_factorization(X, n_components=3, init="nndsvda", beta_loss=name,
                                         solver=solver, max_iter=2000, random_state=0)  # fmt: skip
    np.testing.assert_allclose(fit.reconstruct(), W @ H)
    assert float(fit.W.min()) >= 0
    assert float(fit.H.min()) >= 0
    error = nmd_lab.metrics.relative_error(X, fit.reconstruct(), loss=loss)
    assert fit.relative_error == pytest.approx(error)


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


def test_a_seed_repeats(noisy):
    X, seen = noisy
    fits = [soft_impute(X, 3, observed=seen, init="random", max_iter=4, random_state=seed)
            for seed in (5, 5, 6)]  # fmt: skip
    np.testing.assert_array_equal(fits[0].W, fits[1].W)
    np.testing.assert_array_equal(fits[0].H, fits[1].H)
    assert not np.array_equal(fits[0].H, fits[2].H)


def test_a_nonlinearity_is_put_on_the_finished_prediction(noisy):
    X, seen = noisy
    linear, clipped = (
        soft_impute(X, 3, observed=seen, nonlinearity=f, max_iter=6, tol=0)
        for f in ("identity", nmd_lab.MinMax(-1, 1))
    )
    np.testing.assert_array_equal(clipped.history.iteration, linear.history.iteration)
    if clipped.parameters["iteration"] == linear.parameters["iteration"]:
        np.testing.assert_array_equal(clipped.W, linear.W)
    model = clipped.reconstruct().values
    assert (model.min(), model.max()) == (-1, 1)
    error = np.linalg.norm((X - model)[seen]) / np.linalg.norm(X[seen])
    assert clipped.relative_error == pytest.approx(error)


@pytest.mark.parametrize("baseline", BASELINES)
def test_labels_precision_and_input_are_kept(baseline, rng):
    frame = pd.DataFrame(rng.random((4, 3)), index=pd.Index(list("abcd"), name="film"),
                         columns=pd.Index([1, 2, 5], name="user"), dtype=np.float32)  # fmt: skip
    before = frame.copy()
    fit = baseline(frame, 2, random_state=0)
    assert fit.reconstruct().dims == ("film", "user")
    assert fit.reconstruct().sel(film="c", user=5).size == 1
    assert fit.W.dtype == fit.H.dtype == np.float32
    pd.testing.assert_frame_equal(frame, before)
    image = xr.DataArray(rng.random((4, 3)), dims=("y", "x"), name="brightness")
    assert baseline(image, 2).reconstruct().name == "brightness"


def test_what_a_baseline_cannot_do_is_refused():
    of = lambda baseline: lambda given: baseline(**{"X": np.ones((3, 3)), "rank": 1} | given)  # noqa: E731
    shape, seen = np.arange(1.0, 13).reshape(4, 3), np.arange(9).reshape(3, 3) > 0
    sizes = [{"X": shape * size} for size in (1e-170, 1e150, 1e300)]  # errors vanish or overflow
    check_all_refused([
        *(("rank=4 exceeds", of(baseline), {"rank": 4}) for baseline in BASELINES),
        *(("X has a largest magnitude of", of(baseline), *sizes) for baseline in BASELINES),
        ("shrinkage='much' is not a number: give one >= 0", of(soft_impute), {"shrinkage": "much"}),
        ("shrinkage=nan is out of range", of(soft_impute), {"shrinkage": np.nan}),
        (r"1 missing entries.*nmd\.complete", of(nmf), {"observed": seen}),
        ("negative value -1", of(nmf), {"X": -np.ones((3, 3))}),
        ("loss='l1' is unknown: choose one of", of(nmf), {"loss": "l1"}),
        ("init='auto' is unknown.*'svd', 'random'", of(soft_impute), {"init": "auto"}),
        (r"init has W of shape \(5, 2\)", of(soft_impute),
         {"init": (np.ones((5, 2)), np.ones((2, 3)))}),
    ])  # fmt: skip


def at_second(state):
    product = state.W[0] @ state.H[:, 1]
    return state.iteration == 2 and state.predict(0, 1) == pytest.approx(product)


@pytest.mark.parametrize(
    ("options", "reason", "n_iter"),
    [
        ({"max_iter": 3, "tol": 0}, "max_iter: 3 iterations done", 3),
        ({"tol": 0.99}, "converged: the objective changed by no more than tol=0.99 of itself", 2),
        ({"callback": at_second}, "callback: stopped after 2 iterations", 2),
        ({"time_limit": 0}, "time_limit: 0 s passed", 1),
    ],
)
def test_soft_impute_ends(options, reason, n_iter, noisy):
    X, seen = noisy
    fit = soft_impute(X, 3, observed=seen, **options)
    assert (fit.stop_reason, fit._n_iter) == (reason, n_iter)
    assert fit.stop_reason.code == reason.split(":")[0]
    assert fit.objective == fit.history.objective.min()
    assert np.all(np.diff(fit.history.seconds) >= 0)


def test_a_prediction_that_overflows_is_refused(noisy):
    X = np.abs(noisy[0]) * 1e110
    with pytest.raises(FloatingPointError, match="iteration 1 overflowed: scale X down"):
        soft_impute(X, 3, nonlinearity="square")
