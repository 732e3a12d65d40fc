"""A fit as a table: the data with their holes filled, in the layout that they have."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.result.files import export, filled_table

OPTIONS = {"alpha": 0, "max_iter": 3, "tol": 0}


@pytest.fixture
def X(rng):
    X = rng.random((6, 4)) + 0.5
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def stored(X):
    """Return the entries that are there as a sparse matrix."""
    seen = ~np.isnan(X)
    return sparse.coo_array((X[seen], np.nonzero(seen)), shape=X.shape).tocsr()


@pytest.mark.parametrize("kind", ["array", "frame", "sparse", "several dimensions"])
def test_known_cells_stay_and_holes_are_predictions(kind, X):
    fit = nmd.complete(X, 1, "identity", **OPTIONS)
    data = {"array": X, "frame": pd.DataFrame(X), "sparse": stored(X)}.get(kind)
    if data is None:
        data = xr.DataArray(X.reshape(6, 2, 2), dims=("time", "lat", "lon"))
        fit = nmd.complete(data, 1, "identity", sample_dims="time", **OPTIONS)
    filled, seen = filled_table(fit, data).to_numpy(), ~np.isnan(X)
    np.testing.assert_array_equal(filled[seen], X[seen])
    expected = fit._fitted.block()
    np.testing.assert_array_equal(filled[~seen], expected[~seen])
    np.testing.assert_array_equal(filled_table(fit, None), expected)


def test_absent_entries_that_are_zeros_stay_zeros(X):
    X = stored(X)
    fit = nmd.decompose(X, 1, "identity", max_iter=3, tol=0)
    np.testing.assert_array_equal(filled_table(fit, X), X.toarray())


@pytest.mark.parametrize("index", [None, pd.Index(list("uvwxyz"), name="id")])
@pytest.mark.parametrize("columns", [None, list("abcd")])
def test_a_file_has_the_labels_that_the_data_have(index, columns, X, tmp_path):
    frame = pd.DataFrame(np.nan_to_num(X), index, columns)
    export(nmd.decompose(frame, 1, "identity", max_iter=3), tmp_path / "o.csv", frame)
    frame.to_csv(tmp_path / "x.csv", index=index is not None, header=columns is not None)
    assert (tmp_path / "o.csv").read_text() == (tmp_path / "x.csv").read_text()
