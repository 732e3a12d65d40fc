"""Cells of the method "sample": errors of posterior means, coverage and log-density."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats

import nmd_lab as nmd
from nmd_lab.studies.uncertainty import OF_A_POSTERIOR

SHORT = {"draws": 60, "tune": 40}
FIT = {"max_iter": 15, "tol": 0}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 30)) + 3
    return truth + 0.3 * rng.normal(size=truth.shape)


@pytest.fixture(scope="module")
def study(X):
    study = nmd.Study(
        X, method=["admm", "sample", "svd"], rank=[2, 5], alpha=[0, 1], missing=[0.0, 0.3],
        n_splits=2, **SHORT, **FIT,
    )  # fmt: skip
    study.run(progress=False)
    return study


def test_a_cell_is_a_single_call(study):
    where = {"solver": "sample", "rank": 5, "alpha": 1, "missing": 0.3, "seed": 1}
    cell, result = study.cell(**where), study.results.sel(where)
    assert result.status == "done"
    assert cell.arguments == {"rank": 5, "random_state": 1, "threads": 1, **SHORT}
    posterior = nmd.sample(cell.X, **cell.arguments)
    i, j = np.nonzero(np.isnan(cell.X))
    x = cell.values[cell.hidden]
    assert float(result.held_out_rmse) == pytest.approx(
        np.sqrt(np.mean((posterior.predict(i, j) - x) ** 2)), rel=1e-9
    )
    low, high = posterior.predict_interval(i, j, level=0.9).T
    assert result.held_out_coverage_90 == np.mean((low <= x) & (x <= high))
    v = np.stack([posterior.linear_at(np.array([a]), np.array([b]))[:, 0]
                  for a, b in zip(i, j, strict=True)])  # fmt: skip
    density = stats.norm.pdf(x[:, None], v, 1 / np.sqrt(posterior.draws.rho.values.ravel()))
    expected = np.log(density.mean(axis=1)).mean()
    assert float(result.held_out_log_density) == pytest.approx(expected, abs=1e-4)
    assert result.n_iter == 100
    assert np.isnan(result.objective)


def test_coverage_is_that_of_the_level(study):
    held_out = study.results.sel(missing=0.3)
    coverage = held_out.held_out_coverage_90.sel(solver="sample").mean()
    assert abs(coverage - 0.9) < 0.04
    errors = held_out.held_out_rmse.sel(alpha=0).mean(["rank", "seed"])
    assert errors.sel(solver="sample") < errors.sel(solver="admm")


def test_what_other_methods_do_not_have_is_nan(study):
    results = study.results
    for name in OF_A_POSTERIOR:
        assert np.isnan(results[name].sel(solver=["admm", "svd"])).all()
        assert np.isnan(results[name].sel(missing=0.0)).all()
        assert np.isfinite(results[name].sel(solver="sample", missing=0.3)).all()
        assert "long_name" in results[name].attrs
    assert np.isfinite(results.observed_rmse.sel(solver="sample")).all()


def test_cells_that_differ_in_a_ridge_share_their_chain(study):
    keys = study.results.fit.sel(solver="sample")
    assert len(np.unique(keys)) == 2 * 2 * 2
    assert (keys.sel(alpha=0, drop=True) == keys.sel(alpha=1, drop=True)).all()


def test_the_best_model_may_be_a_posterior(study, X):
    parameters, posterior = study.best("rmse", solver="sample", missing=0.3)
    assert isinstance(posterior, nmd.Posterior)
    assert (parameters["solver"], parameters["draws"]) == ("sample", 60)
    assert posterior.shape == X.shape
    shown = study.table("rmse", "coverage_90", missing=0.3).joined()
    assert "sample" in shown.to_string()
    assert "<b>" in study.table("rmse", missing=0.3)._repr_html_()
    assert "<b>" not in study.table("log_density", missing=0.3)._repr_html_()
    for metric in ("coverage_90", "log_density"):
        with pytest.raises(ValueError, match="is no error of which the lowest is the best"):
            study.best(metric, missing=0.3)


def test_a_study_without_the_sampler_has_no_such_variables(X):
    results = nmd.Study(X, rank=2, alpha=0, n_splits=1, **FIT).run(progress=False)
    assert not set(OF_A_POSTERIOR) & set(results.data_vars)


def test_results_come_back_from_the_file(X, tmp_path):
    options = {"method": "sample", "rank": 2, "n_splits": 1, **SHORT}
    first = nmd.Study(X, **options).run(tmp_path / "study.nc", progress=False)
    again = nmd.Study(X, **options)
    assert again.run(tmp_path / "study.nc", progress=False).identical(first)


def test_sparse_data_and_true_values(X):
    seen = np.random.default_rng(1).random(X.shape) < 0.5
    thin = sparse.csr_array((X[seen], np.nonzero(seen)), shape=X.shape)
    holes = np.where(seen, X, np.nan)
    options = {"method": "sample", "rank": 2, "n_splits": 1, **SHORT}
    results = nmd.Study(thin, **options).run(progress=False)
    assert results.status.item() == "done"
    assert results.held_out_rmse.item() < 0.5
    study = nmd.Study(holes, clean=X, **options)
    results = study.run(progress=False)
    posterior = study.cell(seed=0).fit()
    error = np.sqrt(np.mean((posterior.reconstruct().values - X) ** 2))
    assert results.clean_rmse.item() == pytest.approx(error, rel=1e-6)


def test_models_without_a_density_have_nan(X):
    """A loss of one's own says no noise, so that new observations have no distribution."""

    class Half(nmd.Loss):
        """Half of the absolute deviations."""

        name = "half"

        @staticmethod
        def value(x, y, p):
            return 0.5 * abs(x - y)

        @staticmethod
        def proximal(q, x, rho, p):
            return min(max(x, q - 0.5 / rho), q + 0.5 / rho)

    study = nmd.Study(X, method="sample", rank=2, loss=Half(), n_splits=1, draws=9, tune=9)
    results = study.run(progress=False)
    assert results.status.item() == "done", results.stop_reason.item()
    assert np.isfinite(results.held_out_rmse).all()
    assert all(np.isnan(results[name]).all() for name in OF_A_POSTERIOR)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"drows": 3}, "drows"),
        ({"method": "admm", "draws": 3}, "draws"),
        ({"method": "samples"}, "method='samples' is unknown"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(arguments, message, X):
    with pytest.raises(ValueError, match=message):
        nmd.Study(X, **({"method": ["admm", "sample"], "rank": 2} | arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": "auto"}, "rank='auto'"),
        ({"nonlinearity": "auto"}, "nonlinearity='auto'"),
        ({"loss": "auto"}, "loss='auto'"),
        ({"draws": 0}, "draws=0"),
        ({"init": "nndsvd"}, "init='nndsvd'"),
    ],
)
def test_what_a_posterior_cannot_have_is_left_out(arguments, message, X):
    study = nmd.Study(X, **({"method": "sample", "rank": 2, "n_splits": 1} | arguments))
    results = study.run(progress=False)
    assert results.status.item() == "left out"
    assert message in results.stop_reason.item()
