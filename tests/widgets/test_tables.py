"""Tables of several kinds of columns: their cells and pictures are those of the library."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from explorer_page import act, done, picture, sentence, sure, table
from people import people

import nmd_lab as nmd
from nmd_lab import widgets

SETTINGS = {"rank": 2, "alpha": 0.5, "nonlinearity": "identity", "iterations": 20, "draws": 20}


@pytest.fixture(scope="module")
def frame():
    frame = people(60)[["cm", "kg", "smokes", "town"]].reset_index(drop=True)
    frame = frame.set_axis(["age", "income", "member", "place"], axis=1).astype({"member": bool})
    frame["income"] = (3e4 + 100 * frame["income"].astype(float)).mask(frame.index % 7 == 0)
    return frame


@pytest.fixture(scope="module")
def explorer(frame):
    return done(widgets.explore(frame, missing=0.1, **SETTINGS))


def columns(explorer):
    return {column["name"]: column for column in explorer.grid["columns"]}


def test_each_column_has_its_own_scale_and_histogram(explorer, frame):
    shown = columns(explorer)
    assert list(shown) == ["age", "income", "member", "place"]
    for name in ("age", "income"):
        low, high = frame[name].min(), frame[name].max()
        share = np.array(shown[name]["share"])
        there = frame[name].notna().values
        expected = ((frame[name] - low) / (high - low)).values
        np.testing.assert_allclose(share[there], expected[there], atol=1e-3)
        counts = np.histogram(frame[name].dropna(), bins=len(shown[name]["bars"]))[0]
        np.testing.assert_allclose(shown[name]["bars"], counts / counts.max(), atol=1e-3)
    counts = frame["place"].value_counts(sort=False).values
    np.testing.assert_allclose(shown["place"]["bars"], counts / counts.max(), atol=1e-3)


def test_numbers_of_code_and_probabilities_of_classes_are_of_the_fit_and_then_of_draws(
    frame, capsys
):
    explorer = done(widgets.explore(frame, missing=0.1, **SETTINGS))
    for by in ("", ", by draws"):
        shown = columns(explorer)["place"]
        row = next(k for k, state in enumerate(shown["state"]) if state)
        assert shown["sure"][row].startswith(f"{shown['model'][row]} ")
        exec(explorer.code().replace("...", "frame"), {"frame": frame})
        off, correct = re.search(r"±([\d.]+) SD, (\d+) % of classes", sentence(explorer)).groups()
        numbers, right = capsys.readouterr().out.splitlines()[-2:]
        assert float(re.search(r"±([\d.]+) SD", numbers)[1]) == pytest.approx(float(off), abs=0.006)
        assert right == f"held-out classes{by}: {correct} % right"
        if explorer.posterior is None:
            fitted = explorer.result._fitted.block([row], np.arange(shown["at"], shown["at"] + 3))
            shares = np.clip(fitted[0], 0, 1)
            assert f" {100 * shares.max() / shares.sum():.0f} %" in shown["sure"][row]
            sure(explorer)
    share = explorer.posterior.probabilities("place", rows=[row]).max(axis=1).iloc[0]
    assert f" {100 * share:.0f} %" in shown["sure"][row]
    act(explorer, "swap")
    assert columns(explorer)["place"]["sure"][row] != shown["sure"][row]


def test_cells_say_whether_they_are_seen_hidden_or_filled(explorer, frame):
    data = explorer.state.data
    shown = columns(explorer)["income"]
    missing, hidden = frame["income"].isna().values, np.isnan(data.observed[:, 1])
    np.testing.assert_array_equal(np.array(shown["state"]) == 2, missing)
    np.testing.assert_array_equal(np.array(shown["state"]) == 1, hidden & ~missing)
    model = explorer.result.reconstruct().values[:, 1]
    unseen = missing | hidden
    np.testing.assert_array_equal(np.array(shown["model"]) != "", unseen)
    filled = [float(each) for each in shown["model"] if each]
    np.testing.assert_allclose(filled, model[unseen], rtol=6e-3)
    assert columns(explorer)["place"]["data"] == frame["place"].astype(str).tolist()


def modelled(explorer, name="reconstruction"):
    return picture(explorer, name).reshape(60, 6)


def test_components_are_switched_off_in_every_column(explorer):
    act(explorer, "component", what="off", k=1)
    fit = explorer.result
    m, n = fit._shape
    alone = fit.predict(np.arange(m)[:, None], np.arange(n), without=[1]).reshape(m, n)
    np.testing.assert_allclose(modelled(explorer), alone, rtol=1e-6)
    act(explorer, "component", what="off", k=1)


def test_filled_cells_have_the_intervals_of_the_posterior(explorer, frame):
    assert not any(columns(explorer)["income"]["sure"])
    sure(explorer)
    shown = columns(explorer)["income"]
    low, high = explorer.posterior.predict_interval([0], [1], level=0.9)[0]
    assert shown["sure"][0] == f"90 % in {low:.0f} – {high:.0f}"
    ends = np.array(shown["ends"][0]) * np.ptp(frame["income"].dropna()) + frame["income"].min()
    np.testing.assert_allclose(ends, [low, high], atol=0.001 * np.ptp(frame["income"].dropna()))
    seen = shown["state"].index(0)
    assert (shown["sure"][seen], shown["ends"][seen]) == ("", None)
    mean = explorer.posterior.predict([0], [1])[0]
    assert float(shown["model"][0]) == pytest.approx(mean, rel=1e-3)
    check_coverage(explorer, 0, 2)


def check_coverage(explorer, *numbers):
    """Compare what intervals cover with columns of numbers: of classes they cover nearly all."""
    i, j = explorer.state.data.hidden
    at = tuple(each[(numbers[0] <= j) & (j < numbers[1])] for each in (i, j))
    (low, high), x = explorer.posterior.predict_interval(*at).T, explorer.state.data.original[at]
    said = f"90 % intervals cover {100 * np.mean((low <= x) & (x <= high)):.0f} %"
    assert said in sentence(explorer)


def test_intervals_are_those_of_hidden_numbers_even_if_no_hidden_cell_has_a_class(frame):
    place = frame["place"].astype(str).where(frame.index != 30, "elsewhere")
    text = pd.DataFrame({"place": place, "age": frame["age"], "income": 0.1 * frame["income"]})
    explorer = sure(done(widgets.explore(text, missing=0.1, **SETTINGS)))
    data = explorer.state.data
    k, n = data.labels.table.labels.index("place=elsewhere"), data.shape[1]
    assert not data.original[data.hidden][data.hidden[1] == k].any()
    check_coverage(explorer, n - 2, n)


def test_all_rows_of_a_long_table_can_be_turned_to():
    frame = pd.DataFrame({"a": np.arange(450.0), "b": np.arange(450) % 2 == 0})
    explorer = widgets.explore(frame, missing=0.0, rank=1, nonlinearity="identity", alpha=0.5)
    act(explorer, "arrange", column=0)
    act(explorer, "arrange", column=0)
    seen = list(explorer.grid["rows"])
    while len(seen) < explorer.grid["total"]:
        act(explorer, "arrange", begin=explorer.grid["begin"] + explorer.grid["page"])
        seen += explorer.grid["rows"]
    assert seen == list(range(449, -1, -1))
    explorer.select(row=240, column=0)  # the table turns to its page, and may be turned on
    assert 240 in explorer.grid["rows"]
    act(explorer, "arrange", begin=0)
    assert explorer.grid["rows"][0] == 449


@pytest.fixture(scope="module")
def posterior(frame):
    with pytest.warns(nmd.warnings.NotConvergedWarning):
        return nmd.sample(frame, 2, groups=8, draws=10, tune=5, random_state=0, progress=False)


@pytest.mark.parametrize("given", ["posterior", "file", "dataset"])
def test_a_posterior_does_not_open_empty(given, posterior, tmp_path):
    if given == "file":
        posterior.save(tmp_path / "posterior.nc")
    X = {"file": tmp_path / "posterior.nc", "dataset": posterior._to_dataset()}
    explorer = widgets.explore(X.get(given, posterior))
    mean, spread = posterior.reconstruct().values, posterior.uncertainty(noise=False).values
    np.testing.assert_allclose(modelled(explorer), mean, rtol=1e-6)
    np.testing.assert_allclose(modelled(explorer, "spread"), spread, rtol=1e-5, atol=1e-4)
    assert "the chains have not converged" in explorer.status["warnings"][0]
    assert dict(table(explorer, "facts")["rows"])["draws"] == "10 in 1 chain"
    names = {"posterior": posterior}
    exec(explorer.code().replace("...", "posterior"), names)
    explorer.save(tmp_path / "copy.nc")
    assert nmd.load(tmp_path / "copy.nc").draws.identical(posterior.draws)


def test_a_table_that_is_mostly_missing_is_chosen_for_and_filled(frame):
    holes = frame.astype({"member": "boolean"})
    holes = holes.mask(np.random.default_rng(1).random(frame.shape) < 0.7)
    explorer = done(widgets.explore(holes, iterations=20))
    assert explorer.state.fit.phase == "finished", explorer.state.fit.message
    assert explorer.nonlinearity == "identity"
    assert not any(each["chosen"] for each in explorer.facts["shapes"])  # columns have their own
    assert not explorer.status["failed"]


def test_the_cells_that_the_model_is_least_sure_of_are_listed(frame):
    frame = frame.assign(income=frame["income"].fillna(3e4))  # only the fit misses cells
    settings = {"rank": 2, "alpha": 0.1, "nonlinearity": "identity", "draws": 60}
    explorer = done(widgets.explore(frame, missing=0.2, **settings))
    assert explorer.tables == []
    sure(explorer)
    seen, _ = nmd.split_observed(frame, 0.2, random_state=0)
    expected = nmd.sample(seen, draws=60, random_state=0)  # an f of their own for columns
    assert expected.draws.identical(explorer.posterior.draws)
    assert 'nmd.sample(seen, rank="auto"' in explorer.code_text.replace("\n    ", "")
    unsure, posterior = table(explorer, "unsure"), explorer.posterior
    observed = explorer.state.fit.data.observed
    assert all(np.isnan(observed[row, column]) for row, column in unsure["ids"])
    hidden = np.isnan(observed[:, :4]).sum()
    assert (
        f"The 12 most uncertain of {hidden} held-out cells, most uncertain first,"
        in unsure["caption"]
    )
    numbers = [k for k, cells in enumerate(unsure["rows"]) if "%" not in cells[2]]
    row, column = unsure["ids"][numbers[0]]
    low, high = posterior.predict_interval(row, column, level=0.9)[0]
    shown = unsure["rows"][numbers[0]][2].split(" – ")
    np.testing.assert_allclose(np.array(shown, dtype=float), [low, high], rtol=0.01)
    assert float(shown[0]) <= float(unsure["rows"][numbers[0]][1]) <= float(shown[1])
    categories = [cells for cells in unsure["rows"] if cells[0].endswith("place")]
    assert all(cells[1] in set(frame["place"]) for cells in categories)
    assert all(cells[2].endswith(" %") for cells in categories)


@pytest.mark.parametrize("drawn", [False, True])
def test_a_result_of_a_table_is_shown_as_a_table(frame, drawn):
    if drawn:
        outcome = nmd.sample(frame, groups=1, draws=10, random_state=0)
    else:
        outcome = nmd.complete(frame, 2, alpha=0.5, random_state=0)
    explorer = widgets.explore(outcome)
    assert not explorer.status["failed"]
    shown = columns(explorer)
    assert list(shown) == list(frame.columns)
    means = outcome.reconstruct().values[:, 0]
    np.testing.assert_allclose([float(x) for x in shown["age"]["model"]], means, rtol=6e-3)
    assert set(shown["place"]["model"]) <= set(frame["place"].cat.categories)
    assert all(shown["age"]["sure"]) == drawn
    act(explorer, "arrange", column=0)
    sorted_ages = [float(x) for x in columns(explorer)["age"]["model"]]
    assert sorted_ages == sorted(sorted_ages)
