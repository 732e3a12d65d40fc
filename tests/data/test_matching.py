"""Rows and columns of one matrix are found in another, by label or by position."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from nmd_lab.data.labels import labels_of
from nmd_lab.data.matching import match


def labels(*columns, name=None, index=None):
    index = pd.Index(columns, name=name) if index is None else index
    return labels_of(pd.DataFrame(np.zeros((2, len(index))), columns=index))


FIT = labels("p", "q", "r")
LEVELS = pd.MultiIndex.from_product([["a", "b"], [1, 2]])
DEFAULT, NAMED = labels(0, 1, 2), labels(0, 1, 2, name="item")
TWICE = labels("p", "p", "q")
CUBE = xr.DataArray(
    np.zeros((5, 2, 3)), dims=("time", "lat", "lon"), coords={"lat": [10, 20], "lon": list("abc")}
)
PART = CUBE.isel(lat=[1], lon=[2, 0]).transpose("lon", "time", "lat")


def of_cube(X):
    return labels_of(X, "time")


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
        (TWICE, TWICE, [0, 1, 2]),
        # several dimensions
        (of_cube(PART), of_cube(CUBE), [5, 3]),
        (of_cube(PART.assign_coords(lon=["?", "a"])), of_cube(CUBE), [-1, 3]),
        (labels_of(np.zeros((5, 6))), of_cube(CUBE), list(range(6))),
        (of_cube(CUBE.drop_vars("lat").isel(lat=[0])), of_cube(CUBE), None),
    ],
)
def test_labels_decide_where_both_have_some(own, fit, expected):
    found = match(own, fit, "columns")
    assert found is None if expected is None else found.tolist() == expected
