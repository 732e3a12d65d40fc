"""Some of the rows, as observations of their own: their entries, weights and columns."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nmd_lab.data.folds import some_rows
from nmd_lab.data.inputs import observe

M = 30


def frame():
    rng = np.random.default_rng(0)
    numbers = np.where(rng.random(M) < 0.2, np.nan, np.arange(M) + 0.5)
    return pd.DataFrame({"number": numbers, "kind": pd.Categorical(rng.choice(list("xyz"), M))})


NUMBERS = frame()["number"].fillna(0).to_numpy()
STORED = sparse.csr_array(np.column_stack([NUMBERS, NUMBERS + 1, np.zeros(M)]))


COLUMN, WEIGHTS = frame()[["number"]], np.arange(1.0, M + 1)[:, None]


@pytest.mark.parametrize(
    ("X", "weights"), [(frame(), None), (COLUMN, None), (COLUMN, WEIGHTS), (STORED, None)]
)
def test_rows_are_drawn_in_their_order_with_all_their_entries(X, weights):
    observations = observe(X, weights=weights)
    assert some_rows(observations, M, np.random.default_rng(0)) is observations
    drawn = some_rows(observations, 7, np.random.default_rng(1))
    rows = np.sort(np.random.default_rng(1).choice(M, 7, replace=False))
    np.testing.assert_array_equal(drawn.to_array(), observations.to_array()[rows])
    if weights is not None:
        seen = X.notna().to_numpy()[rows]
        np.testing.assert_array_equal(drawn.weights, np.where(seen, weights[rows], 0))
    assert drawn.labels.table == observations.labels.table
    assert drawn.labels.matrix_shape == drawn.shape


@pytest.mark.parametrize("X", [COLUMN, STORED])
def test_a_range_of_rows_is_not_copied(X):
    observations = observe(X)
    block = observations.of_rows(slice(4, 9))
    assert np.shares_memory(block.reader(), observations.reader())
    if X is COLUMN:
        assert np.shares_memory(block.weight_reader(), observations.weight_reader())
    np.testing.assert_array_equal(block.to_array(), observations.to_array()[4:9])
