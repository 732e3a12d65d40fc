"""The commands ``nmd-lab sample`` and ``nmd-lab impute``, and ``nmd-lab show`` of a posterior."""

from __future__ import annotations

import inspect
from dataclasses import fields
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import nmd_lab as nmd
from nmd_lab._command_line import SampledModelOptions, SamplerOptions
from nmd_lab.cli import main

SHORT = ["--rank", "2", "--draws", "40", "--tune", "20", "--seed", "0", "--quiet"]


@pytest.fixture
def frame(rng):
    X = rng.normal(size=(25, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(25, 6))
    X[rng.random(X.shape) < 0.2] = np.nan
    return pd.DataFrame(X, [f"r{i}" for i in range(25)], [f"c{j}" for j in range(6)])


@pytest.fixture
def table(frame, tmp_path):
    frame.to_csv(tmp_path / "x.csv")
    return tmp_path / "x.csv"


def run(*words):
    return main(["sample", *map(str, words)])


def test_a_filled_table_has_the_ends_of_intervals_beside(frame, table, tmp_path, capsys):
    out = tmp_path / "filled.csv"
    assert run(table, *SHORT, "--level", 0.8, "--out", out) == 0
    said = capsys.readouterr().out
    for words in ("read 25 rows x 6 columns", "nmd_lab.Posterior", "effective sample size",
                  f"saved as {out}"):  # fmt: skip
        assert words in said
    posterior = nmd.sample(frame, 2, draws=40, tune=20, random_state=0)
    written = pd.read_csv(out, index_col=0)
    assert list(written.columns[:4]) == ["c0", "c0 lower", "c0 upper", "c1"]
    assert list(written.index) == list(frame.index)
    i, j = np.nonzero(frame.isna().to_numpy())
    ends = posterior.predict_interval(i, j, level=0.8)
    expected = {"": posterior.predict(i, j), " lower": ends[:, 0], " upper": ends[:, 1]}
    seen = frame.notna().to_numpy()
    for suffix, values in expected.items():
        part = written[[f"{name}{suffix}" for name in frame.columns]].to_numpy()
        np.testing.assert_allclose(part[i, j], values, rtol=1e-9)
        np.testing.assert_allclose(part[seen], frame.to_numpy()[seen], rtol=1e-9)


def test_the_posterior_itself_is_saved_and_shown(frame, table, tmp_path, capsys):
    out = tmp_path / "posterior.nc"
    assert run(table, *SHORT, "--chains", 2, "--out", out) == 0
    posterior = nmd.load(out)
    assert isinstance(posterior, nmd.Posterior)
    again = nmd.sample(frame, 2, draws=40, tune=20, chains=2, random_state=0, progress=False)
    # older versions of pandas read some numbers of a text with an error of one unit of rounding
    xr.testing.assert_allclose(posterior.draws, again.draws, rtol=1e-9)
    capsys.readouterr()
    assert main(["show", str(out)]) == 0
    shown = capsys.readouterr().out
    for words in ("nmd_lab.Posterior", "draws: 80 in 2 chains", "offsets: ", "R-hat"):
        assert words in shown


def test_arrays_and_several_dimensions(frame, tmp_path):
    values = np.stack([frame.to_numpy()] * 2, axis=1)
    X = xr.DataArray(values, dims=("time", "level", "place"), name="X")
    X.to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    wanted = ["--sample-dims", "time", "--out"]
    assert run(tmp_path / "x.nc", *SHORT, *wanted, tmp_path / "filled.npz") == 0
    with np.load(tmp_path / "filled.npz") as arrays:
        assert set(arrays) == {"filled", "lower", "upper"}
        filled, lower, upper = (arrays[name] for name in ("filled", "lower", "upper"))
    holes = np.isnan(values.reshape(25, 12))
    assert (lower[holes] < filled[holes]).all()
    assert (filled[holes] < upper[holes]).all()
    np.testing.assert_array_equal(filled[~holes], values.reshape(25, 12)[~holes])
    assert run(tmp_path / "x.nc", *SHORT, *wanted, tmp_path / "filled.csv") == 0
    assert pd.read_csv(tmp_path / "filled.csv", index_col=0).shape == (25, 36)


@pytest.fixture
def mixed(frame, tmp_path):
    size = frame["c0"].fillna(0)
    frame = frame[["c0", "c1"]].assign(
        sex=np.where(size > 0, "m", "f"), ill=np.where(size > 0.5, "yes", "no")
    )
    frame.loc["r4", ["sex", "ill"]] = None
    frame.to_csv(tmp_path / "mixed.csv")
    return tmp_path / "mixed.csv"


CLASSES = ["--categories", "sex", "ill", "--seed", "0", "--tune", "10", "--quiet"]


def test_a_table_of_several_kinds_is_imputed(mixed, tmp_path, capsys):
    out, report = tmp_path / "filled.csv", tmp_path / "report.md"
    assert main(["impute", str(mixed), "--out", str(out), "--report", str(report), *CLASSES]) == 0
    before, filled = pd.read_csv(mixed, index_col=0), pd.read_csv(out, index_col=0)
    assert not filled.isna().to_numpy().any()
    pd.testing.assert_frame_equal(filled.where(before.notna()), before)
    assert "| sex | classes | 24 | 1 | most probable |" in report.read_text(encoding="utf-8")
    assert "report saved as" in capsys.readouterr().out
    assert "at most 2 factors" not in report.read_text(encoding="utf-8")
    assert "at most 3 factors" in report.read_text(encoding="utf-8")


def test_copies_are_below_each_other(mixed, table, frame, tmp_path):
    out = tmp_path / "copies.csv"
    argv = ["impute", str(mixed), "--draws", "3", "--out", str(out), "--rank", "1", *CLASSES]
    assert main(argv) == 0
    copies = pd.read_csv(out, index_col=0)
    assert list(copies.columns) == ["draw", "c0", "c1", "sex", "ill"]
    assert copies["draw"].tolist() == [1] * 25 + [2] * 25 + [3] * 25
    assert copies["c0"][copies["draw"] == 1].tolist() != copies["c0"][copies["draw"] == 2].tolist()
    assert list(copies.index) == 3 * list(frame.index)
    holes = frame.to_numpy(copy=True)
    holes[0, 0] = np.nan
    np.save(tmp_path / "x.npy", holes)
    words = ["impute", str(tmp_path / "x.npy"), "--draws", "310", "--out", str(out), "--rank", "1"]
    assert main([*words, "--seed", "0", "--quiet"]) == 0
    copies = pd.read_csv(out).groupby("draw").first()
    assert copies["0"].nunique() == len(copies) == 310


def test_classes_have_no_intervals(mixed, tmp_path):
    out = tmp_path / "filled.csv"
    assert run(mixed, "--rank", 1, "--draws", 20, "--out", out, *CLASSES) == 0
    written = pd.read_csv(out, index_col=0)
    ends = ["c0", "c0 lower", "c0 upper", "c1", "c1 lower", "c1 upper"]
    assert list(written.columns) == [*ends, "sex", "ill"]
    before = pd.read_csv(mixed, index_col=0)
    hole = before["c1"].isna()
    assert (written["c1 lower"] < written["c1 upper"])[hole].all()
    for end in ("lower", "upper"):
        np.testing.assert_allclose(written[f"c1 {end}"][~hole], before["c1"][~hole])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "x.nc"], "unknown ending: give .csv or .parquet"),
        (["--out", "x.csv", "--report", "x.pdf"], "unknown ending: give .html or .md"),
        (["--out", "x.csv", "--draws", "0"], "draws=0 is too small"),
        (["--out", "mixed.csv"], "is the file of the data"),
    ],
)
def test_what_cannot_be_imputed_is_refused(words, message, mixed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["impute", str(mixed), *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_a_filled_table_as_parquet(frame, table, tmp_path):
    assert run(table, *SHORT, "--out", tmp_path / "filled.parquet") == 0
    written = pd.read_parquet(tmp_path / "filled.parquet")
    assert list(written.columns[:3]) == ["c0", "c0 lower", "c0 upper"]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--loss", "ordinal", "--chains", "2"], {"loss": "ordinal", "chains": 2}),
        (["--nonlinearity", "minmax(1, 3)", "--noise", "after"],
         {"nonlinearity": nmd.MinMax(1, 3), "noise": "after"}),
        (["--random-state", "3"], {"random_state": 3}),
    ],
)  # fmt: skip
def test_options_of_a_posterior(words, options, table, monkeypatch):
    def note(X, rank, *, progress, **given):
        assert (rank, progress, given) == (2, False, options)
        raise LookupError("noted")

    monkeypatch.setattr("nmd_lab.cli.draw_from_posterior", note)
    assert run(table, "--rank", 2, "--quiet", *words) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rank", "2", "--level", "1"], "level=1.0 is out of range"),
        (["--rank", "0"], "rank=0 is too small"),
        (["--rank", "all"], 'unable to convert "all" into'),
        (["--rank", "2", "--draws", "0"], "draws=0 is too small"),
        (["--rank", "2", "--loss", "l3"], "loss='l3' is unknown"),
        (["--rank", "2", "--nonlinearity", "relo(1)"], "nonlinearity='relo' is unknown"),
        (["--rank", "2", "--alpha", "1"], "--alpha"),
        (["--rank", "2", "--out", "x.xlsx"], "unknown ending: give .nc (the posterior), or .npz"),
        (["--rank", "2", "--out", "nowhere/x.nc"], "nowhere"),
    ],
)
def test_bad_words_are_refused_in_one_line(words, message, table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(table, *words, "--quiet") == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_the_data_are_not_overwritten(table, capsys):
    before = table.read_bytes()
    assert run(table, *SHORT, "--out", table) == 2
    assert "is the file of the data: give another path." in capsys.readouterr().err
    assert table.read_bytes() == before


def test_a_table_that_is_too_large_is_refused_before_the_chain(
    table, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("nmd_lab.result.files.LARGEST_TABLE", 449)
    monkeypatch.setattr("nmd_lab.cli.draw_from_posterior", None)  # which it must not call
    assert run(table, *SHORT, "--out", tmp_path / "filled.csv") == 2
    assert "would hold 450 numbers: give .nc" in capsys.readouterr().err


def test_every_option_of_the_sampler_is_on_the_command_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    given = {f.name: f.default for each in (SampledModelOptions, SamplerOptions)
             for f in fields(each)}  # fmt: skip
    parameters = inspect.signature(nmd.sample).parameters
    expected = {name: each.default for name, each in parameters.items()}
    expected |= {each.name: each.default for each in fields(nmd.Compute)}
    elsewhere = {"X", "rank", "observed", "weights", "sample_dims", "targets", "callback"}
    elsewhere |= {"progress", "client"}  # of Python
    elsewhere |= {"compute"}  # of which it has the settings
    elsewhere |= {"device", "work_dir", "memory_limit"}  # which it refuses
    elsewhere |= {"at_most", "at_least", "upper"}  # which are matrices
    assert given == {name: each for name, each in expected.items() if name not in elsewhere}
    assert main(["sample", "--help"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    for python in ("VALUE", "None", "True", "False", "``", "'auto'"):
        assert python not in shown, python
    assert "--seed" in shown
