"""Tables of several kinds of columns: their cells and pictures are those of the library."""

from __future__ import annotations

import copy
import re
import threading
from importlib.util import find_spec

import numpy as np
import pandas as pd
import polars as pl
import pytest
from explorer_page import act, acted, done, executed, picture, repeats, sentence, sure, table
from helpers import people

import nmd_lab as nmd
from nmd_lab import datasets, widgets

SETTINGS = {"rank": 2, "alpha": 0.5, "nonlinearity": "identity", "iterations": 20, "draws": 20}


@pytest.fixture(scope="module")
def frame():
    frame = people(60)[["cm", "kg", "smokes", "town"]].reset_index(drop=True)
    frame = frame.set_axis(["age", "income", "member", "place"], axis=1).astype({"member": bool})
    frame["income"] = (3e4 + 100 * frame["income"].astype(float)).mask(frame.index % 7 == 0)
    return frame


def columns(explorer):
    return {column["name"]: column for column in explorer.grid["columns"]}


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


def test_filled_cells_have_the_intervals_of_the_posterior(frame):
    explorer = done(widgets.explore(frame, missing=0.1, **SETTINGS))
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


def test_a_posterior_does_not_open_empty(frame, tmp_path):
    with pytest.warns(nmd.warnings.NotConvergedWarning):
        posterior = nmd.sample(frame, 2, groups=8, draws=10, tune=5, random_state=0, progress=False)
    posterior.save(tmp_path / "posterior.nc")
    mean, spread = posterior.reconstruct().values, posterior.uncertainty(noise=False).values
    for k, X in enumerate((posterior, tmp_path / "posterior.nc", posterior._to_dataset())):
        explorer = widgets.explore(X)
        shown, unsure = picture(explorer, "reconstruction"), picture(explorer, "spread")
        np.testing.assert_allclose(shown.reshape(60, 6), mean, rtol=1e-6)
        np.testing.assert_allclose(unsure.reshape(60, 6), spread, rtol=1e-5, atol=1e-4)
        assert "the chains have not converged" in explorer.status["warnings"][0]
        assert dict(table(explorer, "facts")["rows"])["draws"] == "10 in 1 chain"
        exec(explorer.code().replace("...", "posterior"), {"posterior": posterior})
        copy = explorer.save(tmp_path / f"copy{k}.nc")
        assert nmd.load(copy).draws.identical(posterior.draws)


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
    said = f"The 12 most uncertain of {hidden} held-out cells, most uncertain first,"
    assert said in unsure["caption"]
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


# Tables that people bring -----------------------------------------------------------------------


QUICK = {"rank": 1, "alpha": 0.5, "nonlinearity": "identity", "iterations": 5, "draws": 10}


