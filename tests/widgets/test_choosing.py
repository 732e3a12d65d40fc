"""Explorers that choose rank, ridges, offsets and f: what they fit, show and copy."""

from types import SimpleNamespace

import numpy as np
import pytest
from explorer_page import act, button, control, ended, executed, lists, plain, said
from waiting import PATIENCE, wait_for

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.model.model import make_model
from nmd_lab.widgets import fitting
from nmd_lab.widgets.ratings import RatingsState

GENERATED = datasets.make_ratings(120, 90, 3_000, random_state=0)
CHOOSABLE = ["nonlinearity", "rank", "alpha", "offsets", "offset_alpha"]

SETTING = {"rank": np.int64(3), "alpha": 2.345678, "offsets": "both", "offset_alpha": 1.0}


def made_up(setting=SETTING):
    """Return a choice without trials."""
    options = ["nonlinearity", "loss", *setting]
    record = {"trials": [], "chosen": -1, "reason": "made up", "options": options}
    units = SimpleNamespace(model=make_model(nmd.MinMax(1, 5), "frobenius"))
    problem, summary = SimpleNamespace(units=units), SimpleNamespace(selection=record)
    return SimpleNamespace(problem=problem, summary=summary, options=SimpleNamespace(**setting))


@pytest.fixture
def endless(monkeypatch):
    """Let choices last until they are to stop."""

    def waits(X, arguments, signals, **_):
        wait_for(lambda: bool(signals))
        return made_up()

    monkeypatch.setattr(fitting, "choice_for", waits)


@pytest.fixture
def at_once(monkeypatch):
    """Let choices find what is made up."""
    monkeypatch.setattr(fitting, "choice_for", lambda *_, **__: made_up())


def joined(state):
    assert state.fit.join(PATIENCE)
    assert state.fit.phase == "finished", state.fit.message
    return state.fit.result


def test_everything_is_chosen_and_the_code_has_the_numbers():
    state = RatingsState(GENERATED, iterations=40)
    assert [state.values[name] for name in CHOOSABLE] == ["auto"] * 5
    assert [each.name for each in state.fields if each.auto] == CHOOSABLE
    assert state.problems() == {}
    fit = ended(state)
    values, table = state.values, fit.selection
    best = table.isel(trial=table.attrs["chosen"])
    assert table.sizes["trial"] > 5
    assert values["rank"] == fit.rank == int(best["rank"])
    assert values["alpha"] == fit.parameters["alpha"] == pytest.approx(float(best.alpha), rel=1e-3)
    assert values["offsets"] == fit.parameters["offsets"] == str(best["offsets"].values)
    assert values["offset_alpha"] == fit.parameters["offset_alpha"]
    assert values["nonlinearity"] == fit.nonlinearity.name
    assert not state.changed
    code = state.code("GENERATED")
    assert f"alpha={values['alpha']}" in code
    assert "auto" not in code
    np.testing.assert_array_equal(executed(code, GENERATED=GENERATED)["fit"].W, fit.W)


def test_what_the_user_changes_meanwhile_stays(monkeypatch):
    state = RatingsState(GENERATED, iterations=5)

    def changes(*_, **__):
        state.set("alpha", 99.0)
        state.set("seed", 4)
        return made_up()

    monkeypatch.setattr(fitting, "choice_for", changes)
    fit = ended(state)
    assert (state.values["alpha"], state.values["rank"]) == (99.0, 3)
    assert state.changed
    assert fit.parameters["alpha"] == 2.346
    assert "alpha=2.346" in state.code()
    assert "random_state=0" in state.code()


def test_ranks_that_were_tried_are_shown_and_one_click_fits_with_another():
    explorer = plain(widgets.Explorer, datasets.digits(80), rank="auto", alpha=1.0, iterations=20)
    explorer.start()
    assert joined(explorer.state).rank == explorer.rank
    trials = explorer.result.selection
    of_rank, _, error = explorer.status["why"].partition(": held-out error ")
    assert of_rank == f"{explorer.rank} components"
    assert error.partition(" of ")[0] in repr(explorer.result)  # as the result prints it
    line = explorer.dots["ranks"]["points"]
    ranks = [point["x"] for point in line]
    best = trials.groupby("rank").map(lambda each: each["error"].min())
    assert len(ranks) > 2
    assert ranks == [point["id"] for point in line] == best["rank"].values.tolist()
    np.testing.assert_allclose(
        [point["y"] for point in line], 100 * (best.values / best.values.min() - 1), atol=1e-9
    )
    shapes = {each["name"]: each for each in explorer.facts["shapes"]}
    assert [name for name, each in shapes.items() if each["chosen"]] == ["relu"]
    assert {each["error"] for each in shapes.values()} == {""}  # only this shape was tried
    act(explorer, "point", chart="ranks", id=ranks[0])
    assert joined(explorer.state).rank == ranks[0]
    assert explorer.dots["ranks"]["points"] == line  # another point can follow
    assert explorer.status["why"] == f"{of_rank}: held-out error {error}"


@pytest.mark.usefixtures("at_once")
def test_an_f_with_bounds_brings_them_and_controls_show_what_was_chosen():
    explorer = widgets.Explorer(data="generated", iterations=5)
    state = explorer.state
    assert [control(explorer, name)["value"] for name in CHOOSABLE] == ["auto"] * 5
    explorer.state.set("low", -9.0)
    explorer.start()
    fit = joined(state)
    assert fit.nonlinearity == nmd.MinMax(1, 5)
    shown = {each["name"]: each["value"] for each in explorer.controls}
    assert shown | {"nonlinearity": "minmax", "rank": "3", "alpha": "2.346"} == shown
    assert (state.values["low"], state.values["high"]) == (1, 5)
    assert "nonlinearity=nmd.MinMax(1.0, 5.0)" in explorer.code_text
    assert max(float(line["predicted"]) for line in lists(explorer, "top")) <= 5


@pytest.mark.usefixtures("endless")
@pytest.mark.parametrize("how", ["stop", "close"])
def test_a_choice_that_does_not_end_leaves_auto(how):
    explorer = widgets.Explorer(data="generated", iterations=5)
    explorer.start()
    state, thread = explorer.state, explorer.state.fit._thread
    assert button(explorer, "run")["disabled"]
    wait_for(lambda: "choosing by held-out entries" in said(explorer))
    assert state.fit.cannot_proceed()
    explorer.close() if how == "close" else act(explorer, how)
    thread.join(PATIENCE)
    assert [state.values[name] for name in CHOOSABLE] == ["auto"] * 5
    assert state.fit.result is None
    assert state.fit.phase == ("stopped" if how == "stop" else "ready")
    assert state.fit.message == ("stopped before a choice was made" if how == "stop" else "ready")
    assert "alpha" not in state.code()
