"""The command: reading, options, what is written, and refusals in one line."""

import inspect
import shutil
import subprocess
import sys
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from helpers import run_python, stored
from scipy import sparse

import nmd_lab as nmd
from nmd_lab import cli
from nmd_lab.cli import OF_PYTHON, main
from nmd_lab.fit import loop
from nmd_lab.result.files import LIBRARIES, check_export, write_table

PLAIN = ["--alpha", "0", "--rank", "2", "--max-iter", "3", "--tol", "0", "--quiet", "--out"]
MIXED = "id,age,sex,ill\na,60,m,True\nb,50,f,\nc,,f,False\nd,41,,True\ne,55,m,False\n"
CLASSES = ["--categories", "sex", "ill", "--seed", "0", "--quiet"]


@pytest.fixture
def matrix(rng):
    X = rng.random((12, 9)) @ rng.random((9, 8)) + 0.5
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.fixture
def mixed(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text(MIXED)
    return path


def files(X: np.ndarray, folder: Path) -> dict[str, Path]:
    """Write a matrix to a file of each kind: an array, a sparse matrix and a table."""
    paths = {name: folder / name for name in ("a.npy", "holes.npz", "named.csv")}
    np.save(paths["a.npy"], X)
    sparse.save_npz(paths["holes.npz"], stored(X))
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(X.shape[0])]).add_prefix("c")
    frame.to_csv(paths["named.csv"])
    return paths


@pytest.fixture
def asked(monkeypatch):
    """The calls of the library as (function, X, rank, options), which are noted and not made."""
    calls = []

    def noting(name):
        @wraps(getattr(cli, name))  # the parser reads the signature
        def note(X, rank, *, progress, **options):
            calls.append(SimpleNamespace(name=name, X=X, rank=rank, options=options))
            raise LookupError("noted")

        return note

    for name in ("complete", "_decompose", "sample"):
        monkeypatch.setattr(f"nmd_lab.cli.{name}", noting(name))
    return calls


def test_a_long_table_by_names_of_its_columns(tmp_path, asked, capsys):
    other = tmp_path / "other.csv"
    other.write_text("who,movie,stars,seat\nann,7,4,1\nann,9,5,2\nbo,7,3,3\n")
    names = ["--row", "who", "--column", "movie", "--value", "stars"]
    assert main(["fit", str(other), *names]) == 2
    assert "2 rows (who) x 2 columns (movie), 3 values (stars)" in capsys.readouterr().out
    assert asked[-1].X.labels.dims == ("who", "movie")
    assert asked[-1].X.values.tolist() == [4, 5, 3]


@pytest.mark.parametrize(
    ("words", "name", "options"),
    [
        ("fit", "complete", {}),
        ("fit --decompose", "_decompose", {}),
        ("fit --alpha auto --offset-alpha 3 --offsets both", "complete",
         {"alpha": "auto", "offset_alpha": 3.0, "offsets": "both"}),
        ("fit --alpha 1 --loss auto --dtype float32", "complete",
         {"alpha": 1.0, "loss": "auto", "dtype": "float32"}),
        ("fit --alpha 1 --random-state 3", "complete", {"alpha": 1.0, "random_state": 3}),
        ("fit --alpha 1 --loss l1 --nonlinearity minmax(0,4)", "complete",
         {"alpha": 1.0, "loss": "l1", "nonlinearity": nmd.MinMax(0, 4)}),
        ("fit --alpha 1 --no-refine --homotopy true --polish false", "complete",
         {"alpha": 1.0, "solver": nmd.ADMM(refine=False, homotopy=True, polish=False)}),
        ("fit --alpha 1 --rho 2 --split observed", "complete",
         {"alpha": 1.0, "solver": nmd.ADMM(rho=2.0, split="observed")}),
        ("fit --alpha 1 --paper --threads 1 --checkpoint run.nc", "complete",
         {"alpha": 1.0, "solver": "paper",
          "compute": nmd.Compute(threads=1, checkpoint=Path("run.nc"))}),
        ("impute --out y.csv --loss ordinal --chains 2", "sample",
         {"loss": "ordinal", "chains": 2}),
        ("impute --out y.csv --noise after --seed 3 --draws 400", "sample",
         {"noise": "after", "random_state": 3, "draws": 400}),
        ("impute --out y.csv --order station date", "sample", {"order": ["station", "date"]}),
    ],
)  # fmt: skip
def test_options_are_arguments(words, name, options, tmp_path, monkeypatch, asked, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.eye(3))
    command, *others = words.split()
    assert main([command, "a.npy", "--rank", "2", *others]) == 2
    assert vars(asked[0]) | {"X": None} == {
        "name": name, "X": None, "rank": 2, "options": options,
    }  # fmt: skip
    is_chosen = command == "fit" and (name == "complete" and "alpha" not in options)
    is_chosen |= "auto" in options.values()
    assert ("choosing by held-out entries" in capsys.readouterr().out) == is_chosen


