"""Records that a view makes of a state, for each kind of data: sessions, and oracles of numbers."""

import numpy as np
import pandas as pd
import pytest
from explorer_page import GREY, act, curve, done, enter, painted, picture, plain, sentence, sure
from helpers import people, with_holes

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.metrics import rmse
from nmd_lab.model.fitted_values import NO_OFFSETS, FittedValues
from nmd_lab.model.model import make_model
from nmd_lab.result.entries import entries_at
from nmd_lab.widgets.charts import oriented
from nmd_lab.widgets.pictures import MAX_ROWS, drawing_part, frame_of


def numbers(record, name):
    return np.frombuffer(record[name], "<f4")


def test_session_of_pictures(step):
    explorer = plain(widgets.Explorer, datasets.digits(60), rank=4, iterations=10, missing=0.2)
    step("opened", explorer)
    step("done", done(explorer))
    act(explorer, "component", k=1, what="off")
    step("without component 1", explorer)
    enter(explorer, "rank", "0")
    step("a wrong rank", explorer)
    enter(explorer, "rank", "3")
    act(explorer, "lasso", rows=[3, 50, 7])
    act(explorer, "select", row=explorer.pictures["ids"][1], column=21, pixel=21)
    step("another rank, and picked rows", explorer)
    step("done again", done(explorer))
    act(explorer, "history", number=1)
    step("with the first run left of the dividers", explorer)
    painted(explorer, [(3, 3), (4, 4)], 1.5, picture=1)
    step("painted", explorer)
    explorer.state.set("tol", 0.9)
    enter(explorer, "iterations", "1000")
    step("converged", done(explorer))
    act(explorer, "component", k=0, what="off")
    step("compared without component 0", explorer)
    act(explorer, "nosuch")
    step("an unknown message", explorer)


def test_session_of_a_photograph(step):
    explorer = step("opened", widgets.explore(GREY, groups=2))
    step("done", done(explorer))
    painted(explorer, [(20, 20)], 6, rain=True)
    step("painted", explorer)


def test_session_of_a_table(step):
    settings = {"rank": 2, "alpha": 1.0, "nonlinearity": "identity", "iterations": 20}
    frame = with_holes(people(30))
    explorer = step("opened", widgets.explore(frame, **settings))
    step("done", done(explorer))
    missing = np.flatnonzero(frame["kg"].isna())
    act(explorer, "select", row=int(missing[0]), column=0)
    act(explorer, "arrange", column=0)
    step("sorted, and a missing cell picked", explorer)


def test_session_of_ratings(step, monkeypatch):
    monkeypatch.setattr("nmd_lab.widgets.explorer.small_folder", lambda: None)
    settings = {"rank": 3, "alpha": 2.0, "offsets": "both", "nonlinearity": "identity"}
    explorer = widgets.Explorer(data="generated", iterations=20, **settings)
    step("opened", explorer)
    step("done", done(explorer))
    act(explorer, "component", k=1, what="rows")
    act(explorer, "select", row=11)
    step("a row, and the rows of a component", explorer)
    act(explorer, "ask", name="row", value="you")
    step("a new person", explorer)
    act(explorer, "rate", column=explorer.facts["lists"]["known"][0]["column"], number=5)
    step("with a rating", explorer)
    act(explorer, "ask", name="row", value="12345")
    step("nobody", explorer)


def test_session_of_a_study(step):
    study = nmd.Study(
        datasets.digits(60), rank=[1, 5], nonlinearity=["relu", "identity"], alpha=1.0,
        missing=[0.1, 0.5], n_splits=2, max_iter=20,
    )  # fmt: skip
    explorer = step("opened", widgets.Explorer(study.run(progress=False)))
    enter(explorer, "color", "rank")
    step("a dimension that is shown already", explorer)
    enter(explorer, "color", "nonlinearity")
    enter(explorer, "panel", "none")
    step("without panels", explorer)


