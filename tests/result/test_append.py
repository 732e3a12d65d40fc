"""New rows become rows of a fit."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import nmd_lab

USERS = [f"user {i}" for i in range(12)]
ITEMS = [f"item {j}" for j in range(9)]


RNG = np.random.default_rng(0)
X = RNG.normal(size=(15, 2)) @ RNG.normal(size=(2, 9)) + RNG.normal(size=(15, 1)) + 4


def make_fit(data=None, **options):
    data = pd.DataFrame(X[:12], USERS, ITEMS) if data is None else data
    options = {"alpha": 0, "max_iter": 20, "tol": 0, "random_state": 0} | options
    return nmd_lab.complete(data, 2, **options)


@pytest.mark.parametrize("offsets", ["none", "both"])
def test_new_rows_are_predicted_and_ranked(offsets):
    fit = make_fit(offsets=offsets, alpha=0.1)
    before = fit.W.copy(deep=True)
    new = pd.DataFrame(X[12:], ["ann", "bo", "cy"], ITEMS)
    W = fit.fold_in(new)
    more = fit.append(new)
    xr.testing.assert_identical(fit.W, before)
    assert more._shape == (15, 9)
    np.testing.assert_array_equal(more.W.values[:12], fit.W.values)
    np.testing.assert_array_equal(more.W.values[12:], W.values)
    assert list(more.W["row"].values) == [*USERS, "ann", "bo", "cy"]
    expected = (
        W.values @ fit.H.values + fit._fitted.offsets_at([0], slice(None))[1] + fit.offsets.mean
    )
    if offsets == "both":
        expected += W.offset.values[:, None]
    np.testing.assert_allclose(more.reconstruct().sel(row=["ann", "bo", "cy"]), expected)
    np.testing.assert_allclose(more.predict("bo", "item 4"), expected[1, 4])
    assert float(more.top("cy", 1)[0]) == pytest.approx(expected[2].max())
    assert more.objective == fit.objective
    assert more.relative_error == fit.relative_error
    assert "108 of 108 entries, 3 appended rows" in repr(more)
    again = fit.append(W)
    xr.testing.assert_identical(again.W, more.W)
    one_by_one = fit
    for name, row in new.iterrows():
        one_by_one = one_by_one.append(row.rename(name))
    np.testing.assert_allclose(one_by_one.W, more.W, rtol=1e-6)
    assert one_by_one.parameters["appended_rows"] == 3


def test_other_coordinates_and_levels_of_the_rows(read_back):
    days = np.arange("2024-01-01", "2024-01-16", dtype="datetime64[D]").astype("datetime64[ns]")
    data = xr.DataArray(
        X,
        dims=("day", "item"),
        coords={
            "day": days,
            "item": ITEMS,
            "digit": ("day", np.arange(15), {"units": "1"}),
            "place": ("day", [f"p{i}" for i in range(15)]),
        },
    )
    fit = make_fit(data[:12])
    more = fit.append(data[12:])
    for name in ("day", "digit", "place"):
        np.testing.assert_array_equal(more.W[name], data[name])
    assert more.W.digit.attrs == {"units": "1"}
    bare = fit.append(data[12:].drop_vars(["digit", "place"]))
    assert np.isnan(bare.W.digit.values[12:]).all()
    assert list(bare.W.place.values[11:]) == ["p11", "", "", ""]
    xr.testing.assert_identical(read_back(bare).reconstruct(), bare.reconstruct())
    index = pd.MultiIndex.from_product([["a", "b", "c"], range(5)], names=["city", "year"])
    frame = pd.DataFrame(X, index, ITEMS)
    more = make_fit(frame[:12]).append(frame[12:])
    assert more.W.indexes["row"].equals(index)
    assert more.predict(("c", 4), "item 1") == more.predict(14, 1)
