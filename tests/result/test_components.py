"""`Decomposition.top_of_components`: the main terms of a component, by label."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse

import nmd_lab as nmd

X = np.maximum(np.random.default_rng(0).normal(size=(12, 7)), 0)
OPTIONS = {"max_iter": 5, "tol": 0, "random_state": 0}


def test_columns_come_by_the_size_of_the_numbers_of_their_component():
    names = [f"term {j}" for j in range(7)]
    fit = nmd.decompose(pd.DataFrame(X, columns=names), 3, **OPTIONS)
    top = fit.top_of_components(4)
    assert top.sizes == {"component": 3, "place": 4}
    assert (top < 0).any()
    for c in range(3):
        series = pd.Series(fit.H.values[c], names).sort_values(key=np.abs, ascending=False)[:4]
        assert list(top.column.values[c]) == list(series.index)
        np.testing.assert_array_equal(top.values[c], series)
        np.testing.assert_array_equal(fit.H.values[c][top.position[c]], series)


def test_all_columns_are_the_most_there_are():
    fit = nmd.decompose(sparse.csr_array(X), 2, **OPTIONS)
    top = fit.top_of_components(100)
    assert top.sizes["place"] == 7
    np.testing.assert_array_equal(np.sort(top.position.values, axis=1), [np.arange(7)] * 2)


def test_columns_of_several_dimensions_keep_their_labels():
    maps = xr.DataArray(
        X[:, :6].reshape(12, 2, 3),
        dims=("time", "lat", "lon"),
        coords={"lat": [10, 20], "lon": [1, 2, 3]},
    )
    fit = nmd.decompose(maps, 2, sample_dims="time", **OPTIONS)
    top = fit.top_of_components(1)
    for c in range(2):
        best = np.abs(fit.H.isel(component=c)).argmax(...)
        assert top.lat.values[c, 0] == maps.lat.values[int(best["lat"])]
        assert top.lon.values[c, 0] == maps.lon.values[int(best["lon"])]


@pytest.mark.parametrize("k", [0, -1, 1.5, "two", None])
def test_a_number_of_columns_is_a_whole_one(k):
    with pytest.raises((TypeError, ValueError), match="k="):
        nmd.decompose(X, 2, **OPTIONS).top_of_components(k)