def test_session_of_a_fit(step):
    X = pd.DataFrame(np.random.default_rng(0).random((20, 12)), columns=list("abcdefghijkl"))
    step("one of a kind", widgets.explore(nmd.decompose(X, 1, random_state=0, max_iter=1)))
    posterior = nmd.sample(X, 2, draws=10, random_state=0, progress=False)
    step("a posterior", widgets.explore(posterior))


def test_pictures():
    X = datasets.digits(60)
    explorer = done(plain(widgets.Explorer, X, rank=4, iterations=10, missing=0.3))
    fit, ids, size = explorer.result, explorer.pictures["ids"], (MAX_ROWS, 64)
    seen, model = picture(explorer, "seen").reshape(size), fit.reconstruct().values
    np.testing.assert_allclose(picture(explorer, "original").reshape(size), X[ids], rtol=1e-6)
    np.testing.assert_array_equal(np.isnan(seen), np.isnan(explorer.state.data.observed[ids]))
    np.testing.assert_allclose(
        picture(explorer, "reconstruction").reshape(size), model[ids], atol=1e-6
    )
    W, H = fit.W.values, fit.H.values  # in the order and with the signs of the result
    size_of = np.linalg.norm(W, axis=0)[:, None]
    np.testing.assert_allclose(
        numbers(explorer.components, "values"), (size_of * H).ravel(), atol=1e-6
    )
    squares = (size_of[:, 0] * np.linalg.norm(H, axis=1)) ** 2
    np.testing.assert_allclose(explorer.components["shares"], squares / squares.sum())
    plane = explorer.scatter
    np.testing.assert_allclose(numbers(plane, "weights"), W.ravel(), rtol=1e-6)
    assert plane["groups"] == X.digit.values.tolist()
    error = explorer.state.fit.data.unit * fit.history.relative_error
    np.testing.assert_allclose(curve(explorer, "seen")[1], error)
    off = rmse(X.values, model, observed=np.isnan(explorer.state.data.observed))
    assert curve(explorer, "hidden")[1, -1] == pytest.approx(off)
    assert float(explorer.status["headline"]["value"].strip("±")) == pytest.approx(off, rel=0.05)


def test_rows_of_a_component_until_rows_are_picked_and_left():
    explorer = done(plain(widgets.Explorer, datasets.digits(60), rank=4, iterations=10))
    before, w = explorer.pictures["ids"], explorer.result.W.values[:, 2]
    act(explorer, "component", k=2, what="rows")
    w = w * np.sign(np.sum(w * np.abs(w)))  # most rows have this sign
    largest = np.argsort(-w, kind="stable")[:MAX_ROWS].tolist()
    assert (explorer.components["chosen"], explorer.pictures["ids"]) == (2, largest)
    act(explorer, "lasso", rows=[3, 50, 7])
    act(explorer, "lasso", rows=[])
    assert explorer.pictures["ids"] == before


def test_a_picture_with_its_uncertainty():
    X = np.random.default_rng(0).random((30, 40))
    explorer = done(plain(widgets.Explorer, X, rank=2, iterations=10, missing=0.3, draws=10))
    posterior, hidden = sure(explorer).posterior, np.isnan(explorer.state.data.observed)
    every = entries_at(*(each.ravel() for each in np.indices(X.shape)))
    spread = posterior.predict_std(every, noise=False)
    np.testing.assert_allclose(picture(explorer, "spread").ravel(), spread, rtol=1e-5)
    chart = explorer.dots["intervals"]
    some, x = entries_at(*np.nonzero(hidden)), X[hidden]
    for promised, held in ((point["x"], point["y"]) for point in chart["points"]):
        low, high = posterior.predict_interval(some, level=promised / 100).T
        assert held == pytest.approx(100 * np.mean((low <= x) & (x <= high)))
    assert chart["title"].startswith(f"90 % intervals cover {held:.0f} % of the held-out values")
    assert f"; 90 % intervals cover {held:.0f} %" in sentence(explorer)
    assert explorer.status["why"] == ""  # nothing was chosen, and draws are no reason