@pytest.mark.parametrize(
    ("command", "function", "settings"),
    [("fit", nmd.complete, (nmd.ADMM, nmd.Compute)), ("impute", nmd.sample, (nmd.Compute,))],
)
def test_every_argument_of_the_library_is_an_option(
    command, function, settings, monkeypatch, capsys
):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    names = {name for each in (function, *settings) for name in inspect.signature(each).parameters}
    names -= OF_PYTHON | (set() if command == "fit" else {"device", "memory_limit"})
    assert not {name for name in names if f"--{name.replace('_', '-')}" not in shown}
    for words in ("auto|FLOAT", "auto|none|global") if command == "fit" else ("auto|INT",):
        assert words in shown
    for python in ("None", "True", "False", "``"):
        assert python not in shown


@pytest.mark.parametrize("name", ["fit.csv", "fit.parquet", "fit.xlsx"])
def test_known_cells_stay_and_the_reconstruction_is_an_option(name, tmp_path):
    libraries = LIBRARIES[Path(name).suffix]
    if libraries and not any(map(find_spec, libraries)):
        pytest.skip(f"needs {libraries[0]}")  # an extra that the lowest versions are without
    data, out = tmp_path / "t.csv", tmp_path / name
    data.write_text("id,time,age\na,400.5,60\nb,100.25,50\nc,,70\nd,300.0,40\n")
    before = pd.read_csv(data, index_col=0)
    argv = ["fit", str(data), *PLAIN, str(out), "--rank", "1"]

    def written():
        if out.suffix == ".parquet":
            return pd.read_parquet(out)
        return (pd.read_csv if out.suffix == ".csv" else pd.read_excel)(out, index_col=0)

    assert main(argv) == 0
    filled = written()
    hole = filled.loc["c", "time"]
    assert np.isfinite(hole)
    pd.testing.assert_frame_equal(filled, before.fillna({"time": hole}), check_exact=True)
    assert main([*argv, "--reconstruction"]) == 0
    assert written().loc["c", "time"] == pytest.approx(hole, rel=1e-12)
    assert (written()["time"] != filled["time"])[["a", "b", "d"]].all()


def test_the_ending_decides_what_is_written(matrix, tmp_path):
    path = files(matrix, tmp_path)["named.csv"]
    for name in ("fit.nc", "fit.npz"):
        out = str(tmp_path / name)
        assert main(["fit", str(path), *PLAIN, out, "--offsets", "both"]) == 0
    fit = nmd.load(tmp_path / "fit.nc")
    assert fit._labels.coords["row"].values[3] == "r3"
    with np.load(tmp_path / "fit.npz") as arrays:
        np.testing.assert_array_equal(arrays["W"], fit.W)
        np.testing.assert_array_equal(arrays["H"], fit.H)
        np.testing.assert_array_equal(arrays["row_offsets"], fit.offsets.rows)
        np.testing.assert_array_equal(arrays["column_offsets"], fit.offsets.columns)
        assert arrays["mean_offset"] == fit.offsets.mean


def test_classes_are_filled_as_numbers_are(mixed, tmp_path):
    out, report = tmp_path / "o.csv", tmp_path / "report.md"
    fit = ["fit", "--rank", "1", "--alpha", "0.1", "--max-iter", "20"]
    imputed = ["impute", "--tune", "10", "--report", str(report)]
    before = pd.read_csv(mixed, index_col=0)
    for command, *words in (fit, imputed):
        assert main([command, str(mixed), *words, *CLASSES, "--out", str(out)]) == 0
        filled = pd.read_csv(out, index_col=0)
        seen = before.notna()
        pd.testing.assert_frame_equal(filled.astype(object).where(seen), before.astype(object))
        assert filled.loc["d", "sex"] in ("m", "f")
        assert filled.loc["b", "ill"] in (True, False)
        assert np.isfinite(filled.loc["c", "age"])
    assert "| sex | categorical | 4 | 1 | most probable |" in report.read_text(encoding="utf-8")


