"""What ratings need: offsets, validation, tables, predictions by label, recommendations."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import nmd_lab as nmd


@pytest.fixture(scope="module")
def ratings():
    """Rank-2 ratings with offsets, half of them observed."""
    rng = np.random.default_rng(0)
    m, n = 120, 80
    b, c = 0.5 * rng.normal(size=m), 0.7 * rng.normal(size=n)
    X = 3.5 + b[:, None] + c + 0.5 * rng.normal(size=(m, 2)) @ rng.normal(size=(2, n))
    seen = rng.random((m, n)) < 0.5
    return X, seen, sparse.csr_array(np.where(seen, X, 0))


def test_validation_is_the_rmse_of_each_iteration(ratings):
    X, _, matrix = ratings
    train, held = nmd.split_observed(matrix, 0.2, 0)
    errors = []

    def record(state):
        model = state.W_aug @ state.H_aug
        rows, columns = held.tocoo().row, held.tocoo().col
        errors.append(np.sqrt(np.mean((model[rows, columns] - X[rows, columns]) ** 2)))

    options = {"offsets": "both", "alpha": 0, "validation": held, "max_iter": 15}
    options |= {"callback": record, "solver": nmd.ADMM(patience=100)}
    fit = nmd.complete(train, 2, **options)
    np.testing.assert_allclose(fit.history["validation_rmse"], errors, rtol=1e-10)
    best = int(np.argmin(errors))
    assert fit.parameters["iteration"] == best + 1
    rows, columns = held.tocoo().row, held.tocoo().col
    error = nmd.metrics.rmse(X[rows, columns], fit.predict(rows, columns))
    assert error == pytest.approx(errors[best])


def test_validation_stops_a_fit_that_learns_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 50))
    X[rng.random(X.shape) < 0.4] = np.nan
    fit = nmd.complete(
        X, 8, alpha=0, validation=0.3, max_iter=300, random_state=0, solver=nmd.ADMM(patience=4)
    )
    assert "validation: no lower error for 4 iterations" in fit.stop_reason
    assert fit._n_iter == fit.parameters["iteration"] + 4


@pytest.fixture(scope="module")
def stars():
    """A long table of ratings from 1 to 5, and draws of their posterior."""
    table = nmd.datasets.make_ratings(60, 40, 700, random_state=0)
    X = nmd.observations_from_table(table)
    return X, nmd.sample(X, 2, draws=50, random_state=0)


def test_an_unknown_person_has_the_interval_of_a_row_from_the_prior(stars):
    X, posterior = stars
    items = X.column_labels[:3]
    ends = posterior.predict_interval(["nobody"] * 3, items, unknown="offsets")
    empty = pd.Series([], dtype=float, name="nobody")
    folded = posterior.fold_in(empty, unknown="offsets").predict_interval("nobody", items)
    np.testing.assert_array_equal(ends, folded)
    known = posterior.predict_interval(X.row_labels[0], items)
    assert np.diff(ends).mean() > np.diff(known).mean()
    first, every = X.row_labels[0], X.column_labels
    pairs = ["nobody", "nobody", first], [items[0], "new", "new"]
    three = posterior.predict_interval(*pairs, unknown="offsets")
    np.testing.assert_array_equal(three[0], ends[0])
    nobody = posterior.fold_in(empty, unknown="offsets")
    for (low, _), rows, name in zip(three[1:], (nobody, posterior), ("nobody", first), strict=True):
        above = rows.probability(name, every, above=low).mean()  # of one of the items, at random
        assert above == pytest.approx(0.95, abs=0.04)
    with pytest.raises((KeyError, TypeError)):
        posterior.predict_interval("nobody", items)


def test_pairs_that_come_twice_are_mended_by_their_message():
    table = nmd.datasets.make_ratings(60, 40, 700, random_state=0)
    frame = pd.concat([table, table.head(3).assign(rating=1.0)])
    with pytest.raises(ValueError, match="more than once: give frame") as caught:
        nmd.observations_from_table(frame)
    code = str(caught.value).split("give ")[1].split(", which")[0]
    assert nmd.observations_from_table(eval(code, {"frame": frame})).n_observed == 700
