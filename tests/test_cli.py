"""The command: fits, studies and error messages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import io, sparse
from waiting import PATIENCE

import nmd_lab as nmd
from nmd_lab._command_line import ModelOptions, SolverOptions
from nmd_lab.cli import main
from nmd_lab.data.inputs import observe
from nmd_lab.result import netcdf
from nmd_lab.solver.options import COMPLETION_DEFAULTS, INITS, OFFSETS, Options
from nmd_lab.solver.settings import SPLITS
from nmd_lab.studies import configuration

PLAIN = ["--alpha", "0", "--rank"]
EXAMPLE = Path(__file__).parents[1] / "examples" / "study.toml"
MIXED = "id,age,sex,ill\na,60,m,True\nb,50,f,\nc,,f,False\nd,41,,True\ne,55,m,False\n"


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


@pytest.fixture
def asked(monkeypatch):
    """The calls of the library as (function, X, rank, options), which are noted and not made."""
    calls = []

    def noting(name):
        def note(X, rank, *, progress, **options):
            calls.append((name, X, rank, options))
            raise LookupError("noted")

        return note

    for name in ("complete", "decompose"):
        monkeypatch.setattr(f"nmd_lab.cli.{name}", noting(name))
    return calls


def test_every_format_is_read_with_its_labels(matrix, tmp_path, asked):
    read = {}
    for name, path in files(matrix, tmp_path).items():
        assert main(["fit", str(path)]) == 2
        read[name] = asked[-1][1]
        np.testing.assert_allclose(observe(read[name]).to_array(), matrix, err_msg=name)
    assert read["named.csv"].index[3] == "r3"
    assert read["columns.tsv"].columns.tolist() == [f"c{j}" for j in range(8)]
    assert read["a.nc"].dims == ("time", "place")


def test_a_long_table_by_its_names_and_by_others(tmp_path, asked, capsys):
    usual, other = tmp_path / "usual.csv", tmp_path / "other.csv"
    usual.write_text("userId,movieId,rating\n1,31,2.5\n1,10,3.0\n2,10,4.0\n2,31,1.0\n")
    other.write_text("who,movie,stars,seat\nann,7,4,1\nann,9,5,2\nbo,7,3,3\n")
    assert main(["fit", str(usual)]) == 2
    assert "2 rows (userId) x 2 columns (movieId), 4 values (rating)" in capsys.readouterr().out
    names = ["--row", "who", "--column", "movie", "--value", "stars"]
    assert main(["fit", str(other), *names]) == 2
    assert asked[-1][1].labels.dims == ("who", "movie")
    assert asked[-1][1].values.tolist() == [4, 5, 3]


@pytest.mark.parametrize(
    ("words", "rank", "options"),
    [
        ("", "auto", {}),
        ("--rank auto --alpha 0.5", "auto", {"alpha": 0.5}),
        ("--rank 2 --alpha auto --offset-alpha 3 --offsets both", 2,
         {"alpha": "auto", "offset_alpha": 3.0, "offsets": "both"}),
        ("--rank 2 --alpha 1 --loss auto", 2, {"alpha": 1.0, "loss": "auto"}),
        ("--rank 2 --alpha 1 --nonlinearity auto", 2, {"alpha": 1.0, "nonlinearity": "auto"}),
        ("--rank 2 --alpha 1 --time-limit none", 2, {"alpha": 1.0}),
        ("--rank 2 --alpha 1 --seed 3", 2, {"alpha": 1.0, "random_state": 3}),
        ("--rank 2 --alpha 1 --random-state 3", 2, {"alpha": 1.0, "random_state": 3}),
        ("--rank 2 --alpha 1 --loss l1 --nonlinearity minmax(0,4)", 2,
         {"alpha": 1.0, "loss": "l1", "nonlinearity": nmd.MinMax(0, 4)}),
        ("--rank 2 --alpha 1 --no-refine --homotopy true --polish false", 2,
         {"alpha": 1.0, "solver": nmd.ADMM(refine=False, homotopy=True, polish=False)}),
        ("--rank 2 --alpha 1 --rho 2 --split observed", 2,
         {"alpha": 1.0, "solver": nmd.ADMM(rho=2.0, split="observed")}),
        ("--rank 2 --alpha 1 --paper --threads 1", 2,
         {"alpha": 1.0, "solver": "paper", "compute": nmd.Compute(threads=1)}),
    ],
)  # fmt: skip
def test_options_of_a_fit(words, rank, options, tmp_path, asked, capsys):
    np.save(tmp_path / "a.npy", np.eye(3))
    assert main(["fit", str(tmp_path / "a.npy"), *words.split()]) == 2
    assert asked[0][0] == "complete"
    assert asked[0][2:] == (rank, options)
    is_chosen = not words or "auto" in words
    assert ("choosing by held-out entries" in capsys.readouterr().out) == is_chosen


def test_absent_entries_are_zeros_if_asked(tmp_path, asked):
    np.save(tmp_path / "a.npy", np.eye(3))
    assert main(["fit", str(tmp_path / "a.npy"), "--decompose"]) == 2
    assert asked[0][0] == "decompose"


@pytest.mark.parametrize("name", ["fit.csv", "fit.parquet"])
def test_known_cells_stay_and_the_reconstruction_is_an_option(name, tmp_path):
    if name.endswith("parquet") and not any(map(find_spec, ("pyarrow", "fastparquet"))):
        pytest.skip("needs pyarrow")
    data, out = tmp_path / "t.csv", tmp_path / name
    data.write_text("id,time,age\na,400.5,60\nb,100.25,50\nc,,70\nd,300.0,40\n")
    before = pd.read_csv(data, index_col=0)
    argv = ["fit", str(data), *PLAIN, "1", "--max-iter", "3", "--quiet", "--out", str(out)]

    def written():
        return pd.read_csv(out, index_col=0) if out.suffix == ".csv" else pd.read_parquet(out)

    assert main(argv) == 0
    filled = written()
    hole = filled.loc["c", "time"]
    assert np.isfinite(hole)
    pd.testing.assert_frame_equal(filled, before.fillna({"time": hole}), check_exact=True)
    assert main([*argv, "--reconstruction"]) == 0
    assert written().loc["c", "time"] == pytest.approx(hole, rel=1e-12)
    assert (written()["time"] != filled["time"])[["a", "b", "d"]].all()


def test_a_reconstruction_needs_a_table(tmp_path, capsys):
    for words in ([], ["--out", str(tmp_path / "fit.nc")]):
        assert main(["fit", "a.csv", "--reconstruction", *words]) == 2
        assert "give --out with .csv or .parquet." in capsys.readouterr().err


def test_classes_are_filled_as_numbers_are(tmp_path):
    data, out = tmp_path / "t.csv", tmp_path / "o.csv"
    data.write_text(MIXED)
    argv = ["fit", str(data), "--rank", "1", "--alpha", "0.1", "--max-iter", "20", "--quiet"]
    assert main([*argv, "--categories", "sex", "ill", "--out", str(out)]) == 0
    before, filled = pd.read_csv(data, index_col=0), pd.read_csv(out, index_col=0)
    seen = before.notna()
    pd.testing.assert_frame_equal(filled.astype(object).where(seen), before.astype(object))
    assert filled.loc["d", "sex"] in ("m", "f")
    assert filled.loc["b", "ill"] in (True, False)
    assert np.isfinite(filled.loc["c", "age"])


def test_columns_without_numbers_are_refused_in_words_of_the_shell(tmp_path, asked, capsys):
    data = tmp_path / "t.csv"
    data.write_text("lead,sex,name\n<0.5,m,w\n2,f,x\n3,f,y\n4,m,z\n")
    said = (
        "the table has identifiers or free text in column 'name' and limits such as '<0.5' in "
        "column 'lead': leave 'name', 'lead' out of the file, or give limits to nmd_lab.complete "
        "in Python, which says how."
    )
    assert main(["fit", str(data)]) == 2
    assert capsys.readouterr().err == f"nmd-lab: error: {said}\n"
    assert main(["fit", str(data), "--categories", "the sex"]) == 2
    assert "categories='the sex' is no column of the table: it has" in capsys.readouterr().err
    data.write_text(MIXED)
    assert main(["fit", str(data), "--categories", "sex", "ill"]) == 2
    assert asked[0][1].dtypes.map(str).to_dict() == {
        "age": "float64", "sex": "category", "ill": "category",
    }  # fmt: skip


def test_show(matrix, tmp_path, capsys):
    fit = nmd.complete(matrix, 2, alpha=0.25)
    fit.save(tmp_path / "fit.nc")
    assert main(["show", str(tmp_path / "fit.nc")]) == 0
    shown = capsys.readouterr().out
    assert repr(fit) in shown
    assert "alpha: 0.25" in shown


@pytest.mark.exhaustive
def test_the_example_runs_as_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").mkdir()
    text = EXAMPLE.read_text(encoding="utf-8")
    # One process and 52 fits instead of two and 468, to be quick
    quick = text.replace("n_jobs = 2", "n_jobs = 1").replace("[4, 8, 16]", "[4]")
    quick = quick.replace("n_splits = 3", "n_splits = 1")
    assert quick.count("= 1\n") == 2
    (tmp_path / "examples" / "study.toml").write_text(quick)
    command = text.splitlines()[0].removeprefix("# ").split()
    assert command[0] == "nmd-lab"
    assert main(command[1:]) == 0
    shown = capsys.readouterr()
    assert "52/52" in shown.err
    results = netcdf.read("study.nc")
    assert results.nonlinearity.values.tolist() == ["identity", "relu", "MinMax(0, 1)"]
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
    assert study.cell(rank=2, seed=0).settings["nonlinearity"] == nmd.MinMax(0, 2)
    assert study.cell(rank=1, seed=0).X.index[0] == "r0"


def test_a_study_of_ratings(tmp_path):
    config = tmp_path / "study.toml"
    config.write_text('[data]\ndataset = "movielens_small"\n[study]\nrank = 2\n')
    study, run = configuration.read_configuration(config)
    X = study.cell(seed=0).X
    assert isinstance(X, nmd.SparseObservations)
    assert X.labels.dims == ("user", "item")
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
        (path, "--rank", "two"): 'Invalid value for --rank: unable to convert "two" into',
        (path, "--rank", "2", "--alpha", "much"): "Invalid value for --alpha",
        (path, "--rank", "2", "--polish", "often"): 'Invalid value "often" for --polish',
        (path, "--paper", "--rho", "1"): "--paper does not go with --rho: leave out one of the two",
        (path, "--rank", "2", "--alpha", "-1"): "alpha=-1.0 is out of range",
        (path, "--offset-alpha", "-1"): "offset_alpha=-1.0 is out of range",
        (path, "--offsets", "atuo"): 'Invalid value "atuo" for --offsets',
        (str(tmp_path / "holes.npz"), "--decompose"): "or leave out --decompose.",
        (path, "--rank", "2", "--nonlinearty", "relu"): "Did you mean --nonlinearity?",
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
    assert main(["fti"]) == 2
    assert 'Did you mean "fit"?' in capsys.readouterr().err


def test_a_study_with_failures_says_so(tmp_path, capsys):
    config = tmp_path / "study.toml"
    endless = "max_iter = 1000000000\ntol = 0\nn_splits = 1\n[run]\ntime_limit = 0.2\n"
    config.write_text(GOOD + endless)
    assert main(["study", str(config), "--out", str(tmp_path / "study.nc")]) == 3
    assert "1 fits timed out, for example: time limit: not done" in capsys.readouterr().out


def test_ctrl_c(monkeypatch, capsys, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("nmd_lab.cli.read_file", interrupted)
    assert main(["fit", "a.csv", "--rank", "2"]) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("every", [0, 1000])
def test_ctrl_c_in_a_fit_names_the_checkpoint(every, matrix, monkeypatch, tmp_path, capsys):
    from nmd_lab.solver import stopping

    reason, seen = stopping.Stopping.reason, []

    def interrupted(*arguments):
        seen.append(1)
        if len(seen) > 5:
            raise KeyboardInterrupt
        return reason(*arguments)

    path, out, run = files(matrix, tmp_path)["a.npy"], tmp_path / "fit.nc", tmp_path / "run.nc"
    argv = ["fit", str(path), *PLAIN, "2", "--quiet", "--out", str(out)]
    argv += ["--checkpoint", str(run), "--checkpoint-every", str(every)]
    with monkeypatch.context() as patch:
        patch.setattr(stopping.Stopping, "reason", interrupted)
        assert main(argv) == 130
    goes_on = "" if every else f": the same command goes on from {run}"
    assert capsys.readouterr().err == f"nmd-lab: interrupted{goes_on}\n"
    assert not out.exists()
    assert main(argv) == 0


@pytest.fixture
def no_work(monkeypatch):
    """Nothing is read and nothing is fitted."""

    def work(*_, **__):
        raise AssertionError("the arguments are checked after the work")

    monkeypatch.setattr("nmd_lab.cli.read_file", work)
    monkeypatch.setattr("nmd_lab.studies.configuration.read_configuration", work)


@pytest.mark.parametrize(
    ("out", "message"),
    [("no/fit.nc", "is in no existing folder: make it first."), ("", "is a folder"),
     ("fit.doc", "has an unknown ending: give .nc"), ("fit", "has an unknown ending")],
)  # fmt: skip
def test_out_is_checked_before_any_work(out, message, no_work, tmp_path, capsys):
    assert main(["fit", "a.csv", "--rank", "2", "--out", str(tmp_path / out)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("nmd-lab: error: out=")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs /proc")
@pytest.mark.parametrize("command", [["fit", "a.csv", "--rank", "2"], ["study", "a.toml"]])
def test_a_folder_that_takes_no_file_is_told_before_any_work(command, no_work, capsys):
    assert main([*command, "--out", "/proc/x.nc"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("nmd-lab: error: out='/proc/x.nc'")
    assert "give another path." in error
    assert error.count("\n") == 1


def test_out_of_a_study_is_checked_before_any_work(no_work, tmp_path, capsys):
    assert main(["study", "a.toml", "--out", str(tmp_path / "no" / "study.nc")]) == 2
    assert "in no existing folder" in capsys.readouterr().err
    assert main(["study", "a.toml", "--out", str(tmp_path / "study.csv")]) == 2
    assert "results of a study are .nc files" in capsys.readouterr().err


def test_a_missing_library_is_said_before_any_work(no_work, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("nmd_lab.result.files.find_spec", lambda name: None)
    assert main(["fit", "a.csv", "--rank", "2", "--out", str(tmp_path / "a.parquet")]) == 1
    assert "needs pyarrow: pip install pyarrow." in capsys.readouterr().err


def test_an_unforeseen_error_is_one_line(monkeypatch, capsys):
    def broken(*_, **__):
        raise RuntimeError("it\nbroke")

    monkeypatch.setattr("nmd_lab.cli.read_file", broken)
    assert main(["fit", "a.csv", "--rank", "2"]) == 1
    assert capsys.readouterr().err == "nmd-lab: error: it broke\n"


def test_the_ending_decides_what_is_written(matrix, tmp_path):
    path = files(matrix, tmp_path)["named.csv"]
    argv = ["fit", str(path), *PLAIN, "2", "--offsets", "both", "--max-iter", "3", "--tol", "0",
            "--quiet", "--out"]  # fmt: skip
    for name in ("fit.nc", "fit.npz"):
        assert main([*argv, str(tmp_path / name)]) == 0
    fit = nmd.load(tmp_path / "fit.nc")
    assert fit.labels.coords["row"].values[3] == "r3"
    with np.load(tmp_path / "fit.npz") as arrays:
        np.testing.assert_array_equal(arrays["W"], fit.W)
        np.testing.assert_array_equal(arrays["H"], fit.H)
        np.testing.assert_array_equal(arrays["row_offsets"], fit.offsets.rows)
        np.testing.assert_array_equal(arrays["column_offsets"], fit.offsets.columns)
        assert arrays["mean_offset"] == fit.offsets.mean


def test_a_table_of_too_many_entries_is_refused_before_the_fit(matrix, tmp_path, monkeypatch):
    monkeypatch.setattr("nmd_lab.result.files.LARGEST_TABLE", 10)
    path, out = files(matrix, tmp_path)["a.npy"], tmp_path / "fit.csv"
    assert main(["fit", str(path), "--rank", "2", "--quiet", "--out", str(out)]) == 2


def test_a_written_table_is_read_with_its_labels(matrix, tmp_path, asked, capsys):
    pd.DataFrame(np.nan_to_num(matrix)).to_csv(tmp_path / "x.csv")
    assert main(["fit", str(tmp_path / "x.csv")]) == 2
    assert "read 12 rows x 8 columns from x.csv" in capsys.readouterr().out
    assert main(["fit", str(tmp_path / "x.csv"), "--no-header", "--no-index"]) == 2
    assert "read 13 rows x 9 columns from x.csv" in capsys.readouterr().out


def test_the_help_speaks_the_language_of_the_shell(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    for words in (["--help"], ["fit", "--help"], ["study", "--help"], ["show", "--help"]):
        assert main(words) == 0
        shown = capsys.readouterr().out
        assert max(map(len, shown.splitlines())) <= 80
        for python in ("VALUE", "None", "True", "False", "max_iter", "``", "'auto'"):
            assert python not in shown, python
    main(["fit", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for line in (
        "--max-iter INT",
        "--alpha CHOICE|FLOAT",
        "--rank CHOICE|INT",
        "[choices: auto, true, false]",
        "--no-header",
    ):
        assert line in shown


def test_every_option_of_a_fit_is_on_the_command_line():
    """With the choices and the defaults of the library; None where the two functions differ."""
    defaults = {f.name: f.default for each in (ModelOptions, SolverOptions) for f in fields(each)}
    absent = {"callback", "progress", "work_dir", "client"}  # the command reads files as a whole
    absent |= {"limit_noise"}  # of limits, which are matrices
    absent |= {"solver", "compute"}  # of which it has the settings
    expected = {
        f.name: f.default for each in (Options, nmd.ADMM, nmd.Compute) for f in fields(each)
    }
    expected |= dict.fromkeys(COMPLETION_DEFAULTS) | {"nonlinearity": None, "loss": "frobenius"}
    expected |= {"paper": False, "dtype": None}
    assert defaults == {name: each for name, each in expected.items() if name not in absent}
    choices = get_type_hints(SolverOptions) | get_type_hints(ModelOptions)
    assert get_args(choices["init"]) == INITS
    assert get_args(get_args(choices["offsets"])[0]) == OFFSETS
    assert get_args(choices["split"]) == SPLITS


def test_as_a_program(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "nmd_lab", "--version"],
        capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert run.stdout == f"nmd-lab {nmd.__version__}\n"
    if (script := shutil.which("nmd-lab", path=str(Path(sys.executable).parent))) is not None:
        again = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
        assert again.stdout == run.stdout


def test_the_data_are_not_overwritten(matrix, tmp_path, capsys):
    path = files(matrix, tmp_path)["named.csv"]
    before = path.read_bytes()
    (tmp_path / "link.csv").symlink_to(path)
    for out in (path, tmp_path / "link.csv", tmp_path / "." / "named.csv"):
        assert main(["fit", str(path), "--rank", "2", "--quiet", "--out", str(out)]) == 2
        assert "is the file of the data: give another path." in capsys.readouterr().err
    assert path.read_bytes() == before


def test_bounds_are_advised_as_the_shell_takes_them(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.arange(12.0).reshape(3, 4))
    call = ["fit", str(tmp_path / "x.npy"), *PLAIN, "1", "--quiet", "--nonlinearity"]
    assert main([*call, "minmax"]) == 2
    said = capsys.readouterr().err
    assert 'for example --nonlinearity "minmax(0, 11)".' in said
