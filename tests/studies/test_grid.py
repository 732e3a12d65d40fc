"""The arguments of a study: which are refused, which fits are equal, and what "auto" leads to."""

import numpy as np
import xarray as xr
from refused import check_all_refused

import nmd_lab as nmd
from nmd_lab.result import netcdf


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
