"""Cells of the method "sample"; test_tables.py compares their numbers with a single call."""

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab.studies.cell import POSTERIOR_SCORES

SHORT = {"draws": 60, "tune": 40}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 30)) + 3
    return truth + 0.3 * rng.normal(size=truth.shape)


@pytest.fixture(scope="module")
def study(X):
    study = nmd.Study(
        X, method=["admm", "sample"], rank=2, alpha=[0, 1], missing=[0.0, 0.3], n_splits=2,
        max_iter=15, tol=0, **SHORT,
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