def test_few_large_entries_do_not_take_the_scale_of_a_matrix():
    X = np.random.default_rng(0).random((30, 40))
    X[3, 4] = 1e4
    explorer = widgets.explore(X, missing=0.1)
    ends = explorer.pictures["low"], explorer.pictures["high"]
    np.testing.assert_allclose(ends, np.percentile(X, (1, 99)))
    images = widgets.explore(datasets.digits(20))
    assert (images.pictures["low"], images.pictures["high"]) == (0, 1)


def test_ratings():
    settings = {"rank": 3, "alpha": 2.0, "offsets": "both", "nonlinearity": "identity"}
    explorer = done(widgets.Explorer(data="generated", iterations=20, **settings))
    fit, entries = explorer.result, explorer.state.observations
    act(explorer, "select", row=11)
    act(explorer, "ask", name="least", value="1")
    rated = entries.indices[entries.indptr[11] : entries.indptr[12]]
    predicted = fit.predict(np.full(entries.shape[1], 11), np.arange(entries.shape[1]))
    predicted[rated] = -np.inf
    best, lists = np.argsort(-predicted, kind="stable")[:50], explorer.facts["lists"]
    assert [line["column"] for line in lists["top"]] == best.tolist()
    assert [line["predicted"] for line in lists["top"]] == [f"{predicted[k]:.1f}" for k in best]
    known = [line["column"] for line in lists["known"]]
    assert set(known) == set(rated[:50]) or len(known) == 50
    often = np.frombuffer(explorer.scatter["rows"], "<i4")
    fitted = oriented(fit._fitted)
    weights = numbers(explorer.scatter, "weights").reshape(-1, 3)
    np.testing.assert_allclose(weights, fitted.H[:, often].T, rtol=1e-6)
    directions = fitted.H / np.linalg.norm(fitted.H, axis=0)
    for line in lists["top"][:5]:
        like = directions[:, line["column"]] @ directions
        like[line["column"]] = -1
        assert line["near"] == np.argsort(-like, kind="stable")[:6].tolist()
    np.testing.assert_allclose(explorer.scatter["person"]["weights"], fitted.W[11], rtol=1e-5)


def drawn(sent, k, first=None):
    """Return what the page draws for the k-th row on the stage, of the first components alone."""
    rank, f = sent["rank"], numbers(sent, "table")
    W, H = numbers(sent, "shown").reshape(-1, rank), numbers(sent, "H").reshape(rank, -1)
    on = np.ones(rank, bool)
    on[rank - 2 if first is None else first : rank - 2] = False  # offsets are the last two
    return np.interp(W[k, on] @ H[on], np.linspace(sent["low"], sent["high"], f.size), f)


@pytest.mark.parametrize(
    "name",
    ["identity", "minmax", "square", "modulus", "leaky_relu", "soft_threshold",
     "absolute_offset", "monotone", "sigmoid", "softplus", "exp", "tanh", "power"],
)  # fmt: skip
def test_every_f_is_drawn(name):
    draws = np.random.default_rng(0)
    W, H = draws.normal(size=(20, 3)), draws.normal(size=(3, 9))
    fitted = FittedValues(W, H, NO_OFFSETS, make_model(name, "frobenius"))
    sent = drawing_part(fitted, frame_of((20, 9), None), np.arange(20), None)
    expected = fitted.block()
    for k in range(20):
        np.testing.assert_allclose(drawn(sent, k), expected[k], atol=1e-3 * np.ptp(expected))


def test_offsets_are_drawn():
    X = np.random.default_rng(0).normal(3.0, 1.0, (30, 12)) + np.arange(12)
    fit = nmd.decompose(X, rank=2, nonlinearity="identity", offsets="both", alpha=0.1)
    explorer = widgets.explore(fit)
    np.testing.assert_allclose(drawn(explorer.drawing, 4), fit.reconstruct().values[4], atol=1e-3)
    assert explorer.drawing["data"] is None