def test_copies_are_below_each_other(mixed, tmp_path):
    out = tmp_path / "copies.csv"
    words = ["--n", "310", "--tune", "10", "--rank", "1", "--out", str(out), *CLASSES]
    assert main(["impute", str(mixed), *words]) == 0
    copies = pd.read_csv(out, index_col=0)
    assert list(copies.columns) == ["draw", "age", "sex", "ill"]
    assert copies["draw"].tolist() == np.repeat(np.arange(1, 311), 5).tolist()
    assert list(copies.index) == 310 * list("abcde")
    assert copies.loc["c", "age"].nunique() == 310


def test_columns_of_text_are_refused_in_words_of_the_shell(mixed, tmp_path, asked, capsys):
    data = tmp_path / "t.csv"
    data.write_text("lead,sex,name\n1,m,w\n2,f,x\n3,f,y\n4,m,z\n")
    said = "the table has identifiers or free text in column 'name': leave 'name' out of the file."
    assert main(["fit", str(data)]) == 2
    assert capsys.readouterr().err == f"nmd-lab: error: {said}\n"
    assert main(["fit", str(mixed), "--categories", "sex", "ill"]) == 2
    assert asked[0].X.dtypes.map(str).to_dict() == {
        "age": "float64", "sex": "category", "ill": "category",
    }  # fmt: skip


LAB = "sample,lead,zinc,site\na,0.7,<5,n\nb,<0.5,7,s\nc,1.2,>200,n\nd,ND,11,s\ne,2.2,12,n\n"


def test_limits_as_text_are_printed_and_given(tmp_path, asked, capsys):
    data, out = tmp_path / "lab.csv", str(tmp_path / "o.csv")
    data.write_text(LAB)
    assert main(["impute", str(data), "--out", out]) == 2
    assert "column 'lead' has 1 cell such as 'ND' below a limit " in (
        error := capsys.readouterr().err
    )
    assert error.endswith(" as a word: write '<' and the limit there.\n")
    data.write_text(LAB.replace("ND", "<0.3"))
    main(["impute", str(data), "--out", out])
    printed = "at_most: 3 cells (lead 2, zinc 1)\nat_least: 1 cell (zinc 1)\n"
    assert capsys.readouterr().out.endswith(printed)
    X, options = asked[0].X, asked[0].options
    assert X["lead"].tolist() == [0.7, 0.5, 1.2, 0.3, 2.2]
    assert options["at_most"].sum().to_dict() == {"lead": 2, "zinc": 1, "site": 0}


REFUSED = [
    ("fit a.npy --rank two", "argument --rank: 'two' is none of auto|INT"),
    ("fit a.npy --alpha much", "argument --alpha: 'much' is none of auto|FLOAT"),
    ("fit a.npy --polish often", "argument --polish: 'often' is none of auto|true|false"),
    ("fit a.npy --paper --rho 1", "--paper does not go with --rho: leave out one of the two"),
    ("fit a.npy --rank 2 --alpha -1", "alpha=-1.0 is out of range"),
    ("fit a.npy --nonlinearty relu", "--nonlinearty is not an option: did you mean '--nonlinear"),
    ("fit a.npy --rank 2 --row user", "row='user' is meant for tables"),
    ("fit a.npy --reconstruction --out f.nc", "give --out with .csv, .parquet or .xlsx."),
    ("fit a.npy --rank 1 --nonlinearity minmax", '--nonlinearity "minmax(0.5, 95.5)".'),
    ("fit holes.npz --decompose", "or leave out --decompose."),
    ("fit none.csv --rank 2", "does not exist"),
    ("fit a.doc --rank 2", "unknown ending"),
    ("fit empty.csv --rank 2", "cannot be read"),
    ("fit two.npz --rank 2", "variable=None is unknown: choose one of"),
    ("fit triples.csv --row user --column film --value stars", "row='user' is not in the table"),
    ("fit mixed.csv --categories theSex", "categories='theSex' is unknown: choose one of"),
    ("fit mixed.csv --out link.csv", "is the file of the data: give another path."),
    ("fit none.csv --out no/fit.nc", "is in no existing folder: make it first."),
    ("fit none.csv --out folder", "is a folder"),
    ("fit none.csv --out fit.doc", "has an unknown ending: give .nc"),
    ("fti a.npy", "invalid choice: 'fti'"),
    ("impute mixed.csv", "required: --out"),
    ("impute mixed.csv --out x.nc", "unknown ending: give .csv, .parquet or .xlsx"),
    ("impute mixed.csv --out x.csv --report x.pdf", "unknown ending: give .html or .md"),
    ("impute mixed.csv --out x.csv --n 0", "n=0 is too small"),
    ("impute mixed.csv --out x.csv --alpha 1", "--alpha is not an option"),
]


