"""Studies: their numbers are those of single fits, and failed fits do not end them."""

from __future__ import annotations

import os
import time

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse
from waiting import PATIENCE

import nmd_lab as nmd
from nmd_lab.studies.cell import METRICS

QUICK = {"alpha": 0, "max_iter": 15, "tol": 0}


def identical(a: xr.Dataset, b: xr.Dataset) -> bool:
    """Return whether two results are equal bit by bit, apart from time and memory."""
    measured = ["seconds", "peak_memory"]
    return a.drop_vars(measured).identical(b.drop_vars(measured))


def cells(results: xr.Dataset):
    """Yield the labels of every cell."""
    names = [str(dim) for dim in results.dims]
    for index in np.ndindex(*(results.sizes[name] for name in names)):
        yield {n: results[n].values.tolist()[i] for n, i in zip(names, index, strict=True)}


@pytest.fixture(scope="module")
def digits():
    return nmd.datasets.digits(30)


def test_dimensions_and_labels(digits):
    study = nmd.Study(
        digits, rank=[2, 3], nonlinearity=["relu", nmd.MinMax(0, 0.5)],
        missing={"random": [0.1, 0.3], "rows": 0.2}, noise={"gaussian": [0, 0.1]}, n_splits=2,
        random_state=7, **QUICK,
    )  # fmt: skip
    results = study.run(progress=False)
    assert list(results.dims) == ["nonlinearity", "rank", "missing", "noise", "seed"]
    assert results.nonlinearity.values.tolist() == ["relu", "MinMax(0, 0.5)"]
    assert results.missing.values.tolist() == ["random 0.1", "random 0.3", "rows 0.2"]
    assert results.missing_kind.values.tolist() == ["random", "random", "rows"]
    assert results.missing_level.values.tolist() == [0.1, 0.3, 0.2]
    assert results.noise.values.tolist() == [0, 0.1]
    assert results.seed.values.tolist() == [7, 8]
    assert (results.status == "done").all()
    assert bool((results.n_iter == 15).all())
    for entry_set in ("held_out", "observed", "clean"):
        for metric in ("rmse", "mae", "relative_error"):
            assert np.isfinite(results[f"{entry_set}_{metric}"]).all()
    assert bool((results.seconds > 0).all())
    memory = results.peak_memory.values
    assert np.isnan(memory).all() or (memory.min() >= 0 and 0 < memory.max() < 100 * 2**20)


@pytest.mark.filterwarnings("ignore::nmd_lab.OverfitWarning")
def test_every_number_is_that_of_a_single_call(digits):
    study = nmd.Study(
        digits, rank=[2, 4], nonlinearity=["relu", "square"], loss=["frobenius", "kl"],
        missing=[0.2, 0.5], noise={"poisson": [30]}, n_splits=2, **QUICK,
    )  # fmt: skip
    results = study.run(progress=False)
    for labels in cells(results):
        cell = study.cell(**labels)
        fit = nmd.complete(cell.X, **cell.arguments)
        result = results.sel(labels)
        # From the matrix of the fit and the data alone
        model, seen = fit.reconstruct().values, ~np.isnan(cell.X.values)
        assert seen.mean() == pytest.approx(1 - labels["missing"], abs=0.001)
        assert float(result.clean_rmse) == pytest.approx(nmd.metrics.rmse(digits, model), rel=1e-9)
        observed = nmd.metrics.mae(cell.X.values, model, mask=seen)
        assert float(result.observed_mae) == pytest.approx(observed, rel=1e-9)
        noisy = cell.values.reshape(digits.shape)
        np.testing.assert_array_equal(noisy[seen], cell.X.values[seen])
        held_out = nmd.metrics.relative_error(noisy, model, mask=~seen)
        assert float(result.held_out_relative_error) == pytest.approx(held_out, rel=1e-9)
        assert float(result.objective) == pytest.approx(fit.objective, rel=1e-9)
        assert float(result.n_iter) == fit.n_iter
        assert result.stop_reason.item() == fit.stop_reason


