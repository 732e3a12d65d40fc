"""The size of X does not matter: multiples of X have the same relative history."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from helpers import PLAIN, check_all_refused, prepare, some
from oracles import PAIRS, distance, forward
from scipy import sparse

import nmd_lab
from nmd_lab.datasets import synthetic
from nmd_lab.model.losses import Loss

STORAGES = ("dense", "missing", "zeros", "observed")
THREE = [("relu", "frobenius"), ("minmax", "l1"), ("square", "kl")]


def noisy():
    return np.abs(synthetic(24, 16, 3, noise=0.2, random_state=0).X.values)


def fit_of(scale, f, loss, storage="dense", dtype=float, **options):
    """Fit noisy data times `scale`; a bound of MinMax is multiplied too."""
    X = (noisy() * scale).astype(dtype)
    seen = np.random.default_rng(1).random(X.shape) < (0.8 if storage == "missing" else 0.3)
    nonlinearity = nmd_lab.MinMax(0, 1.5 * scale) if f == "minmax" else f
    verb = nmd_lab.complete if storage in ("missing", "observed") else nmd_lab.decompose
    data = X if storage == "dense" else np.where(seen, X, np.nan if storage == "missing" else 0)
    data = sparse.csr_array(data) if storage in ("zeros", "observed") else data
    options = {"alpha": 0, "max_iter": 15, "random_state": 0} | options
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy's warnings, too
        # So few entries and iterations
        warnings.simplefilter("ignore", nmd_lab.warnings.NMDWarning)
        return verb(data, 2, nonlinearity, loss, **options)


def assert_same(fit, one, rtol):
    """The history of both is the same, relative to its beginning."""
    assert fit._n_iter == one._n_iter
    errors = (each.history["relative_error"] for each in (fit, one))
    np.testing.assert_allclose(*errors, rtol=rtol)
    objectives = (each.history["objective"].values for each in (fit, one))
    found, expected = (objective / objective[0] for objective in objectives)
    np.testing.assert_allclose(found, expected, rtol=rtol)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_multiples_of_the_data_have_the_same_history(f, loss, storage):
    one = fit_of(1, f, loss, storage)
    for scale in (1e-100, 7e8):
        assert_same(fit_of(scale, f, loss, storage), one, rtol=1e-6)


RNG = np.random.default_rng(2)
W, H = RNG.random((24, 2)), RNG.random((2, 16))
OFFSETS = {"storage": "missing", "offsets": "both", "offset_alpha": 4.0}


@pytest.mark.parametrize(
    ("f", "loss", "scale", "options"),
    [
        *(("identity", loss, -3e100, lambda by: {}) for loss in ("frobenius", "l1")),
        ("relu", "frobenius", 4.0**40, lambda by: {"alpha": 0.3 * by}),
        ("relu", "l1", 4.0**40, lambda by: {"alpha": 0.3, "solver": nmd_lab.ADMM(rho=2.0 / by)}),
        ("identity", "l1", 4.0**40, lambda by: OFFSETS | {"alpha": 0.7, "offset_alpha": 4.0 / by}),
        ("identity", "frobenius", 1e-3, lambda by: OFFSETS | {"alpha": 0.7 * by}),
        ("relu", "frobenius", 4.0**40, lambda by: {"init": (by**0.5 * W, by**0.5 * H)}),
        ("relu", "frobenius", 1e-100, lambda by: {"storage": "missing", "validation": 0.2}),
        ("minmax", "frobenius", 4.0**40, lambda by: {"solver": nmd_lab.ADMM(homotopy=True)}),
        ("minmax", "frobenius", 4.0**40, lambda by: {"n_init": 3}),
        *(("relu", loss, 4.0**48, lambda by: {"dtype": np.float32}) for loss in ("l1", "kl")),
    ],
)
def test_so_do_signs_ridges_starts_held_out_entries_and_single_precision(f, loss, scale, options):
    one, other = (fit_of(by, f, loss, **options(by)) for by in (1, scale))
    rtol = 1e-6 if one.W.dtype == np.float64 else 1e-4
    assert_same(other, one, rtol)
    if "validation_rmse" in one.history:
        errors = (fit.history["validation_rmse"].values for fit in (other, one))
        np.testing.assert_allclose(next(errors), scale * next(errors), rtol=rtol)
    if "init" in options(1):
        again = [fit_of(by, f, loss, init=fit) for by, fit in ((1, one), (scale, other))]
        assert_same(again[1], again[0], rtol)
        assert again[0].objective <= one.objective * (1 + 1e-9)


# Everything that is reported is in the units of X -------------------------------------------------


@pytest.mark.parametrize("scale", [1e-90, 1e70])
@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_results_are_in_the_units_of_the_data(f, loss, scale):
    states = []
    fit = fit_of(scale, f, loss, "missing", callback=states.append, offsets="both", alpha=0.0)
    X = noisy() * scale
    seen = np.random.default_rng(1).random(X.shape) < 0.8
    state = next(s for s in states if s.iteration == fit.parameters["iteration"])
    low_rank = state.W_aug @ state.H_aug
    offsets = fit.offsets.mean + fit.offsets.rows[:, None] + fit.offsets.columns
    close = {"rtol": 1e-9, "atol": 1e-12 * abs(low_rank).max()}
    np.testing.assert_allclose(low_rank, np.matmul(*fit._factors) + offsets, **close)
    model = fit.reconstruct().values
    bounds = (0, 1.5 * scale) if f == "minmax" else ()
    np.testing.assert_allclose(model, forward(f, low_rank, *bounds), rtol=1e-9, atol=1e-12 * scale)
    model = np.maximum(model, 1e-12 * X) if loss == "kl" else model
    assert fit.objective == pytest.approx(distance(loss, X[seen], model[seen]).sum(), rel=1e-6)
    assert state.objective == fit.objective
    assert 0 <= fit.parameters["optimality"] < 1
    assert f != "minmax" or fit.nonlinearity == nmd_lab.MinMax(*bounds)


@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_residuals_and_penalties_are_in_the_units_of_the_data(f, loss):
    """ρ has the unit of the loss over that of T²."""
    rho = 4.0 ** (40 * ((2 if loss == "frobenius" else 1) - (1 if f == "square" else 2)))
    one, other = (
        fit_of(scale, f, loss, solver=replace(PLAIN, rho="paper", initial_rho=initial)).history
        for scale, initial in ((1, 1.0), (4.0**40, rho))
    )
    T = 4.0**20 if f == "square" else 4.0**40
    assert other["penalty"][0] == rho
    np.testing.assert_allclose(other["primal_residual"][0], T * one["primal_residual"][0])
    expected = rho * T * math.sqrt(T) * one["dual_residual"][0]
    np.testing.assert_allclose(other["dual_residual"][0], expected)


@pytest.mark.parametrize("scale", [4.0**-60, 4.0**60])
@pytest.mark.parametrize(("f", "loss"), some(THREE, 1))
def test_new_rows(f, loss, scale):
    new, found = noisy()[:5], []
    new[0, 3] = np.nan
    for by in (1, scale):
        fit = fit_of(by, f, loss)
        rows = fit.fold_in(new * by)
        np.testing.assert_array_equal(rows[2:3], fit.fold_in((new * by)[2:3]))
        model = forward(f, rows.values @ fit._factors[1], *((0, 1.5 * by) if f == "minmax" else ()))
        model = np.maximum(model, 1e-12 * new * by) if loss == "kl" else model
        found.append(np.nansum(distance(loss, new * by, model)) / by**fit.loss.degree)
    assert found[1] == pytest.approx(found[0], rel=0.1)


# Nothing is copied without need, nothing is scaled that cannot be ---------------------------------


def test_ordinary_data_are_not_copied():
    X = noisy() / noisy().max()
    for scale in (1e-4, 1, 255, 65535):
        data = X * scale
        problem = prepare(data, 3, "relu", "frobenius", absent_are_zeros=True).problem
        assert np.shares_memory(problem.observations.values, data)
        assert problem.units.exponent == 0


class Rectified(nmd_lab.ReLU):
    """It inherits everything but the formula and the pieces, and so has no degree."""

    @staticmethod
    def forward(t, p):
        return max(t, 0.0) + 1.0

    def pieces(self):
        return tuple(piece._replace(intercept=1.0) for piece in super().pieces())


class OwnLoss(Loss):
    """A loss without a degree."""

    name = "own"

    @staticmethod
    def value(x, y, p):
        return abs(x - y) + (x - y) * (x - y)


@pytest.mark.parametrize(("f", "loss"), [(Rectified(), "frobenius"), ("relu", OwnLoss())])
@pytest.mark.exhaustive
def test_parts_without_a_degree_keep_the_units_of_the_data(f, loss):
    problem = prepare(noisy() * 1e10, 3, f, loss, absent_are_zeros=True).problem
    assert problem.units.exponent == 0


# What no precision can hold -----------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "dtype", "value"), [
    (1e-170, float, "e-17"), (1e-300, float, "e-30"), (1e150, float, r"e\+15"),
    (1e300, float, r"e\+30"), (1e-40, np.float32, "e-4"), (1e37, np.float32, r"e\+3"),
])  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_sizes_beyond_the_precision_are_refused_before_work(scale, dtype, value):
    X = (noisy() * scale).astype(dtype)
    words = rf"X has a largest magnitude of .*{value}.*\.$"
    check_all_refused([(words, lambda X: nmd_lab.decompose(X, 2, callback=pytest.fail), X)])
