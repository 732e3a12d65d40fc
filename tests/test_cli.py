"""The command: fits, studies and error messages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import io, sparse
from waiting import PATIENCE

import nmd_lab as nmd
from nmd_lab.cli import main
from nmd_lab.data.readers import read_matrix
from nmd_lab.result import netcdf
from nmd_lab.studies import configuration

EXAMPLE = Path(__file__).parents[1] / "examples" / "study.toml"


@pytest.fixture
def matrix(rng):
    X = rng.random((12, 9)) @ rng.random((9, 8)) + 0.5
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def files(X: np.ndarray, folder: Path) -> dict[str, Path]:
    """Write a matrix to a file of each format that can be read."""
    stored = ~np.isnan(X)
    holes = sparse.coo_array((X[stored], np.nonzero(stored)), shape=X.shape)
    names = [f"c{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(X.shape[0])], columns=names)
    paths = {name: folder / name for name in
             ("a.npy", "a.npz", "holes.npz", "a.mtx", "bare.csv", "named.csv", "columns.tsv",
              "a.txt", "a.nc")}  # fmt: skip
    np.save(paths["a.npy"], X)
    np.savez(paths["a.npz"], X=X)
    sparse.save_npz(paths["holes.npz"], holes.tocsr())
    io.mmwrite(paths["a.mtx"], holes)
    frame.to_csv(paths["bare.csv"], header=False, index=False)
    frame.to_csv(paths["named.csv"])
    frame.to_csv(paths["columns.tsv"], sep="\t", index=False)
    np.savetxt(paths["a.txt"], X)
    xr.DataArray(X, dims=("time", "place"), name="X").to_netcdf(paths["a.nc"], engine="h5netcdf")
    return paths


def test_every_format_gives_the_same_fit(matrix, tmp_path, capsys):
    expected = nmd.complete(matrix, 2, "relu", constraint="everywhere", max_iter=20, tol=0)
    for path in files(matrix, tmp_path).values():
        out = tmp_path / "fit.nc"
        argv = ["fit", path, "--rank", 2, "--nonlinearity", "relu", "--constraint", "everywhere",
                "--max-iter", 20, "--tol", 0, "--quiet", "--out", out]  # fmt: skip
        assert main([str(word) for word in argv]) == 0, path
        shown = capsys.readouterr()
        assert "relative error" in shown.out
        assert not shown.err
        fit = nmd.load(out)
        assert fit.n_iter == 20
        values = fit.reconstruct().values
        np.testing.assert_allclose(values, expected.reconstruct(), rtol=1e-6, err_msg=str(path))


def test_labels_come_along(matrix, tmp_path):
    paths = files(matrix, tmp_path)
    named = read_matrix(paths["named.csv"])
    assert named.index[3] == "r3"
    assert named.columns.tolist() == [f"c{j}" for j in range(8)]
    assert read_matrix(paths["columns.tsv"]).columns[0] == "c0"
    assert read_matrix(paths["a.nc"]).dims == ("time", "place")
    long = tmp_path / "ratings.csv"
    long.write_text("user,movie,stars,when\nann,7,4,1\nann,9,5,2\nbo,7,3,3\n")
    ratings = read_matrix(long, row="user", column="movie", value="stars")
    assert ratings.labels.dims == ("user", "movie")
    assert ratings.values.tolist() == [4, 5, 3]


def test_options_of_a_fit(matrix, tmp_path):
    path, out = files(matrix, tmp_path)["a.npy"], tmp_path / "fit.nc"
    argv = ["fit", str(path), "--rank", "2", "--nonlinearity", "minmax(0, 4)", "--loss", "l1",
             "--alpha", "0.5", "--penalty", "2", "--random-state", "3", "--quiet",
             "--time-limit", "none", "--out", str(out)]  # fmt: skip
    assert main(argv) == 0
    fit = nmd.load(out)
    assert fit.nonlinearity == nmd.MinMax(0, 4)
    assert fit.loss == nmd.L1()
    expected = {"alpha": 0.5, "penalty": 2, "random_state": 3, "time_limit": None}
    assert {name: fit.parameters[name] for name in expected} == expected


@pytest.mark.filterwarnings("ignore::nmd_lab.NMDWarning")  # of few entries
def test_absent_entries_are_zeros_if_asked(matrix, tmp_path):
    path = files(np.where(matrix > 3, matrix, np.nan), tmp_path)["a.mtx"]
    out = tmp_path / "fit.nc"
    argv = ["fit", str(path), "--rank", "2", "--quiet", "--out", str(out)]
    assert main([*argv, "--decompose"]) == 0
    assert nmd.load(out).parameters["n_observed"] == matrix.size
    assert main(argv) == 0
    assert nmd.load(out).parameters["n_observed"] == np.count_nonzero(matrix > 3)


def test_show(matrix, tmp_path, capsys):
    fit = nmd.complete(matrix, 2, alpha=0.25)
    fit.save(tmp_path / "fit.nc")
    assert main(["show", str(tmp_path / "fit.nc")]) == 0
    shown = capsys.readouterr().out
    assert repr(fit) in shown
    assert "alpha: 0.25" in shown


def test_the_example_runs_as_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").mkdir()
    text = EXAMPLE.read_text(encoding="utf-8")
    # One process and 28 fits instead of two and 252, to be quick
    quick = text.replace("n_jobs = 2", "n_jobs = 1").replace("[4, 8, 16]", "[4]")
    quick = quick.replace("n_splits = 3", "n_splits = 1")
    assert quick.count("= 1\n") == 2
    (tmp_path / "examples" / "study.toml").write_text(quick)
    command = text.splitlines()[0].removeprefix("# ").split()
    assert command[0] == "nmd-lab"
    assert main(command[1:]) == 0
    shown = capsys.readouterr()
    assert "28/28" in shown.err
    results = netcdf.read("study.nc")
    assert results.nonlinearity.values.tolist() == ["identity", "relu", "minmax"]
    assert (results.status == "done").all()
    assert f"{float(results.held_out_rmse.values.flat[0]):.4g}" in shown.out
    assert main([*command[1:], "--quiet"]) == 0
    assert not capsys.readouterr().err
    assert main(["show", "study.nc"]) == 0
    assert "held_out_rmse" in capsys.readouterr().out


def test_the_example_is_the_one_in_the_documentation():
    printed = EXAMPLE.read_text(encoding="utf-8").split("\n", 2)[2]
    indented = "".join(f"    {line}".rstrip() + "\n" for line in printed.splitlines())
    assert indented in (configuration.__doc__ or "")


def test_a_study_of_a_file_beside_it(matrix, tmp_path):
    path = files(matrix, tmp_path)["named.csv"]
    config = tmp_path / "study.toml"
    config.write_text(
        f'[data]\nfile = "{path.name}"\n[study]\nrank = [1, 2]\nmax_iter = 5\n'
        'nonlinearity = "minmax(0, 2)"\nmethod = "admm"\n[study.missing]\nrows = 0.2\n'
    )
    study, _ = configuration.read_configuration(config)
    assert study.grid.task({"rank": 2, "seed": 0}).arguments["nonlinearity"] == nmd.MinMax(0, 2)
    assert study.cell(rank=1, seed=0).X.row.values[0] == "r0"


def test_a_study_of_ratings(tmp_path):
    config = tmp_path / "study.toml"
    config.write_text('[data]\ndataset = "movielens_small"\n[study]\nrank = 2\n')
    study, run = configuration.read_configuration(config)
    assert study.problem.data.is_sparse
    assert study.problem.data.labels.dims == ("user", "item")
    assert run == {}


WRONG = {
    "section": ("[dta]\n", "section='dta' is unknown: did you mean 'data'?"),
    "missing section": ('[data]\ndataset = "digits"\n', "has no section [study]"),
    "argument": ("nonlinearty = 'relu'", "'nonlinearty' is unknown: did you mean 'nonlinearity'?"),
    "own argument": ("n_split = 2", "'n_split' is unknown: did you mean 'n_splits'?"),
    "run": ("[run]\nn_job = 2", "run='n_job' is unknown: did you mean 'n_jobs'?"),
    "model": ("nonlinearity = 'minmx(1, 2)'", "did you mean 'minmax'?"),
    "bounds": ("nonlinearity = 'minmax(3, 1)'", "makes no sense"),
    "loss": ("loss = ['frobenius', 'kll']", "loss='kll'"),
    "dataset": ("[data]\ndataset = 'digit'\n[study]\nrank=2", "did you mean 'digits'?"),
    "data": ("[data]\ndataset = 'digits'\nm = 3\n[study]\nrank=2", "data='m' is unknown"),
    "both": ("[data]\n[study]\nrank=2", "neither or both"),
    "key of data": ("[data]\nfil = 'a.csv'\n[study]\nrank=2", "did you mean 'file'?"),
    "no file": ("[data]\nfile = 'a.csv'\n[study]\nrank=2", "does not exist"),
    "syntax": ("[data\n", "is not TOML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_configurations_are_refused_in_one_sentence(case, tmp_path, capsys):
    text, expected = WRONG[case]
    whole = text if text.startswith(("[d", "[s")) else f"{GOOD}{text}\n"
    config = tmp_path / "study.toml"
    config.write_text(whole)
    assert main(["study", str(config), "--out", str(tmp_path / "study.nc")]) == 2
    message = capsys.readouterr().err
    assert message.startswith("nmd-lab: error: ")
    assert expected in message
    assert message.count("\n") == 1
    assert not (tmp_path / "study.nc").exists()


GOOD = '[data]\ndataset = "digits"\nn = 10\n[study]\nrank = 2\n'


def test_bad_words_and_files_are_refused(matrix, tmp_path, capsys):
    path = str(files(matrix, tmp_path)["a.npy"])
    (tmp_path / "a.doc").write_text("")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "torn.mtx").write_text("%%MatrixMarket\n")
    (tmp_path / "torn.npz").write_text("no")
    np.savez(tmp_path / "two.npz", a=matrix, b=matrix)
    for arguments, expected in {
        (path, "--rank", "20"): "rank=20 exceeds",
        (path, "--rank", "two"): "rank='two' is not an integer",
        (path, "--rank", "2", "--alpha", "much"): "alpha='much'",
        (path, "--rank", "2", "--row", "user"): "row='user' is meant for tables",
        (str(tmp_path / "none.csv"), "--rank", "2"): "does not exist",
        (str(tmp_path / "a.doc"), "--rank", "2"): "unknown ending",
        (str(tmp_path / "empty.csv"), "--rank", "2"): "cannot be read",
        (str(tmp_path / "torn.mtx"), "--rank", "2"): "cannot be read",
        (str(tmp_path / "torn.npz"), "--rank", "2"): "cannot be read",
        (str(tmp_path / "two.npz"), "--rank", "2"): "variable is not given",
    }.items():
        assert main(["fit", *arguments]) == 2
        message = capsys.readouterr().err
        assert expected in message
        assert message.count("\n") == 1, message
    assert main(["show", str(tmp_path / "none.nc")]) == 2
    with pytest.raises(SystemExit) as caught:
        main(["fit", path, "--rank", "2", "--nonlinearty", "relu"])
    assert caught.value.code == 2
    assert "did you mean --nonlinearity?" in capsys.readouterr().err


def test_a_study_with_failures_says_so(tmp_path, capsys):
    config = tmp_path / "study.toml"
    endless = "max_iter = 1000000000\ntol = 0\nn_splits = 1\n[run]\ntime_limit = 0.2\n"
    config.write_text(GOOD + endless)
    assert main(["study", str(config), "--out", str(tmp_path / "study.nc")]) == 3
    assert "1 fits timed out, for example: time limit: not done" in capsys.readouterr().out


def test_ctrl_c(monkeypatch, capsys, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("nmd_lab.cli.read_matrix", interrupted)
    assert main(["fit", "a.csv", "--rank", "2"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_as_a_program(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "nmd_lab.cli", "--version"],
        capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert run.stdout == f"nmd-lab {nmd.__version__}\n"
    if (script := shutil.which("nmd-lab", path=str(Path(sys.executable).parent))) is not None:
        again = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
        assert again.stdout == run.stdout
