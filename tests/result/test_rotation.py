"""Canonical forms of the components, and what each explains."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.optimize import minimize_scalar

import nmd_lab
from nmd_lab.result.loadings import orthogonal_rotation

FORMS = ["size", "svd", "varimax", "quartimax"]


@pytest.fixture(params=["identity", "relu", "square", "modulus", "minmax"])
def fit(request, small):
    X = pd.DataFrame(small / small.max(), [f"r{i}" for i in range(20)], [*"abcdefghijklmno"])
    options = {"alpha": 0, "max_iter": 20, "tol": 0, "random_state": 3}
    return nmd_lab.complete(X, 4, request.param, offsets="both", **options)


def products(fit):
    W, H = fit._factors
    return W @ H


def explained(fit):
    return fit.top_of_components(1).explained


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_same_product(fit, form):
    before = fit.W.copy(deep=True), fit.H.copy(deep=True)
    other = fit.rotate(form)
    size = np.abs(products(fit)).max()
    np.testing.assert_allclose(products(other), products(fit), atol=1e-12 * size)
    np.testing.assert_allclose(other.reconstruct(), fit.reconstruct(), atol=1e-11 * size**2)
    xr.testing.assert_identical(fit.W, before[0])
    xr.testing.assert_identical(fit.H, before[1])
    assert other.W.coords.to_dataset().identical(fit.W.coords.to_dataset())
    assert other.objective == fit.objective
    assert other.history.identical(fit.history)
    assert other.offsets is fit.offsets
    single = replace(fit, W=fit.W.astype("f4"), H=fit.H.astype("f4"))
    assert single.rotate(form).W.dtype == np.float32


@pytest.mark.parametrize("form", FORMS)
def test_equal_components_in_any_order_and_sign_have_one_form(fit, form):
    W, H = fit._factors
    order, signs = [2, 0, 3, 1], np.array([1, -1, -1, 1])
    mixed = fit.W[:, order] * signs, fit.H[order] * signs[:, None]
    other = nmd_lab.Decomposition(**{**vars(fit), "W": mixed[0], "H": mixed[1]})
    one, two = fit.rotate(form), other.rotate(form)
    size = np.abs(W).max() * np.abs(H).max()
    np.testing.assert_allclose(one.W, two.W, atol=1e-6 * size)
    np.testing.assert_allclose(one.H, two.H, atol=1e-6 * size)
    twice = one.rotate(form)
    np.testing.assert_allclose(twice.W, one.W, atol=1e-6 * size)
    W, H = one._factors  # the largest comes first, and its largest number is positive
    sizes = np.linalg.norm(W, axis=0) * np.linalg.norm(H, axis=1)
    assert np.all(np.diff(sizes) <= 1e-12 * sizes[0])
    assert np.all(H[np.arange(4), np.abs(H).argmax(axis=1)] >= 0)


def test_svd_is_that_of_the_product(fit):
    W, H = fit.rotate("svd")._factors
    U, sizes, Vt = np.linalg.svd(products(fit), full_matrices=False)
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), sizes[:4], rtol=1e-9)
    np.testing.assert_allclose(H @ H.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(np.abs(H), np.abs(Vt[:4]), atol=1e-7)
    np.testing.assert_allclose(np.abs(W), np.abs(U[:, :4] * sizes[:4]), atol=1e-7 * sizes[0])


@pytest.mark.parametrize(("form", "weight"), [("varimax", 1.0), ("quartimax", 0.0)])
def test_orthogonal_rotations_reach_the_best_angle(form, weight, rng):
    L = rng.normal(size=(30, 2)) ** 3

    def criterion(loadings):
        squares = loadings**2
        return np.sum(squares**2) - weight / 30 * np.sum(squares.sum(axis=0) ** 2)

    def turned(angle):
        c, s = np.cos(angle), np.sin(angle)
        return -criterion(L @ np.array([[c, -s], [s, c]]))

    starts = np.linspace(0, np.pi / 2, 7)
    best = min(minimize_scalar(turned, bounds=(a, b), method="bounded").fun
               for a, b in pairwise(starts))  # fmt: skip
    R = orthogonal_rotation(L, weight)
    np.testing.assert_allclose(R @ R.T, np.eye(2), atol=1e-12)
    assert criterion(L @ R) == pytest.approx(-best, rel=1e-6)
    fit = nmd_lab.decompose(rng.normal(size=(20, 15)), 3, "identity", max_iter=50)
    _, H = fit.rotate(form)._factors
    np.testing.assert_allclose(H @ H.T, np.eye(3), atol=1e-12)


def test_explained_shares(fit):
    terms = [np.outer(w, h) for w, h in zip(fit._factors[0].T, fit._factors[1], strict=True)]
    whole = products(fit)
    expected = [np.sum(term * whole) / np.sum(whole**2) for term in terms]
    np.testing.assert_allclose(explained(fit), expected, atol=1e-9)
    for form in FORMS:
        assert float(explained(fit.rotate(form)).sum()) == pytest.approx(1)
    sizes = np.linalg.svd(whole, compute_uv=False)[:4] ** 2
    np.testing.assert_allclose(explained(fit.rotate("svd")), sizes / sizes.sum(), atol=1e-12)
    assert explained(fit).dims == ("component",)
    before = explained(fit)
    for factor in (fit.W, fit.H):
        factor.values[:] *= 1e-120  # the square of WH is too small for a number
    np.testing.assert_allclose(explained(fit), before, atol=1e-9)
    fit.W.values[:] = 0
    np.testing.assert_array_equal(explained(fit), 0)
    assert np.isfinite(fit.rotate("varimax").H).all()


def test_a_ridge_counts_the_new_factors(small):
    fit = nmd_lab.decompose(small, 3, alpha=0.5, max_iter=30, tol=0)
    assert fit.rotate("size").objective == fit.objective
    other = fit.rotate("svd")
    W, H = other._factors
    data = fit.objective - 0.25 * sum(np.sum(f**2) for f in fit._factors)
    assert other.objective == pytest.approx(data + 0.25 * (np.sum(W**2) + np.sum(H**2)))
    assert "optimality" not in other.parameters
