"""The views without a browser: their pictures, messages and files."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from explorer_page import (
    act,
    arrays_of,
    button,
    control,
    done,
    enter,
    lists,
    painted,
    picture,
    plain,
    repeats,
    said,
    sure,
)
from scipy import sparse
from waiting import PATIENCE

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.data.inputs import observe
from nmd_lab.widgets.background import MAX_RUNS


def test_other_data_are_shown_without_the_old_model():
    explorer = done(plain(widgets.Explorer, rank=5, iterations=5))
    act(explorer, "lasso", rows=[1700, 1750])
    before = explorer.state.fit
    enter(explorer, "data", "photograph of a palace")
    assert not explorer.status["failed"], said(explorer)
    assert explorer.selection is None
    assert control(explorer, "data")["value"] == "photograph of a palace"
    assert picture(explorer, "seen").shape[1:3] == explorer.state.shape
    assert before.result is explorer.modelled is explorer.components is explorer.scatter is None
    explorer.stop()
    assert 'X = nmd.datasets.photograph(name="china", ' in explorer.code()


def test_a_plain_array_of_pictures_is_seen_as_pictures():
    X = datasets.digits(80).values
    explorer = plain(widgets.Explorer, X)
    assert (explorer.pictures["height"], explorer.pictures["width"]) == (8, 8)
    explorer.state.set("shape", (4, 16))
    act(explorer, "clear")
    assert (explorer.pictures["height"], explorer.pictures["width"]) == (4, 16)
    explorer.state.set("shape", (7, 8))
    assert "does not hold 64 columns" in explorer.state.problems()["shape"]


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
        matrix = explorer.state.data.matrix
        entries = observe(nmd.split_observed(matrix, 0.3, random_state=0)[1]).as_sparse().entries()
        unseen = set(zip(*(each.tolist() for each in entries[:2]), strict=True))
    else:
        held_out = explorer.state.fit.resumable.decided.held_out
        unseen = set(zip(*(each.tolist() for each in held_out.positions), strict=True))
    marks = {line["column"]: line["hidden"] for line in lists(explorer, "known")}
    assert {k for k, is_marked in marks.items() if is_marked} == {k for i, k in unseen if i == 0}
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


@pytest.fixture
def explorer():
    return plain(widgets.Explorer, datasets.digits(60), rank=4, iterations=10, missing=0.2)


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


def test_errors_are_in_the_status_line_and_end_nothing(explorer, monkeypatch):
    def fails(*arguments, **options):
        raise MemoryError("no room for T & U")

    with monkeypatch.context() as patch:
        patch.setattr("nmd_lab.widgets.fitting.prepare", fails)
        assert said(done(explorer)) == "MemoryError: no room for T & U"
    assert explorer.status["failed"]
    assert done(explorer).result._n_iter == 10
    monkeypatch.setattr(explorer.state, "unused", lambda: 1 / 0)
    explorer.state.run()
    assert explorer.join(PATIENCE)
    assert (explorer.status["phase"], explorer.status["failed"]) == ("finished", True)
    assert "ZeroDivisionError" in said(explorer)
    assert not button(explorer, "run")["disabled"]


@pytest.mark.parametrize(
    ("code", "fails_with"),
    [
        ("import nmd_lab as nmd; nmd.widgets.explore(nmd.datasets.digits(20), rank=2)\n"
         "import sys; assert 'matplotlib' not in sys.modules", ""),
        ("import sys; sys.modules['ipywidgets'] = None; import nmd_lab as nmd; nmd.widgets",
         "ImportError: Explorers need ipywidgets: pip install anywidget ipywidgets pillow."),
    ],
)  # fmt: skip
def test_what_explorers_import(code, fails_with):
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert run.stderr.strip().endswith(fails_with)
    assert bool(run.returncode) == bool(fails_with)


@pytest.fixture
def two_runs():
    made = plain(widgets.Explorer, datasets.digits(60), rank=2, missing=0.1, iterations=40)
    done(made)
    enter(made, "rank", "5")
    return done(made)


def test_each_run_has_a_line_strokes_of_a_brush_together_and_old_ones_are_forgotten(two_runs):
    explorer = two_runs
    second = explorer.runs[1]
    number = explorer.status["headline"]  # one page, one number
    assert (second["off"], second["error"]) == (pytest.approx(number["off"]), number["value"])
    assert second["off"] > min(arrays_of(explorer.curves)["hidden"][1])  # which nobody saves
    for x in (1, 2, 3):
        painted(explorer, [(x, x)], 1)
    assert [line["text"] for line in explorer.runs][:2] == ["2 components", "5 components"]
    assert "painted" in explorer.runs[2]["text"]
    assert [line["current"] for line in explorer.runs] == [False, False, True]
    enter(explorer, "iterations", "1")
    for _ in range(MAX_RUNS):
        done(explorer)
    assert [line["number"] for line in explorer.runs] == list(range(4, MAX_RUNS + 4))
