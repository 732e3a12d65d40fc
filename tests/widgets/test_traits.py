"""Explorers among other widgets: traits, links, boxes, interact, and readers without a kernel."""

from __future__ import annotations

from types import SimpleNamespace

import ipywidgets
import pytest
from explorer_page import act, control, done, enter, plain

from nmd_lab import datasets, widgets


@pytest.fixture
def explorer():
    return plain(widgets.Explorer, datasets.digits(40), rank=3, iterations=5)


def test_settings_are_traits_in_both_directions(explorer):
    changes = []
    explorer.observe(lambda change: changes.append((change.name, change.new)))
    explorer.rank = 5
    assert control(explorer, "rank")["value"] == "5"
    assert explorer.state.values["rank"] == 5
    enter(explorer, "alpha", "0.5")
    enter(explorer, "nonlinearity", "minmax")
    assert ("alpha", 0.5) in changes
    assert explorer.nonlinearity == "minmax"
    explorer.rank = 0
    assert "rank=0 is too small" in control(explorer, "rank")["problem"]


def test_the_result_is_observed_once_a_run(explorer):
    seen = []
    explorer.observe(lambda change: seen.append(change.new), "result")
    done(explorer)
    done(explorer)
    assert [each.n_iter for each in seen] == [5, 5]
    assert explorer.result is explorer.value is seen[-1]


def test_two_explorers_and_a_slider_can_be_linked(explorer):
    other = plain(widgets.Explorer, datasets.digits(40), rank=2, iterations=5)
    slider = ipywidgets.IntSlider(4, min=1, max=9)
    links = [
        ipywidgets.link((slider, "value"), (explorer, "rank")),
        ipywidgets.link((explorer, "rank"), (other, "rank")),
        ipywidgets.link((explorer, "selection"), (other, "selection")),
    ]
    assert (explorer.rank, other.rank) == (4, 4)
    enter(other, "rank", "7")
    assert (slider.value, explorer.state.values["rank"]) == (7, 7)
    act(explorer, "lasso", rows=[1, 2, 3])
    assert other.selection == {"rows": [1, 2, 3]}
    assert other.pictures["ids"] == [1, 2, 3]
    for each in links:
        each.unlink()


def test_interact_and_boxes(explorer):
    ranks = []
    answer = ipywidgets.interactive(lambda fit: ranks.append(fit and fit.rank), fit=explorer)
    done(explorer)
    answer.update()
    assert ranks[-1] == 3
    box = ipywidgets.VBox([explorer, ipywidgets.Label("below")])
    assert box.get_state()["children"][0] == f"IPY_MODEL_{explorer.model_id}"


def test_one_message_a_frame_has_all_that_changes(explorer):
    sent = []
    explorer.comm.send = lambda data=None, buffers=(), **rest: sent.append((data, buffers))
    done(explorer)
    messages = [data for data, _ in sent if data["method"] == "update"]
    frames = [each for each in messages if {"status", "curves"} <= set(each["state"])]
    assert frames
    for each in frames:  # numbers are binary: no text, no base64
        assert ["curves", "panels", 0, "curves", 0, "points"] in each["buffer_paths"]
    assert any(["modelled"] in each["buffer_paths"] for each in frames)


def test_readers_without_a_kernel_see_the_last_picture(explorer, monkeypatch):
    displayed, updated = [], []
    handle = SimpleNamespace(update=lambda data, raw: updated.append(data))

    def display(data, *, raw, display_id=None):
        displayed.append(data)
        return handle if display_id else None

    monkeypatch.setattr("nmd_lab.widgets.page.display", display)
    explorer._ipython_display_()
    widget, first = displayed
    assert widget["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.model_id
    assert "text/html" not in widget
    assert 'alt="data: 20 pictures of 8 x 8"' in first["text/html"]
    done(explorer)
    (last,) = updated
    shown = last["text/html"]
    assert f'data-explorer="{explorer.static_id}"' in shown
    assert f"{explorer.result.n_iter} iterations" in shown
    assert 'alt="reconstruction: 20 pictures of 8 x 8"' in shown
