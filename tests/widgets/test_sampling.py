"""How sure?: draws in the background, their results for entries and in the page, and the code."""

import numpy as np
import pytest
from explorer_page import act, button, executed, lists, plain, said, sure
from waiting import PATIENCE, wait_for

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.widgets.background import Background
from nmd_lab.widgets.explorer import library
from nmd_lab.widgets.ratings import RatingsState
from nmd_lab.widgets.words import MAX_CHECKED

TUNE = 100
GENERATED = datasets.make_ratings(400, 300, 12_000, random_state=0)
MODEL = {"rank": 2, "alpha": 15.0, "iterations": 5}


def sampled(state):
    state.how_sure()
    assert state.active.join(PATIENCE)
    assert state.posterior is not None, state.active.message
    return state.posterior


def stop_at(monkeypatch, sweep):
    """Press Stop at a sweep."""
    show = Background.show

    def shown(self, run, message, **now):
        if run.done == sweep:
            self.stop()
        show(self, run, message, **now)

    monkeypatch.setattr(Background, "show", shown)


@pytest.mark.parametrize("validation", [0.0, 0.2])
def test_the_code_repeats_the_draws(validation):
    state = RatingsState(
        GENERATED, **MODEL, draws=20, validation=validation, offsets="rows", seed=3
    )
    posterior = sampled(state)
    assert (state.sample.phase, state.sample.done, state.sample.planned) == (
        "finished", TUNE + 20, TUNE + 20,
    )  # fmt: skip
    code = state.code(library()["generated"])
    assert "complete" not in code
    names = executed(code)
    assert names["posterior"].draws.identical(posterior.draws)
    found = state.sample.findings
    entries = names["held_out" if validation else "observed"]
    assert found.held_out == (validation > 0)
    i, j, x = entries.entries()
    low, high = posterior.predict_interval(i, j).T
    assert found.held[0.9] == pytest.approx(np.mean((low <= x) & (x <= high)), abs=0.01)
    assert found.summary.startswith(f"90 % intervals cover {100 * found.held[0.9]:.0f} % of")
    ax = posterior.plot.predictions(entries, max_points=MAX_CHECKED)  # as the code has it
    assert ax.get_title().startswith(f"{100 * found.held[0.9]:.0f} % of the 90 % intervals")


@pytest.mark.parametrize("keep_all", [True, False])
def test_stop_keeps_what_there_is(monkeypatch, keep_all):
    if not keep_all:
        options = "nmd_lab.request.options.KEPT_BYTES"
        monkeypatch.setattr(options, 4 * 700 * 3 * 30)
    stop_at(monkeypatch, TUNE + 37)
    state = RatingsState(GENERATED, **MODEL, draws=500, offsets="none")
    posterior = sampled(state)
    assert state.sample.phase == "stopped"
    assert state.sample.message.startswith("stopped after 37 draws")
    assert (posterior.draws.sizes["draw"] == 37) == keep_all
    monkeypatch.undo()
    names = executed(state.code(library()["generated"]))
    assert names["posterior"].draws.identical(posterior.draws)


def test_stop_while_tuning_leaves_nothing(monkeypatch):
    stop_at(monkeypatch, 30)
    state = RatingsState(GENERATED, **MODEL)
    state.sample_now()
    assert state.sample.join(PATIENCE)
    assert (state.sample.phase, state.posterior) == ("stopped", None)
    assert state.sample.message.startswith("stopped before the first draw")
    assert "sample" not in state.code(library()["generated"])


def test_a_new_run_forgets_the_posterior():
    state = RatingsState(GENERATED, **MODEL, draws=3)
    sampled(state)
    state.start()
    assert state.posterior is None
    assert state.active is state.fit
    state.fit.join(PATIENCE)
    sampled(state)
    state.proceed()
    assert state.active is state.fit
    assert state.posterior is not None  # it does not depend on the fit
    state.fit.join(PATIENCE)
    assert "nmd.sample" in state.code(library()["generated"])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"rank": "auto"}, "the rank is not chosen yet"),
        ({"nonlinearity": "auto"}, "the nonlinearity is not chosen yet"),
        ({"rank": 301}, "rank=301 exceeds"),
        ({"draws": 0}, "draws=0"),
        ({"alpha": -1.0}, ""),
        ({"iterations": 0}, ""),
    ],
)
def test_why_there_can_be_no_draws(settings, reason):
    state = RatingsState(GENERATED, **MODEL | settings)
    why = state.cannot_sample()
    assert why.startswith(reason)
    assert bool(why) == bool(reason)


def test_a_posterior_does_not_see_what_is_hidden_or_painted_over():
    digits = nmd.datasets.digits(40)
    settings = {"rank": 2, "missing": 0.3, "alpha": 1.0, "draws": 10, "iterations": 5}
    explorer = plain(widgets.explore, digits, **settings)
    sure(explorer)
    seen, _ = nmd.split_observed(digits, 0.3, random_state=0)
    model = {"rank": 2, "nonlinearity": "relu", "offsets": "none"}
    expected = nmd.sample(seen, **model, draws=10, random_state=0)
    assert expected.draws.identical(explorer.posterior.draws)
    assert explorer.state.sample.findings.held_out
    explorer.brush([(4, 4)], 3.0)
    assert explorer.join(PATIENCE)
    sure(explorer)
    data = explorer.state.data
    assert not data.mask[0, 36]
    assert explorer.state.sample.unseen[0].size == np.count_nonzero(~data.mask)
    variables = {}
    code = explorer.code().replace("X = ...", "X = nmd.datasets.digits(40)")
    exec(code.replace("posterior.plot.predictions(held_out, max_points=5000)", ""), variables)
    assert variables["posterior"].draws.identical(explorer.posterior.draws)


def test_an_open_page_draws_in_the_background_and_a_new_run_ends_that():
    explorer = widgets.Explorer(GENERATED, **MODEL, draws=20)
    act(explorer, "opened")
    assert explorer.join(PATIENCE)
    wait_for(lambda: lists(explorer, "top")[0]["ends"])
    assert said(explorer).startswith("not settled after 5 iterations")  # of the fit
    assert explorer.posterior.draws.sizes["draw"] == 20
    explorer.state.set("draws", 100_000)
    explorer.start()
    assert explorer.join(PATIENCE)
    wait_for(lambda: explorer.state.sample.phase == "running")
    assert not button(explorer, "run")["disabled"]
    act(explorer, "sample")  # from now on it is shown, and can be stopped
    wait_for(lambda: "drawing: " in said(explorer))
    act(explorer, "stop")
    assert explorer.join(PATIENCE)
