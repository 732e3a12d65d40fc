"""What `validation` hides: masks in every form, blocks, groups by name."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse
from sklearn.model_selection import GroupKFold
from stored import mask_of

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.fit.held_out import hold_out
from nmd_lab.fit.summary import describe
from nmd_lab.request.options import Options

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 8))
X[RNG.random(X.shape) < 0.2] = np.nan
MASK = RNG.random(X.shape) < 0.2
EXPECTED = MASK & np.isfinite(X)
FRAME = pd.DataFrame(X, index=list("abcdefghijkl"), columns=list("pqrstuvw"))


def held(data, validation, **how):
    """Return what is held out, with a mask of it."""
    observations, rng = observe(data, **how), np.random.default_rng(0)
    options = Options(validation=validation, alpha="auto")
    known = describe(observations, None, options, is_table=False)
    found = hold_out(known, data, options, rng)
    return found, found.held_out and mask_of(found.held_out)


FRAME_MASK = pd.DataFrame(MASK, index=FRAME.index, columns=FRAME.columns)
ARRAY = xr.DataArray(X.reshape(3, 4, 8), dims=("year", "month", "place"))


@pytest.mark.parametrize(
    ("data", "mask", "how"),
    [
        (X, MASK, {}),
        (X, MASK.tolist(), {}),
        (X, sparse.csr_array(MASK), {}),
        (FRAME, MASK, {}),
        (FRAME, FRAME_MASK.iloc[::-1, ::-1], {}),
        (FRAME, FRAME_MASK.astype("boolean"), {}),
        (sparse.csr_array(np.nan_to_num(X)), sparse.csr_array(MASK), {}),
        (sparse.csr_array(np.nan_to_num(X)), MASK, {}),
        (ARRAY, MASK.reshape(3, 4, 8), {"sample_dims": ("year", "month")}),
        (
            ARRAY,
            xr.DataArray(MASK.reshape(3, 4, 8), dims=ARRAY.dims).transpose(),
            {"sample_dims": ("year", "month")},
        ),
    ],
)
def test_a_mask_hides_observed_entries_of_the_last_fit(data, mask, how):
    found, hidden = held(data, mask, **how)
    np.testing.assert_array_equal(hidden, EXPECTED)
    np.testing.assert_array_equal(mask_of(found.observations), np.isfinite(X) & ~EXPECTED)
    assert [fold.held_out.n_observed for fold in found.folds] == [EXPECTED.sum()]
    assert found.drawn == "given"


def test_masks_judge_the_choice_and_the_last_fit_has_all_entries():
    other = MASK[::-1]
    found, hidden = held(X, [MASK, FRAME_MASK.to_numpy()[::-1]])
    assert hidden is None
    assert found.observations.n_observed == np.isfinite(X).sum()
    for fold, mask in zip(found.folds, (MASK, other), strict=True):
        np.testing.assert_array_equal(mask_of(fold.held_out), mask & np.isfinite(X))
        np.testing.assert_array_equal(mask_of(fold.rest), np.isfinite(X) & ~mask)


def test_a_mask_of_a_table_hides_whole_categories():
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "kind": pd.Categorical(list("abca"))})
    mask = np.array([[False, True], [True, False], [False, False], [False, True]])
    _, hidden = held(frame, mask)
    np.testing.assert_array_equal(hidden[:, 0], mask[:, 0])
    np.testing.assert_array_equal(hidden[:, 1:], np.repeat(mask[:, 1:], 3, axis=1))


def test_blocks_are_moved_holes():
    data = np.random.default_rng(3).normal(size=(40, 10))
    data[::4, :3] = np.nan
    data[1::8, 6:8] = np.nan
    found, hidden = held(data, "blocks")
    assert hidden is None
    assert found.drawn == "as the missing entries are"
    for fold in found.folds:
        assert set(fold.held_out.as_sparse().indices) <= {0, 1, 2, 6, 7}


# Groups -------------------------------------------------------------------------------------------

GROUPS = np.arange(12) % 3
BY_INDEX = FRAME.set_index(pd.Index(GROUPS, name="who"), append=True)
WITH_COLUMN = FRAME.assign(who=GROUPS * 1.0)
LABELLED = xr.DataArray(
    X, dims=("time", "place"), coords={"who": ("time", list("xyz") * 4), "time": np.arange(12)}
)


@pytest.mark.parametrize(
    ("data", "groups"),
    [
        (X, GROUPS),
        (X, GROUPS.tolist()),
        (X, np.array(["one", "two", "three"], dtype=object)[GROUPS]),
        (FRAME, pd.Series(GROUPS, index=FRAME.index)[::-1]),
        (BY_INDEX, "who"),
        (WITH_COLUMN, "who"),
        (LABELLED, "who"),
    ],
    ids=["array", "list", "text", "series", "index level", "column", "coordinate"],
)
def test_groups_are_labels_or_a_name(data, groups):
    found, _ = held(data, nmd.Choice(splitter=GroupKFold(3), groups=groups))
    for fold in found.folds:
        rows = np.unique(GROUPS[fold.held_out.rows])
        assert rows.size == 1
    assert {GROUPS[fold.held_out.rows][0] for fold in found.folds} == {0, 1, 2}


def test_a_coordinate_of_one_of_several_row_dimensions():
    array = ARRAY.assign_coords(season=("month", list("wssw")))
    choice = nmd.Choice(splitter=GroupKFold(2), groups="season")
    found, _ = held(array, choice, sample_dims=("year", "month"))
    for fold in found.folds:
        assert len({"wssw"[row % 4] for row in fold.held_out.rows}) == 1