def test_the_first_components_and_those_left_on_are_drawn_and_compared_with_the_data():
    explorer = done(plain(widgets.explore, datasets.digits(60), rank=4, iterations=20, missing=0.2))
    fitted, sent = oriented(explorer.result._fitted), explorer.drawing
    data, ids = explorer.state.data, explorer.pictures["ids"]
    unseen = np.where(np.isnan(data.observed), data.original, np.nan)
    sizes = np.linalg.norm(fitted.W, axis=0) * np.linalg.norm(fitted.H, axis=1)
    assert np.all(np.diff(sizes) <= 0)  # the largest first
    for k in range(5):
        alone = fitted.without(range(k, 4))
        np.testing.assert_allclose(drawn(sent, 7, k), alone.block([ids[7]])[0], atol=1e-3)
        assert sent["errors"][k] == pytest.approx(rmse(unseen, alone.block()), rel=1e-5)
    for k, off in enumerate(sent["lost"]):
        assert off == pytest.approx(rmse(unseen, fitted.without([k]).block()), rel=1e-5)
    assert sent["where"] == "held out"
    whole = explorer.status["headline"]
    for k in (1, 3):
        act(explorer, "component", k=k, what="off")
    less = explorer.state.shown.without([1, 3])
    assert explorer.status["headline"]["off"] == pytest.approx(rmse(unseen, less.block()))
    assert ", without component 1, 3. Held-out pixels" in sentence(explorer)
    assert explorer.status["headline"]["rivals"] == whole["rivals"]
    assert explorer.runs[0]["off"] == whole["off"]  # of the fit itself
    act(explorer, "component", what="on")
    assert explorer.status["headline"] == whole


def test_the_number_without_a_component_where_nothing_is_held_out_and_without_data():
    X = datasets.digits(60)
    explorer = done(plain(widgets.explore, X, rank=4, iterations=20))
    act(explorer, "component", k=1, what="off")
    off = rmse(X.values, explorer.state.shown.without([1]).block())
    assert f"Entries that are seen are fitted to ±{off:.2g}." in sentence(explorer)
    shown = widgets.explore(explorer.result)
    act(shown, "component", k=1, what="off")
    assert sentence(shown).endswith("4 components, cut off at 0, without component 1. ")
    assert shown.status["headline"] is None


def test_the_numbers_of_a_table_and_of_ratings_are_those_of_the_cells_that_are_shown():
    settings = {"rank": 3, "alpha": 1.0, "nonlinearity": "identity", "iterations": 20}
    explorer = done(widgets.explore(people(60), missing=0.2, **settings))
    act(explorer, "component", k=0, what="off")
    errors = []
    for column in explorer.grid["columns"]:
        if column["name"] in people(60).select_dtypes("number"):
            x, guess = (pd.to_numeric(pd.Series(column[name])) for name in ("data", "model"))
            state = np.array(column["state"])
            errors += [*((x - guess)[state == 1] / x[state == 0].std(ddof=0))]
    assert explorer.status["headline"]["off"] == pytest.approx(
        np.sqrt(np.mean(np.square(errors))), rel=0.02
    )
    ratings = done(widgets.Explorer(data="generated", offsets="both", **settings))
    act(ratings, "component", k=0, what="off")
    fitted, hidden = ratings.state.shown.without([0]), ratings.state.fit.hidden
    off = rmse(hidden.values, fitted.at(*hidden.positions))
    assert ratings.status["headline"]["off"] == pytest.approx(off)


def test_the_data_are_sent_once_in_bytes_with_what_is_missing():
    X = datasets.digits(40).copy()
    X[3, 5] = np.nan
    explorer, sent = done(plain(widgets.explore, X, iterations=5)), []
    data = explorer.drawing["data"]
    codes = np.frombuffer(data["codes"], np.uint8).astype(float)
    values = data["low"] + codes / 254 * (data["high"] - data["low"])
    decoded = np.where(codes == 255, np.nan, values).reshape(40, -1)
    np.testing.assert_allclose(decoded, X.values.reshape(40, -1), atol=1 / 254)
    explorer.observe(sent.append, "drawing")
    act(explorer, "component", k=1, what="off")  # which the page draws without it
    assert sent == []
