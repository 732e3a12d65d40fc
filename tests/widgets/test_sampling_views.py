"""How sure?: what the explorer shows of a posterior."""

from __future__ import annotations

import numpy as np
import pytest
from explorer_page import act, button, enter, plain, said, table
from waiting import PATIENCE, wait_for

import nmd_lab as nmd
from nmd_lab import widgets

TUNE = 100
MODEL = {"data": "generated", "rank": 2, "alpha": 15.0, "iterations": 5}


def test_a_posterior_does_not_see_what_is_hidden_or_painted_over():
    digits = nmd.datasets.digits(40)
    explorer = plain(
        widgets.explore, digits, rank=2, missing=0.3, alpha=1.0, draws=10, iterations=5
    )
    act(explorer, "sample")
    assert explorer.join(PATIENCE)
    seen, _ = nmd.split_observed(digits, 0.3, random_state=0)
    expected = nmd.sample(
        seen, rank=2, nonlinearity="relu", offsets="none", draws=10, random_state=0
    )
    assert expected.draws.identical(explorer.posterior.draws)
    assert explorer.state.sample.findings.held_out
    explorer.brush([(4, 4)], 3.0)
    assert explorer.join(PATIENCE)
    explorer.how_sure()
    assert explorer.join(PATIENCE)
    data = explorer.state.data
    assert not data.mask[0, 36]
    assert explorer.state.sample.findings.n_entries == np.count_nonzero(~data.mask)
    variables = {}
    code = explorer.code().replace("X = ...", "X = nmd.datasets.digits(40)")
    exec(code.replace("posterior.plot.predictions(held_out)", ""), variables)
    assert variables["posterior"].draws.identical(explorer.posterior.draws)


def test_the_explorer_shows_what_the_posterior_says():
    explorer = widgets.Explorer(**MODEL, draws=20)
    assert "intervals" not in explorer.dots
    assert explorer.posterior is None
    act(explorer, "sample")
    assert explorer.join(PATIENCE)
    assert explorer.posterior.draws.sizes["draw"] == 20
    assert explorer.status["done"] == explorer.status["planned"] == TUNE + 20
    assert "% of the 90 % intervals hold the held-out value" in said(explorer)
    assert "1200 held-out entries" in explorer.status["notes"][0]
    best = explorer.state.entries(0, 10)[1][0]
    assert table(explorer, "top")["rows"][0][-1] == f"{best.low:.3g} – {best.high:.3g}"
    assert "nmd.sample(" in explorer.code_text
    enter(explorer, "data", "MovieLens, small")
    assert "interval" not in str(table(explorer, "top")["head"])  # the posterior is of other data
    act(explorer, "reset")
    assert explorer.posterior is None
    assert "intervals" not in explorer.dots


def test_the_button_says_why_it_is_disabled():
    explorer = widgets.Explorer(data="generated")
    assert "press Run, which chooses it" in button(explorer, "sample")["title"]
    assert button(explorer, "sample")["disabled"]
    with pytest.raises(ValueError, match="the nonlinearity is not chosen yet"):
        explorer.how_sure()
    explorer = widgets.Explorer(**MODEL | {"draws": 100_000})
    explorer.how_sure()
    wait_for(lambda: "sampling: sweep" in said(explorer))
    disabled = {name for name, each in explorer.status["buttons"].items() if each["disabled"]}
    assert disabled == {"run", "continue", "choose", "sample", "reset"} - {"reset"}
    act(explorer, "stop")
    assert explorer.join(PATIENCE)
    assert "stopped" in said(explorer)
    assert not button(explorer, "run")["disabled"]


def test_closing_ends_the_sampler():
    explorer = widgets.Explorer(**MODEL | {"draws": 100_000})
    explorer.how_sure()
    explorer.close()
    assert explorer.join(PATIENCE)
    assert explorer.posterior is None
