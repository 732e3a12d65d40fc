"""The baselines: known answers, the same input handling as `complete`, errors in a sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.decomposition import non_negative_factorization

import nmd_lab
from nmd_lab.baselines import mean_fill, nmf, truncated_svd

BASELINES = [mean_fill, truncated_svd, nmf]


def test_mean_fill_is_the_mean_of_the_observed_entries():
    X = np.array([[1.0, 2.0, np.nan], [6.0, 100.0, 3.0]])
    fit = mean_fill(X, mask=X != 100)
    np.testing.assert_allclose(fit.reconstruct(), np.full((2, 3), 3.0))
    assert fit.rank == 1
    # sum of (x - 3)² over 1, 2, 6, 3 is 14; of x² it is 50
    assert fit.relative_error == pytest.approx(np.sqrt(14 / 50))
    assert fit.objective == pytest.approx(7)


def test_mean_fill_takes_weights():
    fit = mean_fill(np.array([[1.0, 5.0]]), weights=[[3.0, 1.0]])
    assert fit.predict(0, 0) == pytest.approx(2)


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


def test_truncated_svd_fills_holes_with_the_mean(rng):
    X = rng.normal(size=(8, 6))
    seen = rng.random(X.shape) < 0.7
    filled = np.where(seen, X, X[seen].mean())
    holes = np.where(seen, X, np.nan)
    expected = truncated_svd(filled, 2).reconstruct()
    xr.testing.assert_allclose(truncated_svd(holes, 2).reconstruct(), expected)
    hidden = np.where(seen, X, 1e6)
    xr.testing.assert_identical(truncated_svd(hidden, 2, mask=seen).W, truncated_svd(holes, 2).W)


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


@pytest.mark.parametrize("baseline", BASELINES)
def test_labels_survive(baseline, rng):
    frame = pd.DataFrame(rng.random((4, 3)), index=pd.Index(list("abcd"), name="film"),
                         columns=pd.Index([1, 2, 5], name="user"))  # fmt: skip
    model = baseline(frame, 2, random_state=0).reconstruct()
    assert model.dims == ("film", "user")
    assert model.sel(film="c", user=5).size == 1
    image = xr.DataArray(rng.random((4, 3)), dims=("y", "x"), name="brightness")
    assert baseline(image, 2).reconstruct().name == "brightness"


@pytest.mark.parametrize("baseline", BASELINES)
def test_precision_and_input_are_kept(baseline, rng):
    X = rng.random((6, 5)).astype(np.float32)
    before = X.copy()
    fit = baseline(X, 2, random_state=0)
    assert fit.W.dtype == fit.H.dtype == np.float32
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_baseline_is_saved_like_any_fit(baseline, rng, tmp_path):
    fit = baseline(rng.random((6, 5)), 2, random_state=0)
    fit.save(tmp_path / "fit.nc")
    again = nmd_lab.load(tmp_path / "fit.nc")
    xr.testing.assert_identical(again.reconstruct(), fit.reconstruct())
    assert again.parameters["method"] == baseline.__name__
    assert again.relative_error == fit.relative_error


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_rank_that_cannot_be(baseline):
    with pytest.raises(ValueError, match="rank=4 exceeds"):
        baseline(np.ones((5, 3)), 4)


def test_nmf_says_what_it_cannot_do():
    X = np.ones((3, 3))
    with pytest.raises(ValueError, match=r"1 missing entries.*nmd\.complete"):
        nmf(X, 1, mask=np.arange(9).reshape(3, 3) > 0)
    with pytest.raises(ValueError, match="negative value -1"):
        nmf(-X, 1)
    with pytest.raises(ValueError, match="loss='l1' is not one of NMF's"):
        nmf(X, 1, "l1")
