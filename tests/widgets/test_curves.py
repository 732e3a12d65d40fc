"""Curves: the numbers that the page gets, and held-out errors as if each iteration were a fit."""

import numpy as np
import pytest
from explorer_page import arrays_of, plain
from waiting import PATIENCE, wait_for

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.metrics import rmse
from nmd_lab.widgets.background import is_measured
from nmd_lab.widgets.charts import curves_chart
from nmd_lab.widgets.matrix import MatrixState

ENDLESS = 10**9


def check_curve(state, X, held_out, *, seed=0):
    """Compare the curve with fits that end at its iterations."""
    hidden = np.isnan(np.asarray(state.fit.data.seen))
    rank = state.fit.settings["rank"]
    for iteration in [1, 2, 7, *list(held_out)[12::9], max(held_out)]:
        fit = nmd.complete(
            state.fit.data.seen, rank, "relu", alpha=0, random_state=seed, max_iter=iteration,
            tol=0,
        )  # fmt: skip
        expected = rmse(np.asarray(X), fit.reconstruct().values, observed=hidden)
        assert held_out[iteration] == pytest.approx(expected, rel=1e-9)


def test_the_curve_is_measured_on_a_schedule_of_its_own():
    digits = datasets.digits(300)
    explorer = plain(widgets.explore, digits, missing=0.3, rank=12, iterations=120)
    explorer.start()
    assert explorer.join(PATIENCE)
    held_out = explorer.state.fit.held_out
    assert list(held_out) == [k for k in range(1, 121) if is_measured(k) or k == 120]
    assert len(held_out) > 40
    check_curve(explorer.state, digits, held_out)
    best = min(held_out, key=held_out.get)
    assert 1 < best < 120
    shown = dict(zip(*arrays_of(explorer.curves)["hidden"], strict=True))
    assert shown == pytest.approx(held_out)


def test_what_is_read_does_not_change_while_it_runs(small):
    settings = {"iterations": ENDLESS, "tol": 0.0, "rho": 1.0}
    state = plain(MatrixState, small, rank=4, missing=0.2, **settings)
    state.start()
    wait_for(lambda: state.fit.state is not None)
    before = state.fit.guesses
    seen, count = state.fit.state.iteration, len(before)
    wait_for(lambda: state.fit.state.iteration > 2 * seen + 40)
    assert len(before) == count < len(state.fit.guesses)
    state.fit.reset()
    assert state.fit.join(PATIENCE)
    assert state.fit.guesses == state.fit.seen == {}


def test_all_numbers_arrive_as_they_are():
    a = np.geomspace(1, 1e-300, 300)
    seen = dict(enumerate(a, 1))
    points = arrays_of(curves_chart({"seen": seen, "hidden": {1: 0.5}, "other": {}}))
    assert list(points) == ["seen", "hidden"]
    np.testing.assert_array_equal(points["seen"], [np.arange(1, a.size + 1), a])
    assert curves_chart({"seen": {}, "hidden": {}}) is None
