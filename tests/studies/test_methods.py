"""Any function that predicts is a method; cells of the method "sample".

`test_tables.py` compares their numbers with a single call.
"""

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab.studies.cell import POSTERIOR_SCORES


def by_columns(X, observed, rank, random_state):
    """Return the mean of what is seen of each column, if the arguments are as promised."""
    np.testing.assert_array_equal(observed, ~np.isnan(np.asarray(X)))
    assert (rank, random_state in (0, 1)) == (2, True)
    return np.broadcast_to(np.nanmean(np.asarray(X), axis=0), np.shape(X))


def too_short(X, observed):
    """Return too little."""
    return np.zeros(3)


def test_any_function_that_predicts_is_a_method(digits):
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


@pytest.fixture(scope="module")
def study(digits):
    study = nmd.Study(
        digits, method=["admm", "sample"], rank=2, alpha=[0, 1], missing=[0.0, 0.3], n_splits=2,
        max_iter=15, tol=0, draws=60, tune=40,
    )  # fmt: skip
    study.run(progress=False)
    return study


def test_what_other_methods_do_not_have_is_nan(study):
    results = study.results
    for name in POSTERIOR_SCORES:
        assert np.isnan(results[name].sel(algorithm="admm")).all()
        assert np.isnan(results[name].sel(missing=0.0)).all()
        assert np.isfinite(results[name].sel(algorithm="sample", missing=0.3)).all()


def test_cells_that_differ_in_a_ridge_share_their_chain(study):
    keys = study.results.fit.sel(algorithm="sample")
    assert len(np.unique(keys)) == 2 * 2
    assert (keys.sel(alpha=0, drop=True) == keys.sel(alpha=1, drop=True)).all()


def test_the_best_model_may_be_a_posterior(study):
    parameters, posterior = study.best("rmse", algorithm="sample", missing=0.3)
    assert isinstance(posterior, nmd.Posterior)
    assert (parameters["algorithm"], parameters["draws"]) == ("sample", 60)
    assert "<b>" in study.table("rmse", missing=0.3)._repr_html_()
    assert "<b>" not in study.table("log_density", missing=0.3)._repr_html_()
    for metric in ("coverage_90", "log_density"):
        with pytest.raises(ValueError, match="is no error whose lowest value is the best"):
            study.best(metric, missing=0.3)
