"""How sure?: maps of doubt, and what the explorer shows of a posterior."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from waiting import PATIENCE, wait_for

import nmd_lab as nmd
from nmd_lab import widgets
from nmd_lab.widgets.completion_state import CompletionState

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
