"""Labels go in and come out again, whatever the order, and hidden values never matter."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import nmd_lab


def fit_of(X, **options):
    """Return a short fit, whose kernels are those of most tests."""
    return nmd_lab.decompose(X, 3, **({"nonlinearity": "identity", "max_iter": 5} | options))


@pytest.fixture
def cube(rng):
    return xr.DataArray(
        rng.random((7, 4, 5)),
        dims=("time", "lat", "lon"),
        coords={
            "time": pd.date_range("2021-03-01", periods=7),
            "lat": ("lat", [60.0, 30.0, 0.0, -30.0], {"units": "degrees north"}),
            "lon": [10, 20, 30, 40, 50],
            "season": ("time", list("sssuuuu")),
            "height": (("lat", "lon"), rng.random((4, 5))),
            "scenario": "historical",
        },
        name="rain",
    )


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
def test_more_dimensions_are_stacked_and_unstacked(sample_dims, W_dims, H_dims, cube, read_back):
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
