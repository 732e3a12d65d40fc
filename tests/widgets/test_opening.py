"""Explorers when they are opened: what begins by itself, and questions about faulty data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from explorer_page import act, enter, plain, said
from waiting import PATIENCE, wait_for

from nmd_lab import datasets, widgets
from nmd_lab.widgets import live_fit as live
from nmd_lab.widgets import view


@pytest.fixture
def digits():
    return datasets.digits(80)


def test_everything_begins_with_auto(digits):
    values = widgets.explore(digits).state.values
    assert [values[name] for name in ("nonlinearity", "rank", "alpha")] == ["auto"] * 3


def test_a_page_that_is_opened_shows_a_simple_model_and_then_the_chosen_one(digits, monkeypatch):
    monkeypatch.setattr(live, "SOON", np.inf)
    explorer = widgets.explore(digits, iterations=20)
    shown = []
    explorer.observe(lambda change: shown.append(explorer.fit.result), "modelled")
    act(explorer, "opened")
    assert explorer.join(PATIENCE)
    assert explorer.fit.phase == "finished"
    first = next(each for each in shown if each is not None)
    assert (first.nonlinearity.name, first.rank) == ("identity", 10)
    assert explorer.result.selection.sizes["trial"] > 1
    assert explorer.rank == explorer.result.rank
    assert len(explorer.runs) == 1
    assert float(explorer.status["headline"]["value"]) < 1


def test_a_long_choice_is_left_to_the_user_and_its_time_is_said(digits, monkeypatch):
    monkeypatch.setattr(live, "SOON", 0.0)
    explorer = widgets.explore(digits)
    act(explorer, "opened")
    assert explorer.join(PATIENCE)
    assert said(explorer).startswith("a first look, at the simplest model; “find everything” takes")
    assert explorer.rank == "auto"
    assert explorer.result.rank == 10
    assert explorer.status["headline"]["rivals"].startswith("· column means")
    code = explorer.code().replace("X = ...", "X = nmd.datasets.digits(80)")
    variables = {}
    exec(code, variables)  # the code repeats the model that is shown
    np.testing.assert_allclose(variables["fit"].W, explorer.result.W, rtol=1e-9)


def test_a_changed_setting_fits_again_if_that_is_quick(digits, monkeypatch):
    monkeypatch.setattr(view, "QUICK", np.inf)
    explorer = plain(widgets.explore, digits, iterations=5)
    act(explorer, "opened")
    assert explorer.join(PATIENCE)
    enter(explorer, "rank", "3")
    assert explorer.join(PATIENCE)
    assert explorer.result.rank == 3
    enter(explorer, "iterations", "9")  # which changes no model
    assert explorer.fit.phase == "finished"
    monkeypatch.setattr(view, "QUICK", 0.0)
    enter(explorer, "rank", "2")
    assert said(explorer).startswith("changed: Run takes about")
    assert explorer.result.rank == 3


def test_a_fit_that_was_stopped_early_does_not_count_as_quick(digits):
    explorer = plain(widgets.explore, digits, iterations=10**12, tol=0.0, rho="1")
    act(explorer, "opened")
    wait_for(lambda: explorer.fit.done > 0)
    explorer.stop()
    assert explorer.join(PATIENCE)
    enter(explorer, "rank", "3")
    assert explorer.fit.phase == "stopped"
    assert said(explorer).startswith("changed: Run takes about")


LONG = pd.DataFrame(
    {
        "user": [0, 0, 0, 1, 1, 2, 2, 3, 3, 3],
        "item": [0, 1, 1, 0, 2, 1, 2, 0, 1, 2],
        "rating": [1.0, 2.0, 5.0, 4.0, 3.0, 2.0, 5.0, 1.0, 2.0, 3.0],
    }
)


def table(m=40):
    draws = np.random.default_rng(0)
    frame = pd.DataFrame(draws.normal(size=(m, 3)), columns=list("abc"))
    frame["name"] = [f"person {k}" for k in range(m)]
    frame["note"] = [f"says thing {k % 15}, and more" for k in range(m)]
    return frame


def asked(explorer):
    return explorer.facts["asked"]


def answered(explorer, way):
    """Press a button, and wait for the fit that follows."""
    act(explorer, "opened")
    act(explorer, "mend", way=asked(explorer)["ways"][way])
    assert explorer.join(PATIENCE)
    assert explorer.fit.phase == "finished", explorer.fit.message
    assert "asked" not in explorer.facts
    return explorer.state


PLAIN = {"rank": 2, "alpha": 1.0, "nonlinearity": "identity", "iterations": 5}


def test_columns_of_text_are_left_out():
    frame = table()
    explorer = widgets.explore(frame, **PLAIN)
    assert asked(explorer) == {
        "fault": "The table has identifiers or free text in column 'name'.",
        "ways": ["leave out the column of text (name)"],
    }
    state = answered(explorer, 0)
    assert list(state.X.columns) == ["a", "b", "c", "note"]
    assert state.values["rank"] == explorer.result.rank == 2
    assert list(frame.columns) == ["a", "b", "c", "name", "note"]  # that of the user stays


def test_texts_that_repeat_can_be_classes():
    frame = table(120)
    frame["note"] = [f"place {k % 55}" for k in range(120)]
    explorer = widgets.explore(frame, **PLAIN)
    assert asked(explorer)["ways"] == [
        "leave out the 2 columns of text (name, note)",
        "treat note as classes, leave out name",
    ]
    assert explorer.result is None
    state = answered(explorer, 1)
    assert state.X.dtypes["note"] == "category"
    assert explorer.result.shape == (120, 3 + 55)


def test_other_faults_are_said_as_before():
    frame = table().drop(columns="name").assign(b=pd.Timestamp("2020-01-01"))
    explorer = widgets.explore(frame, **PLAIN)
    assert "asked" not in (explorer.facts or {})
    assert "dates in column 'b'" in explorer.status["message"]


@pytest.mark.parametrize(("way", "expected"), [(0, 3.5), (1, 5.0)])
def test_one_value_of_several_is_taken(way, expected):
    explorer = widgets.explore(LONG, rank=1, alpha=1.0, offsets="none", iterations=5)
    assert asked(explorer)["fault"].startswith("One cell has several values")
    state = answered(explorer, way)
    assert state.observations.to_array()[0, 1] == expected
    assert np.isfinite(explorer.result.W).all()


def test_an_upload_is_mended():
    explorer = widgets.explore(np.eye(6), rank=1, alpha=1.0)
    content = LONG.rename(columns={"user": "userId"}).to_csv(index=False).encode()
    act(explorer, "open", content, name="long.csv")
    state = answered(explorer, 1)
    assert state.observations.to_array()[0, 1] == 5.0
