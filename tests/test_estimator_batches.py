"""partial_fit: batches of rows end near a fit to everything, and none is forgotten."""

import numpy as np
import pytest
import scipy.sparse as sp

from nmd_lab import NMD, MatrixCompletion

OPTIONS = {"n_components": 3, "alpha": 0.3, "random_state": 0}


@pytest.fixture
def ratings(rng):
    truth = 3 + rng.normal(size=(120, 3)) @ rng.normal(size=(3, 30))
    seen = rng.random(truth.shape) < 0.5
    return np.where(seen, truth + 0.3 * rng.normal(size=truth.shape), np.nan), truth


def in_batches(model, X, number=4):
    for rows in np.array_split(np.arange(X.shape[0]), number):
        model.partial_fit(X[rows])
    return model


def test_batches_end_near_a_fit_to_everything(ratings):
    X, truth = ratings
    hidden = np.nonzero(np.isnan(X))
    options = {"n_components": 3, "offsets": "both", "random_state": 0}  # alpha is chosen
    model = in_batches(MatrixCompletion(**options), X, 3)  # with four, the last fit is a whole one
    whole = MatrixCompletion(**options).fit(X)
    errors = [np.linalg.norm(each.predict(*hidden) - truth[hidden]) for each in (model, whole)]
    assert errors[0] < 1.1 * errors[1]
    assert model.decomposition_._shape == X.shape
    assert model.decomposition_._n_iter <= 20


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_rows_of_another_kind_do_not_take_the_place_of_earlier_ones(kind, rng):
    first, second = (rng.random((60, 2)) @ rng.random((2, 20)) for _ in range(2))
    data = kind(np.maximum(np.vstack([first, second]) - 0.5, 0))
    model = in_batches(NMD(4, random_state=0), data, 2)
    rows = data[:60]
    errors = [
        np.linalg.norm(each.inverse_transform(each.transform(rows)) - rows)
        for each in (model, NMD(4, random_state=0).fit(data))
    ]
    assert errors[0] < 1.2 * errors[1] + 0.02 * np.linalg.norm(np.asarray(first))


def test_a_component_that_the_first_batch_does_not_need_is_learned_later(rng):
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 20))
    X[:40] *= 1e-4  # the ridge makes both components zero
    options = {"n_components": 2, "alpha": 10.0, "offsets": "none", "random_state": 0}
    model = in_batches(MatrixCompletion(**options), X, 2)
    whole = MatrixCompletion(**options).fit(X)
    assert model.reconstruction_err_ < 1.05 * whole.reconstruction_err_


def test_a_batch_may_change_after_the_call_and_fit_begins_anew(ratings):
    X, _ = ratings
    model, other = (MatrixCompletion(**OPTIONS) for _ in range(2))
    batch = X[:60].copy()
    model.partial_fit(batch)
    batch[:] = 0
    model.partial_fit(X[60:])
    assert np.array_equal(in_batches(other, X, 2).components_, model.components_)
    model.fit(X)
    assert np.array_equal(model.components_, MatrixCompletion(**OPTIONS).fit(X).components_)
    assert model.partial_fit(X[:20]).decomposition_._shape == (20, 30)
