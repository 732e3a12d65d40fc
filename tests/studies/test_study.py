"""Studies: their numbers are those of single fits, in processes that end with them; methods.

The arguments of a study: which are refused, which fits are equal, and what "auto" leads to.
"""

import numpy as np
import pytest
import xarray as xr
from helpers import check_all_refused

import nmd_lab as nmd
from nmd_lab.result import netcdf
from nmd_lab.studies.cell import METRICS, POSTERIOR_SCORES

QUICK = {"alpha": 0, "max_iter": 15, "tol": 0}


def quick(X, rank, nonlinearity=None):
    """Take a nonlinearity without compiling its kernels."""
    return nmd.baselines.truncated_svd(X, rank)


def test_dimensions_and_labels(digits):
    study = nmd.Study(
        digits, nonlinearity=["relu", nmd.MinMax(0, 0.5)], rank=2, method=[quick],
        missing={"random": [0.1, 0.3], "rows": 0.2}, noise={"gaussian": [0, 0.1]}, n_splits=2,
        random_state=7,
    )  # fmt: skip
    results = study.run(progress=False)
    assert list(results.dims) == ["algorithm", "nonlinearity", "missing", "noise", "seed"]
    assert results.nonlinearity.values.tolist() == ["relu", "MinMax(0, 0.5)"]
    assert results.missing.values.tolist() == ["random 0.1", "random 0.3", "rows 0.2"]
    assert results.missing_kind.values.tolist() == ["random", "random", "rows"]
    assert results.missing_level.values.tolist() == [0.1, 0.3, 0.2]
    assert results.noise.values.tolist() == [0, 0.1]
    assert results.seed.values.tolist() == [7, 8]
    for entry_set in ("held_out", "observed", "clean"):
        for metric in ("rmse", "mae", "relative_error"):
            assert np.isfinite(results[f"{entry_set}_{metric}"]).all()


def test_every_number_is_that_of_a_single_call(digits):
    study = nmd.Study(
        digits, rank=[2, 4], nonlinearity=["relu"], missing=[0.2, 0.5], noise={"gaussian": 0.1},
        n_splits=1, random_state=3, **QUICK,
    )  # fmt: skip
    results = study.run(progress=False)
    for rank, missing in [(2, 0.2), (4, 0.5)]:
        labels = {"nonlinearity": "relu", "rank": rank, "missing": missing, "seed": 3}
        cell, result = study.cell(**labels), results.sel(labels)
        assert cell.X.coords.identical(digits.coords)
        fit = nmd.complete(cell.X, **cell.arguments)
        # From the matrix of the fit and the data alone
        model, seen = fit.reconstruct().values, ~np.isnan(cell.X.values)
        assert seen.mean() == pytest.approx(1 - missing, abs=0.001)
        assert float(result.clean_rmse) == pytest.approx(nmd.metrics.rmse(digits, model), rel=1e-9)
        observed = nmd.metrics.mae(cell.X.values, model, observed=seen)
        assert float(result.observed_mae) == pytest.approx(observed, rel=1e-9)
        noisy = cell.values.reshape(digits.shape)
        np.testing.assert_array_equal(noisy[seen], cell.X.values[seen])
        held_out = nmd.metrics.relative_error(noisy, model, observed=~seen)
        assert float(result.held_out_relative_error) == pytest.approx(held_out, rel=1e-9)
        assert float(result.objective) == fit.objective
        assert float(result.n_iter) == fit._n_iter == 15
        assert result.stop_reason.item() == fit.stop_reason
        assert float(result.seconds) > 0


