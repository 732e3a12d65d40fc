"""Ratings by somebody who is not in the data: they are folded in, and lists and plane follow."""

import numpy as np
import pandas as pd
import pytest
from explorer_page import act, columns_of, done, lists, said, sure
from scipy import sparse

pytest.importorskip("anywidget")

import nmd_lab as nmd
from nmd_lab import datasets, widgets
from nmd_lab.result.summary import validation_error
from nmd_lab.widgets.charts import order_of
from nmd_lab.widgets.ratings_state import DEFAULT_COLUMNS, NewPerson, as_ratings

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
    return {line["column"]: line["number"] for line in lists(explorer, "known")}


def offered(explorer):
    """Return the columns that are offered to the new person."""
    return columns_of(lists(explorer, "known"))


def direction(explorer):
    """Return where the plane has the new person, as a direction."""
    x, y = (explorer.scatter["person"][axis] for axis in "xy")
    return np.array([x, y]) / np.hypot(x, y)


def folded(explorer):
    """Return the direction of the folded-in weights of the two largest components."""
    order, signs = order_of(explorer.result._fitted)
    w = (explorer.result.fold_in(series(explorer)).values[0, order] * signs)[:2]
    return w / np.hypot(*w)


def series(explorer):
    """Return the ratings as `fold_in` takes them."""
    labels, ratings = explorer.state.data.labels("columns"), explorer.state.person.ratings
    return pd.Series({labels[k]: x for k, x in ratings.items()}, name="you")


def test_the_items_with_most_ratings_are_offered(explorer):
    counts = RATINGS["item"].value_counts()
    labels = explorer.state.data.labels("columns")
    assert [counts[labels[k]] for k in offered(explorer)] == counts.to_numpy()[:8].tolist()
    assert set(rated(explorer).values()) == {0}
    assert len(lists(explorer, "top")) == 40  # what suits all


def test_a_star_folds_the_row_in_and_lists_and_plane_follow(explorer):
    fit, before = explorer.result, explorer.scatter["person"]
    assert (before["x"], before["y"]) == (0, 0)  # without stars there is no direction
    first = lists(explorer, "top")
    a, b = offered(explorer)[:2]
    act(explorer, "rate", column=a, number=len(explorer.state.person.levels))
    act(explorer, "rate", column=b, number=1)
    other = fit.append(series(explorer))
    np.testing.assert_allclose(direction(explorer), folded(explorer), rtol=1e-5)
    act(explorer, "ask", name="sort", value="highest")
    top = lists(explorer, "top")
    assert top != first
    assert not {a, b} & set(columns_of(top))
    expected = other.top("you", 38, exclude=series(explorer))
    assert columns_of(top) == expected.position.values.tolist()
    assert explorer.result is fit  # which has not run again
    items = fit.H.indexes["item"]
    every = other.predict("you", items) - nobody(explorer)
    said = f"your stars add {round(np.mean(every), 1) + 0.0:+.1f} to all items"
    assert explorer.facts["lists"]["about"].startswith(said)
    explorer.select(column=columns_of(top)[0])  # why is it suggested?
    why = []
    for k in (a, b):
        less = fit.append(series(explorer).drop(explorer.state.data.labels("columns")[k]))
        added = other.predict("you", items) - less.predict("you", items)
        by = added[columns_of(top)[0]] - added.mean()
        title, stars = explorer.state.data.column_titles([k])[0], explorer.state.person.ratings[k]
        why.append((abs(by), f"{title} ({stars:g}★) {by:+.1f}"))
    said = ", ".join(text for _, text in sorted(why, reverse=True))
    total, first = every[columns_of(top)[0]] - every.mean(), top[0]
    about = f"{first['title']}: {first['predicted']}, for you {total:+.1f}, of it {said}"
    assert explorer.facts["lists"]["about"] == about


def nobody(explorer):
    """Return the predictions for somebody without ratings."""
    items = explorer.result.H.indexes["item"]
    row = pd.Series(np.nan, items, name="nobody")
    return explorer.result.append(row, unknown="offsets").predict("nobody", items)


def test_for_you_is_the_difference_from_somebody_equally_generous_without_ratings(explorer):
    assert not any("for_you" in line for line in lists(explorer, "top"))
    act(explorer, "rate", column=offered(explorer)[0], number=1)
    top, fit = lists(explorer, "top"), explorer.result
    items = fit.H.indexes["item"]
    predicted = fit.append(series(explorer)).predict("you", items)
    alone = predicted - nobody(explorer)
    alone -= np.mean(alone)
    shown = [float(line["for_you"]) for line in top]
    np.testing.assert_allclose(alone[columns_of(top)], shown, atol=0.051)
    others = np.arange(40) != offered(explorer)[0]
    best = others & (predicted >= np.quantile(predicted[others], 0.75))
    assert set(columns_of(top)) == set(np.flatnonzero(best))
    assert columns_of(top)[0] == np.argmax(np.where(best, alone, -9))
    assert max(shown) > 0 > min(shown)  # it moves films against each other, not all of them up
    counts = RATINGS["item"].value_counts()
    assert [line["n"] for line in top] == [counts[items[k]] for k in columns_of(top)]


