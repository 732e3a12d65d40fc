"""The brush: what it hides, the fit that follows, and the code that repeats it."""

import numpy as np
import pandas as pd
import pytest
from explorer_page import act, acted, curve, done, painted, picture, plain, repeats
from helpers import wait_for

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.widgets import fitting
from nmd_lab.widgets.pictures import Paint, frame_of


def unpaint(explorer):
    """Take all strokes back."""
    while explorer.state.fit.before is not None:
        act(explorer, "undo")


Y, X = np.mgrid[0:1:40j, 0:1:60j]
SMOOTH = 0.5 + 0.3 * np.sin(5 * X) * np.cos(3 * Y) + 0.2 * X * Y


def stroke(picture, point, radius):
    return {"picture": picture, "points": [point], "radius": radius}


def test_the_brush_reaches_all_of_a_matrix_that_is_thinned_and_all_colours():
    frame = frame_of((2000, 900), None, channels=3)
    assert frame.step == 4
    paint = Paint((2000, 900)).touched(frame, stroke(0, (100, 20), 5))
    rows, columns = np.nonzero(paint.signs)
    assert (rows.min(), rows.max()) == (382, 421)
    assert (columns.min() // 3, columns.max() // 3) == (62, 101)
    counts = np.bincount(columns[rows == 400])
    assert counts[186:306].tolist() == [1] * 120  # every colour of every pixel


def test_hidden_pixels_are_not_seen_and_the_fit_follows():
    explorer = done(plain(widgets.Explorer, SMOOTH, rank=4, alpha=0.01, iterations=30))
    before = explorer.result
    painted(explorer, [(20, 30)], 6)
    seen = picture(explorer, "seen")[0, ..., 0]
    hidden = np.isnan(seen)
    i, j = np.mgrid[0:40, 0:60]
    np.testing.assert_array_equal(hidden, (i - 20) ** 2 + (j - 30) ** 2 <= 36)
    assert explorer.pictures["n_painted"] == hidden.sum()
    assert explorer.result is not before
    options = {"observed": ~hidden, "init": before, "alpha": 0.01, "random_state": 0}
    expected = nmd.complete(SMOOTH, 4, "relu", max_iter=explorer.result._n_iter, **options).rotate()
    np.testing.assert_array_equal(explorer.result.W, expected.W)
    error = nmd.metrics.rmse(SMOOTH, explorer.result.reconstruct().values, observed=hidden)
    assert explorer.state.fit.held_out[explorer.result._n_iter] == pytest.approx(error)
    shown = curve(explorer, "hidden")[1]
    errors = np.array(list(explorer.state.fit.held_out.values()))
    assert errors[0] < errors.max() == shown[0]  # the first iterates remember the pixels
    np.testing.assert_allclose(shown, errors[errors.argmax() :])
    assert explorer.runs[-1]["off"] == pytest.approx(error)
    unpaint(explorer)
    assert not np.isnan(picture(explorer, "seen")).any()


def test_on_pictures_with_few_hidden_pixels_the_strokes_alone_are_marked():
    explorer = done(plain(widgets.Explorer, datasets.digits(20), rank=3, iterations=5, missing=0.1))
    assert not np.isnan(picture(explorer, "seen")).any()
    painted(explorer, [(4, 4)], 1.0, picture=2)
    k, y, x = np.nonzero(np.isnan(picture(explorer, "seen")[..., 0]))
    places = [(3, 4), (4, 3), (4, 4), (4, 5), (5, 4)]
    assert sorted(zip(k, y, x, strict=True)) == [(2, *place) for place in places]


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(
    "X",
    [SMOOTH[::2, ::2], datasets.digits(20), pd.DataFrame(SMOOTH[::2, ::2])],
    ids=["array", "labels", "table"],
)
def test_the_code_repeats_what_was_painted(X, missing):
    settings = {"missing": missing, "rank": 3, "alpha": 0.1, "iterations": 15}
    explorer = done(plain(widgets.Explorer, X, **settings))
    painted(explorer, [(3, 3), (4, 3.5)], 2.5)
    painted(explorer, [(5, 5)], 4.0, rain=True)
    repeats(explorer, X=X)


def test_rain_hides_seventy_percent_and_of_strokes_the_last_counts():
    frame = frame_of((200, 300), None)
    solid = Paint((200, 300)).touched(frame, stroke(0, (100, 150), 20))
    rain = solid.touched(frame, stroke(0, (100, 150), 60) | {"rain": True})
    seen, i, j = rain.mask(np.ones((200, 300), bool)), *np.indices((200, 300))
    distance = np.hypot(i - 100, j - 150)
    assert seen[distance > 60].all()
    for under in (distance <= 20, (distance > 20) & (distance <= 60)):  # a solid stroke too
        assert seen[under].mean() == pytest.approx(0.3, abs=0.04)
    again = rain.touched(frame, stroke(0, (100, 150), 60) | {"rain": True})
    np.testing.assert_array_equal(again.mask(np.ones((200, 300), bool)), seen)


def test_a_brush_during_a_run_goes_on_from_where_it_was():
    explorer = plain(widgets.Explorer, SMOOTH, rank=3, iterations=100_000_000, tol=0, rho=1.0)
    explorer.start()
    painted(explorer, [(10, 10)], 4)
    assert explorer.state.fit.phase == "finished"
    repeats(explorer, X=SMOOTH)


def test_a_stroke_before_the_choice_is_made_begins_it_anew(monkeypatch):
    choose, asked = fitting.choice_for, []

    def waits_first(X, arguments, signals, **options):
        asked.append(options["observed"])
        if len(asked) == 1:
            wait_for(lambda: bool(signals))
        return choose(X, arguments, signals, **options)

    monkeypatch.setattr(fitting, "choice_for", waits_first)
    X = datasets.digits(40)
    explorer = widgets.explore(X, iterations=10)
    act(explorer, "opened")
    wait_for(lambda: asked)
    painted(explorer, [(4, 4)], 2.0, picture=1)
    assert explorer.state.fit.phase == "finished"
    assert not explorer.status["first_look"]
    assert asked[0] is None
    assert not asked[1].all()  # the choice does not see what is painted
    repeats(explorer, X=X)


@pytest.mark.parametrize(("name", "value"), [("missing", 0.5), ("rank", 5)])
def test_a_stroke_after_a_changed_setting_counts_in_the_next_run(name, value):
    explorer = done(plain(widgets.Explorer, SMOOTH, rank=3, alpha=0.1, iterations=15))
    first = explorer.result
    act(explorer, "set", name=name, value=value)
    painted(explorer, [(10, 10)], 4)
    assert explorer.result is first
    repeats(explorer, X=SMOOTH)
    done(explorer)
    assert np.isnan(explorer.state.fit.data.observed[10, 10])
    repeats(explorer, X=SMOOTH)


def test_each_kind_of_strokes_has_its_error_and_that_of_the_average():
    X = datasets.digits(60)
    explorer = done(plain(widgets.explore, X, missing=0.1, iterations=30))
    assert explorer.facts["painted"] == ""
    painted(explorer, [(4, 4)], radius=2.0, rain=True)
    painted(explorer, [(4, 4)], radius=3.0, picture=5)
    signs, data = explorer.state.paint.signs, explorer.state.data
    means = np.broadcast_to(np.nanmean(data.observed, axis=0), (60, 64))
    model = explorer.result.reconstruct().values.reshape(60, 64)

    def off(guess, sign):
        under = (signs == sign) & np.isnan(data.observed)
        return np.sqrt(np.mean((guess - data.original)[under] ** 2))

    assert off(model, -2) < 0.9 * off(means, -2)
    assert off(model, -1) > off(means, -1) / 0.9
    rain, solid = explorer.facts["painted"].split(".\n")
    assert f"under rain: ±{off(model, -2):.2g}, better than the average" in rain
    assert f"±{off(model, -1):.2g}, worse than the average" in solid
    assert f"(±{off(means, -1):.2g})" in solid
    unpaint(explorer)
    assert explorer.facts["painted"] == ""


def test_strokes_are_taken_back_and_forgotten_and_repeated_by_the_code_each_time():
    explorer = done(plain(widgets.Explorer, SMOOTH, rank=3, alpha=0.1, iterations=15))
    first = explorer.result
    painted(explorer, [(10, 10)], 4)
    once = explorer.pictures["n_painted"]
    painted(explorer, [(20, 30)], 4)
    painted(explorer, [(30, 30)], 4, goes_on=True)
    assert explorer.pictures["n_painted"] > 2 * once
    acted(explorer, "undo")  # of one stroke, which went on
    assert explorer.pictures["n_painted"] == once
    act(explorer, "undo")
    assert explorer.result is first
    assert explorer.pictures["n_painted"] == 0
    painted(explorer, [(10, 10)], 4)
    done(explorer)
    painted(explorer, [(20, 30)], 4)
    unpaint(explorer)  # back to the run, which has paint of its own
    repeats(explorer, X=SMOOTH)
    acted(explorer, "undo")
    assert not np.isnan(explorer.state.fit.data.observed).any()
    act(explorer, "brush", picture=0, points=[(20, 30)], radius=100)
    assert "the brush would mask all of it" in explorer.status["message"]
