"""Explorers among other widgets, and those that are closed: they leave nothing behind."""

import gc
import sys
import weakref
from types import SimpleNamespace

import ipywidgets
import pytest
from explorer_page import act, control, done, enter, plain
from waiting import PATIENCE

pytest.importorskip("anywidget")

from ipywidgets.widgets.widget import _instances
from some import some

import nmd_lab as nmd
from nmd_lab import datasets, widgets


def fitted():
    return nmd.decompose(datasets.digits(30), 2, random_state=0, max_iter=3, tol=0)


def study():
    made = nmd.Study(datasets.digits(30), rank=[1, 2], n_splits=1, max_iter=3, alpha=0)
    made.run(progress=False)
    return made


MADE = [
    lambda: plain(widgets.Explorer, datasets.digits(30), iterations=3),
    lambda: widgets.Explorer(data="generated", iterations=3, rank=2),
    lambda: widgets.Explorer(fitted()),
    lambda: widgets.Explorer(study()),
]


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")
@pytest.mark.parametrize("make", some(MADE, 2))
def test_a_closed_explorer_gives_all_models_back(make):
    make().close()  # what is made once for all
    gc.collect()
    before = len(_instances)
    explorer = make()
    assert len(_instances) == before + 1  # one model an explorer
    if explorer.state.buttons:
        explorer.start()
        explorer.join(PATIENCE)
    gone = weakref.ref(explorer)
    explorer.close()
    explorer.close()  # a second time does no harm
    assert len(_instances) == before
    del explorer
    gc.collect()
    assert gone() is None


def test_refused_settings_leave_no_exception_behind(monkeypatch):
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    with pytest.raises(KeyError, match="'nosuch' is no setting"):
        plain(widgets.Explorer, datasets.digits(30), nosuch=3)
    gc.collect()
    assert ignored == []


def test_closing_ends_the_fit_and_the_sampler(explorer):
    sampler = widgets.Explorer(data="generated", rank=2, alpha=15.0, draws=100_000)
    enter(explorer, "iterations", "1000000000")
    explorer.start()
    sampler.how_sure()
    for each in (explorer, sampler):
        each.close()
        assert each.join(PATIENCE)
    assert sampler.posterior is None


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
    assert [each._n_iter for each in seen] == [5, 5]
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


def test_one_message_a_frame_has_all_that_changes(explorer):
    sent = []
    explorer.comm.send = lambda data=None, buffers=(), **rest: sent.append((data, buffers))
    done(explorer)
    messages = [data for data, _ in sent if data["method"] == "update"]
    frames = [each for each in messages if {"status", "curves"} <= set(each["state"])]
    assert frames
    # Pictures are binary: no text, no base64
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
    assert 'alt="data: 40 pictures of 8 x 8"' in first["text/html"]
    done(explorer)
    (last,) = updated
    shown = last["text/html"]
    assert f'data-explorer="{explorer.static_id}"' in shown
    assert f"{explorer.result._n_iter} iterations" in shown
    assert 'alt="reconstruction: 40 pictures of 8 x 8"' in shown
