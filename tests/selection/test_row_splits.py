"""Held-out entries in the test rows of a splitter: which they are, and what the fit still sees."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    TimeSeriesSplit,
)
from stored import mask_of

from nmd_lab.data.folds import row_folds, row_splits
from nmd_lab.data.inputs import observe, row_groups

M, N = 60, 20
X = np.random.default_rng(0).normal(size=(M, N))
HOLED = np.where(np.random.default_rng(1).random(X.shape) < 0.7, X, np.nan)
GROUPS = np.arange(M) % 6


def masks(splitter, data=X, groups=None, seed=0):
    """Return the splits and, for each fold, masks of what it fits and of what it holds out."""
    observations, rng = observe(data), np.random.default_rng(seed)
    splits = row_splits(splitter, groups, observations.shape[0], rng)
    folds = row_folds(splits, observations, rng)
    return splits, [tuple(mask_of(part) for part in fold) for fold in folds]


def split_of(held_out, splits):
    """Return the split whose test rows have the held-out entries."""
    rows = np.flatnonzero(held_out.any(axis=1))
    return next(split for split in splits if np.isin(rows, split[1]).all())


@pytest.mark.parametrize("data", [X, HOLED], ids=["complete", "holes"])
@pytest.mark.parametrize(
    "splitter", [KFold(5), GroupKFold(3), LeaveOneGroupOut(), ShuffleSplit(4)], ids=repr
)
def test_a_fifth_of_the_columns_is_held_out_in_all_test_rows(splitter, data):
    observed = np.isfinite(data)
    by_group = isinstance(splitter, GroupKFold | LeaveOneGroupOut)
    splits, folds = masks(splitter, data, GROUPS if by_group else None)
    assert len(folds) >= len(splits)
    for _, test in splits if by_group else []:
        assert not set(GROUPS[test]) & set(np.delete(GROUPS, test))
    for rest, held_out in folds:
        (_, test), columns = split_of(held_out, splits), held_out.any(axis=0)
        assert columns.sum() == N / 5
        expected = observed & np.isin(np.arange(M), test)[:, None] & columns
        np.testing.assert_array_equal(held_out, expected)
        np.testing.assert_array_equal(rest, observed & ~held_out)


def test_each_split_holds_out_other_columns_in_each_round():
    _, folds = masks(KFold(5))
    columns = {(held.any(axis=1).argmax(), held.any(axis=0).argmax()) for _, held in folds}
    assert len(folds) == len(columns) == 10
    together = np.sum([held_out for _, held_out in folds], axis=0)
    assert together.max() == 1
    assert together.sum() == M * N * 2 / 5


def test_later_rows_are_left_out_and_the_longest_past_is_first():
    _, folds = masks(TimeSeriesSplit(4))
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
    for _, held_out in masks(KFold(5), frame)[1]:
        assert (held_out[:, 4:].all(axis=1) | ~held_out[:, 4:].any(axis=1)).all()


def test_a_splitter_without_a_seed_gets_that_of_the_fit():
    splitter = ShuffleSplit(3)
    first, again, other = (masks(splitter, seed=seed)[1] for seed in (0, 0, 1))
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert any(np.any(one[1] != two[1]) for one, two in zip(first, other, strict=True))
    assert splitter.random_state is None


def test_groups_are_those_of_a_level_whose_name_a_dimension_has():
    index = pd.MultiIndex.from_arrays([GROUPS, range(M)], names=["row", "visit"])
    frame = pd.DataFrame(X, index)
    np.testing.assert_array_equal(row_groups("row", frame, observe(frame)), GROUPS)
