"""How sure?: draws in the background, intervals in the tables, charts, maps, and the code."""

from __future__ import annotations

import io
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image
from waiting import PATIENCE, wait_for

import nmd_lab as nmd
from nmd_lab import widgets
from nmd_lab._sample_warnings import REMEDY
from nmd_lab.widgets import live_sample
from nmd_lab.widgets.completion_state import CompletionState
from nmd_lab.widgets.live_sample import LiveSample

TUNE = 100
MODEL = {"data": "generated", "rank": 2, "alpha": 15.0, "iterations": 5}


@pytest.fixture(autouse=True)
def no_event_loop(monkeypatch):
    """Hide the event loop that browser tests leave behind: it does not run, so calls would wait."""

    def fails():
        raise RuntimeError("no running event loop")

    monkeypatch.setattr("nmd_lab.widgets._controls.asyncio.get_running_loop", fails)


def sampled(state):
    state.sample_now()
    assert state.active.join(PATIENCE)
    assert state.posterior is not None, state.active.message
    return state.posterior


def executed(code, **names):
    """Run copied code; few draws are enough here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nmd.NotConvergedWarning)
        exec(code, names)
    plt.close("all")
    return names


def stop_at(monkeypatch, sweep):
    """Press Stop at a sweep."""
    watch = LiveSample._watch

    def watched(self, number, stop):
        if number == sweep:
            self.stop()
        return watch(self, number, stop)

    monkeypatch.setattr(LiveSample, "_watch", watched)


def same_draws(first, second):
    assert first.draws.identical(second.draws)


@pytest.mark.parametrize("validation", [0.0, 0.2])
def test_the_code_repeats_the_draws(validation):
    state = CompletionState(**MODEL, draws=20, validation=validation, offsets="rows", seed=3)
    posterior = sampled(state)
    assert (state.sample.phase, state.sample.done, state.sample.planned) == (
        "finished", TUNE + 20, TUNE + 20,
    )  # fmt: skip
    code = state.code()
    assert "complete" not in code
    names = executed(code)
    same_draws(names["posterior"], posterior)
    found = state.sample.findings
    entries = names["held_out" if validation else "observed"]
    assert found.held_out == (validation > 0)
    assert found.n_entries == min(5000, entries.n_observed)
    i, j, x = entries.entries()
    low, high = posterior.predict_interval(i, j).T
    assert found.coverage == pytest.approx(np.mean((low <= x) & (x <= high)), abs=0.01)
    assert found.rmse == pytest.approx(
        np.sqrt(np.mean((posterior.predict(i, j) - x) ** 2)), rel=0.02
    )
    assert f"{100 * found.coverage:.0f} % of the 90 % intervals" in state.sample.message


def test_few_entries_are_all_checked():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((30, 20)) < 0.5, rng.normal(size=(30, 20)), np.nan)
    state = CompletionState(X, rank=2, alpha=1.0, draws=20)
    posterior = sampled(state)
    _, held_out = nmd.split_observed(X, 0.1, random_state=0)
    i, j = np.nonzero(~np.isnan(held_out))
    low, high = posterior.predict_interval(i, j, level=0.9).T
    inside = (low <= held_out[i, j]) & (held_out[i, j] <= high)
    found = state.sample.findings
    assert (found.n_entries, found.coverage) == (i.size, inside.mean())
    error = posterior.predict(i, j) - held_out[i, j]
    assert found.rmse == pytest.approx(np.sqrt(np.mean(error**2)))
    same_draws(executed(state.code("X"), X=X)["posterior"], posterior)


def test_the_code_has_fit_and_draws():
    state = CompletionState(**MODEL, draws=10, nonlinearity="minmax", low=1.0, high=5.0)
    state.start()
    assert state.fit.join(PATIENCE)
    posterior = sampled(state)
    assert not state.changed
    state.set("draws", 70)
    assert not state.changed  # as with the number of iterations
    state.set("rank", 7)
    names = executed(state.code())
    np.testing.assert_array_equal(names["fit"].W, state.fit.result.W)
    same_draws(names["posterior"], posterior)
    assert posterior.nonlinearity == nmd.MinMax(1, 5)


@pytest.mark.parametrize("keep_all", [True, False])
def test_stop_keeps_what_there_is(monkeypatch, keep_all):
    if not keep_all:
        options = "nmd_lab.solver.sampler.options.KEPT_BYTES"
        monkeypatch.setattr(options, 4 * 700 * 3 * 30)
    stop_at(monkeypatch, TUNE + 37)
    state = CompletionState(**MODEL, draws=500, offsets="none")
    posterior = sampled(state)
    assert state.sample.phase == "stopped"
    assert state.sample.message.startswith("stopped after 37 draws; ")
    assert (posterior.draws.sizes["draw"] == 37) == keep_all
    monkeypatch.undo()
    same_draws(executed(state.code())["posterior"], posterior)


def test_stop_while_tuning_leaves_nothing(monkeypatch):
    stop_at(monkeypatch, 30)
    state = CompletionState(**MODEL)
    state.sample_now()
    assert state.sample.join(PATIENCE)
    assert (state.sample.phase, state.posterior) == ("stopped", None)
    assert state.sample.message.startswith("stopped before the first draw")
    assert "sample" not in state.code()


def test_a_new_run_and_reset_forget_the_posterior():
    state = CompletionState(**MODEL, draws=3)
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
    assert "nmd.sample" in state.code()
    state.reset()
    assert (state.posterior, state.fit.result, state.active.phase) == (None, None, "ready")


def test_reset_forgets_a_running_sampler():
    state = CompletionState(**MODEL, draws=100_000)
    state.sample_now()
    wait_for(lambda: state.sample.done > 2)
    state.reset()
    assert state.sample.join(PATIENCE)
    assert (state.sample.phase, state.sample.done, state.posterior) == ("ready", 0, None)


def test_an_error_is_a_sentence(monkeypatch):
    def fails(*_):
        raise ValueError("it is too small.")

    state = CompletionState(**MODEL)
    monkeypatch.setattr(live_sample, "draw_posterior", fails)
    state.sample_now()
    assert state.sample.join(PATIENCE)
    assert (state.sample.phase, state.sample.message) == ("failed", "it is too small.")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"rank": "auto"}, "the rank is not chosen yet"),
        ({"nonlinearity": "auto"}, "f is not chosen yet"),
        ({"rank": 301}, "rank=301 exceeds"),
        ({"draws": 0}, "draws=0"),
        ({"alpha": -1.0}, ""),
        ({"iterations": 0}, ""),
    ],
)
def test_why_there_can_be_no_draws(settings, reason):
    state = CompletionState(**MODEL | settings)
    said = state.cannot_sample()
    assert said.startswith(reason)
    assert bool(said) == bool(reason)


@pytest.mark.parametrize("draws", [3, 10])
def test_the_warning_is_that_of_sample_with_another_remedy(draws):
    state = CompletionState(**MODEL | {"rank": 4}, draws=draws)
    with warnings.catch_warnings(record=True) as outside:  # the thread of the sampler says nothing
        warnings.simplefilter("always")
        sampled(state)
    assert outside == []
    (warning,) = state.sample.warnings
    with pytest.warns(nmd.NotConvergedWarning) as caught:
        exec(state.code(), {})
    plt.close("all")
    said = str(caught[0].message)
    assert warning == said.replace(REMEDY, "raise Draws")


def test_entries_have_intervals():
    state = CompletionState(**MODEL, draws=20)
    posterior = sampled(state)
    row, n = 7, posterior.shape[1]
    observed, best = state.entries(row, 6)
    known = state.observations.indices[slice(*state.observations.indptr[row : row + 2])]
    mean = posterior.predict(np.full(n, row), np.arange(n))
    labels = state.data.labels("columns")
    order = [k for k in np.argsort(-mean) if k not in known][:6]
    assert [entry.label for entry in best] == [str(labels[k]) for k in order]
    for entry in (*observed, *best):
        at = [str(label) for label in labels].index(entry.label)
        assert entry.predicted == pytest.approx(mean[at])
        interval = posterior.predict_interval(row, at, level=0.9)[0]
        assert (entry.low, entry.high) == pytest.approx(tuple(interval))


def picture(size=(24, 30), seed=0):
    """A smooth picture of which a band is unknown, but for a few pixels."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, size[0])[:, None] + np.sin(np.linspace(0, 3, size[1]))
    seen = rng.random(size) < 0.8
    seen[:, 20:] &= rng.random((size[0], size[1] - 20)) < 0.15
    return np.where(seen, x + 0.05 * rng.random(size), np.nan)


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png))).astype(int)