def test_labels_of_the_data_are_kept(digits):
    frame = pd.DataFrame(digits.values, index=[f"image {i}" for i in range(30)])
    study = nmd.Study(frame, rank=2, **QUICK)
    X = study.cell(seed=0).X
    assert X.dims == ("row", "column")
    assert X.row.values[3] == "image 3"
    assert nmd.Study(digits, rank=2).cell(seed=0).X.coords.identical(digits.coords)


def test_sparse_and_dense_agree(rng):
    X = rng.random((25, 20)) + 1
    X[rng.random(X.shape) < 0.5] = np.nan
    seen = ~np.isnan(X)
    as_sparse = sparse.csr_array((X[seen], np.nonzero(seen)), shape=X.shape)
    options = {"rank": [1, 2], "alpha": [0.1, 1], "constraint": "observed", "offsets": "both"}
    dense, thin = (nmd.Study(A, **(QUICK | options)) for A in (X, as_sparse))
    a, b = dense.run(progress=False), thin.run(progress=False)
    assert (b.status == "done").all()
    for name in ("held_out_rmse", "observed_mae", "objective"):
        np.testing.assert_allclose(a[name], b[name], rtol=1e-8)
    cell = thin.cell(rank=1, alpha=1, seed=2)
    assert sparse.issparse(cell.X)
    np.testing.assert_allclose(
        cell.X.toarray()[~np.isnan(dense.cell(rank=1, alpha=1, seed=2).X)],
        cell.values[~cell.hidden],
    )
    assert cell.X.nnz == round(0.8 * seen.sum())


def test_baselines_get_what_they_take_and_share_their_fits(digits):
    study = nmd.Study(
        digits, method=["admm", "svd", "mean_fill", "nmf"], nonlinearity=["relu", "identity"],
        rank=[2, 4], missing=[0.0, 0.3], n_splits=2, alpha=0, max_iter=200,
    )  # fmt: skip
    results = study.run(progress=False)
    assert len(np.unique(results.fit)) == 16 + 8 + 4 + 8
    svd = results.sel(solver="svd")
    assert svd.sel(nonlinearity="relu", drop=True).identical(
        svd.sel(nonlinearity="identity", drop=True)
    )
    where = {"solver": "svd", "nonlinearity": "relu", "rank": 4, "missing": 0.3, "seed": 1}
    cell = study.cell(**where)
    again = nmd.baselines.truncated_svd(cell.X, 4)
    expected = nmd.metrics.rmse(
        digits.values.ravel()[cell.hidden], cell.predict(again)[cell.hidden]
    )
    result = results.held_out_rmse.sel(where)
    assert float(result) == pytest.approx(expected, rel=1e-9)
    nmf = results.sel(solver="nmf")
    assert (nmf.sel(missing=0.0).status == "done").all()
    assert (nmf.sel(missing=0.3).status == "left out").all()
    assert "missing entries" in nmf.stop_reason.sel(missing=0.3).values.flat[0]
    assert np.isnan(nmf.observed_rmse.sel(missing=0.3)).all()
    assert np.isnan(results.held_out_rmse.sel(missing=0.0)).all()


def test_impossible_pairs_are_left_out_with_their_reason(digits):
    study = nmd.Study(
        digits, rank=2, loss=["frobenius", "kl"], noise={"gaussian": [0, 0.2]}, n_splits=2, **QUICK
    )
    results = study.run(progress=False)
    left_out = (results.status == "left out").any("seed")
    assert left_out.sel(loss="kl", noise=0.2).item()
    assert left_out.sum() == 1
    reason = results.stop_reason.sel(loss="kl", noise=0.2, seed=0).item()
    assert reason.startswith("left out: X holds the negative value")
    assert np.isnan(results.held_out_rmse.sel(loss="kl", noise=0.2)).all()
    assert int(np.isnan(results.held_out_rmse).sum()) == 2


