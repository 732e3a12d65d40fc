"""Fits on workers against those of this process."""

from dataclasses import replace

import numpy as np
import pytest
from cluster_runs import ALGORITHM, PLAIN, STORAGES, assert_close, both, made
from helpers import some
from oracles import PAIRS
from scipy import sparse

import nmd_lab as nmd

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")

EVERYWHERE = (("relu", "frobenius"), ("square", "kl"), ("minmax", "l1"))
"""Pairs that are fitted to every kind of storage; the others to one for each kind of passes."""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("nonlinearity", "loss", "storage"),
    [
        (f, loss, storage)
        for f, loss in PAIRS
        for storage in (STORAGES if (f, loss) in EVERYWHERE else ("dense", "observed"))
    ],
)
def test_iterates_of_all_pairs(nonlinearity, loss, storage, client):
    X, options = made(storage)
    rng = np.random.default_rng(1)
    start = (rng.random((X.shape[0], 3)) - 0.3, rng.random((3, X.shape[1])) - 0.3)
    one, other = both(X, client, 3, nonlinearity, loss, init=start, **options)
    assert_close(one, other)
    assert other.parameters["optimality"] == pytest.approx(one.parameters["optimality"], rel=1e-5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("storage", some(STORAGES, 1))
def test_starts_of_the_library(storage, client):
    X, options = made(storage)
    for pair, init, n_init in (("relu", "auto", 1), ("modulus", "auto", 3), ("relu", "random", 1)):
        one, other = both(X, client, 2, pair, init=init, n_init=n_init, **options)
        assert_close(one, other, 1e-6)
        if n_init > 1:
            np.testing.assert_allclose(one.starts["objective"], other.starts["objective"], 1e-6)


@pytest.mark.parametrize("storage", some(["observed", "dense", "masked", "weights"], 1))
@pytest.mark.parametrize("offsets", some(["both", "global", "rows", "columns"], 1))
def test_offsets_ridges_and_held_out_entries(storage, offsets, client):
    X, options = made(storage)
    held_out = sparse.random_array(X.shape, density=0.05, rng=np.random.default_rng(2))
    options |= {"alpha": 0.1, "offset_alpha": 0.05, "offsets": offsets, "validation": held_out}
    one, other = both(X, client, 3, "relu", **options)
    assert_close(one, other, 1e-6)  # the starts differ by rounding
    assert other.stop_reason.code == one.stop_reason.code
    errors = (fit.history["validation_rmse"] for fit in (one, other))
    np.testing.assert_allclose(*errors, rtol=1e-6)
    for own, theirs in zip(one.offsets, other.offsets, strict=True):
        if own is not None:
            np.testing.assert_allclose(theirs, own, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("observed", some(["everywhere", "observed"], 1))
@pytest.mark.parametrize(
    "constraints",
    [
        {"w_constraint": "nonnegative", "h_constraint": "nonnegative"},
        {"w_constraint": "simplex"},
        {"h_constraint": "simplex"},
        {"h_constraint": "orthonormal"},
        {"w_constraint": "sparse", "h_constraint": nmd.SparseFactor(0.1)},
    ],
)
@pytest.mark.exhaustive
def test_constraints(constraints, observed, client):
    X, options = made("observed")
    options = options | {"init": "random", "solver": replace(ALGORITHM, split=observed)}
    one, other = both(X, client, 3, "relu", **constraints, **options)
    assert_close(one, other)
    assert other.parameters["optimality"] == pytest.approx(one.parameters["optimality"], rel=1e-5)


@pytest.mark.parametrize("size", [1e-20, 1e9])
@pytest.mark.exhaustive
def test_large_and_small_data_have_units_of_their_own(size, client):
    X, options = made("observed")
    one, other = both(size * X, client, 3, "relu", offsets="both", alpha=0.1 * size, **options)
    assert_close(one, other)
    validation = {"validation": sparse.random_array(X.shape, density=0.05, rng=0) * size}
    one, other = both(size * X, client, 3, "relu", offsets="both", **validation)
    np.testing.assert_allclose(
        other.history["validation_rmse"], one.history["validation_rmse"], rtol=1e-7
    )


@pytest.mark.exhaustive
def test_a_share_of_held_out_entries_repeats_and_leaves_each_row_one(client):
    X, options = made("masked")
    seen = options["observed"] & (np.arange(X.shape[1]) < 12)
    seen[:, 0] = True
    settings = PLAIN | {"alpha": 0.1, "offsets": "both", "observed": seen, "validation": 0.2}
    fits = [
        nmd.complete(X, 2, "relu", compute=nmd.Compute(client=client), **settings) for _ in range(2)
    ]
    errors = [fit.history["validation_rmse"].values for fit in fits]
    np.testing.assert_array_equal(*errors)
    assert fits[0].parameters["n_observed"] == pytest.approx(0.8 * seen.sum(), rel=0.02)


def test_stopping_history_and_callback_are_those_of_one_machine(client):
    X, options = made("dense")
    states: list[nmd.State] = []
    settings = {"tol": 0.05, "max_iter": 300, "callback": states.append}
    one, other = both(X, client, 3, "relu", **options | settings)
    assert one._n_iter == other._n_iter < 300
    assert one.stop_reason == other.stop_reason
    assert set(one.history) == set(other.history)
    ours, theirs = states[: one._n_iter], states[one._n_iter :]
    np.testing.assert_allclose(np.asarray(theirs[3].W), ours[3].W, rtol=1e-7, atol=1e-9)
    assert theirs[3].W[np.array([5, 1])].shape == (2, 3)
    assert repr(theirs[0]).startswith("<nmd_lab.State>")
