"""Labels go in and come out again, whatever the order, and hidden values never matter.

Rows and columns of one matrix are found in another, by label or by position.
"""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import nmd_lab
from nmd_lab.data.labels import labels_of
from nmd_lab.data.matching import match


def fit_of(X, **options):
    """Return a short fit, whose kernels are those of most tests."""
    return nmd_lab.decompose(X, 3, **({"nonlinearity": "identity", "max_iter": 5} | options))


TWENTY, FIFTEEN = range(20), range(15)
PAIRED = [list("abcd"), range(5)]
FRAMES = {
    "no names": (None, None, ("row", "column")),
    "names": (pd.Index(TWENTY, name="u"), pd.Index(FIFTEEN, name="i"), ("u", "i")),
    "twice": (pd.Index(TWENTY, name="g"), pd.Index(FIFTEEN, name="g"), ("g", "g_column")),
    "rows named column": (pd.Index(TWENTY, name="column"), None, ("column", "column_column")),
    "no text": (pd.Index(TWENTY, name=7), pd.Index(FIFTEEN, name=("a", 1)), ("7", "('a', 1)")),
    "levels": (pd.MultiIndex.from_product(PAIRED, names=["k", "v"]), None, ("row", "column")),
    "levels, no names": (pd.MultiIndex.from_product(PAIRED), None, ("row", "column")),
}


@pytest.mark.parametrize("case", FRAMES)
def test_frame_in_labels_out(case, small):
    index, columns, dims = FRAMES[case]
    X = pd.DataFrame(small, index=index, columns=columns)
    fit = fit_of(X)
    Y = fit.reconstruct()
    assert Y.dims == dims
    assert list(Y.indexes[dims[0]]) == list(X.index)
    assert list(Y.indexes[dims[1]]) == list(X.columns)
    np.testing.assert_array_equal(fit.W.values, fit_of(small).W.values)
    assert Y.to_pandas().shape == X.shape


@pytest.mark.parametrize(
    ("sample_dims", "W_dims", "H_dims"),
    [
        ("time", ("time",), ("lat", "lon")),
        (["lat", "lon"], ("lat", "lon"), ("time",)),
        (("lon", "time"), ("lon", "time"), ("lat",)),
    ],
)
def test_more_dimensions_are_stacked_and_unstacked(sample_dims, W_dims, H_dims, rng, read_back):
    coords = {
        "time": pd.date_range("2021-03-01", periods=7),
        "lat": ("lat", [60.0, 30.0, 0.0, -30.0], {"units": "degrees north"}),
        "lon": [10, 20, 30, 40, 50],
        "season": ("time", list("sssuuuu")),
        "height": (("lat", "lon"), rng.random((4, 5))),
        "scenario": "historical",
    }
    cube = xr.DataArray(rng.random((7, 4, 5)), coords, ("time", "lat", "lon"), name="rain")
    options = {"sample_dims": sample_dims, "observed": cube > 0.05}
    fit = fit_of(cube, **options)
    assert fit.W.dims == (*W_dims, "component")
    assert fit.H.dims == ("component", *H_dims)
    matrix = cube.transpose(*W_dims, *H_dims).values.reshape(fit._shape)
    flat = fit_of(matrix, observed=matrix > 0.05)
    np.testing.assert_array_equal(fit._factors[0], flat.W.values)
    np.testing.assert_array_equal(fit._factors[1], flat.H.values)
    Y = fit.reconstruct()
    assert (Y.dims, Y.name) == (cube.dims, cube.name)
    xr.testing.assert_identical(Y.coords.to_dataset(), cube.coords.to_dataset())
    product = fit.nonlinearity(xr.dot(fit.W, fit.H, dim="component").transpose(*cube.dims))
    np.testing.assert_allclose(Y.values, product)
    np.testing.assert_allclose(fit.predict([1, -1], [0, 2]), flat.predict([1, -1], [0, 2]))
    assert fit_of(cube, init=fit, **options).objective <= fit.objective
    again = read_back(fit)
    xr.testing.assert_identical(again.reconstruct(), Y)
    xr.testing.assert_identical(again.H, fit.H)


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
