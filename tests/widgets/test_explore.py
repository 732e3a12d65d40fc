"""What `explore` opens, what begins by itself, and questions about faulty data."""

import importlib
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
import xarray as xr
from explorer_page import act, acted, control, done, enter, picture, plain, repeats, sentence, sure
from fits import of_digits
from helpers import PATIENCE, Clock, check_all_refused, wait_for
from PIL import Image
from scipy import sparse

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.data.inputs import observe
from nmd_lab.data.readers import read_file
from nmd_lab.widgets import fitting
from nmd_lab.widgets.background import MAX_RUNS
from nmd_lab.widgets.matrix import MatrixState
from nmd_lab.widgets.ratings import RatingsState
from nmd_lab.widgets.results import ResultState, StudyState

RATINGS = datasets.make_ratings(20, 15, 80, random_state=0)
DIGITS = datasets.digits(80)


def renamed(row, column, value):
    names = {"user": row, "item": column, "rating": value}
    return RATINGS[["user", "item", "rating"]].rename(columns=names)


@pytest.fixture
def fit():
    return of_digits()


def test_a_picture_is_read_with_its_colours(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (12, 9, 3), dtype=np.uint8)
    in_words = "an image of 12 x 9 pixels in colours", "a grey image of 12 x 9 pixels"
    for X, words in zip((pixels, pixels[..., 0]), in_words, strict=True):
        Image.fromarray(X).save(tmp_path / "picture.png")
        explorer = widgets.explore(tmp_path / "picture.png", rank=2, iterations=5)
        assert explorer.status["message"] == words
        shown = picture(explorer, "original").reshape(X.shape)
        np.testing.assert_allclose(shown, X / 255, rtol=1e-6)
        repeats(done(explorer))


def test_an_upload_takes_the_place_of_the_data(tmp_path, fit):
    explorer = widgets.explore(datasets.digits(20), rank=2, iterations=5)
    path = tmp_path / "ratings.csv"
    renamed("userId", "movieId", "rating").to_csv(path, index=False)
    act(explorer, "open", path.read_bytes(), name="ratings.csv")
    assert "15 columns (movieId)" in explorer.status["message"]
    assert explorer.state.observations.shape == (20, 15)
    assert 'read_matrix("ratings.csv")' in explorer.code_text
    # A fit has begun by itself, and ended
    wait_for(lambda: "15 columns" not in explorer.status["message"])
    fit.save(tmp_path / "fit.nc")
    act(explorer, "open", (tmp_path / "fit.nc").read_bytes(), name="fit.nc")
    assert explorer.result.W.identical(fit.W)
    act(explorer, "open", name=str(path))
    assert str(path) in explorer.code_text
    act(explorer, "open", b"hello", name="text.doc")
    assert "unknown ending" in explorer.status["message"]
    assert "nmd-lab-" not in explorer.status["message"]  # the folder of the upload
    assert explorer.state.observations.shape == (20, 15)  # what was shown stays
    act(explorer, "open", b"hello", name="../../etc/x.png")
    assert "x.png holds no image" in explorer.status["message"]


def test_a_page_that_is_opened_shows_a_simple_model_and_then_the_chosen_one(monkeypatch):
    explorer = widgets.explore(DIGITS, iterations=20)
    shown, state, finish = [], explorer.state, explorer.state._finish

    def finishing(run):
        shown.append((run.result, sentence(explorer), explorer.status["first_look"]))
        finish(run)

    monkeypatch.setattr(state, "_finish", finishing)
    acted(explorer, "opened")
    assert explorer.state.fit.phase == "finished"
    look = shown[0][0]
    assert (look.nonlinearity.name, look.rank) == ("identity", 10)
    assert explorer.result.selection.sizes["trial"] > 1
    assert explorer.rank == explorer.result.rank
    assert len(explorer.runs) == 1
    linear, average = explorer.status["headline"]["rivals"]
    assert (linear["name"], average["name"]) == ("linear", "each pixel's average")
    assert not explorer.status["first_look"]
    assert "first look" not in sentence(explorer)


def final(explorer):
    """Return the sentence and the factor of an explorer that is open, once its fit has ended."""
    act(explorer, "opened")
    assert explorer.state.fit.join(PATIENCE)
    assert explorer.state.fit.phase == "finished", explorer.state.fit.message
    return sentence(explorer), explorer.result.W.values


