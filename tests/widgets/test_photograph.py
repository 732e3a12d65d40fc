"""The explorer of a photograph: by patches or as a matrix, the brush, and the code."""

import numpy as np
import pytest
import xarray as xr
from explorer_page import COLOUR, GREY, act, acted, done, painted, picture, sentence
from helpers import PATIENCE, some, wait_for
from scipy.interpolate import griddata

from nmd_lab import datasets, widgets
from nmd_lab.widgets.given import is_photograph


def filled(X=None, **settings):
    """An explorer that has filled a photograph."""
    return done(widgets.explore(GREY if X is None else X, **{"groups": 2, **settings}))


def repeats(explorer, X):
    """Whether the code makes the Dataset of the explorer again."""
    exec(explorer.state.code("X"), names := {"X": X})
    xr.testing.assert_identical(names["filled"], explorer.result)


RAIN = {"radius": 8.0, "rain": True}


def test_a_picture_is_a_photograph_and_other_data_are_none():
    rng = np.random.default_rng(0)
    for X in (COLOUR, COLOUR / 255.0, GREY, xr.DataArray(GREY), datasets.photograph("flower"),
              xr.DataArray(COLOUR, dims=("y", "x", "channel"))):  # fmt: skip
        assert is_photograph(X)
    noise, low_rank = rng.random((100, 100)), rng.normal(size=(200, 5)) @ rng.normal(size=(5, 100))
    series, narrow = np.cumsum(rng.normal(size=(200, 300)), axis=1), GREY[:20]
    booleans = GREY > 0.5
    for X in (noise, low_rank, series, datasets.digits(100), narrow, booleans, COLOUR.tolist()):
        assert not is_photograph(X)


def test_the_numbers_are_those_of_the_pixels():
    explorer = filled(missing=0.3)
    hidden = np.random.default_rng(0).random(GREY.shape) < 0.3
    np.testing.assert_array_equal(np.isnan(picture(explorer, "seen"))[0, ..., 0], hidden)
    off = (explorer.result["picture"].values - GREY)[hidden]
    linear, nearest = (
        griddata(np.argwhere(~hidden), GREY[~hidden], np.argwhere(hidden), method)
        for method in ("linear", "nearest")
    )
    rival = np.where(np.isnan(linear), nearest, linear) - GREY[hidden]
    expected = [np.sqrt(np.mean(each**2)) for each in (off, rival)]
    shown = explorer.status["headline"]
    assert [each["name"] for each in shown["rivals"]] == ["interpolation"]
    np.testing.assert_allclose([shown["off"], shown["rivals"][0]["off"]], expected, rtol=0.01)
    assert f"Held-out pixels are predicted to ±{expected[0]:.2g} of " in sentence(explorer)
    covered = np.abs(off) < 1.645 * explorer.result["std"].values[hidden]
    assert f"90 % intervals cover {100 * covered.mean():.0f} %" in sentence(explorer)
    shown = picture(explorer, "reconstruction")[0, ..., 0]
    np.testing.assert_allclose(shown, explorer.result["picture"].values, rtol=1e-6)
    np.testing.assert_array_equal(shown[~hidden], GREY[~hidden].astype(np.float32))


@pytest.mark.parametrize("X", some([GREY, COLOUR.astype(np.float32), COLOUR], 2))
def test_the_code_repeats_the_picture(X, capsys):
    explorer = filled(X, method="sample" if X.ndim == 2 else "complete")
    repeats(explorer, X)
    error = explorer.status["headline"]["off"]
    assert capsys.readouterr().out == f"held-out pixels: ±{error:.3g}\n"
    painted(explorer, [(40, 50), (44, 56)], **RAIN)
    painted(explorer, [(20, 20)], 2.5)
    repeats(explorer, X)
    assert explorer.result["picture"].dtype == X.dtype


def test_a_stroke_is_filled_at_once_where_it_was():
    explorer = filled()
    before, result = explorer.state.fit.mean.copy(), explorer.result
    act(explorer, "brush", rain=True, picture=0, points=[(40, 50)], radius=8)
    wait_for(lambda: "groups so far" in explorer.status["message"])
    during = explorer.code_text
    now = explorer.state.fit.mean
    rows, columns = np.nonzero(now != before)
    assert explorer.result is result
    assert explorer.status["headline"] is None  # the old number is of another picture
    assert set(rows) <= set(range(32, 49))
    assert set(columns) <= set(range(42, 59))
    hidden = ~explorer.state.mask[32:49, 42:59]
    truth = GREY[32:49, 42:59][hidden]
    off = now[32:49, 42:59][hidden] - truth
    assert np.sqrt(np.mean(off**2)) < 0.8 * truth.std()
    assert explorer.join(PATIENCE)
    assert explorer.result is not result
    assert "mask[row, begin:end] &= dry" in during == explorer.code_text


def test_strokes_are_taken_back_and_forgotten():
    explorer = filled()
    first = explorer.result
    act(explorer, "brush", rain=True, picture=0, points=[(20, 20)], radius=8.0)
    waits = np.isnan(picture(explorer, "spread"))[0, :, :, 0]  # for the next filling
    np.testing.assert_array_equal(waits, explorer.state.mask != (first["std"].values == 0))
    assert waits.any()
    assert explorer.join(PATIENCE)
    assert not np.isnan(picture(explorer, "spread")).any()
    painted(explorer, [(60, 60)], **RAIN)
    for _ in range(2):
        act(explorer, "undo")
    assert explorer.join(PATIENCE)
    xr.testing.assert_identical(explorer.result, first)
    repeats(explorer, GREY)


def test_a_stroke_during_the_first_run_counts():
    explorer = widgets.explore(GREY, groups=2)
    explorer.start()
    painted(explorer, [(40, 50), (44, 56)], **RAIN)
    assert explorer.pictures["n_painted"] > 0
    repeats(explorer, GREY)


def test_a_run_that_is_stopped_has_no_result():
    explorer = widgets.explore(GREY, groups=2)
    explorer.start()
    acted(explorer, "stop")
    assert explorer.result is None
    assert explorer.status["message"] == "stopped before it was done"
    assert "no result" in explorer.status["save"]
    repeats(done(explorer), GREY)


@pytest.mark.parametrize("X", [COLOUR / 255.0, GREY], ids=["colours", "grey"])
def test_a_solid_stroke_does_not_take_the_scale_of_the_uncertainty(X):
    explorer = filled(X)
    painted(explorer, [(40, 50), (40, 60)], 15)
    state = explorer.state
    test = ~state.mask & (state.paint.signs == 0)
    spread = state.result["std"].values[test]
    assert explorer.pictures["most"] == pytest.approx(np.quantile(spread[spread > 0], 0.95))
