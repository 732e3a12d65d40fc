"""What is saved comes back exactly, in another process, and nothing less is ever left behind."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import chosen
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import check_all_refused
from made_draws import made_up

import nmd_lab
from nmd_lab.result import netcdf
from nmd_lab.result.files import result_of


def assert_same(one: nmd_lab.Decomposition, other: nmd_lab.Decomposition) -> None:
    for name in ("W", "H", "history"):
        assert_identical(getattr(one, name), getattr(other, name))
    assert one.W.dtype == other.W.dtype
    assert_identical(one._labels.coords, other._labels.coords)
    xr.testing.assert_identical(one.reconstruct(), other.reconstruct())
    for name in ("nonlinearity", "loss", "stop_reason", "parameters"):
        assert getattr(one, name) == getattr(other, name)
        assert type(getattr(one, name)) is type(getattr(other, name))
    for name in ("dims", "shape", "rows", "name"):
        assert getattr(one._labels, name) == getattr(other._labels, name)


def assert_identical(first, second) -> None:
    xr.testing.assert_identical(first, second)
    assert types_of(first) == types_of(second)


def types_of(data) -> dict[str, Any]:
    """Return the types of all coordinates, of their indexes and of the levels of these."""
    found = {name: [coordinate.dtype] for name, coordinate in data.coords.items()}
    for name, index in data.indexes.items():
        levels = [index]
        if isinstance(index, pd.MultiIndex):
            levels = index.remove_unused_levels().levels
            found[name].append([level.tolist() for level in levels])
        found[name].append([(type(each), each.dtype) for each in (index, *levels)])
    return found


def fitted(X, verb="decompose", **options) -> nmd_lab.Decomposition:
    options = {"alpha": 0, "max_iter": 5, "random_state": 3} | options
    return getattr(nmd_lab, verb)(X, 2, **options)


SEEDED = np.random.default_rng(0).random((4, 3))
ROWS = {
    "text": pd.Index(["a", "bb", "日本", ""]),
    "text as objects": pd.Index(["a", "b", "c", "d"], dtype=object),
    "text of pandas": pd.Index(["a", "b", "c", "d"], dtype="string"),
    "text with holes": pd.Index(["a", None, "c", "d"], dtype="str"),
    "odd text": pd.Index(["a\0", "line\nbreak", "\ud800", "d"], dtype=object),
    "mixed": pd.Index(["a", 1, None, 2.5], dtype=object),
    "small integers": pd.Index([3, 1, 2, 0], dtype="uint8"),
    "truth": pd.Index([True, False, True, False]),
    "floats": pd.Index([0.1, np.nan, np.inf, -0.0], dtype="float32"),
    "days": pd.date_range("2024-02-28", periods=4),
    "seconds": pd.date_range("2024-02-28", periods=4, unit="s"),
    "time zone": pd.date_range("2024-03-30", periods=4, tz="Europe/Rome"),
    "durations": pd.to_timedelta([1, 2, 3, None], unit="s"),
    "duplicates": pd.Index(["a", "a", "b", "b"]),
    "levels": pd.MultiIndex.from_tuples(
        [("z", 2), ("z", 1), ("a", 2), ("a", 1)], names=["letter", "number"]
    ),
    "levels without names": pd.MultiIndex.from_product(
        [pd.to_timedelta([2, 1], "h"), [True, False]]
    ),
    "small levels": pd.MultiIndex.from_product([[60.0, 0.0], np.array([3, 1], "int16")]),
    "levels with holes": pd.MultiIndex.from_tuples([("z", 2), (None, 1), ("a", 2), ("b", 1)]),
    "unsorted categories": pd.MultiIndex(
        levels=[["winter", "summer"], [1.5, 0.5]], codes=[[0, 0, 1, 1], [0, 1, 0, 1]],
        names=["season", "dose"],
    ),
}  # fmt: skip


VALUES = [
    np.array(["a", "bb", "ccc", ""]), np.array(["a", "bb", "ccc", ""], np.dtypes.StringDType()),
    np.array([1, 2, 3, 4], "float16"), np.array([1, 2, 3, 4], ">i4"),
    np.arange(4).astype("timedelta64[ms]"), np.array([True, False, False, True]),
    np.array(["a", None, 3, 1.5], dtype=object),
]  # fmt: skip
"""Coordinates that are no index."""

NAMES = ("W", "H"), ("iteration", "component_"), ("seconds", "a/b")
"""Names of dimensions that results use, too."""


def labelled():
    """Return data with labels of every kind by their names."""
    genes = pd.Index(["x", "y", "z"], name="gene")
    found = {name: pd.DataFrame(SEEDED, rows, genes) for name, rows in ROWS.items()}
    for values in VALUES:
        about = {"flag": True, "none": None, "nested": {"a": [1, 2]}}
        coords = {"extra": ("row", values, about), "scalar": values[1]}
        if xr.Variable("row", values).identical(xr.Variable("row", values.copy())):  # as it should
            found[str(values.dtype)] = xr.DataArray(SEEDED, coords, ("row", "column"))
    for names in NAMES:
        coords = {names[0]: [1, 2, 3, 4], "objective": 7.0, "X_W": (names[1], [1, 2, 3])}
        attrs = {"units": "m", "valid_range": np.array([0.0, 9.0]), "levels": np.int64(3)}
        found[f"dims {names}"] = xr.DataArray(SEEDED, coords, names, name="W", attrs=attrs)
    return found


LABELLED = labelled()


@pytest.mark.parametrize("case", LABELLED)
def test_labels_and_names_of_every_kind(case, read_back):
    for X in (LABELLED[case], LABELLED[case].T):
        fit = fitted(X, offsets="both")  # which have the labels of rows and columns, too
        if isinstance(X, xr.DataArray):
            assert fit.reconstruct().dims == X.dims
            found, given = (xr.Variable((), 0, each.attrs) for each in (fit.reconstruct(), X))
            assert found.identical(given)
        assert_same(fit, read_back(fit))
        assert_same(fit, result_of(fit._to_dataset()))


FRESH = "import sys, nmd_lab; print(*map(nmd_lab.load, sys.argv[1:]), sep='\\n')"


def test_round_trip_in_a_fresh_process(tmp_path):
    frame = pd.DataFrame(SEEDED, index=ROWS["days"], columns=["ä", "ö", "ü"])
    holes = frame.where(frame > 0.1)
    bounds = {"n_init": 2, "init": "random", "time_limit": 1e6}
    cases = (
        ("decompose", frame, "relu", "frobenius", {}),
        ("decompose", LABELLED["small levels"].T, "minmax", "l1", {"dtype": "float32"}),
        ("complete", holes, "identity", "kl", {}),
        ("decompose", frame, nmd_lab.MinMax(0, np.inf), "frobenius", bounds),
    )
    fits: dict[str, nmd_lab.Decomposition] = {}
    for verb, X, f, d, options in cases:
        path = str(tmp_path / f"{len(fits)}.nc")
        fits[path] = fitted(X, verb, nonlinearity=f, loss=d, **options)
        fits[path].save(path)
        with pd.option_context("mode.string_storage", "python"):
            assert_same(fits[path], nmd_lab.load(path))
    fresh = subprocess.check_output([sys.executable, "-c", FRESH, *fits], text=True)
    assert fresh == "".join(f"{fit!r}\n" for fit in fits.values())


def foreign_files(folder: Path, fit: nmd_lab.Decomposition) -> dict[str, Path]:
    good = folder / "good.nc"
    fit.save(good)
    content = good.read_bytes()
    files = {"text": b"W,H\n1,2\n", "empty": b"", "pickle": b"\x80\x04N."}
    files |= {f"cut at {n}": content[:n] for n in (1, 8, 100, len(content) // 2, len(content) - 1)}
    for n in range(0, len(content), 500):
        files[f"bit of {n}"] = content[:n] + bytes([content[n] ^ 1]) + content[n + 1 :]
    paths = {name: folder / f"{name}.nc" for name in files}
    for name, path in paths.items():
        path.write_bytes(files[name])
    paths["other NetCDF"] = folder / "other.nc"
    xr.Dataset({"W": ("x", [1.0])}).to_netcdf(paths["other NetCDF"], engine="h5netcdf")
    return paths


def test_other_files_are_refused_with_a_sentence(tmp_path, small):
    for name, path in foreign_files(tmp_path, fitted(small)).items():
        with pytest.raises(ValueError, match="cannot be read") as caught:
            nmd_lab.load(path)
        assert path.name in str(caught.value), name
        assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        nmd_lab.load(tmp_path / "nowhere.nc")
    with pytest.raises(FileNotFoundError, match=r"not a file"):
        nmd_lab.load(tmp_path)


DAMAGES = [
    lambda a: a.pop("models"), lambda a: a.pop("parameters"), lambda a: a.update(rows=3),
    lambda a: a.update(dims=["x", "y"]), lambda a: a.update(renamed=[]),
    lambda a: a["models"][0]["loss"].update(name="l1", parameters=[1, 2, 3]),
    lambda a: a.pop("name"), lambda a: a.update(schema="1"),
    lambda a: of_trials(a).update(chosen=20), lambda a: of_trials(a).update(chosen=-1),
    lambda a: of_trials(a).update(chosen="1"), lambda a: of_trials(a).pop("trials"),
    lambda a: of_trials(a).update(trials=3), lambda a: of_trials(a).update(options=[3]),
    lambda a: of_trials(a)["trials"][0].update(error="low"),
]  # fmt: skip


def of_trials(about):
    """Return the account of a choice in a description."""
    return about["parameters"]["selection"]


def test_damaged_descriptions_and_those_of_another_layout_are_refused(tmp_path, small):
    rows = chosen.trials([2, 4], [1.0, 3.0])
    dataset = chosen.with_selection(fitted(small), chosen.selection(rows))._to_dataset()

    posterior = made_up(np.zeros((6, 5)))._to_dataset()

    def changed(change, dataset=dataset):
        about = json.loads(dataset.attrs["nmd_lab"])
        change(about)
        return dataset.assign_attrs(nmd_lab=json.dumps(about))

    newer, older = (changed(lambda a, n=n: a.update(schema=n)) for n in (99, 1))
    netcdf.write(newer, tmp_path / "newer.nc")
    netcdf.write(older, tmp_path / "older.nc")
    check_all_refused([
        (r"newer\.nc.*layout 99.*install a newer one", nmd_lab.load, tmp_path / "newer.nc"),
        (r"older\.nc.*layout 1,.*fit again, or", nmd_lab.load, tmp_path / "older.nc"),
        (r"layout 99.*install a newer one", result_of, newer),
        ("holds no result: give one that", result_of, *map(changed, DAMAGES)),
        ("holds no result", result_of, xr.Dataset({"a": 1}), posterior.drop_vars("W")),
        ("holds no result", result_of, changed(lambda a: a.pop("mean"), posterior)),
    ])  # fmt: skip


def test_places_and_labels_that_cannot_be_written(tmp_path):
    fit = fitted(SEEDED)
    fit.save(tmp_path / "fit.nc")
    before = (tmp_path / "fit.nc").read_bytes()
    odd = fitted(pd.DataFrame(SEEDED, index=pd.period_range("2020", periods=4)))
    with pytest.raises(TypeError, match=r"'row'.*convert it"):
        odd.save(tmp_path / "fit.nc")
    assert (tmp_path / "fit.nc").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["fit.nc"]
