"""Held-out entries for a choice: drawn as missing ones are, and never all of a row or column.

Those in the test rows of a splitter: which they are, and what the fit still sees.
"""

import numpy as np
import pandas as pd
import pytest
from helpers import mask_of
from scipy import sparse
from sklearn import model_selection as sk

from nmd_lab.data import folds as folding
from nmd_lab.data.inputs import observe


def random_holes(shape=(40, 30), share=0.6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape)
    X[rng.random(shape) >= share] = np.nan
    return X


def blocks(shape=(40, 30), width=8, every=2, seed=0):
    """Return data of which some rows miss `width` columns side by side."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape)
    for row in range(0, shape[0], every):
        first = rng.integers(shape[1] - width)
        X[row, first : first + width] = np.nan
    return X


def hidden_square(shape=(64, 48), size=20):
    X = np.random.default_rng(0).normal(size=shape)
    X[10 : 10 + size, 15 : 15 + size] = np.nan
    return X


def draw(X, seed=0, *how):
    return folding.draw_folds(observe(X), np.random.default_rng(seed), *how)


def masks(fold):
    """Return what is fitted and what is held out, as masks."""
    return [mask_of(each) for each in fold]


DATA = {
    "random": random_holes(),
    "few": random_holes(share=0.15, seed=1),
    "full": random_holes(share=1),
    "blocks": blocks(),
    "wide blocks": blocks(width=18, every=1),
    "a square": hidden_square(),
    "ratings": sparse.csr_array(np.nan_to_num(random_holes((80, 60), 0.1))),
}


# Which way ----------------------------------------------------------------------------------------


SHARES = np.random.default_rng(0).random((60, 40)) < np.linspace(0.3, 1, 40)
HOLES = [
    *((False, random_holes(share=share, seed=seed))
      for share in (0.15, 0.4, 0.7, 0.97, 1.0) for seed in range(5)),
    (False, random_holes((3000, 6))),
    (False, np.where(SHARES, 1.0, np.nan)),  # columns may have different fractions
    (False, blocks(width=22, every=1)),  # where less than a third is observed, none is looked for
    *((True, blocks(width=width, every=1, seed=seed)) for width in (3, 8, 18) for seed in range(5)),
    (True, hidden_square()),
    (True, hidden_square((900, 700), 300)),  # sampled
]  # fmt: skip


@pytest.mark.parametrize(("depend", "X"), HOLES)
def test_holes_at_random_and_blocks_are_known(depend, X):
    assert folding.holes_depend_on_each_other(observe(X)) == depend


# What is held out ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DATA)
def test_each_entry_is_fitted_or_held_out_and_no_row_or_column_is_emptied(name):
    observations = observe(DATA[name], absent_are_zeros=False)
    rows, columns, _ = observations.entries()
    X = observations.as_sparse().to_array()
    for fold in (fold for seed in range(3) for fold in draw(DATA[name], seed)[0]):
        fitted, held = masks(fold)
        assert not np.any(fitted & held)
        np.testing.assert_array_equal(np.nonzero(fitted | held), (rows, columns))
        for each, mask in zip(fold, (fitted, held), strict=True):
            np.testing.assert_array_equal(each.as_sparse().to_array()[mask], X[mask])
        for axis in (0, 1):
            assert np.all(fitted.any(axis)[(fitted | held).any(axis)])


@pytest.mark.parametrize("name", DATA)
def test_a_tenth_is_held_out_several_times_if_that_is_little(name):
    folds, _ = draw(DATA[name])
    n_observed = observe(DATA[name]).n_observed
    shares = [fold.held_out.n_observed / n_observed for fold in folds]
    assert min(shares) >= 0.01  # moved holes are few
    assert max(shares) <= 0.2
    assert 1 < len(folds) <= folding.MAX_FOLDS
    first, second = (masks(fold)[1] for fold in folds[:2])
    assert np.any(first != second)


def test_one_part_is_enough_for_many_entries():
    folds, _ = draw(random_holes((200, 150), 0.9))
    assert len(folds) == 1
    assert folds[0].held_out.n_observed >= folding.MIN_HELD_OUT


def test_no_more_are_held_out_than_are_needed(monkeypatch):
    monkeypatch.setattr(folding, "MIN_HELD_OUT", 100)
    monkeypatch.setattr(folding, "MAX_HELD_OUT", 300)
    (fold,), _ = draw(random_holes((100, 80), 0.9))
    assert fold.held_out.n_observed == 300


def test_blocks_are_held_out_as_a_whole():
    """What is held out in a row is what another row does not have, where this row has it."""
    missing = np.isnan(DATA["blocks"])
    for fold in draw(DATA["blocks"])[0]:
        _, held = masks(fold)
        rows = np.flatnonzero(held.any(axis=1))
        assert rows.size
        whole = [(held[i] == (missing & ~missing[i])).all(axis=1).any() for i in rows]
        assert np.mean(whole) > 0.7  # others lose some, since columns keep half of their entries


def test_few_holes_are_moved_until_a_tenth_is_held_out():
    X = blocks((900, 25), width=2, every=15)
    folds, drawn = draw(X)
    assert drawn == "as the missing entries are"
    for fold in folds:
        assert fold.held_out.n_observed == pytest.approx(0.1 * np.sum(~np.isnan(X)), abs=2)


def test_moved_holes_leave_most_of_each_column():
    X = np.random.default_rng(0).normal(size=(400, 12))
    X[::2, 4:8] = np.nan
    for fold in draw(X)[0]:
        fitted, held = masks(fold)
        assert 0.15 < held[:, 4:8].sum() / (fitted | held)[:, 4:8].sum() <= 0.2


def test_entries_of_another_matrix_are_left_out():
    seen, other = np.random.default_rng(0).random((2, 6, 5)) < 0.5
    X = observe(np.where(seen, 1.0, np.nan))
    for held in (other, ~seen):
        rest, _ = folding.without(X, observe(np.where(held, 1.0, np.nan)))
        np.testing.assert_array_equal(mask_of(rest), seen & ~held)


@pytest.mark.parametrize("name", ["random", "blocks", "ratings"])
def test_a_seed_gives_the_same_parts(name):
    one, again, other = (draw(DATA[name], seed)[0] for seed in (3, 3, 4))
    for first, second in zip(one, again, strict=True):
        np.testing.assert_array_equal(masks(first), masks(second))
    assert any(np.any(masks(a)[1] != masks(b)[1]) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("m", "rows"), [(4, {1}), (5, {1, 2, 3}), (12, {3, 4, 5, 6, 7, 8})])
def test_missing_entries_move_by_a_quarter_to_three_quarters_of_the_rows(m, rows):
    X, found = np.ones((m, 40)), set()
    X[0, :4] = np.nan
    for seed in range(4):
        for fold in draw(X, seed, "blocks")[0]:
            to, columns, _ = fold.held_out.entries()
            np.testing.assert_array_equal(columns, np.arange(to.size) % 4)
            found |= set(to.tolist())
    assert found == rows


def test_test_rows_are_judged_where_their_row_and_column_stay_known():
    X = np.ones((6, 4))
    X[5, 1:] = np.nan  # nothing would be left of this row
    X[:4, 3] = np.nan  # nor of this column
    splits = [(np.arange(4), np.arange(4, 6))]
    folds = folding.row_folds(splits, observe(X), np.random.default_rng(0))
    held = np.sum([masks(fold)[1] for fold in folds], axis=0)
    np.testing.assert_array_equal(np.argwhere(held), [[4, 0], [4, 1], [4, 2]])


M, N = 60, 20
X = np.random.default_rng(0).normal(size=(M, N))
HOLED = np.where(np.random.default_rng(1).random(X.shape) < 0.7, X, np.nan)
GROUPS = np.arange(M) % 6
SPLITTERS = [sk.KFold(5), sk.GroupKFold(3), sk.LeaveOneGroupOut(), sk.ShuffleSplit(4)]


def masks_of(splitter, data=X, groups=None, seed=0):
    """Return the splits and, for each fold, masks of what it fits and of what it holds out."""
    observations, rng = observe(data), np.random.default_rng(seed)
    splits = folding.row_splits(splitter, groups, data, observations, rng)
    folds = folding.row_folds(splits, observations, rng)
    return splits, [masks(fold) for fold in folds]


@pytest.mark.parametrize("data", [X, HOLED], ids=["complete", "holes"])
@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
def test_a_fifth_of_the_columns_is_held_out_in_all_test_rows(splitter, data):
    observed = np.isfinite(data)
    by_group = isinstance(splitter, sk.GroupKFold | sk.LeaveOneGroupOut)
    splits, folds = masks_of(splitter, data, GROUPS if by_group else None)
    assert len(folds) >= len(splits)
    for _, test in splits if by_group else []:
        assert not set(GROUPS[test]) & set(np.delete(GROUPS, test))
    for rest, held_out in folds:
        rows, columns = np.flatnonzero(held_out.any(axis=1)), held_out.any(axis=0)
        test = next(test for _, test in splits if np.isin(rows, test).all())
        assert columns.sum() == N / 5
        expected = observed & np.isin(np.arange(M), test)[:, None] & columns
        np.testing.assert_array_equal(held_out, expected)
        np.testing.assert_array_equal(rest, observed & ~held_out)


def test_each_split_holds_out_other_columns_in_each_round():
    _, folds = masks_of(sk.KFold(5))
    columns = {(held.any(axis=1).argmax(), held.any(axis=0).argmax()) for _, held in folds}
    assert len(folds) == len(columns) == 10
    together = np.sum([held_out for _, held_out in folds], axis=0)
    assert together.max() == 1
    assert together.sum() == M * N * 2 / 5


def test_later_rows_are_left_out_and_the_longest_past_is_first():
    _, folds = masks_of(sk.TimeSeriesSplit(4))
    sizes = [rest.sum() for rest, _ in folds]
    assert sizes == sorted(sizes, reverse=True)
    for rest, held_out in folds:
        last = np.flatnonzero(held_out.any(axis=1))[-1]
        assert not rest[last + 1 :].any()
        assert rest[: np.flatnonzero(held_out.any(axis=1))[0]].all()


def test_the_indicators_of_a_category_are_held_out_together():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{j}": rng.normal(size=40) for j in range(4)})
    frame["kind"] = pd.Categorical.from_codes(rng.integers(0, 3, 40), ["a", "b", "c"])
    for _, held_out in masks_of(sk.KFold(5), frame)[1]:
        assert (held_out[:, 4:].all(axis=1) | ~held_out[:, 4:].any(axis=1)).all()


def test_a_splitter_without_a_seed_gets_that_of_the_fit():
    splitter = sk.ShuffleSplit(3)
    first, again, other = (masks_of(splitter, seed=seed)[1] for seed in (0, 0, 1))
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert any(np.any(one[1] != two[1]) for one, two in zip(first, other, strict=True))
    assert splitter.random_state is None
