"""Rows, columns and entries of one matrix are found in another, by label or by position."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse

import nmd_lab
from nmd_lab.data.labels import labels_of
from nmd_lab.data.matching import known_positions, match, match_data


def labels(*columns, name=None, index=None):
    index = pd.Index(columns, name=name) if index is None else index
    return labels_of(pd.DataFrame(np.zeros((2, len(index))), columns=index))


FIT = labels("p", "q", "r")


LEVELS = pd.MultiIndex.from_product([["a", "b"], [1, 2]])
DEFAULT, NAMED = labels(0, 1, 2), labels(0, 1, 2, name="item")


@pytest.mark.parametrize(
    ("own", "fit", "expected"),
    [
        (labels("p", "q", "r"), FIT, [0, 1, 2]),
        (labels("r", "p", "q"), FIT, [2, 0, 1]),
        (labels("r"), FIT, [2]),
        (labels("r", "q", name="letter"), FIT, [2, 1]),
        (labels("q", "x"), FIT, [1, -1]),
        (labels(0, 1, 2), FIT, [0, 1, 2]),
        (labels_of(np.zeros((2, 3))), FIT, [0, 1, 2]),
        (labels(0, 1), FIT, None),
        (labels_of(np.zeros((2, 4))), FIT, None),
        (labels(5, 1, 2), FIT, [-1, -1, -1]),
        # default labels of a table are positions
        (labels(2, 1), DEFAULT, [2, 1]),
        (labels("x", "y", "z"), DEFAULT, [0, 1, 2]),
        (labels("x", "y"), DEFAULT, [-1, -1]),
        (labels(0, 1, name="item"), NAMED, [0, 1]),
        (labels(index=LEVELS[[3, 1]]), labels(index=LEVELS), [3, 1]),
    ],
)
def test_labels_decide_where_both_have_some(own, fit, expected):
    found = match(own, fit, "columns")
    assert found is None if expected is None else found.tolist() == expected


def test_a_label_that_comes_twice():
    with pytest.raises(ValueError, match="X has the label 'q' twice along 'column'"):
        match(labels("q", "q"), FIT, "columns")
    with pytest.raises(ValueError, match="the fit has the label 'p' twice"):
        match(FIT, labels("p", "p", "q"), "columns")
    same = labels("p", "p", "q")
    assert match(same, labels("p", "p", "q"), "columns").tolist() == [0, 1, 2]


def test_several_dimensions_are_matched_one_by_one(rng):
    cube = xr.DataArray(
        np.arange(60).reshape(5, 3, 4), dims=("time", "lat", "lon"),
        coords={"lat": [10, 20, 30], "lon": list("abcd")},
    )  # fmt: skip
    part = cube.isel(lat=[2, 0], lon=[3, 1, 0]).transpose("lon", "time", "lat")
    own, fit = labels_of(part, "time"), labels_of(cube, "time")
    found = match(own, fit, "columns")
    flat = fit.flatten(cube.values)
    np.testing.assert_array_equal(flat[:, found], own.flatten(part.values))
    stranger = labels_of(part.assign_coords(lon=["d", "?", "a"]), "time")
    found = match(stranger, fit, "columns")
    assert found.reshape(3, 2)[1].tolist() == [-1, -1]
    with pytest.raises(ValueError, match=r"along 'lon, lat', such as \('\?', 30\), \('\?', 10\): "):
        known_positions(stranger, fit, "columns")
    assert match(labels_of(np.zeros((5, 12))), fit, "columns").tolist() == list(range(12))
    assert match(labels_of(cube.drop_vars("lat").isel(lat=[0]), "time"), fit, "columns") is None


ROWS, COLUMNS = [f"r{i}" for i in range(6)], [f"c{j}" for j in range(4)]
OTHER = labels_of(pd.DataFrame(np.zeros((6, 4)), ROWS, COLUMNS))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_entries_move_to_their_position(kind, weighted, rng):
    values = rng.random((6, 4)) + 1
    values[rng.random((6, 4)) < 0.4] = np.nan
    weights = rng.random((6, 4)) + 1
    i, j = rng.permutation(6)[:5], rng.permutation(4)[:3]
    part = values[np.ix_(i, j)]
    data = pd.DataFrame(part, [ROWS[k] for k in i], [COLUMNS[k] for k in j])
    if kind == "sparse":
        stored = sparse.csr_array(np.nan_to_num(part))
        data = nmd_lab.observations_from_sparse(stored, data.index, data.columns)
    options = {"weights": weights[np.ix_(i, j)]} if weighted else {}
    matched = match_data(OTHER, data, **options)
    expected = np.full((6, 4), np.nan)
    expected[np.ix_(i, j)] = part
    moved = matched.as_sparse(OTHER)
    assert moved.labels is OTHER
    np.testing.assert_array_equal(moved.to_array(), expected)
    np.testing.assert_array_equal(matched.to_rows(np.arange(6), (6, 4)), expected)
    some = np.array([4, 0, 4])
    np.testing.assert_array_equal(matched.to_rows(some, (6, 4)), expected[some])
    assert moved.to_csr().has_sorted_indices
    if weighted:
        np.testing.assert_array_equal(moved.weights, weights[moved.rows, moved.indices])
