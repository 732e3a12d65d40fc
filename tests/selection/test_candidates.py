"""Which nonlinearities and losses suit data, and how losses are compared."""

import numpy as np
import pytest
import xarray as xr
from scipy import sparse
from some import some

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.request.options import suitable_functions, suitable_losses

IDENTITY, RELU = nmd.Identity(), nmd.ReLU()
GAUSS = np.random.default_rng(0).normal(size=(30, 20))
LEVELS = np.random.default_rng(1).integers(1, 6, size=(30, 20)) * 1.0


def one_zero(X):
    X = np.abs(X) + 0.1
    X[0, 0] = 0
    return X


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (GAUSS, [IDENTITY]),
        (np.abs(GAUSS), [IDENTITY]),
        (np.maximum(GAUSS, 0), [IDENTITY, RELU]),
        (np.maximum(GAUSS, 0) - 1, [IDENTITY]),
        (one_zero(GAUSS), [IDENTITY]),
        (np.clip(GAUSS, 0, 1), [IDENTITY, RELU, nmd.MinMax(0, 1)]),
        (np.clip(GAUSS, -1, 2), [IDENTITY, nmd.MinMax(-1, 2)]),
        (LEVELS, [IDENTITY, nmd.MinMax(1, 5)]),
        (np.full((4, 3), 2.0), [IDENTITY]),
        (np.zeros((4, 3)), [IDENTITY]),
        (xr.DataArray(GAUSS, attrs={"valid_range": [-9, 9]}), [IDENTITY, nmd.MinMax(-9, 9)]),
        (sparse.csr_array(LEVELS * (LEVELS > 2)), [IDENTITY, nmd.MinMax(3, 5)]),
    ],
)
def test_nonlinearities(X, expected):
    assert suitable_functions(observe(X)) == expected


def test_values_count_by_their_weight():
    X = one_zero(GAUSS)
    weights = np.ones(X.shape)
    weights[0, 0] = 10
    assert RELU not in suitable_functions(observe(X))
    assert RELU in suitable_functions(observe(X, weights=weights))


@pytest.mark.parametrize(
    ("X", "counts"),
    [(GAUSS, False), (LEVELS, True), (LEVELS - 3, False), (LEVELS / 2, False),
     (LEVELS.astype(np.float32), True), (np.zeros((3, 3)), True)],
)  # fmt: skip
def test_losses(X, counts):
    expected = [nmd.Frobenius(), nmd.L1(), nmd.KL()] if counts else [nmd.Frobenius(), nmd.L1()]
    assert suitable_losses(observe(X)) == expected


@pytest.mark.parametrize(
    ("noise", "expected"),
    some([("poisson", "kl"), ("gauss", "frobenius"), ("laplace", "l1")], 1),
)
def test_the_noise_is_found(noise, expected):
    rng = np.random.default_rng(3)
    clean = 4 * rng.gamma(1, size=(60, 2)) @ rng.gamma(1, size=(2, 40)) + 0.5
    X = {
        "gauss": lambda: clean + rng.normal(size=clean.shape),
        "laplace": lambda: clean + rng.laplace(size=clean.shape),
        "poisson": lambda: rng.poisson(clean).astype(float),
    }[noise]()
    X[rng.random(X.shape) < 0.1] = np.nan
    fit = nmd.complete(X, 2, "identity", "auto", offsets="none", random_state=0)
    assert fit.loss.name == expected
    assert "loss" in fit.selection.attrs["options"]