def test_baselines_get_what_they_take_and_share_their_fits(digits):
    study = nmd.Study(
        digits, method=[quick, "svd", "mean_fill", "nmf"], nonlinearity=["relu", "identity"],
        rank=[2, 4], missing=[0.0, 0.3], n_splits=2,
    )  # fmt: skip
    results = study.run(progress=False)
    assert len(np.unique(results.fit)) == 16 + 8 + 4 + 8
    svd = results.sel(algorithm="svd")
    xr.testing.assert_identical(
        svd.sel(nonlinearity="relu", drop=True), svd.sel(nonlinearity="identity", drop=True)
    )
    where = {"algorithm": "svd", "nonlinearity": "relu", "rank": 4, "missing": 0.3, "seed": 1}
    cell = study.cell(**where)
    model = nmd.baselines.truncated_svd(cell.X, 4).reconstruct().values.ravel()
    expected = nmd.metrics.rmse(digits.values.ravel()[cell.hidden], model[cell.hidden])
    assert float(results.held_out_rmse.sel(where)) == pytest.approx(expected, rel=1e-9)
    nmf = results.sel(algorithm="nmf")
    assert (nmf.status.sel(missing=0.0) == "done").all()
    assert (nmf.status.sel(missing=0.3) == "left out").all()
    assert "missing entries" in nmf.stop_reason.sel(missing=0.3).values.flat[0]
    assert np.isnan(nmf.observed_rmse.sel(missing=0.3)).all()
    assert np.isnan(results.held_out_rmse.sel(missing=0.0)).all()


def moody(X, rank, time_limit=None):
    """Raise an error, take longer than a limit or succeed, depending on the rank."""
    if rank == 1:
        raise RuntimeError("no mood")
    if rank == 2:
        return nmd.complete(X, 2, alpha=0, max_iter=10**9, tol=0, time_limit=time_limit)
    return nmd.baselines.truncated_svd(X, rank)


def test_failures_become_nan_with_their_reason(digits):
    study = nmd.Study(digits, method=moody, rank=[1, 2, 3], n_splits=2)
    results = study.run(progress=False, time_limit=0.2)
    assert results.status.isel(seed=0).values.tolist() == ["failed", "timed out", "done"]
    assert results.stop_reason.values[0, 0] == "failed: RuntimeError: no mood"
    assert results.stop_reason.values[1, 0] == "time limit: not done after 0.2 s"
    assert np.isnan(results.held_out_rmse.values[:2]).all()
    assert np.isfinite(results.held_out_rmse.values[2]).all()
    assert study.best().parameters == {"rank": 3}


def test_metrics_by_name_and_by_function(digits):
    def worst(X, Y):
        return np.abs(X - Y).max()

    study = nmd.Study(digits, method="svd", rank=2, metrics=[*METRICS, worst], n_splits=1)
    results, cell = study.run(progress=False), study.cell()
    x, y = cell.values[cell.hidden], cell.predict(cell.fit())[cell.hidden]
    assert float(results.held_out_worst[0]) == np.abs(x - y).max()
    expected = nmd.metrics.relative_error(x, y, loss="kl")
    assert float(results.held_out_relative_error_kl[0]) == pytest.approx(expected)


def test_processes_give_the_same(digits):
    """Without kernels to compile, two processes differ from one in nothing but time."""
    options = {"method": ["svd", "mean_fill"], "rank": [2, 3], "n_splits": 2}
    one, two = (nmd.Study(digits, **options).run(n_jobs=n, progress=False) for n in (1, 2))
    assert one.drop_vars("seconds").identical(two.drop_vars("seconds"))


# Methods ------------------------------------------------------------------------------------------


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


def mine(X, rank, algorithm="lu"):
    return nmd.baselines.truncated_svd(X, rank)


