"""Fits that learn from new rows: the result is close to a fit to all rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import nmd_lab as nmd


def low_rank(rng, m=90, n=30, rank=3):
    return rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))


def rmse(fit, X):
    return float(np.sqrt(np.mean((fit.reconstruct().values - X) ** 2)))


@pytest.mark.parametrize(("f", "gain"), [("identity", 0.9), ("relu", 0.9), ("modulus", 1.0)])
@pytest.mark.parametrize("known", [True, False])
def test_new_rows_move_the_columns_towards_a_fit_to_all(f, gain, known, rng):
    A = low_rank(rng, 150)
    truth = {"identity": A, "relu": np.maximum(A, 0), "modulus": np.abs(A)}[f]
    X = truth + 0.1 * rng.normal(size=A.shape)
    fit = nmd.decompose(X[:40], 3, f, random_state=0)
    appended, updated = fit.append(X[40:]), fit.update(X[40:], old=X[:40] if known else None)
    whole = nmd.decompose(X, 3, f, random_state=0)
    assert rmse(updated, truth) < gain * rmse(appended, truth)
    assert rmse(updated, truth) < 1.35 * rmse(whole, truth)
    assert updated.shape == X.shape
    assert updated.parameters["appended_rows"] == 110


def test_exact_data_stay_exact(rng):
    X = low_rank(rng)
    fit = nmd.complete(X[:30], 3, "identity", alpha=0, random_state=0)
    assert np.abs(fit.update(X[30:]).reconstruct().values - X).max() < 1e-6


def test_labels_are_matched_and_offsets_learned(rng):
    A = low_rank(rng, 60, 12) + 5 * rng.normal(size=12)
    X = pd.DataFrame(A, index=[f"r{i}" for i in range(60)], columns=list("abcdefghijkl"))
    fit = nmd.complete(X[:30], 3, "identity", alpha=0.01, offsets="both", random_state=0)
    new = X[30:].iloc[:, ::-1].mask(rng.random((30, 12)) < 0.3)
    updated = fit.update(new)
    assert list(updated.labels.coords.indexes[updated.labels.rows[0]]) == list(X.index)
    assert rmse(updated, A) < 0.1
    assert np.array_equal(
        updated.predict_labels("r40", ["c", "d"]), updated.predict([40, 40], [2, 3])
    )


def test_constraints_hold(rng):
    X = rng.random((60, 3)) @ rng.random((3, 20))
    both = {"w_constraint": "nonnegative", "h_constraint": "nonnegative"}
    fit = nmd.decompose(X[:20], 3, "identity", random_state=0, max_iter=2000, **both)
    updated = fit.update(X[20:], old=X[:20])
    assert updated.W.min() >= 0
    assert updated.H.min() >= 0
    assert rmse(updated, X) < 0.05 * X.std()


def test_sparse_zeros_are_learned_from(rng):
    X = np.maximum(low_rank(rng, 200, 30) - 1.5, 0)
    assert np.mean(X > 0) < 0.3
    Z = sp.csr_array(X)
    fit = nmd.decompose(Z[:60], 3, "relu", random_state=0)
    updated = fit.update(Z[60:], old=Z[:60])
    assert rmse(updated, X) <= 1.01 * rmse(fit.append(Z[60:]), X)
    with pytest.raises(ValueError, match=r"forgetting=0.1 does not go with a fit of sparse zeros"):
        fit.update(Z[60:], forgetting=0.1)


def test_forgetting_follows_a_change(rng):
    one, other = (low_rank(np.random.default_rng(k), 60, 20) for k in range(2))
    fit = nmd.complete(one, 3, "identity", alpha=0.1, offsets="none", random_state=0)
    errors = []
    for forgetting in (0.0, 0.99):
        updated = fit.update(other, forgetting=forgetting, sweeps=10)
        errors.append(float(np.abs(updated.reconstruct().values[60:] - other).mean()))
    assert errors[1] < 0.5 * errors[0]


def test_what_cannot_be_updated_is_refused(rng):
    frame = pd.DataFrame(
        {"size": rng.random(20), "adult": pd.array(rng.random(20) > 0.5, "boolean")}
    )
    mixed = nmd.complete(frame, 1, alpha=0.1, random_state=0)
    with pytest.raises(ValueError, match="the columns of this fit have losses of their own"):
        mixed.update(frame)
    binary = nmd.complete(
        (rng.random((20, 10)) > 0.5).astype(float),
        1,
        "identity",
        "logistic",
        alpha=1.0,
        offsets="none",
    )
    with pytest.raises(ValueError, match=r"give old=, some earlier rows of X"):
        binary.update(np.ones((3, 10)))
    assert binary.update(np.ones((3, 10)), old=np.eye(10)).shape == (23, 10)
    with pytest.raises(ValueError, match="forgetting=1"):
        binary.update(np.ones((3, 10)), forgetting=1)
