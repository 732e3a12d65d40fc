"""Limits of entries: masks in any container, and sentences for what does not fit."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from nmd_lab.data.inputs import GivenLimits, observe

X = np.arange(1.0, 13.0).reshape(3, 4)
MASK = np.zeros((3, 4), bool)
MASK[1, 2] = MASK[0, 0] = True


def codes(data, **limits):
    return observe(data, limits=GivenLimits(**limits)).as_sparse().limit_reader().codes


def test_labels_follow_those_of_X():
    frame = pd.DataFrame(X, index=list("abc"), columns=list("pqrs"))
    mask = pd.DataFrame(MASK, index=frame.index, columns=frame.columns)
    np.testing.assert_array_equal(
        codes(frame, at_most=mask.loc[["c", "a", "b"], list("srqp")]), MASK.ravel()
    )
    of_one = codes(frame, at_most=mask[["p"]])  # where a frame says nothing is no limit
    np.testing.assert_array_equal(of_one, MASK.ravel() & (np.arange(12) % 4 == 0))
    for name in ("observed", "weights"):
        with pytest.raises(ValueError, match=f"{name} lacks the label 'q' of X"):
            observe(frame, **{name: mask[["p"]]})
    with pytest.raises(ValueError, match="at_most lacks the label 'p' of X"):
        codes(frame, at_most=mask.rename(columns={"p": "P"}))
    array = xr.DataArray(X, dims=("site", "kind"))
    other = xr.DataArray(MASK, dims=("site", "kind")).transpose("kind", "site")
    np.testing.assert_array_equal(codes(array, at_most=other), MASK.ravel())


def test_upper_limits_of_dates_and_ordinal_columns_are_given_as_a_table():
    days = pd.to_datetime(["2020-01-01", "2020-01-05", "2020-01-03"])
    order = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    marks = pd.Series(["low", "high", "middle"], dtype=order)
    frame, both = pd.DataFrame({"day": days, "mark": marks}), np.arange(6).reshape(3, 2) < 2
    highest = frame.assign(day=days[1], mark="middle").astype({"mark": order})
    seen = observe(frame, limits=GivenLimits(both, both, highest))
    lower, upper = (ends.reshape(3, 2) for ends in seen.limits.ends(seen.stored.ravel()))
    np.testing.assert_array_equal(lower, seen.stored)
    assert upper[0].tolist() == [seen.stored[1, 0], seen.stored[2, 1]]
    np.testing.assert_array_equal(upper[1:], seen.stored[1:])
    assert codes(frame, at_most=both).tolist() == [1, 1, 0, 0, 0, 0]
    with pytest.raises(TypeError, match="upper has dtype object: give numbers, or a table as X"):
        observe(frame, limits=GivenLimits(both, both, frame.to_numpy()))
