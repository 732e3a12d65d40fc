"""The views without a browser: what they show, say and save."""

from __future__ import annotations

import html
import io
import subprocess
import sys
import warnings
from html import escape

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from PIL import Image
from scipy import sparse
from waiting import PATIENCE

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.widgets import _images as images


def done(explorer):
    explorer.start()
    assert explorer.join(PATIENCE)
    return explorer


def pixels(picture):
    return np.asarray(Image.open(io.BytesIO(picture.value)))


@pytest.fixture(autouse=True)
def no_event_loop(monkeypatch):
    """Hide the event loop that browser tests leave behind: it does not run, so calls would wait."""

    def fails():
        raise RuntimeError("no running event loop")

    monkeypatch.setattr("nmd_lab.widgets._controls.asyncio.get_running_loop", fails)


@pytest.fixture
def explorer():
    return widgets.DecompositionExplorer(datasets.digits(60), rank=4, iterations=10, missing=0.2)


def test_a_run_fills_everything(explorer):
    assert explorer.result is None
    done(explorer)
    assert explorer.result.n_iter == 10
    assert "relative error" in explorer.status.value
    assert explorer.progress.value == explorer.progress.max == 10
    assert all(bytes(picture.value).startswith(b"\x89PNG") for picture in explorer.plots.values())
    assert explorer.slider.options[-1] == explorer.slider.value == 10
    assert "SVD, rank 4" in explorer._table.value
    assert len(explorer.gallery.box.children) == 4


def test_pictures_show_the_data_with_holes(explorer):
    done(explorer)
    original, seen = pixels(explorer.plots["original"]), pixels(explorer.plots["seen"])
    holes = (seen[..., :3] == images.STYLE.missing).all(axis=-1)
    opaque = seen[..., 3] == 255
    assert holes[opaque].mean() == pytest.approx(0.2, abs=0.07)
    np.testing.assert_array_equal(original[~holes], seen[~holes])


def test_the_slider_shows_earlier_iterations(explorer):
    done(explorer)
    last = explorer.plots["reconstruction"].value
    explorer.slider.value = 1
    first = explorer.plots["reconstruction"].value
    assert first != last
    explorer.slider.value = 10
    assert explorer.plots["reconstruction"].value == last


def test_a_component_shows_its_rows(explorer):
    done(explorer)
    before = explorer.plots["original"].value
    tile = explorer.gallery.box.children[2]
    tile.click()
    assert "nmd-selected" in tile._dom_classes
    assert explorer.plots["original"].value != before
    tile.click()
    assert explorer.plots["original"].value == before


@pytest.mark.parametrize("name", ["photograph of a flower", "synthetic"])
def test_pictures_of_other_matrices(name):
    explorer = done(widgets.DecompositionExplorer(data=name, rank=3, iterations=3))
    explorer.gallery.box.children[1].click()
    assert explorer.status.value.count("failed") == 0
    assert max(pixels(explorer.plots["residual"]).shape) <= images.STYLE.most_pixels


def test_a_wrong_value_is_said_beside_its_control(explorer):
    control = explorer.controls["rank"]
    control.input.value = "0"
    assert "rank=0 is too small" in control.note.value
    assert "nmd-wrong" in control.box._dom_classes
    assert explorer.buttons["run"].disabled
    assert "rank=0" in explorer.buttons["run"].tooltip
    with pytest.raises(ValueError, match="rank=0"):
        explorer.start()
    control.input.value = "3"
    assert control.note.value == ""
    assert not explorer.buttons["run"].disabled


def test_disabled_buttons_say_why(explorer):
    why = {name: button.tooltip for name, button in explorer.buttons.items() if button.disabled}
    assert why == {
        "stop": "nothing runs",
        "continue": "there is nothing to go on from",
        "reset": "there is nothing to forget",
    }
    done(explorer)
    explorer.controls["seed"].input.value = "5"
    assert "changed" in explorer.buttons["continue"].tooltip


