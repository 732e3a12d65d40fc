"""Ratings by somebody who is not in the data: they are folded in, and lists and plane follow."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from explorer_page import act, done, said, sure, table
from scipy import sparse

pytest.importorskip("anywidget")

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.result.summary import validation_error
from nmd_lab.widgets.components import signs_of
from nmd_lab.widgets.ratings import DEFAULT_COLUMNS, NewPerson, as_ratings

RATINGS = datasets.make_ratings(60, 40, 800, random_state=0)
TITLED = RATINGS.assign(title=[f"Film {item:02d}" for item in RATINGS["item"]])
MODEL = {"rank": 3, "alpha": 2.0, "iterations": 20, "offsets": "both"}


@pytest.fixture
def explorer():
    explorer = done(widgets.explore(RATINGS, **MODEL))
    act(explorer, "ask", name="row", value="you")
    return explorer


def rated(explorer):
    """Return the numbers of the ratings among the levels, by column."""
    known = table(explorer, "known")
    return dict(zip(known["ids"], known["rated"], strict=True))


def series(explorer):
    """Return the ratings as `fold_in` takes them."""
    labels, ratings = explorer.state.data.labels("columns"), explorer.state.person.ratings
    return pd.Series({labels[k]: x for k, x in ratings.items()}, name="you")


def test_the_items_with_most_ratings_are_offered(explorer):
    counts = RATINGS["item"].value_counts()
    labels = explorer.state.data.labels("columns")
    offered = [counts[labels[k]] for k in table(explorer, "known")["ids"]]
    assert offered == counts.to_numpy()[:8].tolist()
    assert set(rated(explorer).values()) == {0}
    assert len(table(explorer, "top")["rows"]) == 40  # what suits all


def test_a_star_folds_the_row_in_and_lists_and_plane_follow(explorer):
    fit, before = explorer.result, explorer.scatter["person"]
    first = table(explorer, "top")["rows"]
    a, b = table(explorer, "known")["ids"][:2]
    act(explorer, "rate", column=a, number=len(explorer.state.person.levels))
    act(explorer, "rate", column=b, number=1)
    w = fit.fold_in(series(explorer)).values * signs_of(fit._fitted)
    other = fit.append(series(explorer))
    assert explorer.scatter["person"] != before
    assert explorer.scatter["person"]["x"] == pytest.approx(float(w[0, 0]))
    assert explorer.scatter["person"]["y"] == pytest.approx(float(w[0, 1]))
    top = table(explorer, "top")
    assert top["rows"] != first
    assert not {a, b} & set(top["ids"])
    expected = other.top("you", 38, exclude=series(explorer))
    assert top["ids"] == expected.position.values.tolist()
    assert explorer.result is fit  # which has not run again


def test_for_you_is_the_difference_from_somebody_equally_generous_without_ratings(explorer):
    head = ["suggested", "fit", "n", "for you", "90 % interval"]
    assert table(explorer, "top")["head"] == head  # there is room from the start
    assert {*table(explorer, "top")["rows"][0][3:]} == {""}
    act(explorer, "rate", column=table(explorer, "known")["ids"][0], number=1)
    top = table(explorer, "top")
    fit = explorer.result
    items = fit.H.indexes["item"]
    nobody = fit.append(pd.Series(np.nan, items, name="nobody"), unknown="offsets")
    added = fit.append(series(explorer)).predict("you", items) - nobody.predict("nobody", items)
    assert top["head"] == head
    shown = [float(row[3]) for row in top["rows"]]
    np.testing.assert_allclose((added - np.mean(added))[top["ids"]], shown, atol=0.006)
    assert max(shown) > 0 > min(shown)  # it moves films against each other, not all of them up
    counts = RATINGS["item"].value_counts()
    assert [int(row[2]) for row in top["rows"]] == [counts[items[k]] for k in top["ids"]]


def test_a_posterior_gives_the_new_person_intervals_within_the_scale(explorer):
    a, b = table(explorer, "known")["ids"][:2]
    explorer.state.set("draws", 40)
    sure(explorer)
    act(explorer, "rate", column=a, number=5)
    act(explorer, "rate", column=b, number=1)
    top, posterior = table(explorer, "top"), explorer.posterior
    drawn = posterior.fold_in(series(explorer))
    ends = drawn.predict_interval(np.zeros(len(top["ids"]), int), top["ids"], level=0.9).clip(1, 5)
    assert top["head"] == ["suggested", "draws", "n", "for you", "90 % interval"]
    shown = np.array([row[-1].split(" – ") for row in top["rows"]], dtype=float)
    np.testing.assert_allclose(shown, ends, atol=0.006)


def test_a_new_fit_folds_the_row_in_again(explorer):
    act(explorer, "rate", column=table(explorer, "known")["ids"][0], number=1)
    before = explorer.scatter["person"]
    explorer.state.set("alpha", 8.0)
    done(explorer)
    w = explorer.result.fold_in(series(explorer)).values * signs_of(explorer.result._fitted)
    assert explorer.scatter["person"]["x"] == pytest.approx(float(w[0, 0]))
    assert explorer.scatter["person"] != before


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([1, 2, 4, 5], [1, 2, 4, 5]),
        (np.arange(0.5, 5.5, 0.5), np.arange(0.5, 5.5, 0.5)),
        (np.linspace(-10, 10, 30), [-10, -5, 0, 5, 10]),
    ],
)
def test_stars_give_the_values_of_the_data_if_these_are_few(values, levels):
    frame = pd.DataFrame({"user": 0, "item": range(len(values)), "rating": values})
    assert NewPerson(as_ratings(frame, DEFAULT_COLUMNS, None)).levels == list(levels)


def test_any_item_can_be_looked_for():
    explorer = done(widgets.explore(TITLED, **MODEL))
    act(explorer, "ask", name="row", value="you")
    act(explorer, "ask", name="search", value="film")
    assert len(explorer.facts["query"][1]["options"]) == 12
    act(explorer, "ask", name="search", value="M 07")
    assert explorer.facts["query"][1]["options"] == [["Film 07", "Film 07"]]
    act(explorer, "ask", name="item", value="film 07")
    assert table(explorer, "known")["rows"][0][0] == "Film 07"
    assert explorer.facts["query"][1]["options"] == []
    act(explorer, "ask", name="item", value="nothing")
    assert "no title holds 'nothing'" in said(explorer)


@pytest.mark.parametrize("labelled", [True, False])
def test_copied_code_suggests_the_same(labelled, capsys):
    table_of = sparse.csr_array((RATINGS["rating"], (RATINGS["user"], RATINGS["item"])))
    X = RATINGS if labelled else nmd.observations_from_sparse(table_of)
    explorer = done(widgets.explore(X, **MODEL))
    act(explorer, "ask", name="row", value="you")
    assert "you" not in explorer.code()
    for column, number in [(5, 1), (2, 3)]:
        act(explorer, "rate", column=column, number=number)
    names = {"X": X}
    exec(explorer.state.code("X"), names)
    you = {"row": "you", "exclude": names["you"]} if labelled else {"row": -1, "exclude": [5, 2]}
    best = names["fit"].append(names["you"]).top(**you)
    assert best.position.values.tolist() == table(explorer, "top")["ids"][:10]
    assert str(best) in capsys.readouterr().out


@pytest.mark.parametrize("nonlinearity", ["identity", "minmax"])
def test_the_headline_has_rivals_at_the_same_entries(nonlinearity):
    explorer = done(widgets.explore(RATINGS, nonlinearity=nonlinearity, validation=0.2, **MODEL))
    state, fit = explorer.state, explorer.result
    i, j = state.fit.unseen
    entries = pd.DataFrame(np.transpose(state.observations.entries()), columns=["i", "j", "x"])
    hidden = entries.set_index(["i", "j"]).index.isin(list(zip(i, j, strict=True)))
    seen, held_out = entries[~hidden], entries[hidden]
    means = seen.groupby("j")["x"].mean().reindex(held_out["j"]).fillna(seen["x"].mean())
    error = np.sqrt(np.mean((held_out["x"].to_numpy() - means.to_numpy()) ** 2))
    assert state.errors["item's mean"] == pytest.approx(error)
    shown = explorer.status["headline"]
    assert float(shown["value"]) == pytest.approx(validation_error(fit), abs=0.005)
    assert shown["text"] == "off at held-out entries"
    assert float(shown["rivals"].split()[3]) == pytest.approx(error, abs=0.005)
    assert ("linear" in state.errors) == (nonlinearity == "minmax")
    if nonlinearity == "minmax":
        named = state.arguments() | {"nonlinearity": "identity", "max_iter": fit._n_iter}
        linear = nmd.complete(state.data.matrix, **named)
        assert state.errors["linear"] == pytest.approx(validation_error(linear))
