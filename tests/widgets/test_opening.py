"""What happens without a click: a fit when the page is opened, and after a setting was changed."""

from __future__ import annotations

import numpy as np
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