def moody(X, rank, **options):
    """Raise an error, take a long time or succeed, depending on the rank."""
    if rank == 1:
        raise RuntimeError("no mood")
    if rank == 2:
        for _ in range(int(PATIENCE)):
            time.sleep(1)
    return nmd.baselines.truncated_svd(X, rank)


def test_failures_become_nan_with_their_reason(digits, tmp_path):
    path, options = tmp_path / "study.nc", {"method": moody, "n_splits": 2}
    nmd.Study(digits, rank=[1, 3], **options).run(path, progress=False)
    study = nmd.Study(digits, rank=[1, 2, 3], **options)
    results = study.run(path, progress=False, time_limit=0.3)  # what is left has no end of its own
    assert results.status.isel(seed=0).values.tolist() == ["failed", "timed out", "done"]
    assert results.stop_reason.values[0, 0] == "failed: RuntimeError: no mood"
    assert results.stop_reason.values[1, 0] == "time limit: not done after 0.3 s"
    assert np.isnan(results.held_out_rmse.values[:2]).all()
    assert np.isfinite(results.held_out_rmse.values[2]).all()
    assert "failed" not in study.table().index
    assert study.best().parameters == {"rank": 3}


def fragile(X, rank, random_state=None):
    """End its process for one rank and seed."""
    if rank == 2 and random_state == 0:
        os._exit(1)
    return nmd.baselines.truncated_svd(X, rank)


def test_processes_give_the_same_and_survive_the_death_of_one(digits):
    options = {"method": ["admm", fragile], "rank": [2, 3], "n_splits": 2} | QUICK
    results = nmd.Study(digits, **options).run(progress=False, n_jobs=2)
    one = nmd.Study(digits, **(options | {"method": "admm"})).run(progress=False)
    for name in ("held_out_rmse", "objective", "n_iter", "stop_reason", "fit"):
        np.testing.assert_array_equal(results[name].sel(solver="admm"), one[name])
    bad = results.status != "done"
    assert bad.sum() == 1
    dead = {"solver": "fragile", "rank": 2, "seed": 0}
    assert bad.sel(dead).item()
    reason = results.stop_reason.sel(dead).item()
    assert reason.startswith("failed: its process died")


def test_warnings_of_a_fit_are_kept(digits):
    results = nmd.Study(digits, method="nmf", rank=3, missing=0.0, max_iter=2).run(progress=False)
    assert "ConvergenceWarning" in results.warnings.values[0]


def test_metrics_by_name_and_by_function(digits):
    def worst(X, Y):
        return np.abs(X - Y).max()

    results = nmd.Study(
        digits, rank=2, metrics=[*METRICS, worst], n_splits=1, nonlinearity="relu", **QUICK
    ).run(progress=False)
    cell = nmd.Study(digits, rank=2, nonlinearity="relu", **QUICK).cell(seed=0)
    fit = cell.fit()
    x, y = cell.values[cell.hidden], cell.predict(fit)[cell.hidden]
    assert float(results.held_out_worst[0]) == np.abs(x - y).max()
    expected = nmd.metrics.relative_error(x, y, loss="kl")
    assert float(results.held_out_relative_error_kl[0]) == pytest.approx(expected)


def test_clean_truth_of_the_user():
    data = nmd.datasets.synthetic(30, 25, 2, "relu", noise=0.3, missing=0.2, random_state=0)
    study = nmd.Study(data.X, clean=data.clean, rank=2, nonlinearity="relu", n_splits=1, **QUICK)
    results = study.run(progress=False)
    model = study.cell().fit().reconstruct()
    assert float(results.clean_rmse[0]) == pytest.approx(nmd.metrics.rmse(data.clean, model))