def test_bad_words_and_files_are_refused_in_one_line(mixed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X = np.arange(96.0).reshape(12, 8) + 0.5
    files(np.where(X == 5.5, np.nan, X), tmp_path)
    np.save("a.npy", X)
    for name, text in {"a.doc": "", "empty.csv": "", "triples.csv": "1,2,3\n1,3,4\n"}.items():
        Path(name).write_text(text)
    Path("folder").mkdir()
    Path("link.csv").symlink_to(mixed)
    np.savez("two.npz", a=X, b=X)
    for words, message in REFUSED:
        assert main(words.split()) == 2, words
        said = capsys.readouterr().err
        assert said.startswith("nmd-lab: error: "), said
        assert message in said
        assert said.count("\n") == 1, said
    assert mixed.read_text() == MIXED


def test_a_missing_library_is_said_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("nmd_lab.result.files.find_spec", lambda name: None)
    for ending, library in ((".parquet", "pyarrow"), (".xlsx", "openpyxl")):
        assert main(["fit", "a.csv", "--rank", "2", "--out", str(tmp_path / f"a{ending}")]) == 1
        assert f"needs {library}: pip install {library}." in capsys.readouterr().err


def test_a_table_of_too_many_entries_is_refused_before_any_work(
    mixed, tmp_path, asked, monkeypatch
):
    monkeypatch.setattr("nmd_lab.result.files.MAX_TABLE_ENTRIES", 10)
    for command in ("fit", "impute"):
        assert main([command, str(mixed), *CLASSES, "--out", str(tmp_path / "filled.csv")]) == 2
    assert not asked


@pytest.mark.skipif(find_spec("openpyxl") is None, reason="needs openpyxl")
@pytest.mark.parametrize("shape", [(20, 60_000, 3), (5, 20_000)])
def test_more_rows_or_columns_than_excel_has_are_refused(tmp_path, shape):
    with pytest.raises(ValueError, match=r"than a sheet of Excel: give \.csv or \.parquet\."):
        check_export(tmp_path / "x.xlsx", shape=shape)
    check_export(tmp_path / "x.csv", shape=shape)


@pytest.mark.skipif(find_spec("openpyxl") is None, reason="needs openpyxl")
def test_dates_with_a_time_zone_are_text_in_excel(tmp_path):
    days = pd.date_range("2020-03-28", periods=3, tz="Europe/Berlin")
    write_table(pd.DataFrame({"when": days}, index=days), tmp_path / "x.xlsx", plain=True)
    found = pd.read_excel(tmp_path / "x.xlsx", index_col=0)
    for texts in (found.index, found["when"]):
        assert list(pd.to_datetime(texts, utc=True)) == list(days)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [(KeyboardInterrupt(), 130, "interrupted"), (RuntimeError("it\nbroke"), 1, "error: it broke")],
)
def test_an_interrupt_and_an_unforeseen_error_are_one_line(error, code, line, monkeypatch, capsys):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr("nmd_lab.cli.read_file", broken)
    assert main(["fit", "a.csv", "--rank", "2"]) == code
    assert capsys.readouterr().err == f"nmd-lab: {line}\n"


@pytest.mark.parametrize("every", [0, 1000])
def test_ctrl_c_in_a_fit_names_the_checkpoint(every, matrix, monkeypatch, tmp_path, capsys):
    reason, seen = loop.Stopping.reason, []

    def interrupted(*arguments):
        seen.append(1)
        if len(seen) > 5:
            raise KeyboardInterrupt
        return reason(*arguments)

    path, out, run = files(matrix, tmp_path)["a.npy"], tmp_path / "fit.nc", tmp_path / "run.nc"
    argv = ["fit", str(path), *PLAIN, str(out), "--max-iter", "50"]
    argv += ["--checkpoint", str(run), "--checkpoint-every", str(every)]
    with monkeypatch.context() as patch:
        patch.setattr(loop.Stopping, "reason", interrupted)
        assert main(argv) == 130
    goes_on = "" if every else f": the same command resumes from {run}"
    assert capsys.readouterr().err == f"nmd-lab: interrupted{goes_on}\n"
    assert not out.exists()
    assert main(argv) == 0


def test_as_a_program():
    run = run_python("-m", "nmd_lab", "--version")
    assert run.stdout == f"nmd-lab {nmd.__version__}\n"
    if (script := shutil.which("nmd-lab", path=str(Path(sys.executable).parent))) is not None:
        again = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
        assert again.stdout == run.stdout