def test_bad_arguments_cells_and_paths_are_refused_in_one_sentence(digits, tmp_path):
    study = lambda options: nmd.Study(digits, **{"rank": 2} | options)  # noqa: E731
    of_two = nmd.Study(digits, rank=[2, 3])
    both = {"method": ["svd", mine], "algorithm": ["lu", "qr"]}
    check_all_refused([
        (r"did you mean 'nonlinearity'\?", study, {"nonlinearty": "relu"}),
        (r"did you mean 'columns'\?", study, {"missing": {"colums": 0.1}}),
        ("loss='l3'", study, {"loss": ["l3"]}),
        ("alpha='atuo'", study, {"alpha": "atuo"}),
        ("draws", study, {"draws": 3}),
        ("noise=-1", study, {"noise": {"gaussian": [-1]}}),
        (r"noise=1\.5", study, {"noise": {"outliers": 1.5}}),
        ("noise=0", study, {"noise": {"poisson": 0}}),
        ("rank=31", study, {"rank": [3, 31]}),
        ("rank", study, {"rank": None}),
        ("alpha=-1", study, {"alpha": [0, -1]}),
        ("alpha", study, {"alpha": [0, 0.0]}),
        (r"loss=\[\]", study, {"loss": []}),
        ("n_splits=0", study, {"n_splits": 0}),
        ("random_state=None", study, {"random_state": None}),
        ("init", study, {"init": print}),
        ("method", study, {"method": lambda X, rank: None}),
        ("shape", study, {"shape": (7, 7)}),
        ("rank is not given", lambda method: nmd.Study(digits, method=method), "svd"),
        ("argument='algorithm' is unknown", study, both),
        ("0 of 6 fits are done", lambda name: getattr(of_two, name), "results"),
        (r"rank=4 is unknown: choose one of \[2, 3\]", lambda k: of_two.cell(rank=k), 4),
        ("seed is not given", lambda k: of_two.cell(rank=k), 2),
        ("did you mean 'rank'", lambda k: of_two.cell(rnk=k, seed=0), 2),
        ("in no existing folder", of_two.run, tmp_path / "none" / "study.nc"),
        ("is a folder", of_two.run, tmp_path),
        ("n_jobs == 0", lambda n_jobs: of_two.run(n_jobs=n_jobs), 0),
    ])  # fmt: skip


def test_equal_fits_have_one_key(digits):
    def key(**arguments):
        return nmd.Study(digits, n_splits=1, **{"rank": 2} | arguments).cell().key

    assert key() == key(max_iter=500)  # the default
    factors = np.ones((30, 2)), np.ones((2, 64))
    assert key(init=factors) == key(init=tuple(a.copy() for a in factors))
    labelled = tuple(xr.DataArray(a, dims=("a", "b"), coords={"a": range(len(a))}) for a in factors)
    before = key(init=labelled)
    _ = [a.sel(a=0) for a in labelled]  # which they remember
    assert key(init=labelled) == before
    others = [
        key(), key(alpha=1), key(rank="auto"), key(nonlinearity="relu"), key(init=factors),
        key(nonlinearity=nmd.MinMax(0, 1)), key(nonlinearity=nmd.MinMax(0, 1 / 3)),
        key(h_constraint=nmd.SparseFactor(0.1)), key(h_constraint=nmd.SparseFactor(0.2)),
        key(missing=0.3), key(missing={"rows": 0.2}), key(random_state=1), key(metrics="mae"),
        key(missing={"blocks": 0.2}), key(missing={"blocks": 0.2}, shape=(4, 16)),
    ]  # fmt: skip
    assert len(set(others)) == len(others)
    assert key(missing=0) == key(missing={"rows": 0})


def test_what_was_chosen_is_in_the_results(tmp_path):
    rng = np.random.default_rng(5)
    noisy = rng.normal(size=(24, 2)) @ rng.normal(size=(2, 15)) + 0.1 * rng.normal(size=(24, 15))
    options = {"n_splits": 1, "nonlinearity": "identity", "max_iter": 50, "random_state": 1}
    study = nmd.Study(noisy, method=["admm", "svd"], rank=[4], alpha=[0, "auto"], **options)
    results = study.run(tmp_path / "study.nc", progress=False)
    assert results.alpha.values.tolist() == ["0", "auto"]
    chosen = [name for name in results.data_vars if name.endswith("_chosen")]
    assert chosen == ["alpha_chosen", "offset_alpha_chosen", "offsets_chosen"]
    ours = results.sel(algorithm="admm", alpha="auto")
    assert not np.isfinite(results.alpha_chosen.sel(algorithm="svd")).any()
    assert not np.isfinite(results.alpha_chosen.sel(alpha="0")).any()
    assert results.alpha_chosen.attrs["long_name"] == "chosen ridge"
    fit = study.cell(algorithm="admm", rank=4, alpha="auto", seed=1).fit()
    first = ours.sel(rank=4, seed=1)
    assert first.alpha_chosen.item() == fit.parameters["alpha"]
    assert first.offsets_chosen.item() == fit.parameters["offsets"]
    assert study.cell(algorithm="admm", alpha=0).arguments["alpha"] == 0
    assert study.table(alpha=0).equals(study.table(alpha="0"))  # a number beside the word
    assert netcdf.read(tmp_path / "study.nc").identical(results)
