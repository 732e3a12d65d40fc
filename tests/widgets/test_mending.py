"""Data that are refused: the page says what is wrong, and a press of a button puts it right."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from explorer_page import act
from waiting import PATIENCE

from nmd_lab import widgets

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