def test_the_same_call_gives_the_same_model_on_a_slow_and_busy_machine(monkeypatch, capsys):
    words, W = final(widgets.explore(DIGITS[:40]))
    others = [widgets.explore(DIGITS[k : k + 30], iterations=10) for k in range(2)]
    for each in others:
        act(each, "opened")
    monkeypatch.setattr(time, "perf_counter", Clock(60.0))  # each look at the clock is a minute
    busy, again = final(widgets.explore(DIGITS[:40]))
    for each in others:
        each.close()
    assert busy == words
    np.testing.assert_array_equal(again, W)
    assert capsys.readouterr().err == ""  # the page tells how far it is


@pytest.mark.parametrize("how", ["too many entries", "stopped"])
def test_a_first_look_is_called_so_and_its_code_repeats_it(monkeypatch, how):
    explorer = widgets.explore(DIGITS)
    if how == "stopped":
        monkeypatch.setattr(fitting, "choice_for", lambda *_, **__: explorer.stop())
    else:
        monkeypatch.setattr(fitting, "MAX_CHOSEN", DIGITS.size * 9 // 10 - 1)
    acted(explorer, "opened")
    assert "10 components, linear, a first look. Held-out" in sentence(explorer)
    assert explorer.status["first_look"]
    assert explorer.rank == "auto"
    assert explorer.result.rank == 10
    assert [r["name"] for r in explorer.status["headline"]["rivals"]] == ["each pixel's average"]
    exec(explorer.state.code("digits"), names := {"digits": DIGITS})
    np.testing.assert_allclose(names["fit"].W, explorer.result.W, rtol=1e-9)


def test_a_changed_setting_fits_again_however_long_that_takes(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", Clock(60.0))
    explorer = plain(widgets.explore, DIGITS, iterations=5)
    acted(explorer, "opened")
    enter(explorer, "rank", "3")
    assert explorer.join(PATIENCE)
    assert explorer.result.rank == 3
    enter(explorer, "iterations", "9")  # which changes no model
    assert explorer.state.fit.phase == "finished"
    assert explorer.result.rank == 3


def test_explore_picks_the_state(tmp_path, fit):
    study = nmd.Study(DIGITS[:30], rank=[1, 2], n_splits=1, max_iter=3, alpha=0)
    study.run(tmp_path / "study.nc", progress=False)
    fit.save(tmp_path / "fit.nc")
    np.save(tmp_path / "matrix.npy", DIGITS.values)
    renamed("userId", "movieId", "rating").to_csv(tmp_path / "ratings.csv", index=False)
    for X, kind in [
        (None, MatrixState),
        (DIGITS, MatrixState),
        # a picture with holes is no list of ratings
        (DIGITS.where(np.random.default_rng(0).random(DIGITS.shape) < 0.2), MatrixState),
        (tmp_path / "matrix.npy", MatrixState),
        (RATINGS, RatingsState),
        (renamed("Reader ID", "BookID", "Score"), RatingsState),
        (nmd.observations_from_table(RATINGS), RatingsState),
        (pl.DataFrame(RATINGS.to_dict("list")), RatingsState),
        (tmp_path / "ratings.csv", RatingsState),
        (study, StudyState),
        (study.results, StudyState),
        (tmp_path / "study.nc", StudyState),
        (fit, ResultState),
        (fit._to_dataset(), ResultState),
        (str(tmp_path / "fit.nc"), ResultState),
    ]:
        explorer = widgets.explore(X)
        assert isinstance(explorer.state, kind)
        if kind is ResultState:
            assert explorer.result.W.identical(fit.W)
    exec(explorer.code().partition("fit.plot")[0], names := {})
    assert names["fit"].H.identical(fit.H)


def test_a_file_is_read_as_asked_and_its_code_reads_it_again(tmp_path):
    path = tmp_path / "visits.csv"
    renamed("who", "where", "how_often").to_csv(path, index=False)
    columns = {"row": "who", "column": "where", "value": "how_often"}
    explorer = widgets.explore(path, rank=2, alpha=15.0, iterations=5, **columns)
    assert explorer.state.observations.labels.dims == ("who", "where")
    assert explorer.status["message"] == read_file(path, **columns)[1]
    repeats(done(explorer))
    assert str(path) in explorer.code()


def test_what_cannot_be_shown_is_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("text.doc", "text.nc", "text.png"):
        (tmp_path / name).write_text("hello")
    check_all_refused([
        (r"nowhere\.csv.* does not exist: check the name", widgets.explore, "nowhere.csv"),
        (r"nowhere\.nc", widgets.explore, "nowhere.nc"),
        ("unknown ending", widgets.explore, "text.doc"),
        (r"text\.nc.* cannot be read", widgets.explore, "text.nc"),
        (r"text\.png holds no image", widgets.explore, "text.png"),
        (r"explore\(X.reshape\(len\(X\), -1\), shape=\(8, 7\)\)", widgets.explore,
         np.zeros((20, 8, 7))),
        (r"give an image \(height, width, 3\), or", widgets.explore, np.zeros((3, 4, 5))),
        ("0 of 6 fits are done: call study", widgets.explore,
         nmd.Study(np.zeros((8, 7)), rank=[1, 2])),
    ])  # fmt: skip


def test_a_fit_shows_picked_rows_that_it_has_and_is_saved(fit, tmp_path):
    explorer = widgets.explore(fit)
    explorer.selection = {"rows": [5, 1000, 2]}  # perhaps of a linked explorer with more rows
    assert explorer.pictures["ids"] == [5, 2]
    assert not explorer.status["failed"]
    with pytest.raises(ValueError, match="a fit holds no data"):
        explorer.start()
    act(explorer, "save", filename=str(tmp_path / "copy.nc"))
    assert nmd.load(tmp_path / "copy.nc").W.identical(fit.W)


def test_rows_that_seem_to_be_pictures_are_named_and_one_click_undoes_it():
    y, x = np.mgrid[:30, :24]
    rng = np.random.default_rng(0)
    waves = rng.uniform(0.1, 0.4, (40, 2, 1, 1))
    X = np.sin(waves[:, 0] * x + waves[:, 1] * y).reshape(40, -1)
    explorer = plain(widgets.explore, X)
    assert sentence(explorer) == "40 rows, shown as images of 30 × 24"
    assert explorer.pictures["layout"] == "rows"
    explorer.state.set("shape", (36, 20))
    act(explorer, "clear")
    assert (explorer.pictures["height"], explorer.pictures["width"]) == (36, 20)
    explorer.state.set("shape", (7, 8))
    assert "does not hold 720 columns" in explorer.state.problems()["shape"]
    assert explorer.status["buttons"]["flat"]["label"] == "rows as numbers"
    act(explorer, "flat")
    assert sentence(explorer) == "a matrix of 40 × 720"
    assert explorer.pictures["layout"] == "matrix"
    assert sentence(plain(widgets.explore, DIGITS.values)) == "80 rows, shown as images of 8 × 8"
    noise = plain(widgets.explore, rng.normal(size=(40, 720)))
    assert "flat" not in noise.status["buttons"]


# The views without a browser --------------------------------------------------------------------


def test_other_data_are_shown_without_the_old_model():
    explorer = done(plain(widgets.Explorer, rank=5, iterations=5))
    act(explorer, "lasso", rows=[1700, 1750])
    before = explorer.state.fit
    enter(explorer, "data", "photograph of a palace")
    assert not explorer.status["failed"], explorer.status["message"]
    assert explorer.selection is None
    assert control(explorer, "data")["value"] == "photograph of a palace"
    assert picture(explorer, "seen").shape[1:3] == explorer.state.shape
    assert before.result is explorer.modelled is explorer.components is explorer.scatter is None
    explorer.stop()
    assert 'X = nmd.datasets.photograph(name="china", ' in explorer.code()


def test_an_array_of_pictures_with_labels():
    images = datasets.digits(40).values.reshape(40, 8, 8)
    images = xr.DataArray(images, dims=("image", "lat", "lon"))
    explorer = done(widgets.explore(images, rank=2, iterations=5))
    assert explorer.pictures["layout"] == "rows"
    rows = explorer.pictures["ids"]
    np.testing.assert_allclose(
        picture(explorer, "original")[..., 0], images.values[rows][:, ::-1], rtol=1e-6
    )  # latitudes point up
    repeats(explorer, images=images)


@pytest.mark.parametrize("sampled", [False, True])
def test_predictions_of_held_out_entries_are_marked(sampled):
    settings = {"rank": 2, "alpha": 15.0, "iterations": 10, "validation": 0.3, "draws": 10}
    explorer = done(widgets.Explorer(data="generated", **settings))
    if sampled:
        sure(explorer)
        _, held_out = nmd.split_observed(explorer.state.matrix, 0.3, random_state=0)
        i, j, _ = observe(held_out).as_sparse().entries()
    else:
        i, j = explorer.state.fit.resumable.decided.held_out.positions
    marks = {line["column"]: line["hidden"] for line in explorer.facts["lists"]["known"]}
    assert {k for k, is_marked in marks.items() if is_marked} == set(j[i == 0])
    assert list(marks.values()) == sorted(marks.values(), reverse=True)  # they come first
    assert set(marks.values()) == {True, False}


@pytest.mark.parametrize("ratings", [False, True])
def test_warnings_advise_only_what_the_explorer_has(ratings):
    """That of decompositions has neither held-out entries nor offsets as settings of a fit."""
    X = datasets.digits(300).values.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.5] = np.nan
    X[3] = np.nan
    options = {"nonlinearity": "identity", "alpha": 0.0, "missing": 0.0}
    if ratings:
        X = nmd.observations_from_sparse(sparse.csr_array(np.nan_to_num(X)))
        options = {"validation": 0, "offsets": "none", "alpha": 0}
    explorer = done(widgets.explore(X, rank=12, iterations=120, **options))
    unobserved, overfit = explorer.state.fit.warnings
    assert unobserved.startswith("X has no observed entry in 1 row")
    assert overfit.startswith("predictions of missing entries reach")
    assert ("validation" in overfit) == ratings
    assert ("offsets" in unobserved) == ratings
    assert overfit.endswith("or fewer components.")
    assert "a penalty" in overfit


def test_wrong_starts_are_refused_or_said_beside_their_controls():
    for name, value in [("loss", 0.1), ("data", "foo"), ("nonlinearity", "foo")]:
        X = None if name == "data" else datasets.digits(20)
        with pytest.raises(ValueError, match=f"{name}={value!r} is unknown"):
            plain(widgets.Explorer, X, **{name: value})
    explorer = plain(widgets.Explorer, datasets.digits(20), missing=2.0)
    assert "missing=2.0 is out of range" in control(explorer, "missing")["problem"]
    with pytest.raises(ValueError, match=r"missing=2\.0"):
        explorer.start()
    explorer.rank = None
    assert control(explorer, "rank")["problem"]
    explorer.close()
    with pytest.raises(ValueError, match="the explorer is closed"):
        explorer.start()
    fitted = widgets.explore(nmd.decompose(datasets.digits(20), 2, max_iter=3, random_state=0))
    fitted.rank = 5
    assert fitted.rank is None  # a fit has no settings


def test_errors_are_in_the_status_line_and_end_nothing(monkeypatch):
    def fails(*arguments, **options):
        raise MemoryError("no room for T & U")

    explorer = plain(widgets.Explorer, DIGITS, rank=4, iterations=10, missing=0.2)
    with monkeypatch.context() as patch:
        patch.setattr("nmd_lab.widgets.fitting.prepare", fails)
        assert done(explorer).status["message"] == "MemoryError: no room for T & U"
    assert explorer.status["failed"]
    assert explorer.state.fit.phase == "failed"
    assert explorer.state.fit.cannot_proceed()
    assert done(explorer).result._n_iter == 10
    monkeypatch.setattr(explorer.state, "unused", lambda: 1 / 0)
    explorer.state.run()
    assert explorer.join(PATIENCE)
    assert (explorer.status["phase"], explorer.status["failed"]) == ("finished", True)
    assert "ZeroDivisionError" in explorer.status["message"]
    assert not explorer.status["buttons"]["run"]["disabled"]


def test_explorers_import_no_matplotlib_and_say_which_library_they_miss(monkeypatch):
    code = """
import sys, nmd_lab as nmd
nmd.widgets.explore(nmd.datasets.digits(20), rank=2)
assert "matplotlib" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    missing = "Explorers need ipywidgets: pip install anywidget ipywidgets pillow."
    with pytest.raises(ImportError, match=missing):
        importlib.reload(widgets)


def test_each_run_has_a_line_strokes_of_a_brush_together_and_old_ones_are_forgotten():
    explorer = done(plain(widgets.Explorer, DIGITS[:60], rank=2, missing=0.1, iterations=40))
    enter(explorer, "rank", "5")
    second = done(explorer).runs[1]
    number = explorer.status["headline"]  # one page, one number
    assert (second["off"], second["error"]) == (pytest.approx(number["off"]), number["value"])
    hidden = [point["y"] for point in explorer.curves["points"] if point["label"] == "hidden"]
    assert second["off"] > min(hidden)  # which nobody saves
    for x in (1, 2, 3):
        acted(explorer, "brush", picture=0, points=[(x, x)], radius=1)
    assert [line["text"] for line in explorer.runs][:2] == ["2 components", "5 components"]
    assert "painted" in explorer.runs[2]["text"]
    assert [line["current"] for line in explorer.runs] == [False, False, True]
    enter(explorer, "iterations", "1")
    for _ in range(MAX_RUNS):
        done(explorer)
    assert [line["number"] for line in explorer.runs] == list(range(4, MAX_RUNS + 4))
