"""Cells of the method "sample": errors of posterior means, coverage and log-density."""

import numpy as np
import pytest
from scipy import stats

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


def test_a_cell_is_a_single_call(study):
    where = {"algorithm": "sample", "alpha": 1, "missing": 0.3, "seed": 1}
    cell, result = study.cell(**where), study.results.sel(where)
    one = nmd.Compute(threads=1)
    assert cell.arguments == {"rank": 2, "random_state": 1, "compute": one, **SHORT}
    posterior = nmd.sample(cell.X, **cell.arguments)
    i, j = np.nonzero(np.isnan(cell.X))
    x = cell.values[cell.hidden]
    error = np.sqrt(np.mean((posterior.predict(i, j) - x) ** 2))
    assert float(result.held_out_rmse) == pytest.approx(error, rel=1e-9)
    low, high = posterior.predict_interval(i, j, level=0.9).T
    assert result.held_out_coverage_90 == np.mean((low <= x) & (x <= high))
    places = zip(np.atleast_2d(i).T, np.atleast_2d(j).T, strict=True)
    v = np.stack([posterior._draws.linear_at(*place)[:, 0] for place in places])
    density = stats.norm.pdf(x[:, None], v, 1 / np.sqrt(posterior.draws.rho.values.ravel()))
    expected = np.log(density.mean(axis=1)).mean()
    assert float(result.held_out_log_density) == pytest.approx(expected, abs=1e-4)
    assert result.n_iter == 100
    assert np.isnan(result.objective)


def test_what_other_methods_do_not_have_is_nan(study):
    results = study.results
    for name in POSTERIOR_SCORES:
        assert np.isnan(results[name].sel(algorithm="admm")).all()
        assert np.isnan(results[name].sel(missing=0.0)).all()
        assert np.isfinite(results[name].sel(algorithm="sample", missing=0.3)).all()
    coverage = results.held_out_coverage_90.sel(algorithm="sample", missing=0.3).mean()
    assert abs(coverage - 0.9) < 0.04


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
        with pytest.raises(ValueError, match="is no error of which the lowest is the best"):
            study.best(metric, missing=0.3)