def test_films_with_few_ratings_are_left_out(explorer):
    counts = RATINGS["item"].value_counts()
    act(explorer, "ask", name="least", value="20")
    labels = explorer.state.data.labels("columns")
    assert {labels[k] for k in columns_of(lists(explorer, "top"))} == set(
        counts[counts >= 20].index
    )
    assert len(np.frombuffer(explorer.scatter["rows"], "<i4")) == (counts >= 20).sum()


def test_a_posterior_gives_the_new_person_intervals_within_the_scale(explorer):
    a, b = offered(explorer)[:2]
    explorer.state.set("draws", 40)
    sure(explorer)
    act(explorer, "rate", column=a, number=5)
    act(explorer, "rate", column=b, number=1)
    top, posterior = lists(explorer, "top"), explorer.posterior
    drawn, at = posterior.fold_in(series(explorer)), columns_of(top)
    ends = drawn.predict_interval(np.zeros(len(at), int), at, level=0.9).clip(1, 5)
    shown = 1 + 4 * np.array([line["ends"][:2] for line in top])
    np.testing.assert_allclose(shown, ends, atol=0.006)
    act(explorer, "ask", name="sort", value="surest")
    lows = [line["ends"][0] for line in lists(explorer, "top")]
    assert lows == sorted(lows, reverse=True)


def test_a_new_fit_folds_the_row_in_again(explorer):
    act(explorer, "rate", column=offered(explorer)[0], number=1)
    before = direction(explorer)
    explorer.state.set("alpha", 8.0)
    done(explorer)
    assert not np.allclose(direction(explorer), before)
    np.testing.assert_allclose(direction(explorer), folded(explorer), rtol=1e-5)


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
    assert len(lists(explorer, "fields")[0]["options"]) == 12
    act(explorer, "ask", name="search", value="M 07")
    assert lists(explorer, "fields")[0]["options"] == [["Film 07", "Film 07"]]
    act(explorer, "ask", name="item", value="film 07")
    assert lists(explorer, "known")[0]["title"] == "Film 07"
    assert lists(explorer, "fields")[0]["options"] == []
    act(explorer, "ask", name="item", value="nothing")
    assert "no title holds 'nothing'" in said(explorer)


@pytest.mark.parametrize("labelled", [True, False])
def test_copied_code_prints_the_list_of_the_page(labelled):
    table_of = sparse.csr_array((RATINGS["rating"], (RATINGS["user"], RATINGS["item"])))
    explorer = done(widgets.explore(TITLED if labelled else table_of, **MODEL, draws=40))

    def check():
        names = {"X": TITLED if labelled else table_of}
        exec(explorer.code().replace("X = ...", ""), names)
        best, top = names["best"], lists(explorer, "top")
        assert [f"{x:.1f}" for x in best["stars"]] == [line["predicted"] for line in top]
        assert best["n"].tolist() == [line["n"] for line in top]
        if labelled:
            assert best["title"].tolist() == [line["title"] for line in top]
        if "for_you" in best:
            assert [f"{x:+.1f}" for x in best["for_you"]] == [line["for_you"] for line in top]

    act(explorer, "select", row=3)
    check()
    act(explorer, "ask", name="row", value="you")
    check()
    act(explorer, "rate", column=5, number=5)
    act(explorer, "rate", column=2, number=1)
    check()
    sure(explorer)
    act(explorer, "ask", name="least", value="20")
    for sort in ("for_you", "surest", "highest"):
        act(explorer, "ask", name="sort", value=sort)
        check()


def test_films_for_you_are_in_order_also_where_they_look_alike(explorer):
    act(explorer, "rate", column=offered(explorer)[0], number=5)
    shown = [(float(line["for_you"]), float(line["predicted"])) for line in lists(explorer, "top")]
    assert shown == sorted(shown, reverse=True)
    assert len({added for added, _ in shown}) < len(shown)
    assert not any(line["for_you"] == "-0.0" for line in lists(explorer, "top"))


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
    assert state.errors["average"] == pytest.approx(error)
    shown = explorer.status["headline"]
    assert float(shown["value"].strip("±")) == pytest.approx(validation_error(fit), abs=0.005)
    assert shown["rivals"][-1]["name"] == "each item's average"
    assert shown["rivals"][-1]["off"] == pytest.approx(error)
    assert ("linear" in state.errors) == (nonlinearity == "minmax")
    if nonlinearity == "minmax":
        named = state.arguments() | {"nonlinearity": "identity", "max_iter": fit._n_iter}
        linear = nmd.complete(state.data.matrix, **named)
        assert state.errors["linear"] == pytest.approx(validation_error(linear))