def test_dense_data_have_a_map_of_doubt():
    X = picture()
    state = CompletionState(X, rank=2, alpha=1.0, draws=30, validation=0.0)
    posterior = sampled(state)
    maps = state.sample.findings.maps.of_row(0)
    assert list(maps) == ["observed", "posterior mean", "standard deviation"]
    doubt = posterior.uncertainty(noise=False).values
    shown = pixels(maps["standard deviation"][1])[..., :3] @ [0.3, 0.59, 0.11]  # lightness
    assert shown.shape == X.shape
    assert np.all(np.diff(shown.ravel()[np.argsort(doubt.ravel())]) > -1)
    assert shown[:, 20:].mean() > shown[:, :20].mean()
    assert f"{doubt.max():.2g}" in maps["standard deviation"][0]
    mean = pixels(maps["posterior mean"][1])[..., 0]
    assert np.corrcoef(mean.ravel(), posterior.reconstruct().values.ravel())[0, 1] > 0.99


def test_each_row_may_be_a_picture():
    digits = nmd.datasets.digits(40)
    X = digits.where(np.random.default_rng(1).random(digits.shape) < 0.5)
    state = CompletionState(X, rank=2, alpha=1.0, draws=10)
    sampled(state)
    maps = state.sample.findings.maps
    first, other = (maps.of_row(row)["posterior mean"][1] for row in (0, 3))
    assert pixels(first).shape == (8, 8, 4)
    assert first != other
    assert "standard deviation" in maps.of_row(39)


