"""Small pictures of models: small, true, and without the matrix."""

from __future__ import annotations

import tracemalloc
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import scipy.sparse
import xarray as xr

import nmd_lab
from nmd_lab.result.summary_parts import HEIGHT, WIDTH, small_picture


def of(matrix, columns=None, **options):
    columns = xr.DataArray(np.zeros(matrix.shape[1]), dims="column") if columns is None else columns
    return small_picture(len(matrix), columns, lambda i, j: matrix[np.ix_(i, j)], **options)


def test_a_small_matrix_is_shown_as_it_is(rng):
    matrix = rng.random((7, 5))
    np.testing.assert_array_equal(of(matrix), matrix)


@pytest.mark.parametrize("shape", [(500, 700), (3, 10_000), (100_000, 1), (81, 121)])
def test_a_large_one_has_means_in_at_most_so_many_pixels(shape):
    height, width = of(np.broadcast_to(2.5, shape)).shape
    assert height <= HEIGHT
    assert width <= WIDTH
    assert np.all(of(np.broadcast_to(2.5, shape)) == 2.5)


def test_rows_that_are_pictures_stand_side_by_side():
    X = nmd_lab.datasets.digits(40)
    shown = of(X.values, X[0])
    assert shown.shape == (3 * 9 - 1, 8 * 9 - 1)
    np.testing.assert_array_equal(shown[:8, :8], X.values[0].reshape(8, 8))
    assert np.isnan(shown[8]).all()


@pytest.mark.parametrize(
    ("rows", "size", "shape"),
    [(2, 8, (8, 17)), (9, 40, (20, 61)), (1, 300, (75, 75)), (25, 4, (14, 39))],
)
def test_pictures_of_all_sizes_fit_in(rows, size, shape):
    columns = xr.DataArray(np.zeros((size, size)), dims=("y", "x"))
    X = np.ones((rows, size * size))
    shown = of(X, columns)
    assert shown.shape == shape
    assert np.nanmin(shown) == np.nanmax(shown) == 1


def test_colours_are_averaged():
    X = np.arange(24.0).reshape(2, 12)
    columns = xr.DataArray(np.zeros((4, 3)), dims=("x", "channel"))
    np.testing.assert_array_equal(of(X, columns), X.reshape(2, 4, 3).mean(axis=2))


def test_columns_of_a_mixed_table_have_grey_levels_of_their_own():
    shown = of(np.array([[0.0, 500.0], [1.0, 700.0]]), by_column=True)
    np.testing.assert_array_equal(shown, [[0, 0], [1, 1]])


def test_a_large_sparse_fit_is_shown_without_its_matrix():
    m, n = 30_000, 20_000
    X = scipy.sparse.random_array((m, n), density=1e-4, rng=np.random.default_rng(0), format="csr")
    fit = nmd_lab.complete(X, 3, "identity", alpha=1.0, offsets="both", max_iter=2, tol=0)
    fit._repr_html_()
    tracemalloc.start()
    html = fit._repr_html_()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < m * n / 20
    assert "<img" in html
    ET.fromstring(html)
