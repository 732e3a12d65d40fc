"""A study takes any function that predicts."""

import numpy as np
import pandas as pd
import pytest

import nmd_lab as nmd


def by_columns(X, observed, rank, random_state):
    """Return the mean of what is seen of each column, if the arguments are as promised."""
    np.testing.assert_array_equal(observed, ~np.isnan(np.asarray(X)))
    assert (rank, random_state in (0, 1)) == (2, True)
    return np.broadcast_to(np.nanmean(np.asarray(X), axis=0), np.shape(X))


def too_short(X, observed):
    """Return too little."""
    return np.zeros(3)


def test_any_function_that_predicts_is_a_method():
    digits = nmd.datasets.digits(30)
    study = nmd.Study(digits, method=[by_columns, too_short], rank=2, n_splits=2)
    results = study.run(progress=False)
    cell = study.cell(algorithm="by_columns", seed=1)
    X = digits.values
    model = np.nanmean(np.where(cell.hidden.reshape(X.shape), np.nan, X), axis=0)
    expected = nmd.metrics.rmse((X - model).ravel()[cell.hidden], np.zeros(cell.hidden.sum()))
    found = results.held_out_rmse.sel(algorithm="by_columns", seed=1).item()
    assert found == pytest.approx(expected, rel=1e-9)
    assert results.n_iter.sel(algorithm="by_columns").values.tolist() == [0, 0]
    assert "cannot reshape array of size 3" in str(results.stop_reason.values)
    assert study.best().fit.shape == X.shape


def test_a_function_that_predicts_gets_a_table_as_standardised_numbers():
    def zero(X, observed):
        assert np.shape(X) == observed.shape == (30, 5)  # two numbers, three classes
        return np.zeros(observed.shape)

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kg": rng.normal(70, 9, 30), "m": rng.normal(1.7, 0.1, 30)})
    frame["town"] = pd.Categorical(np.repeat(["Ulm", "Bonn", "Kiel"], 10))
    results = nmd.Study(frame, method=zero, n_splits=2).run(progress=False)
    assert (results.status == "done").all(), results.stop_reason.values
    assert results.observed_rmse.values == pytest.approx(1, abs=0.25)
    assert np.isfinite(results.held_out_misclassified.values).all()
