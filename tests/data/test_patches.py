"""Patches of pictures, and the way back."""

import numpy as np
import xarray as xr
from helpers import check_all_refused
from hypothesis import given, settings
from hypothesis import strategies as st

import nmd_lab as nmd

DTYPES = ["float64", "float32", "uint8", "int16", "int64", "uint64", "bool"]


@st.composite
def pictures(draw):
    """A picture of any kind, with a size and a step of patches that go with it."""
    space = tuple(draw(st.lists(st.integers(1, 9), min_size=2, max_size=3)))
    space = (*space[:-1], max(space[-1], 5))  # a last axis of at most 4 entries has channels
    shape = space + draw(st.sampled_from([(), (1,), (3,)]))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    X = rng.integers(0, 2**63, shape, np.uint64, endpoint=True)
    X = (X / 2.0**40).astype(dtype) if dtype.kind == "f" else X.astype(dtype)
    if dtype.kind == "f":
        X[rng.random(shape) < draw(st.sampled_from([0.0, 0.3, 1.0]))] = np.nan
    size = tuple(draw(st.integers(1, length)) for length in space)
    return X, size, tuple(draw(st.integers(1, each)) for each in size)


@given(pictures())
@settings(max_examples=150, deadline=None)
def test_a_round_trip_is_exact(given_picture):
    X, size, step = given_picture
    there_and_back = nmd.from_patches(nmd.patches(X, size, step), like=X)
    assert there_and_back.dtype == X.dtype
    np.testing.assert_array_equal(there_and_back, X)


def test_patches_are_windows_of_the_picture_and_the_last_ends_at_the_border():
    X = np.arange(63.0).reshape(7, 9)
    windows = nmd.patches(X, size=4, step=3)
    for row in (0, 4, -1):
        patch = windows[row]
        y, x = int(patch["patch_y"]), int(patch["patch_x"])
        np.testing.assert_array_equal(patch.values.reshape(4, 4), X[y : y + 4, x : x + 4])
    assert (y, x) == (3, 5)


def test_a_pixel_is_the_weighted_average_of_its_entries():
    X = np.zeros((1, 3))
    windows = nmd.patches(X, size=(1, 2), step=1).copy(data=[[1.0, 2.0], [5.0, 7.0]])
    np.testing.assert_allclose(nmd.from_patches(windows, like=X), [[1.0, 3.5, 7.0]])
    weighted = nmd.from_patches(windows, like=X, weights=[[3.0], [1.0]])
    np.testing.assert_allclose(weighted, [[1.0, 2.75, 7.0]])


def test_averages_of_integers_are_rounded_within_their_range():
    X = np.zeros((1, 2), np.uint8)
    windows = nmd.patches(X, size=(1, 2), step=1)
    back = nmd.from_patches(windows.copy(data=[[300.0, 1.6]]), like=X)
    assert back.tolist() == [[255, 2]]


def test_labels_and_attributes_come_back():
    X = xr.DataArray(
        np.random.default_rng(0).random((3, 8, 9)),
        dims=("band", "lat", "lon"),
        coords={"lat": np.arange(8.0)},
        name="radiance",
        attrs={"units": "W"},
    )
    windows = nmd.patches(X, size=4, step=2)
    assert windows.shape == (3 * 4, 3 * 16)
    xr.testing.assert_identical(nmd.from_patches(windows, like=X), X)


def test_predictions_of_a_fit_come_back():
    X = np.add.outer(np.arange(12.0), np.arange(10.0))
    fit = nmd.decompose(nmd.patches(X, 4), 3, "identity", random_state=0)
    for back in (fit.picture(), fit.picture(like=X)):
        np.testing.assert_allclose(back, X, atol=1e-3)


X = np.zeros((6, 5))
WINDOWS = nmd.patches(X, 3, 1)


def test_refusals():
    check_all_refused([
        ("step=4 exceeds size=3", lambda: nmd.patches(X, 3, 4)),
        (r"size=6 exceeds the 5 pixels of x: give size=\(6, 5\)", lambda: nmd.patches(X, 6)),
        ("size=0 is too small", lambda: nmd.patches(X, 0)),
        ("size=2.5 is not an integer", lambda: nmd.patches(X, 2.5)),
        (r"size=\(3, 3, 3\) is not one number", lambda: nmd.patches(X, (3, 3, 3))),
        (r"the shape \(5,\): give", lambda: nmd.patches(X[0])),
        (r"the shape \(1, 1, 6, 5\): give", lambda: nmd.patches(X[None, None])),
        (r"the shape \(0, 5\): give", lambda: nmd.patches(X[:0])),
        ("ndarray without the coordinates", lambda: nmd.from_patches(WINDOWS.values, like=X)),
        ("without the coordinates", lambda: nmd.decompose(X, 1).picture()),
        ("without the coordinates", lambda: nmd.from_patches(WINDOWS, like=X[None])),
        ("beyond like", lambda: nmd.from_patches(WINDOWS, like=X[:5])),
        ("weights has negative numbers", lambda: nmd.from_patches(WINDOWS, X, [[-1.0]])),
        ("weights has the shape", lambda: nmd.from_patches(WINDOWS, X, [1.0, 2.0])),
    ])  # fmt: skip