def tables():
    m, rng = 80, np.random.default_rng(1)
    z = rng.normal(size=m)
    titanic = {
        "PassengerId": np.arange(1, m + 1),
        "Survived": (z + rng.normal(size=m) > 0).astype(int),
        "Name": [f"Mr. {k}" for k in range(m)],
        "Sex": np.where(rng.random(m) < 0.5, "male", "female"),
        "Age": np.where(np.arange(m) % 7 > 0, np.round(40 + 10 * z), np.nan),
        "Ticket": [f"A/5 {7 * k}" for k in range(m)],
        "Fare": np.exp(z + 3),
        "Cabin": [f"C{k % 65}" if k % 8 < 7 else None for k in range(m)],
    }
    day = pd.Series(pd.Timestamp("2021-03-01") + pd.to_timedelta(np.round(100 * z), unit="D"))
    day = day.where(np.arange(m) % 9 > 0)
    of_dates = pd.DataFrame({"seen": day, "a": 3 * z, "b": -z})
    text, classes = day.dt.strftime("%Y-%m-%d"), ["x", "y"] * (m // 2)
    likert = 3 + rng.normal(size=(m, 1)) + 0.5 * rng.normal(size=(m, 6))
    likert = pd.DataFrame(np.clip(np.round(likert), 1, 5)).add_prefix("q")
    tall = pd.DataFrame({"a": np.tile(z, 20), "g": np.tile(["u", "v", "w", "u"], 20 * m // 4)})
    of_wine = np.exp(0.3 * z[:, None] + 0.1 * rng.normal(size=(m, 4))) * [13, 2, 100, 750]
    of_wine = pd.DataFrame(of_wine, columns=["alcohol", "acid", "magnesium", "proline"])
    mixed = {"a": z, "both": [1, "x"] * (m // 2), "few": [f"{x:.1f}" for x in z], "no": [None] * m}
    of_polars = {"a": z.tolist(), "c": classes, "d": list(day.bfill().ffill().dt.date)}
    return {
        "titanic": pd.DataFrame(titanic),
        "dates": of_dates,
        "dates as text": of_dates.assign(seen=text, c=classes),
        "ids": of_dates.assign(user_id=rng.permutation(m) + 500).drop(columns="seen"),
        "mixed texts": pd.DataFrame(mixed),
        "polars": pl.DataFrame(of_polars),
        "wide": pd.DataFrame(rng.normal(size=(12, 1)) * rng.normal(size=90)).add_prefix("x"),
        "tall": tall,
        "wine-like numbers": of_wine,
        "Likert": likert.mask(rng.random(likert.shape) < 0.1),
        "3 x 2": pd.DataFrame([[1, 2], [3, 4], [5, 6]], columns=["a", "b"]),
    }


TABLES = tables()
LEFT_OUT = {
    "titanic": "left out: PassengerId, Name, Ticket (all different), Cabin (free text)",
    "ids": "left out: user_id (all different)",
    "mixed texts": "left out: both (several types), no (no value)",
}


@pytest.fixture(scope="module")
def explorers():
    return {name: done(widgets.explore(df, **QUICK)) for name, df in TABLES.items()}


@pytest.fixture(scope="module")
def repeated(explorers):
    """Run the copied code of each table, and return its names."""
    codes = {name: each.state.code("df") for name, each in explorers.items()}
    return {name: executed(code, df=copy.copy(TABLES[name])) for name, code in codes.items()}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_fitted_at_once_and_its_code_repeats_it(name, explorers, repeated):
    explorer = explorers[name]
    assert not explorer.status["failed"], explorer.status["message"]
    np.testing.assert_array_equal(repeated[name]["fit"].W, explorer.result.W)
    words = sentence(explorer).partition("\n")[2].partition("take")[0].strip()
    assert words == LEFT_OUT.get(name, "")
    if explorer.state.X.isna().to_numpy().any():
        assert not repeated[name]["filled"].isna().to_numpy().any()
        assert explorer.code_text.splitlines()[-1] == "filled = fit.impute(X)"


@pytest.mark.parametrize("loss", ["frobenius", "l1"])
def test_numbers_in_units_of_their_own_are_a_table_whose_error_the_code_prints(loss, capsys):
    X = TABLES["wine-like numbers"]
    explorer = done(widgets.explore(X, **QUICK, loss=loss))
    assert [each["name"] for each in explorer.grid["columns"]] == list(X)
    shown = explorer.status["headline"]["off"]
    exec(explorer.state.code("df"), {"df": X})
    assert capsys.readouterr().out == f"held-out numbers: ±{shown:.3g} SD\n"


@pytest.mark.parametrize("name", ["titanic", "dates", "polars", "wide", "ids"])
def test_the_filled_table_is_saved_with_all_that_was_given(name, explorers, repeated, tmp_path):
    explorer, given = explorers[name], TABLES[name]
    act(explorer, "save", filename=str(tmp_path / "filled.parquet"))
    assert "saved as" in explorer.status["message"]
    saved = pd.read_parquet(tmp_path / "filled.parquet")
    assert list(saved) == list(given.columns)
    if "filled" in repeated[name]:
        filled = repeated[name]["filled"]
        pd.testing.assert_frame_equal(
            saved[list(filled)], filled, check_dtype=False, check_column_type=False
        )
    table = pd.read_csv(explorer.save(tmp_path / "filled.csv"))
    assert table.shape == given.shape
    if name == "dates" and find_spec("openpyxl"):
        assert pd.read_excel(explorer.save(tmp_path / "filled.xlsx"))["seen"].notna().all()


def test_dates_are_shown_and_given_back_as_dates(explorers, tmp_path):
    for name in ("dates", "dates as text"):
        explorer, days = explorers[name], TABLES["dates"]["seen"]
        shown = next(each for each in explorer.grid["columns"] if each["name"] == "seen")
        expected = days.dt.strftime("%Y-%m-%d").fillna("")
        assert shown["data"] == expected.tolist()
        assert (shown["low"], shown["high"]) == (min(filter(None, expected)), max(expected))
        table = pd.read_csv(explorer.save(tmp_path / f"{name}.csv"), parse_dates=["seen"])
        known = days.notna()
        assert (table["seen"][known] == days[known]).all()
        model = pd.Series(shown["model"])[~known]
        assert (pd.to_datetime(model) == table["seen"][~known]).all()


@pytest.mark.filterwarnings("ignore:column 'Name' has 80 categories")
def test_one_click_takes_columns_in_and_one_leaves_them_out_again(monkeypatch):
    explorer = widgets.explore(TABLES["titanic"], **QUICK)
    assert list(explorer.state.X) == ["Survived", "Sex", "Age", "Fare"]
    assert ["take them in", "take"] in explorer.status["sentence"]
    act(explorer, "take")
    done(explorer)
    assert not explorer.status["failed"], explorer.status["message"]
    assert explorer.state.X.shape == (80, 8)
    assert str(explorer.state.X["Cabin"].dtype) == "category"
    assert sentence(explorer).endswith("taken in: PassengerId, Name, Ticket, Cabin leave them out")
    repeats(explorer, df=TABLES["titanic"])
    click, drawn = threading.Thread(target=act, args=(explorer, "take")), []

    def code(_):
        click.start()
        click.join(0.2)
        drawn.append(explorer.state.X.shape)

    monkeypatch.setattr(explorer.state, "code", code)
    explorer._refresh()
    click.join()
    assert drawn == [(80, 8)]  # the page that is drawn stays that of one state
    assert list(explorer.state.X) == ["Survived", "Sex", "Age", "Fare"]


@pytest.mark.filterwarnings("ignore:column 'Name' has 80 categories")
def test_of_a_file_the_same_columns_are_left_out(tmp_path):
    TABLES["titanic"].to_csv(tmp_path / "passengers.csv", index=False)
    explorer = done(widgets.explore(tmp_path / "passengers.csv", **QUICK))
    assert sentence(explorer).endswith(f"\n{LEFT_OUT['titanic']} take them in")
    repeats(explorer)


@pytest.mark.parametrize("twice", [False, True])
def test_a_long_table_with_names_of_its_own_is_taken_for_ratings_and_asked_about(twice):
    names = {"user": "who", "item": "film", "rating": "stars"}
    df = datasets.make_ratings(80, 60, 1500, random_state=0)[[*names]].rename(columns=names)
    df = df.assign(who="n" + df["who"].astype(str), film="n" + df["film"].astype(str))
    df = pd.concat([df, df[:300]], ignore_index=True) if twice else df
    explorer = done(widgets.explore(df, rank=1, alpha=5.0, iterations=5))
    assert sentence(explorer).startswith("1500 ratings of 60 films by 80 whos")
    asked = "ratings of film by who? no, a table" if twice else "read as ratings of film by who "
    assert sentence(explorer).endswith(f"\n{asked}")
    repeats(explorer, df=df)
    if twice:
        act(explorer, "take")
        assert sentence(explorer).startswith(f"{len(df)} rows × 3 columns")


def test_a_table_of_two_classes_is_no_list_of_ratings():
    rng = np.random.default_rng(0)
    few = pd.DataFrame({"a": rng.choice(list("xyz"), 300), "b": rng.choice(list("uv"), 300)})
    explorer = widgets.explore(few.assign(tip=rng.integers(1, 6, 300)), **QUICK)
    assert sentence(explorer) == "300 rows × 3 columns"


@pytest.mark.parametrize("X", [[[1, 2], [3, 4], [5, 6]], [[1, 2, 3, 4]], np.arange(50.0)[:, None]])
def test_a_tiny_matrix_is_shown_as_its_best_simple_model(X):
    explorer = widgets.explore(X)
    acted(explorer, "opened")
    rows = np.array(X, dtype=float)
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    best = s[0] * np.outer(U[:, 0], Vt[0])
    fitted = explorer.result.reconstruct().values
    np.testing.assert_allclose(fitted, best, atol=1e-3 * np.abs(rows).max())
    off = np.linalg.norm(rows - best) / np.linalg.norm(rows)
    said = "0" if off < 1e-4 else f"{off:.2g}"
    m, n = rows.shape
    assert sentence(explorer) == (
        f"a matrix of {m} × {n}: 1 component, linear. The relative error is {said} where seen; "
        "nothing is held out."
    )


@pytest.mark.parametrize("values", [np.zeros(6), np.arange(1.0, 7)])
def test_nothing_is_judged_where_there_is_nothing_to_guess(values):
    explorer = sure(done(widgets.explore(np.tile(values, (40, 1)), **QUICK | {"alpha": 1e-9})))
    _, said = sentence(explorer).split(". ", 1)
    assert said == "Each column has one value, which is predicted to ±0."
    assert explorer.status["headline"]["rivals"] == []
    assert "intervals" not in explorer.dots


def test_an_error_that_is_nearly_none_is_0_and_a_small_component_has_no_exponent():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(40, 1)) * rng.normal(size=8)
    explorer = done(widgets.explore(z, **QUICK | {"alpha": 1e-9, "iterations": 100}))
    assert "Held-out entries are predicted to ±0 of" in sentence(explorer)
    z += 1e-4 * rng.normal(size=z.shape)
    settings = {"rank": 2, "alpha": 0.0, "missing": 0.0, "iterations": 100}
    explorer = done(widgets.explore(z, **QUICK | settings))
    assert explorer.components["words"][1].startswith("component 1: under 0.1 % of the model")
