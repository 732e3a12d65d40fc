"""A fit in a thread: it stops, continues, is forgotten or fails as one fit does, and its curves."""

import threading

import numpy as np
import pytest
from explorer_page import acted, control, curve, done, ended, executed, plain
from helpers import PATIENCE, wait_for

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.metrics import rmse
from nmd_lab.widgets import fitting
from nmd_lab.widgets.background import is_measured
from nmd_lab.widgets.matrix import MatrixState
from nmd_lab.widgets.ratings import RatingsState


def fitted(X, iterations=10**9, **settings):
    """Return the state of a matrix whose fit goes on until it is stopped."""
    return plain(MatrixState, X, **{"rank": 3, "tol": 0.0, "iterations": iterations} | settings)


def joined(state):
    """Return the work of a fit that has ended."""
    assert state.fit.join(PATIENCE)
    return state.fit


def test_stop_keeps_the_last_state_as_max_iter_would(small):
    state = fitted(small)
    state.start()
    wait_for(lambda: state.fit.state is not None and state.fit.state.iteration > 5)
    state.fit.stop()
    fit = joined(state)
    assert fit.phase == "stopped"
    count = fit.result._n_iter
    assert fit.message == f"stopped after {count} iterations"
    whole = nmd.decompose(small, 3, max_iter=count, tol=0, random_state=0).rotate()
    np.testing.assert_array_equal(fit.result.W, whole.W)
    assert [*fit.recorded("relative_error")][-1] == count


def test_reset_forgets_even_a_running_fit(small):
    state = fitted(small)
    state.start()
    wait_for(lambda: state.fit.state is not None)
    state.fit.reset()
    assert (joined(state).phase, state.fit.state, state.fit.result) == ("ready", None, None)
    state.proceed()
    assert state.fit.phase == "ready"


def test_listeners_are_called_at_most_sixteen_times_a_second(small, clock):
    state, calls = fitted(small, 300), []
    state.fit.listeners.append(lambda: calls.append((clock.now, state.fit.message)))
    ended(state)
    times = [moment for moment, message in calls if message.startswith("running")]
    assert 2 <= len(times) < 300
    assert min(np.diff(times)) >= 0.06


def test_many_starts_and_stops_do_not_disturb_each_other_and_leave_no_thread(small):
    before, asked = threading.active_count(), []
    state = fitted(small)
    for _ in range(20):
        state.start()
        wait_for(lambda: state.fit.state is not None)
        state.fit.stop()
        state.fit.join()
        state.start()

    def stop_once_it_runs():
        if state.fit.phase == "running" and state.fit.state is not None:
            asked.append(state.fit.state.iteration)
            state.fit.stop()

    state.fit.listeners.append(stop_once_it_runs)
    state.start()
    fit = joined(state)
    assert [fit.result._n_iter] == asked  # it is heard at once
    assert [*fit.recorded("relative_error")][-1] == asked[0]
    wait_for(lambda: threading.active_count() <= before)


def choosing(X, monkeypatch, during, **settings):
    """Return the state of a matrix whose choice calls another function."""

    def choose(X, arguments, signals, **options):
        during(signals)
        return fitting.prepared(X, arguments | {"alpha": 0.5}, **options)

    monkeypatch.setattr(fitting, "choice_for", choose)
    return fitted(X, alpha="auto", **settings)


def test_a_choice_comes_before_the_fit_in_its_thread(small, monkeypatch):
    threads = []

    def trials(asked):
        threads.append(threading.current_thread())
        for _ in range(5):
            asked.begin()
            assert not asked

    state = choosing(small, monkeypatch, trials, iterations=4)
    assert (ended(state)._n_iter, state.values["alpha"]) == (4, 0.5)
    assert threads != [threading.main_thread()]
    state.set("iterations", 3)
    state.proceed()
    assert joined(state).result._n_iter == 7
    assert len(threads) == 1


def test_a_finished_fit_has_done_all_and_the_time_of_a_choice_is_no_iteration(
    small, monkeypatch, clock
):
    wait = lambda _: setattr(clock, "now", clock.now + 400)  # noqa: E731
    state = choosing(small, monkeypatch, wait, tol=0.5, iterations=5000)
    assert ended(state).stop_reason.code == "converged"
    assert state.fit.planned == state.fit.done < 5000
    assert clock.now - state.fit.began < 300


# Curves -------------------------------------------------------------------------------------------