def test_an_error_in_the_solver_is_in_the_status_line(explorer, monkeypatch):
    def fails(*arguments, **options):
        raise MemoryError("no room for T & U")

    monkeypatch.setattr("nmd_lab.widgets.choosing_state.prepare", fails)
    done(explorer)
    assert "MemoryError: no room for T &amp; U" in explorer.status.value
    assert not explorer.buttons["run"].disabled
    monkeypatch.undo()
    assert done(explorer).result.n_iter == 10


def test_an_error_in_the_picture_does_not_end_the_fit(explorer, monkeypatch):
    monkeypatch.setattr(explorer, "draw", lambda: 1 / 0)
    done(explorer)
    assert "ZeroDivisionError" in explorer.status.value
    assert explorer.result.n_iter == 10


def test_saving(explorer, tmp_path):
    explorer._file.value = str(tmp_path / "fit.nc")
    assert explorer._save.disabled
    done(explorer)
    explorer._save.click()
    assert nmd.load(tmp_path / "fit.nc").W.identical(explorer.result.W)
    explorer._save.click()  # its own file is written again
    assert "saved as" in explorer.status.value
    (tmp_path / "mine.nc").write_text("precious")
    explorer._file.value = str(tmp_path / "mine.nc")
    explorer._save.click()
    assert "mine.nc exists already" in explorer.status.value
    assert (tmp_path / "mine.nc").read_text() == "precious"


def test_the_copied_code_is_in_the_page(explorer):
    done(explorer)
    assert "nmd.complete(" in explorer._copy.value
    assert "max_iter=10" in explorer._copy.value


def test_several_at_once_do_not_mix():
    X = datasets.digits(60)
    explorers = [widgets.DecompositionExplorer(X, rank=r, iterations=40) for r in (2, 3, 4)]
    for explorer in explorers:
        explorer.start()
    for rank, explorer in zip((2, 3, 4), explorers, strict=True):
        explorer.join(PATIENCE)
        assert explorer.result.rank == rank
        expected = nmd.decompose(X, rank, random_state=0, max_iter=40)
        np.testing.assert_array_equal(explorer.result.W, expected.W)


def test_closing_ends_the_fit(explorer):
    explorer.controls["iterations"].input.value = "1000000000"
    explorer.start()
    explorer.close()
    assert explorer.join(PATIENCE)


def test_nothing_is_drawn_with_pyplot(explorer):
    before = plt.get_fignums()
    done(explorer)
    assert plt.get_fignums() == before


def test_completion_tables():
    explorer = widgets.CompletionExplorer(data="generated", rank=2, alpha=15.0, iterations=10)
    assert "predictions come with a fit" in explorer.tables[1].value
    done(explorer)
    assert explorer.tables[1].value.count("<tr>") == 11
    explorer.top.input.value = "3"
    assert explorer.tables[1].value.count("<tr>") == 4
    explorer.search.input.value = "12345"
    assert "no row is labelled" in explorer.search.note.value
    explorer.search.input.value = "7"
    assert explorer.search.note.value == ""


@pytest.mark.parametrize("entered", ["2.7", "1,5", "", "ten"])
def test_what_is_no_number_is_refused_as_it_was_entered(entered):
    explorer = widgets.DecompositionExplorer(noise="gaussian", nonlinearity="minmax")
    for name in ("rank", "iterations", "seed", "level", "high"):
        control = explorer.controls[name]
        if entered == "2.7" and control.field.kind == "number":
            continue
        right = control.input.value
        control.input.value = entered
        assert control.input.value == entered
        assert repr(entered) in html.unescape(control.note.value), name
        assert explorer.buttons["run"].disabled
        control.input.value = right
        assert not explorer.buttons["run"].disabled


