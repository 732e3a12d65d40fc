"""Weights of a dense matrix, read one range of entries at a time."""

from __future__ import annotations

import numpy as np
import pytest

from nmd_lab.data.entries import EntryWeights
from nmd_lab.data.inputs import observe_dense

RNG = np.random.default_rng(0)
SEEN = RNG.random((13, 11)) < 0.6
WEIGHTS = RNG.random((13, 11)).astype(np.float32)


@pytest.mark.parametrize("kind", ["observed", "weights", "both"])
def test_any_range_is_that_of_the_matrix(kind):
    seen, weights = None if kind == "weights" else SEEN, None if kind == "observed" else WEIGHTS
    expected = {"observed": SEEN, "weights": WEIGHTS, "both": np.where(SEEN, WEIGHTS, 0)}[kind]
    read = EntryWeights(seen, weights)
    assert (read.dtype, read.shape) == (expected.dtype, expected.shape)
    for start in range(20):
        for stop in (start, start + 1, start + 9, start + 64, 143, 200):
            np.testing.assert_array_equal(read[start:stop], expected.ravel()[start:stop])
            assert read[start:stop].dtype == expected.dtype
    np.testing.assert_array_equal(read.of_rows(slice(2, 5)), expected[2:5])
    np.testing.assert_array_equal(read.of_rows(slice(None)), expected)


def test_data_with_missing_entries_are_not_copied():
    X = RNG.random((30, 20))
    X[0, 0] = np.nan
    observations = observe_dense(X, weights=np.ones(X.shape))
    assert np.shares_memory(observations.stored, X)
    assert observations.values[0, 0] == 0
    assert np.isnan(X[0, 0])
    assert observations.n_observed == 599
