"""The runs of an explorer: overlays, pictures side by side, and the way back."""

from __future__ import annotations

import numpy as np
import pytest
from explorer_page import act, arrays_of, done, enter, picture, plain, table
from waiting import PATIENCE

from nmd_lab import datasets, widgets
from nmd_lab.widgets.history import MOST


@pytest.fixture
def explorer():
    made = plain(widgets.Explorer, datasets.digits(60), rank=2, missing=0.1, iterations=40)
    done(made)
    enter(made, "rank", "5")
    return done(made)


def test_each_run_has_a_line(explorer):
    first, second = explorer.runs
    assert (first["number"], first["settings"], first["current"]) == (1, "rank 2", False)
    assert (second["settings"], second["current"]) == ("rank 5", True)
    seen = explorer.state.fitted_data.observed  # errors are in the unit of the data
    size = np.sqrt(np.nanmean(seen**2))
    assert second["error"] == f"{size * explorer.result.relative_error:.4g}"
    assert second["held_out"] == table(explorer, "errors")["rows"][0][-1]
    lowest = min(arrays_of(explorer.curves)["held_out"][1])
    assert float(second["held_out"]) > lowest  # which nobody saves
    enter(explorer, "seed", "3")
    done(explorer)
    assert [line["settings"] for line in explorer.runs] == [
        "seed 0, rank 2", "seed 0, rank 5", "seed 3, rank 5",
    ]  # fmt: skip


def test_back_to_a_run_brings_its_settings_curves_and_code(explorer):
    second = explorer.result
    act(explorer, "history", number=1, what="back")
    assert explorer.result.rank == explorer.rank == 2
    assert [line["current"] for line in explorer.runs] == [True, False]
    shown = arrays_of(explorer.curves)["relative_error"][1]
    size = np.sqrt(np.nanmean(explorer.state.fitted_data.observed**2))
    np.testing.assert_allclose(shown, size * explorer.result.history.relative_error)
    assert "rank=2" in explorer.code_text
    assert not explorer.status["buttons"]["continue"]["disabled"]
    act(explorer, "continue")
    assert explorer.join(PATIENCE)
    expected = done(
        plain(widgets.Explorer, datasets.digits(60), rank=2, missing=0.1, iterations=80)
    )
    np.testing.assert_array_equal(explorer.result.W, expected.result.W)
    act(explorer, "history", number=2, what="back")
    assert explorer.result is second


def test_curves_of_another_run_are_laid_over(explorer):
    act(explorer, "history", number=1, what="overlay")
    points = arrays_of(explorer.curves)
    assert set(points) >= {"relative_error", "relative_error run 1", "held_out run 1"}
    assert not np.array_equal(points["relative_error"], points["relative_error run 1"])
    assert explorer.runs[0]["overlaid"]
    act(explorer, "history", number=1, what="overlay")
    assert "relative_error run 1" not in arrays_of(explorer.curves)


def test_pictures_side_by_side(explorer):
    assert picture(explorer, "beside") is None
    act(explorer, "history", number=1, what="beside")
    assert explorer.pictures["beside_title"] == "run 1"
    beside = picture(explorer, "beside")
    act(explorer, "history", number=1, what="back")
    np.testing.assert_allclose(beside, picture(explorer, "reconstruction"), atol=1e-6)
    act(explorer, "history", number=1, what="beside")
    assert picture(explorer, "beside") is None


def test_strokes_of_the_brush_are_one_run(explorer):
    for x in (1, 2, 3):
        act(explorer, "brush", hide=True, picture=0, points=[(x, x)], radius=1)
        assert explorer.join(PATIENCE)
    assert [line["number"] for line in explorer.runs] == [1, 2, 3]
    assert "painted" in explorer.runs[-1]["settings"]
    act(explorer, "history", number=2, what="back")
    assert explorer.pictures["n_painted"] == 0


def test_old_runs_are_forgotten():
    explorer = plain(widgets.Explorer, datasets.digits(20), rank=1, iterations=1)
    for _ in range(MOST + 3):
        done(explorer)
    assert [line["number"] for line in explorer.runs] == list(range(4, MOST + 4))
