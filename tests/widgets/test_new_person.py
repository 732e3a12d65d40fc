"""Ratings by somebody who is not in the data: they are folded in, and lists and plane follow."""

import numpy as np
import pandas as pd
import pytest
from explorer_page import act, done, sure
from scipy import sparse

from nmd_lab import datasets, widgets
from nmd_lab.widgets.ratings import RatingsState

RATINGS = datasets.make_ratings(60, 40, 800, random_state=0)
TITLED = RATINGS.assign(title=[f"Film {item:02d}" for item in RATINGS["item"]])
MODEL = {"rank": 3, "alpha": 2.0, "iterations": 20, "offsets": "both"}


@pytest.fixture
def explorer():
    explorer = done(widgets.explore(RATINGS, **MODEL))
    act(explorer, "ask", name="row", value="you")
    return explorer


def offered(explorer):
    """Return the columns that are offered to the new person."""
    return [line["column"] for line in explorer.facts["lists"]["known"]]


def often(explorer, without=0):
    """Return the weights of the ratings, which count as four."""
    return np.full((1, len(explorer.state.stars) - without), 4.0)


def series(explorer):
    """Return the ratings as `fold_in` takes them."""
    labels, ratings = explorer.state.column_labels, explorer.state.stars
    return pd.Series({labels[k]: x for k, x in ratings.items()}, name="you")


def test_the_items_with_most_ratings_are_offered(explorer):
    counts = RATINGS["item"].value_counts()
    labels = explorer.state.column_labels
    assert [counts[labels[k]] for k in offered(explorer)] == counts.to_numpy()[:8].tolist()
    assert {line["number"] for line in explorer.facts["lists"]["known"]} == {0}
    assert len(explorer.facts["lists"]["top"]) == 40  # what suits all


def test_a_star_folds_the_row_in_and_lists_and_plane_follow(explorer):
    fit, before = explorer.result, explorer.scatter["person"]
    assert not any(before["weights"])  # without stars there is no direction
    first = explorer.facts["lists"]["top"]
    a, b = offered(explorer)[:2]
    act(explorer, "rate", column=a, number=len(explorer.state.levels))
    act(explorer, "rate", column=b, number=1)
    other = fit.append(series(explorer), weights=often(explorer))
    shown = np.array(explorer.scatter["person"]["weights"][:2])
    folded = fit.fold_in(series(explorer), weights=often(explorer)).values[0, :2]
    np.testing.assert_allclose(shown / np.hypot(*shown), folded / np.hypot(*folded), rtol=1e-5)
    act(explorer, "ask", name="sort", value="highest")
    top = explorer.facts["lists"]["top"]
    assert top != first
    at = [line["column"] for line in top]
    expected = other.top("you", 38, exclude=series(explorer))
    assert at == expected.position.values.tolist()  # without a and b
    assert explorer.result is fit  # which has not run again
    items = fit.H.indexes["item"]
    row = pd.Series(np.nan, items, name="nobody")
    nobody = fit.append(row, unknown="offsets").predict("nobody", items)
    every = other.predict("you", items) - nobody
    side = "below" if np.mean(every) < 0 else "above"
    said = f"you rate {abs(np.mean(every)):.1f} {side} most people"
    assert explorer.facts["lists"]["about"].startswith(said)
    explorer.select(column=at[0])  # why is it suggested?
    why = []
    for k in (a, b):
        one_less = series(explorer).drop(explorer.state.column_labels[k])
        less = fit.append(one_less, weights=often(explorer, 1))
        added = other.predict("you", items) - less.predict("you", items)
        by = added[at[0]] - added.mean()
        title, stars = explorer.state.column_titles([k])[0], explorer.state.stars[k]
        if by > 0.005:  # a lower rating of what is not liked may help, too, but is named last
            why.append((stars < 3, -by, f"{title} {stars:g} ★ ({by:+.2f})"))
    said = " and ".join(text for *_, text in sorted(why))
    total, first = every[at[0]] - every.mean(), top[0]
    said = f", because you gave {said}" if why else "; none of your stars alone raises it"
    about = f"For you {total:+.2f}{said}"
    assert explorer.facts["lists"]["about"] == about


def test_a_new_person_may_rate_like_most_people(explorer, monkeypatch):
    nothing = np.zeros(explorer.state.observations.shape[1])
    monkeypatch.setattr(explorer.state, "added", lambda: nothing)
    act(explorer, "rate", column=offered(explorer)[0], number=3)
    assert explorer.facts["lists"]["about"].startswith("you rate like most people;")


def test_a_posterior_gives_the_new_person_intervals_within_the_scale(explorer):
    a, b = offered(explorer)[:2]
    explorer.state.set("draws", 40)
    sure(explorer)
    act(explorer, "rate", column=a, number=5)
    act(explorer, "rate", column=b, number=1)
    top, posterior = explorer.facts["lists"]["top"], explorer.posterior
    drawn = posterior.fold_in(series(explorer), weights=often(explorer))
    at = [line["column"] for line in top]
    ends = drawn.predict_interval(np.zeros(len(at), int), at, level=0.9).clip(1, 5)
    shown = 1 + 4 * np.array([line["ends"][:2] for line in top])
    np.testing.assert_allclose(shown, ends, atol=0.006)
    act(explorer, "ask", name="sort", value="surest")
    lows = [line["ends"][0] for line in explorer.facts["lists"]["top"]]
    assert lows == sorted(lows, reverse=True)


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
    assert RatingsState(frame).levels == list(levels)


@pytest.mark.parametrize("labelled", [True, False])
def test_copied_code_prints_the_list_of_the_page(labelled):
    table_of = sparse.csr_array((RATINGS["rating"], (RATINGS["user"], RATINGS["item"])))
    explorer = done(widgets.explore(TITLED if labelled else table_of, **MODEL, draws=40))

    def check(sort=""):
        names = {"X": TITLED if labelled else table_of}
        exec(explorer.code().replace("X = ...", ""), names)
        best, top = names["best"], explorer.facts["lists"]["top"]
        assert [f"{x:.1f}" for x in best["stars"]] == [line["predicted"] for line in top]
        assert best["n"].tolist() == [line["n"] for line in top]
        if labelled:
            assert best["title"].tolist() == [line["title"] for line in top]
        if "for_you" in best:
            for_you = [f"{round(x, 2) + 0.0:+.2f}" for x in best["for_you"]]
            assert for_you == [line["for_you"] for line in top]
            assert sort != "for_you" or best["for_you"].is_monotonic_decreasing  # not rounded

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
        check(sort)
