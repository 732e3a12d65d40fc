"""partial_fit: batches of rows end near a fit to everything."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from nmd_lab import NMD, MatrixCompletion


@pytest.fixture
def ratings(rng):
    truth = 3 + rng.normal(size=(300, 3)) @ rng.normal(size=(3, 40))
    seen = rng.random(truth.shape) < 0.4
    X = np.where(seen, truth + 0.3 * rng.normal(size=truth.shape), np.nan)
    return X, truth


def error(model, X, truth):
    missing = np.isnan(X)
    return float(np.sqrt(np.mean((model.transform(X) - truth)[missing] ** 2)))


def in_batches(model, X, number=10):
    for rows in np.array_split(np.arange(X.shape[0]), number):
        model.partial_fit(X[rows])
    return model


@pytest.mark.parametrize("options", [{}, {"n_components": 3, "alpha": 0.3, "offsets": "both"}])
def test_batches_end_near_a_fit_to_everything(ratings, options):
    X, truth = ratings
    whole = error(MatrixCompletion(random_state=0, **options).fit(X), X, truth)
    model = in_batches(MatrixCompletion(random_state=0, **options), X)
    assert error(model, X, truth) < 1.05 * whole
    i, j = np.nonzero(np.isnan(X))
    assert np.sqrt(np.mean((model.predict(i, j) - truth[i, j]) ** 2)) < 1.1 * whole
    assert model.decomposition_.shape == X.shape


def test_a_small_memory_costs_little(ratings):
    X, truth = ratings
    options = {"n_components": 3, "alpha": 0.3, "offsets": "both", "random_state": 0}
    whole = error(MatrixCompletion(**options).fit(X), X, truth)
    first = error(MatrixCompletion(**options).fit(X[:60]), X, truth)
    model = in_batches(MatrixCompletion(memory=60, **options), X)
    assert model._memory.positions.size == 60
    assert error(model, X, truth) < 0.5 * (whole + first)


def test_sparse_and_dense_batches_agree(ratings):
    X, truth = ratings
    options = {"n_components": 3, "alpha": 0.3, "random_state": 0}
    seen = ~np.isnan(X)
    i, j = np.nonzero(seen)
    stored = sp.csr_array((X[seen], (i, j)), shape=X.shape)
    models = [in_batches(MatrixCompletion(**options), data) for data in (X, stored)]
    errors = [error(model, X, truth) for model in models]
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_decompositions_learn_from_batches(as_sparse, rng):
    X = np.maximum(rng.normal(size=(160, 3)) @ rng.normal(size=(3, 25)) - 1.2, 0)
    data = sp.csr_array(X) if as_sparse else X
    model = in_batches(NMD(3, random_state=0), data, 5)
    whole = NMD(3, random_state=0).fit(data)
    errors = [np.linalg.norm(m.inverse_transform(m.transform(data)) - X) for m in (model, whole)]
    assert errors[0] < 1.2 * errors[1]
    assert model.components_.shape == (3, 25)


def test_forgetting_follows_a_change(rng):
    first, second = (
        own.normal(size=(100, 2)) @ own.normal(size=(2, 15))
        for own in (np.random.default_rng(k) for k in range(2))
    )
    options = {"n_components": 2, "alpha": 0.1, "offsets": "none", "random_state": 0}
    errors = []
    for forgetting in (0.0, 0.7):
        model = in_batches(MatrixCompletion(forgetting=forgetting, **options), first, 4)
        in_batches(model, second, 4)
        hidden = np.where(rng.random(second.shape) < 0.3, np.nan, second)
        errors.append(error(model, hidden, second))
    assert errors[1] < 0.5 * errors[0]


def test_the_same_batches_give_the_same_bits(ratings):
    X, _ = ratings
    one, other = (
        in_batches(MatrixCompletion(3, alpha=0.3, memory=50, random_state=0), X).components_
        for _ in range(2)
    )
    assert np.array_equal(one, other)


def test_fit_begins_anew(ratings):
    X, _ = ratings
    options = {"n_components": 2, "alpha": 0.3, "random_state": 0}
    model = in_batches(MatrixCompletion(**options), X).fit(X)
    assert np.array_equal(model.components_, MatrixCompletion(**options).fit(X).components_)
    model.partial_fit(X[:20])
    assert model.decomposition_.shape == (20, 40)


def test_bad_batches_are_refused(ratings):
    X, _ = ratings
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(40)])
    model = MatrixCompletion(2, alpha=0.3).partial_fit(frame[:50])
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(frame[50:].iloc[:, ::-1])
    with pytest.raises(ValueError, match="memory=0 is too small"):
        MatrixCompletion(2, memory=0).partial_fit(X)
    with pytest.raises(ValueError, match="forgetting=1"):
        MatrixCompletion(2, forgetting=1).partial_fit(X)
    with pytest.raises(ValueError, match=r"forgetting=0\.5 does not go with sparse zeros"):
        NMD(2, forgetting=0.5).partial_fit(sp.csr_array(np.nan_to_num(X)))
    with pytest.raises(ValueError, match="exceeds the smaller of n_samples=2"):
        MatrixCompletion(5, alpha=0.3).partial_fit(X[:2])
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'"):
        MatrixCompletion(2, inference="sample").partial_fit(X)
