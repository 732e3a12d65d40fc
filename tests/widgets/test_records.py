"""Records that a view makes of a state, for each kind of data: their schema, and numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from explorer_page import act, arrays_of, done, picture, plain, sure, table
from jsonschema import Draft202012Validator
from people import people, with_holes

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.model.fitted_values import NO_OFFSETS, FittedValues
from nmd_lab.model.model import make_model
from nmd_lab.result.entries import entries_at
from nmd_lab.widgets import pictures
from nmd_lab.widgets.components import oriented
from nmd_lab.widgets.pictures import MOST_ROWS, drawing_part, frame_of

SCHEMA = json.loads(Path(__file__).with_name("records.schema.json").read_text("utf-8"))


def check(explorer):
    """Check all that a page gets by the schema; what is sent is nothing else."""
    sent = explorer.get_state(explorer.keys)
    shown = {name: sent[name] for name in sent if name in SCHEMA["properties"]}
    assert set(SCHEMA["properties"]) == set(shown)
    Draft202012Validator(SCHEMA).validate(shown)
    return explorer


def numbers(record, name):
    return np.frombuffer(record[name], "<f4")


def test_pictures():
    X = datasets.digits(60)
    explorer = check(plain(widgets.Explorer, X, rank=4, iterations=10, missing=0.2))
    assert explorer.result is picture(explorer, "reconstruction") is explorer.components is None
    fit, shown = check(done(explorer)).result, explorer.pictures
    ids, size = shown["ids"], (MOST_ROWS, 64)
    layout = {name: shown[name] for name in ("layout", "scale", "count", "height", "width", "step")}
    assert layout == {
        "layout": "rows", "scale": "gray", "count": MOST_ROWS, "height": 8, "width": 8, "step": 1,
    }  # fmt: skip
    seen, model = picture(explorer, "seen").reshape(size), fit.reconstruct().values
    np.testing.assert_allclose(picture(explorer, "original").reshape(size), X[ids], rtol=1e-6)
    np.testing.assert_array_equal(np.isnan(seen), np.isnan(explorer.state.data.observed[ids]))
    np.testing.assert_allclose(
        picture(explorer, "reconstruction").reshape(size), model[ids], atol=1e-6
    )
    W, H, *_ = oriented(fit.fitted)
    size_of = np.linalg.norm(W, axis=0)[:, None]
    np.testing.assert_allclose(
        numbers(explorer.components, "values"), (size_of * H).ravel(), atol=1e-6
    )
    squares = (size_of[:, 0] * np.linalg.norm(H, axis=1)) ** 2
    np.testing.assert_allclose(explorer.components["shares"], squares / squares.sum())
    act(explorer, "plane", a=3, b=1)
    plane = check(explorer).scatter
    np.testing.assert_allclose([numbers(plane, "x"), numbers(plane, "y")], W.T[[3, 1]], rtol=1e-6)
    digit = X.digit.values.clip(max=8).tolist()
    assert (plane["color"], plane["groups"], plane["total"]) == ("digit", digit, 60)
    assert plane["values"] == [*"01234567", "other: 8, 9"]  # more colours are not told apart
    curves, unit = arrays_of(explorer.curves), explorer.state.hidden.sizes["relative_error"]
    np.testing.assert_allclose(curves["relative_error"][1], unit * fit.history.relative_error)
    unseen = np.isnan(explorer.state.data.observed)
    off = np.sqrt(np.mean((model - X.values)[unseen] ** 2))
    assert curves["held_out"][1, -1] == pytest.approx(off)
    assert float(explorer.status["headline"]["value"]) == pytest.approx(off, rel=0.05)
    assert table(explorer, "errors")["rows"][1][0] == "linear, rank 4"
    assert explorer.status["message"] == "done in 10 iterations, as many as ⚙ allows"
    assert explorer.runs[0] | {"error": "", "held_out": ""} == {
        "number": 1, "settings": "rank 4", "error": "", "held_out": "", "iterations": 10,
        "current": True, "overlaid": False, "beside": False,
    }  # fmt: skip


def test_rows_of_a_component_and_rows_that_are_picked():
    explorer = done(plain(widgets.Explorer, datasets.digits(60), rank=4, iterations=10))
    before, W = explorer.pictures["ids"], oriented(explorer.result.fitted).W
    act(explorer, "component", k=2, what="rows")
    largest = np.argsort(-W[:, 2], kind="stable")[:MOST_ROWS].tolist()
    assert (explorer.components["chosen"], explorer.pictures["ids"]) == (2, largest)
    act(explorer, "lasso", rows=[3, 50, 7])
    assert explorer.selection["rows"] == explorer.pictures["ids"] == [3, 50, 7]
    assert explorer.components["chosen"] is None
    act(explorer, "select", picture=1, y=2, x=5)
    assert (explorer.selection["row"], explorer.selection["column"]) == (50, 21)
    act(explorer, "lasso", rows=[])
    assert check(explorer).pictures["ids"] == before


def cells_of(X):
    return entries_at(*(each.ravel() for each in np.indices(X.shape)))


def test_a_picture_with_doubt():
    X = np.random.default_rng(0).random((30, 40))
    explorer = done(plain(widgets.Explorer, X, rank=2, iterations=10, missing=0.3, draws=10))
    posterior = check(sure(explorer)).posterior
    at, hidden = cells_of(X), np.isnan(explorer.state.data.observed).ravel()
    spread = posterior.predict_std(at, noise=False)
    np.testing.assert_allclose(picture(explorer, "spread").ravel(), spread, rtol=1e-5)
    chart = explorer.dots["intervals"]
    (line,) = chart["panels"][0]["series"]
    some = entries_at(*(each[hidden] for each in map(np.ravel, np.indices(X.shape))))
    for promised, held in zip(line["x"], line["y"], strict=True):
        low, high = posterior.predict_interval(some, level=promised / 100).T
        x = X.ravel()[hidden]
        assert held == pytest.approx(100 * np.mean((low <= x) & (x <= high)))
    assert chart["title"].startswith(f"{held:.0f} % of the 90 % intervals hold the held-out value")
    rmse = np.sqrt(np.mean((posterior.predict(some) - x) ** 2))
    expected = f"{hidden.sum()} held-out entries: RMSE of the posterior mean {rmse:.4g}"
    assert expected in explorer.status["notes"]


def test_a_table():
    frame = with_holes(people(80))
    settings = {"rank": 2, "alpha": 1.0, "nonlinearity": "identity", "iterations": 20}
    explorer = check(widgets.explore(frame, **settings))
    grid = check(done(explorer)).grid
    assert [column["name"] for column in grid["columns"]] == frame.columns.tolist()
    assert (grid["total"], grid["labels"]) == (80, frame.index.tolist())
    missing = frame["kg"].isna().to_numpy()
    act(explorer, "select", row=int(np.flatnonzero(missing)[0]), column=0)
    assert check(explorer).facts["cell"]["text"].startswith("missing, model ")


def test_ratings():
    settings = {"rank": 3, "alpha": 2.0, "offsets": "both", "nonlinearity": "identity"}
    explorer = check(widgets.Explorer(data="generated", iterations=20, **settings))
    assert table(explorer, "top")["head"] == ["predictions come with a fit"]
    fit = check(done(explorer)).result
    act(explorer, "select", row=11)
    entries = explorer.state.observations
    rated = entries.indices[entries.indptr[11] : entries.indptr[12]]
    predicted = fit.predict(np.full(entries.shape[1], 11), np.arange(entries.shape[1]))
    predicted[rated] = -np.inf
    best, top = np.argsort(-predicted, kind="stable")[:50], table(check(explorer), "top")
    assert top["ids"] == best.tolist()
    assert [row[1] for row in top["rows"]] == [f"{predicted[k]:#.3g}" for k in best]
    known = table(explorer, "known")
    assert set(known["ids"]) == set(rated[:50]) or len(known["ids"]) == 50
    W = oriented(fit.fitted).W[11]
    label = str(explorer.state.data.labels("rows")[11])
    assert explorer.scatter["person"] == {"name": label, "x": W[0], "y": W[1]}
    act(explorer, "ask", name="row", value="you")
    act(explorer, "rate", column=table(explorer, "known")["ids"][0], number=5)
    assert table(check(explorer), "known")["rated"][0] == 5
    act(explorer, "ask", name="row", value="12345")
    assert "no row is labelled" in check(explorer).facts["query"][0]["problem"]
    assert explorer.tables == []


def test_a_study():
    study = nmd.Study(datasets.digits(40), rank=[1, 3, 5], n_splits=2, max_iter=10, alpha=0)
    results = study.run(progress=False)
    explorer = check(widgets.Explorer(study))
    (line,) = explorer.dots["study"]["panels"][0]["series"]
    scores = results[explorer.state.values["metric"]].squeeze()
    mean, spread = scores.mean("seed").values, scores.std("seed", ddof=1).values
    assert (line["x"], line["ids"]) == ([1, 3, 5], [0, 1, 2])
    np.testing.assert_allclose([line["y"], line["low"]], [mean, mean - spread])
    ranking = table(explorer, "details")
    assert [row[0] for row in ranking["rows"]] == [str([1, 3, 5][k]) for k in mean.argsort()]
    act(explorer, "point", chart="study", id=1)
    assert check(explorer).facts["point"] == 1
    assert table(explorer, "details")["caption"].startswith(f"rank 3: {mean[1]:.4g}")
    act(explorer, "point", chart="study", id=1)  # a second click shows the ranking again
    assert table(explorer, "details") == ranking
    act(explorer, "point", chart="study", id=1)
    assert check(done(explorer)).result.rank == 3


def test_a_fit_and_a_posterior():
    X = pd.DataFrame(np.random.default_rng(0).random((20, 12)), columns=list("abcdefghijkl"))
    fit = nmd.decompose(X, 3, random_state=0, max_iter=5)
    explorer = check(widgets.explore(fit))
    np.testing.assert_allclose(
        np.frombuffer(explorer.modelled, "<f4"), fit.reconstruct().values.ravel(), 1e-5
    )
    order = np.argsort(-np.abs(fit.H.values[1]), kind="stable")[:5]
    listed = [label for label, _ in explorer.components["lists"][1]]
    assert listed == [X.columns[k] for k in order]
    errors = arrays_of(explorer.curves)["relative_error"][1]
    np.testing.assert_array_equal(errors, fit.history.relative_error)
    posterior = nmd.sample(X, 2, draws=10, random_state=0, progress=False)
    shown = check(widgets.explore(posterior))
    mean = posterior.predict(cells_of(X))
    np.testing.assert_allclose(np.frombuffer(shown.modelled, "<f4"), mean, 1e-4)
    assert shown.status["headline"] is None
    assert shown.controls == []


def test_a_question_about_the_data():
    frame = pd.DataFrame({"a": range(9), "name": [f"person {k}" for k in range(9)]})
    explorer = check(widgets.explore(frame))
    asked = explorer.facts["asked"]
    assert asked["fault"].endswith("free text in column 'name'.")
    assert asked["ways"] == ["leave out the column of text (name)"]


def drawn(sent, k):
    """Return what the page draws for the row at position k, in the order of the pixels."""
    rank = sent["rank"]
    W = np.frombuffer(sent["W"], "<f4").reshape(-1, rank)
    H = np.frombuffer(sent["H"], "<f4").reshape(rank, -1)
    table = np.frombuffer(sent["table"], "<f4")
    return np.interp(W[k] @ H, np.linspace(sent["low"], sent["high"], table.size), table)


def decoded(sent):
    """Return the data of all rows as the page has them."""
    codes = np.frombuffer(sent["data"]["codes"], np.uint8).astype(float)
    low, high = sent["data"]["low"], sent["data"]["high"]
    return np.where(codes == 255, np.nan, low + codes / 254 * (high - low))


def of_digits(**settings):
    return done(plain(widgets.explore, datasets.digits(40), **{"iterations": 20} | settings))


@pytest.mark.parametrize(
    "name",
    ["identity", "minmax", "square", "modulus", "leaky_relu", "soft_threshold",
     "absolute_offset", "monotone", "sigmoid", "softplus", "exp", "tanh", "power"],
)  # fmt: skip
def test_every_f_is_drawn(name):
    draws = np.random.default_rng(0)
    W, H = draws.normal(size=(20, 3)), draws.normal(size=(3, 9))
    fitted = FittedValues(W, H, NO_OFFSETS, make_model(name, "frobenius"))
    sent = drawing_part(fitted, [], frame_of((20, 9), None), np.arange(20), None)
    expected = fitted.block()
    for k in range(20):
        np.testing.assert_allclose(drawn(sent, k), expected[k], atol=1e-3 * np.ptp(expected))


def test_offsets_are_added():
    X = np.random.default_rng(0).normal(3.0, 1.0, (30, 12)) + np.arange(12)
    fit = nmd.decompose(X, rank=2, nonlinearity="identity", offsets="both", alpha=0.1)
    explorer = widgets.explore(fit)
    expected = fit.reconstruct().values
    np.testing.assert_allclose(drawn(explorer.drawing, 4), expected[4], atol=1e-3)
    assert (explorer.drawing["height"], explorer.drawing["width"]) == (1, 12)
    assert explorer.drawing["data"] is None


def test_the_data_are_sent_in_bytes_with_their_holes():
    X = datasets.digits(40).copy()
    X[3, 5] = np.nan
    explorer = done(plain(widgets.explore, X, iterations=5))
    data = decoded(explorer.drawing).reshape(40, -1)
    np.testing.assert_allclose(data, X.values.reshape(40, -1), atol=1 / 254)


def test_a_component_that_is_off_is_not_drawn():
    explorer = of_digits()
    act(explorer, "component", k=1, what="off")
    expected = explorer.state.fit.state.fitted.without([1]).block([3])
    np.testing.assert_allclose(drawn(explorer.drawing, 3), expected.ravel(), atol=1e-3)


def test_nothing_is_sent_again_while_the_fit_stays():
    explorer, sent = of_digits(), []
    explorer.observe(sent.append, "drawing")
    act(explorer, "lasso", rows=[1, 2])
    act(explorer, "plane", a=1, b=2)
    assert sent == []


def test_wide_rows_and_columns_of_several_kinds_are_not_drawn(monkeypatch):
    mixed = pd.DataFrame({"a": np.arange(30.0), "b": list("xyz") * 10, "c": np.arange(30) % 2 == 0})
    assert done(widgets.explore(mixed, rank=2, iterations=5)).drawing is None
    monkeypatch.setattr(pictures, "MOST_COLUMNS", 63)
    assert of_digits().drawing is None
