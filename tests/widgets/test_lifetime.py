"""Explorers among other widgets, and those that are closed: they leave nothing behind."""

import base64
import gc
import gzip
import re
import sys
import weakref
from html import escape, unescape
from types import SimpleNamespace

import ipywidgets
import numpy as np
import pytest
from explorer_page import KINDS, act, done, enter, plain
from helpers import PATIENCE, some
from ipywidgets.widgets.widget import _instances

from nmd_lab import datasets, widgets
from nmd_lab.widgets.page import notebook_html, page_of


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")
@pytest.mark.parametrize("kind", some([*KINDS], 2))
def test_a_closed_explorer_gives_all_models_back(kind):
    KINDS[kind]().close()  # what is made once for all
    gc.collect()
    before = len(_instances)
    explorer = KINDS[kind]()
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
    ipywidgets.link((slider, "value"), (explorer, "rank"))
    ipywidgets.link((explorer, "rank"), (other, "rank"))
    ipywidgets.link((explorer, "selection"), (other, "selection"))
    assert (explorer.rank, other.rank) == (4, 4)
    enter(other, "rank", "7")
    assert (slider.value, explorer.state.values["rank"]) == (7, 7)
    act(explorer, "lasso", rows=[1, 2, 3])
    assert other.selection == {"rows": [1, 2, 3]}
    assert other.pictures["ids"] == [1, 2, 3]


def test_one_message_a_frame_has_all_that_changes(explorer):
    sent = []
    explorer.comm.send = lambda data=None, buffers=(), **rest: sent.append((data, buffers))
    done(explorer)
    messages = [data for data, _ in sent if data["method"] == "update"]
    frames = [each for each in messages if {"status", "curves"} <= set(each["state"])]
    assert frames
    # Pictures are binary: no text, no base64
    assert any(["modelled"] in each["buffer_paths"] for each in frames)


@pytest.fixture
def shown(monkeypatch):
    """Return a list of all that is displayed, and of what takes its place."""
    outputs = []

    def display(data, *, raw, display_id=None):
        outputs.append(data)
        return SimpleNamespace(update=display)

    monkeypatch.setattr("nmd_lab.widgets.page.display", display)
    return outputs


def still_of(html):
    """Return what remains where styles, frames and scripts are taken away."""
    return re.sub(r"<(style|iframe|script).*?</\1>", "", html, flags=re.DOTALL)


def page_in(html):
    """Return the page in the frame of an output."""
    source = unescape(re.search(r'srcdoc="([^"]*)"', html)[1])
    packed = re.search(r'atob\("([^"]*)"', source)[1]
    return gzip.decompress(base64.b64decode(packed)).decode()


def test_a_notebook_keeps_sentence_number_picture_and_page(explorer, shown):
    explorer._ipython_display_()
    widget, first = shown
    assert widget["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.model_id
    assert "text/html" not in widget
    assert 'alt="data: 40 images of 8 x 8"' in first["text/html"]
    assert "<iframe" not in first["text/html"]
    done(explorer)
    still, page = (of(shown[-1]["text/html"]) for of in (still_of, page_in))
    assert f'data-explorer="{explorer.static_id}"' in still
    assert escape(explorer.status["headline"]["value"]) in still
    assert "40 images of 8 × 8" in still
    assert 'alt="data, model: 40 images of 8 x 8"' in still
    assert 'id="record"' in page
    act(explorer, "set", name="missing", value=0.2)
    done(explorer)
    last = shown[-1]["text/html"]
    assert all(text in last for text in explorer.status["headline"]["value"].split())


def test_a_notebook_keeps_a_photograph_with_other_groups(shown):
    explorer = KINDS["photograph"]()
    explorer._ipython_display_()
    act(explorer, "set", name="groups", value=3)
    done(explorer)
    assert explorer.status["message"] == "done"
    assert "3 groups" in still_of(shown[-1]["text/html"])
    explorer.close()


def test_large_data_give_a_page_with_fewer_rows():
    X = np.random.default_rng(0).random((3000, 64))
    explorer = plain(widgets.Explorer, X, rank=40, iterations=3, shape=(8, 8))
    html = notebook_html(done(explorer))
    assert 50_000 < len(html) < 150_000
    assert len(page_of(explorer)) > 2 * len(page_in(html))


@pytest.mark.usefixtures("shown")
def test_a_new_run_of_a_cell_ends_its_old_explorer(monkeypatch):
    made = [plain(widgets.Explorer, datasets.digits(20), iterations=3) for _ in range(5)]
    cells = zip(made, ["a", "a", "b", "b", "a"], [1, 1, 2, 3, 4], strict=True)
    alive = []
    for explorer, *cell in cells:
        monkeypatch.setattr("nmd_lab.widgets.page.running_cell", lambda cell=cell: cell)
        explorer._ipython_display_()
        alive.append([each.comm is not None for each in made])
    assert alive[1] == [True] * 5  # two in one run of a cell
    assert alive[3] == [True, True, False, True, True]
    assert alive[4] == [False, False, False, True, True]
    for each in made:
        each.close()