def test_ratings_have_no_map():
    state = CompletionState(**MODEL, draws=3)
    sampled(state)
    assert state.sample.findings.maps.of_row(0) == {}


def test_the_explorer_shows_what_the_posterior_says():
    explorer = widgets.CompletionExplorer(**MODEL, draws=20)
    hidden = [explorer.intervals, explorer.maps["observed"]]
    assert explorer.intervals.layout.display == "none"
    assert explorer.posterior is None
    assert not explorer.sampler.disabled
    explorer.sampler.click()
    assert explorer.join(PATIENCE)
    assert explorer.posterior.draws.sizes["draw"] == 20
    assert explorer.progress.value == explorer.progress.max == TUNE + 20
    assert "% of the 90 % intervals hold the held-out value" in explorer.status.value
    assert Image.open(io.BytesIO(hidden[0].value)).width > 600
    assert explorer.intervals.layout.display is None
    assert explorer._panels.layout.display == "none"
    assert "1200 held-out entries" in explorer._said.value
    best = explorer.state.entries(0, 10)[1][0]
    assert f"<td>{best.low:.3g} – {best.high:.3g}</td>" in explorer.tables[1].value
    assert "nmd.sample(" in explorer._copy.value
    explorer.controls["data"].input.value = "MovieLens, small"
    assert "interval" not in explorer.tables[1].value  # the posterior is of other data
    explorer.buttons["reset"].click()
    assert explorer.posterior is None
    assert explorer.intervals.layout.display == "none"


def test_the_explorer_shows_pictures():
    explorer = widgets.CompletionExplorer(picture(), rank=2, alpha=1.0, draws=10)
    explorer.how_sure()
    assert explorer.join(PATIENCE)
    assert explorer._panels.layout.display is None
    for image in explorer.maps.values():
        assert bytes(image.value).startswith(b"\x89PNG")


def test_the_button_says_why_it_is_disabled():
    explorer = widgets.CompletionExplorer(data="generated")
    assert explorer.sampler.disabled
    assert "press Run first" in explorer.sampler.tooltip
    with pytest.raises(ValueError, match="f is not chosen yet"):
        explorer.how_sure()
    explorer = widgets.CompletionExplorer(**MODEL | {"draws": 100_000})
    explorer.how_sure()
    wait_for(lambda: "sampling: sweep" in explorer.status.value)
    assert explorer.sampler.disabled
    assert explorer.buttons["run"].disabled
    assert explorer.chooser.disabled
    assert not explorer.buttons["stop"].disabled
    explorer.buttons["stop"].click()
    assert explorer.join(PATIENCE)
    assert "stopped" in explorer.status.value
    assert not explorer.buttons["run"].disabled


def test_closing_ends_the_sampler():
    explorer = widgets.CompletionExplorer(**MODEL | {"draws": 100_000})
    explorer.how_sure()
    explorer.close()
    assert explorer.join(PATIENCE)
    assert explorer.posterior is None