BAD = {
    "misspelt argument": ({"nonlinearty": "relu"}, "did you mean 'nonlinearity'?"),
    "misspelt method": ({"method": ["admm", "svdd"]}, "did you mean 'svd'?"),
    "misspelt missing": ({"missing": {"colums": 0.1}}, "did you mean 'columns'?"),
    "misspelt noise": ({"noise": {"gausian": 0.1}}, "did you mean 'gaussian'?"),
    "misspelt metric": ({"metrics": ["rmsee"]}, "did you mean 'rmse'?"),
    "misspelt loss": ({"loss": ["l3"]}, "loss='l3'"),
    "all hidden": ({"missing": 1.0}, "missing=1.0"),
    "negative noise": ({"noise": {"gaussian": [-1]}}, "noise=-1"),
    "no noise at all": ({"noise": {}}, "noise="),
    "share above one": ({"noise": {"outliers": 1.5}}, "noise=1.5"),
    "no light": ({"noise": {"poisson": 0}}, "noise=0"),
    "word as level": ({"missing": ["much"]}, "missing='much'"),
    "rank too large": ({"rank": [3, 31]}, "rank=31"),
    "rank missing": ({"rank": None}, "rank"),
    "alpha": ({"alpha": [0, -1]}, "alpha=-1"),
    "twice": ({"alpha": [0, 0.0]}, "alpha"),
    "empty": ({"loss": []}, "loss=[]"),
    "n_splits": ({"n_splits": 0}, "n_splits=0"),
    "random_state": ({"random_state": None}, "random_state=None"),
    "callback": ({"callback": print}, "callback"),
    "function": ({"init": print}, "init"),
    "lambda": ({"method": lambda X, rank: None}, "method"),
    "clean": ({"clean": np.ones((3, 3))}, "clean"),
    "shape": ({"shape": (7, 7)}, "shape"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused_in_one_sentence(case, digits):
    options, text = BAD[case]
    with pytest.raises((ValueError, TypeError)) as caught:
        nmd.Study(digits, **({"rank": 2} | options))
    message = str(caught.value)
    assert text in message
    assert "\n" not in message


def test_rank_is_needed(digits):
    with pytest.raises(TypeError, match="rank is not given"):
        nmd.Study(digits, method=["admm", "svd"], loss=["l1", "kl"])


def test_unknown_cells_and_results_are_refused(digits):
    study = nmd.Study(digits, rank=[2, 3])
    with pytest.raises(ValueError, match="call run"):
        study.results  # noqa: B018
    with pytest.raises(ValueError, match=r"rank=4 is not in the study: choose from \[2, 3\]"):
        study.cell(rank=4, seed=0)
    with pytest.raises(ValueError, match="seed is not given"):
        study.cell(rank=2)
    with pytest.raises(ValueError, match="did you mean 'rank'"):
        study.cell(rnk=2, seed=0)
    with pytest.raises(ValueError, match="n_jobs=0"):
        study.run(n_jobs=0)


def test_the_bar_counts_fits_and_names_trouble(digits, capsys):
    study = nmd.Study(digits, rank=2, loss=["kl", "l1"], noise={"gaussian": [0.3]}, **QUICK)
    study.run()
    shown = capsys.readouterr().err
    assert "6/6" in shown
    assert "3 left out" in shown


def test_the_dimension_of_the_methods_is_selected_by_name(digits, tmp_path):
    study = nmd.Study(digits, method=["admm", "svd"], rank=[1, 2], n_splits=1, **QUICK)
    results = study.run(tmp_path / "study.nc", progress=False)
    svd = results.sel(solver="svd")
    assert svd.sizes == {"rank": 2, "seed": 1}
    cell = study.cell(solver="svd", rank=2)
    assert svd.held_out_rmse.item(1) == cell.scores(cell.fit())["held_out_rmse"]
    assert study.cell(method="svd", rank=2).task == cell.task  # the argument of the study, too
    assert study.table(method="svd").equals(study.table(solver="svd"))


def test_an_argument_called_like_the_dimension_of_the_methods(digits):
    def mine(X, rank, solver="lu"):
        return nmd.baselines.truncated_svd(X, rank)

    with pytest.raises(ValueError, match="rename the argument"):
        nmd.Study(digits, method=["svd", mine], rank=2, solver=["lu", "qr"])
