"""What `explore` opens: fits, studies, data, tables, and files of all of these."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from waiting import PATIENCE

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.data.readers import read_file

RATINGS = datasets.make_ratings(20, 15, 80, random_state=0)


@pytest.fixture(autouse=True)
def no_event_loop(monkeypatch):
    """Hide the event loop that browser tests leave behind: it does not run, so calls would wait."""

    def fails():
        raise RuntimeError("no running event loop")

    monkeypatch.setattr("nmd_lab.widgets._controls.asyncio.get_running_loop", fails)


def renamed(row, column, value):
    names = {"user": row, "item": column, "rating": value}
    return RATINGS[["user", "item", "rating"]].rename(columns=names)


def run(explorer, **names):
    """Run a fit, and compare it with that of the copied code."""
    explorer.start()
    assert explorer.join(PATIENCE)
    assert explorer.fit.phase == "finished", explorer.fit.message
    exec(explorer.code(), names)
    np.testing.assert_array_equal(names["fit"].W, explorer.result.W)


@pytest.mark.parametrize(
    "columns",
    [
        ("userId", "movieId", "rating"),
        ("user_id", "item_id", "stars"),
        ("Reader ID", "BookID", "Score"),
        ("user", "movieId", "rating"),
    ],
)
def test_tables_with_usual_names(columns):
    frame = renamed(*columns)
    explorer = widgets.explore(frame, rank=2, alpha=15.0, iterations=5)
    assert isinstance(explorer, widgets.CompletionExplorer)
    assert explorer.state.observations.shape == (
        RATINGS.user.nunique(), RATINGS.item.nunique(),
    )  # fmt: skip
    explorer.start()
    assert explorer.join(PATIENCE)
    names = {"frame": frame}
    exec(explorer.state.code("frame"), names)
    np.testing.assert_array_equal(names["fit"].W, explorer.result.W)


def test_columns_that_are_asked_for_win_and_others_are_no_table():
    frame = renamed("userId", "movieId", "rating").assign(stars=1.0)
    explorer = widgets.explore(frame, value="stars", rank=1)
    assert set(explorer.state.observations.values) == {1.0}
    plain = pd.DataFrame({"a": [1.0, 2, 3], "b": [2.0, 4, 5], "rating": [1.0, 0, 1]})
    assert isinstance(widgets.explore(plain, rank=1), widgets.DecompositionExplorer)


def test_a_file_with_a_long_table(tmp_path):
    path = tmp_path / "ratings.csv"
    renamed("userId", "movieId", "rating").assign(timestamp=0).to_csv(path, index=False)
    explorer = widgets.explore(path, rank=2, alpha=15.0, iterations=5)
    assert isinstance(explorer, widgets.CompletionExplorer)
    shape = RATINGS.user.nunique(), RATINGS.item.nunique()
    assert explorer.state.observations.shape == shape
    assert read_file(path).what in explorer.status.value
    for word in ("20 rows (userId)", "15 columns (movieId)", "from ratings.csv"):
        assert word in explorer.status.value
    run(explorer)
    assert str(path) in explorer.code()


def test_a_file_with_a_long_table_of_names(tmp_path):
    path = tmp_path / "ratings.csv"
    frame = renamed("user", "item", "rating")
    frame["user"] = "user " + frame["user"].astype(str)
    frame["item"] = "item " + frame["item"].astype(str)
    frame.to_csv(path, index=False)
    explorer = widgets.explore(str(path), rank=2, alpha=15.0, iterations=5)
    assert explorer.state.data.find("user 1") >= 0
    run(explorer)


def test_columns_of_a_file_can_be_given(tmp_path):
    path = tmp_path / "visits.csv"
    renamed("who", "where", "how_often").to_csv(path, index=False)
    columns = {"row": "who", "column": "where", "value": "how_often"}
    explorer = widgets.explore(path, rank=2, alpha=15.0, **columns)
    assert isinstance(explorer, widgets.CompletionExplorer)
    assert explorer.state.observations.labels.dims == ("who", "where")
    explorer.controls["iterations"].input.value = "5"
    run(explorer)


@pytest.mark.parametrize("ending", [".csv", ".npy", ".nc"])
def test_a_file_with_a_matrix(ending, tmp_path):
    digits = datasets.digits(30).drop_vars(["y", "x", "digit"])
    path = tmp_path / f"matrix{ending}"
    if ending == ".csv":
        np.savetxt(path, digits.values, delimiter=",")
    elif ending == ".npy":
        np.save(path, digits.values)
    else:
        digits.to_netcdf(path, engine="h5netcdf")
    explorer = widgets.explore(path, rank=2, iterations=5)
    assert isinstance(explorer, widgets.DecompositionExplorer)
    assert "30 " in explorer.status.value
    assert f"from matrix{ending}" in explorer.status.value
    run(explorer)
    assert "relative error" in explorer.status.value


def test_a_file_that_is_not_there_or_of_no_known_kind(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv.* does not exist: check the name"):
        widgets.explore(tmp_path / "nowhere.csv")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.nc"):
        widgets.explore(str(tmp_path / "nowhere.nc"))
    (tmp_path / "text.doc").write_text("hello")
    with pytest.raises(ValueError, match="unknown ending"):
        widgets.explore(tmp_path / "text.doc")
    (tmp_path / "broken.nc").write_text("hello")
    with pytest.raises(ValueError, match=r"broken\.nc.* cannot be read"):
        widgets.explore(tmp_path / "broken.nc")


@pytest.fixture(scope="module")
def fit():
    return nmd.decompose(datasets.digits(60), 5, random_state=0, max_iter=20)


def test_a_fit(fit, tmp_path):
    explorer = widgets.explore(fit)
    assert isinstance(explorer, widgets.FitExplorer)
    assert explorer.result is fit
    assert f"relative error {fit.relative_error:.6g}" in explorer.status.value
    assert "relu" in explorer._facts.value.lower()
    assert len(explorer.gallery.box.children) == 5
    assert explorer.state.curves["relative_error"] == fit.history.relative_error.values.tolist()
    assert explorer.chart.sizes["relative_error"] == fit.n_iter
    every = np.linspace(0, 59, 9).astype(int)
    np.testing.assert_allclose(explorer.state.window(None), fit.reconstruct().values[every])
    assert Image.open(io.BytesIO(explorer.plot.value)).width > 30
    before = explorer.plot.value
    explorer.gallery.box.children[2].click()
    assert explorer.plot.value != before
    rows = np.argsort(-np.abs(fit.W.values[:, 2]), kind="stable")[:9]
    np.testing.assert_allclose(explorer.state.window(2), fit.reconstruct().values[rows])
    with pytest.raises(ValueError, match="a fit holds no data"):
        explorer.start()
    explorer._file.value = str(tmp_path / "copy.nc")
    explorer._save.click()
    assert nmd.load(tmp_path / "copy.nc").W.identical(fit.W)


def test_the_file_and_the_dataset_of_a_fit(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    for given in (tmp_path / "fit.nc", str(tmp_path / "fit.nc"), fit.to_dataset()):
        explorer = widgets.explore(given)
        assert isinstance(explorer, widgets.FitExplorer)
        assert explorer.result.W.identical(fit.W)
    code = widgets.explore(tmp_path / "fit.nc").code()
    names = {}
    exec(code.partition("fit.plot")[0], names)
    assert names["fit"].H.identical(fit.H)


def test_fits_of_other_kinds():
    ratings = nmd.observations_from_table(RATINGS)
    completed = nmd.complete(
        ratings, 2, offsets="both", alpha=1, validation=0.2, random_state=0, max_iter=20
    )
    explorer = widgets.explore(completed)
    errors = completed.history.validation_rmse
    assert list(explorer.state.held_out.values()) == errors.values.tolist()
    assert f"lowest {float(errors.min()):.4g}" in explorer._curves.caption.value
    np.testing.assert_allclose(explorer.state.window(None), completed.reconstruct().values)
    photograph = datasets.photograph("flower", size=(40, 60))
    for other in (
        nmd.baselines.truncated_svd(photograph, 3),
        nmd.decompose(photograph.astype(np.float32), 2, max_iter=3, random_state=0),
        nmd.decompose(np.ones((4, 3)), 1),
    ):
        explorer = widgets.explore(other)
        assert explorer.fit.phase == "finished"
        assert "Error" not in explorer.status.value
        assert bytes(explorer.plot.value).startswith(b"\x89PNG")