def test_the_curve_is_measured_on_a_schedule_of_its_own():
    digits = datasets.digits(300)
    explorer = done(plain(widgets.explore, digits, missing=0.3, rank=12, iterations=120))
    held_out = explorer.state.fit.held_out
    assert list(held_out) == [k for k in range(1, 121) if is_measured(k) or k == 120]
    assert len(held_out) > 40
    seen = explorer.state.fit.data.seen
    hidden, short = np.isnan(np.asarray(seen)), {"alpha": 0, "random_state": 0, "tol": 0}
    for iteration in [1, 2, 7, *list(held_out)[12::9], max(held_out)]:
        fit = nmd.complete(seen, 12, "relu", max_iter=iteration, **short)
        expected = rmse(np.asarray(digits), fit.reconstruct().values, observed=hidden)
        assert held_out[iteration] == pytest.approx(expected, rel=1e-9)
    best = min(held_out, key=held_out.get)
    assert 1 < best < 120
    shown = dict(zip(*curve(explorer, "hidden"), strict=True))
    assert shown == pytest.approx(held_out)


# Explorers that choose rank, ridges, offsets and f ----------------------------------------------


GENERATED = datasets.make_ratings(120, 90, 3_000, random_state=0)
CHOOSABLE = ["nonlinearity", "rank", "alpha", "offsets", "offset_alpha"]


def made_up(X, arguments, signals, **options):
    """Return a choice without trials."""
    chosen = {"rank": np.int64(3), "alpha": 2.345678, "offsets": "both", "offset_alpha": 1.0}
    bounds = {"nonlinearity": nmd.MinMax(1, 5)}
    return fitting.prepared(X, arguments | chosen | bounds, **options)


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

    def changes(*asked, **options):
        state.set("alpha", 99.0)
        state.set("seed", 4)
        return made_up(*asked, **options)

    monkeypatch.setattr(fitting, "choice_for", changes)
    fit = ended(state)
    assert (state.values["alpha"], state.values["rank"]) == (99.0, 3)
    assert state.changed
    assert fit.parameters["alpha"] == 2.346
    assert "alpha=2.346" in state.code()
    assert "random_state=0" in state.code()


def test_ranks_that_were_tried_are_shown_and_one_click_fits_with_another():
    explorer = plain(widgets.Explorer, datasets.digits(80), rank="auto", alpha=1.0, iterations=20)
    assert done(explorer).result.rank == explorer.rank
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
    acted(explorer, "point", chart="ranks", id=ranks[0])
    assert explorer.result.rank == ranks[0]
    assert explorer.dots["ranks"]["points"] == line  # another point can follow
    assert explorer.status["why"] == f"{of_rank}: held-out error {error}"


def test_an_f_with_bounds_brings_them_and_controls_show_what_was_chosen(monkeypatch):
    monkeypatch.setattr(fitting, "choice_for", made_up)
    explorer = widgets.Explorer(data="generated", iterations=5)
    state = explorer.state
    assert [control(explorer, name)["value"] for name in CHOOSABLE] == ["auto"] * 5
    state.set("low", -9.0)
    assert done(explorer).result.nonlinearity == nmd.MinMax(1, 5)
    shown = {each["name"]: each["value"] for each in explorer.controls}
    assert shown | {"nonlinearity": "minmax", "rank": "3", "alpha": "2.346"} == shown
    assert (state.values["low"], state.values["high"]) == (1, 5)
    assert "nonlinearity=nmd.MinMax(1.0, 5.0)" in explorer.code_text
    assert max(float(line["predicted"]) for line in explorer.facts["lists"]["top"]) <= 5


@pytest.mark.parametrize("how", ["stop", "close"])
def test_a_choice_that_does_not_end_leaves_auto(how, monkeypatch):
    def waits(X, arguments, signals, **options):
        wait_for(lambda: bool(signals))
        return made_up(X, arguments, signals, **options)

    monkeypatch.setattr(fitting, "choice_for", waits)
    explorer = widgets.Explorer(data="generated", iterations=5)
    explorer.start()
    state, thread = explorer.state, explorer.state.fit._thread
    assert explorer.status["buttons"]["run"]["disabled"]
    wait_for(lambda: "choosing by held-out entries" in explorer.status["message"])
    assert state.fit.cannot_proceed()
    getattr(explorer, how)()
    thread.join(PATIENCE)
    assert [state.values[name] for name in CHOOSABLE] == ["auto"] * 5
    assert state.fit.result is None
    said = ("stopped", "stopped before a choice was made") if how == "stop" else ("ready", "")
    assert (state.fit.phase, state.fit.message) == said
    assert "alpha" not in state.code()