def test_study_points_lie_on_the_picture(tmp_path):
    study = nmd.Study(datasets.digits(40), rank=[1, 3, 5], n_splits=2, max_iter=10, alpha=0)
    results = study.run(progress=False)
    explorer = widgets.StudyExplorer(study)
    picture = pixels(explorer.chart)
    for point in explorer._buttons.children:
        x, y = (float(getattr(point.layout, edge)[:-1]) / 100 for edge in ("left", "top"))
        colour = picture[int(y * picture.shape[0]), int(x * picture.shape[1])]
        assert colour[3] == 255
        assert tuple(colour[:3]) == (0x1F, 0x6F, 0xB5)
    explorer._buttons.children[1].click()
    assert "rank 3" in explorer._details.value
    assert isinstance(explorer.result, xr.Dataset)
    explorer._file.value = str(tmp_path / "cells.nc")
    explorer._save.click()
    assert (tmp_path / "cells.nc").is_file()
    done(explorer)
    assert explorer.result.rank == 3
    only = widgets.StudyExplorer(results)
    assert only.buttons["run"].disabled
    assert "give the Study itself" in only.buttons["run"].tooltip


def test_explore_picks_the_explorer(tmp_path):
    digits = datasets.digits(30)
    sparse_one = digits.where(np.random.default_rng(0).random(digits.shape) < 0.2)
    study = nmd.Study(digits, rank=[1, 2], n_splits=1, max_iter=3, alpha=0)
    study.run(tmp_path / "study.nc", progress=False)
    table = datasets.make_ratings(20, 15, 80, random_state=0)
    for X, kind in [
        (None, widgets.DecompositionExplorer),
        (digits, widgets.DecompositionExplorer),
        (sparse_one, widgets.CompletionExplorer),
        (table, widgets.CompletionExplorer),
        (nmd.observations_from_table(table), widgets.CompletionExplorer),
        (study, widgets.StudyExplorer),
        (study.results, widgets.StudyExplorer),
        (tmp_path / "study.nc", widgets.StudyExplorer),
    ]:
        assert type(widgets.explore(X)) is kind


def test_signed_colours_are_see_through_at_zero():
    pixels = images.signed(np.array([[-2.0, 0.0, np.nan, 1.0]]), 2.0)
    assert pixels[0, :, 3].tolist() == [255, 0, 0, 127]
    assert tuple(pixels[0, 0, :3]) == images.STYLE.negative
    assert tuple(pixels[0, 3, :3]) == images.STYLE.positive


def test_without_ipywidgets_the_remedy_is_said():
    code = "import sys; sys.modules['ipywidgets'] = None; import nmd_lab as nmd; nmd.widgets"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE
    )
    last = run.stderr.strip().splitlines()[-1]
    assert last == "ImportError: Explorers need ipywidgets: pip install 'nmd-lab[lab]'."


@pytest.mark.parametrize(
    ("settings", "begins"),
    [
        ({"nonlinearity": "minmax", "high": 0.9}, "X has 0 values below and 1340 above the bounds"),
        ({"nonlinearity": "identity"}, "predictions of missing entries reach from "),
    ],
)
def test_warnings_of_a_fit_are_a_line_in_the_explorer(settings, begins):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        digits = datasets.digits(300)
        explorer = done(widgets.explore(digits, missing=0.5, rank=12, iterations=120, **settings))
    assert not [each for each in given if issubclass(each.category, nmd.NMDWarning)]
    (said,) = explorer.fit.warnings
    assert said.startswith(begins)
    assert f"Warning: {escape(said)}" in explorer.warnings.value
    explorer.buttons["reset"].click()
    assert (explorer.fit.warnings, explorer.warnings.value) == ((), "")


@pytest.mark.parametrize("ratings", [False, True])
def test_warnings_advise_only_what_the_explorer_has(ratings):
    """That of decompositions has neither held-out entries nor offsets as settings of a fit."""
    X = datasets.digits(300).values.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.5] = np.nan
    X[3] = np.nan
    options = {"nonlinearity": "identity"}
    if ratings:
        X = nmd.observations_from_sparse(sparse.csr_array(np.nan_to_num(X)))
        options = {"validation": 0, "offsets": "none", "alpha": 0}
    explorer = done(widgets.explore(X, rank=12, iterations=120, **options))
    unobserved, overfit = explorer.fit.warnings
    assert unobserved.startswith("X has no observed entry in 1 row")
    assert overfit.startswith("predictions of missing entries reach")
    assert ("validation" in overfit) == ratings
    assert ("offsets" in unobserved) == ratings
    assert overfit.endswith("or a smaller rank.")
    assert "a ridge (alpha)" in overfit
