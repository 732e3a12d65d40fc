"""Entries of data at their positions in another matrix."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import nmd_lab
from nmd_lab.data.labels import labels_of
from nmd_lab.data.matched import match_data

ROWS, COLUMNS = [f"r{i}" for i in range(6)], [f"c{j}" for j in range(4)]
OTHER = labels_of(pd.DataFrame(np.zeros((6, 4)), ROWS, COLUMNS))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_entries_move_to_their_place(kind, weighted, rng):
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
    np.testing.assert_array_equal(matched.to_array((6, 4)), expected)
    some = np.array([4, 0, 4])
    np.testing.assert_array_equal(matched.to_rows(some, (6, 4)), expected[some])
    assert moved.to_csr().has_sorted_indices
    if weighted:
        np.testing.assert_array_equal(moved.weights, weights[moved.rows, moved.indices])
