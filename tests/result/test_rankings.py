"""The best columns of rows, which are named by label or position, and those of components."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse

import nmd_lab

USERS = [f"user {i}" for i in range(1, 13)]
ITEMS = [f"item {j}" for j in range(9)]


@pytest.fixture
def X(rng):
    return rng.normal(size=(12, 2)) @ rng.normal(size=(2, 9)) + 4


@pytest.fixture
def fit(X):
    frame = pd.DataFrame(X, pd.Index(USERS, name="user"), pd.Index(ITEMS, name="item"))
    return nmd_lab.complete(frame, 2, alpha=0, max_iter=5, tol=0, random_state=0)


def test_several_rows_are_as_each_alone(fit):
    best = fit.top([0, -1, 5], k=4)
    assert best.dims == ("user", "place")
    assert list(best.user.values) == ["user 1", "user 12", "user 6"]
    assert list(best.place.values) == [1, 2, 3, 4]
    for line, row in enumerate([0, 11, 5]):
        one = fit.top(row, k=4)
        assert one.user.item() == USERS[row]
        np.testing.assert_array_equal(best[line], one)
        np.testing.assert_array_equal(best.position[line], one.position)
        np.testing.assert_array_equal(best["item"][line], one["item"])
    assert fit.top([2]).shape == (1, 9)
    assert fit.top(np.array([], dtype=int), k=3).shape == (0, 3)


@pytest.mark.parametrize(("rows", "named", "positions"), [
    (USERS, ["user 3", -1, 0, "user 1"], [2, 11, 0, 0]),
    (np.arange(12) * 10, [10, 30], [1, 3]),  # integers among integer labels are labels
    (np.arange(12), [-1, 3], [11, 3]),  # these labels are positions
    ([*range(1, 12), "x"], [1, "x"], [0, 11]),
    (np.arange(12) + 0.5, [0.5, 1], [0, 1]),
    (pd.date_range("2020-01-01", periods=12), [pd.Timestamp("2020-01-02"), 0], [1, 0]),
    (pd.MultiIndex.from_product([list("abc"), [1, 2, 3, 4]]), [("b", 2), 0], [5, 0]),
], ids=["text", "integers", "counted", "some integers", "numbers", "dates", "levels"])  # fmt: skip
def test_rows_are_named_by_label_or_position(X, rows, named, positions):
    fit = nmd_lab.complete(pd.DataFrame(X, rows, ITEMS), 2, alpha=0, max_iter=5, tol=0)
    expected = fit.reconstruct().values
    np.testing.assert_allclose(fit.predict(named, "item 1"), expected[positions, 1])
    for one, position in zip(named, positions, strict=True):
        np.testing.assert_allclose(fit.top(one, 9).values, -np.sort(-expected[position]))
    best = fit.top(named, 9)
    np.testing.assert_allclose(best.values, -np.sort(-expected[positions]))


def test_columns_are_left_out_by_label(fit):
    best = fit.top(3, k=4)
    names = [str(name) for name in best["item"].values[:2]]
    rest = fit.top(3, k=2, exclude=best.position.values[:2])
    np.testing.assert_array_equal(rest.position, best.position[2:])
    of_several = [fit.top([3], k=2, exclude=some) for some in (names, best.position.values[:2])]
    xr.testing.assert_identical(*of_several)
    rated = pd.Series([4.0, np.nan, 2.0, 1.0], index=[names[0], "item 1", names[1], "another"])
    kept = [name for name in names if name != "item 1"]
    assert len(kept) == 2
    for left_out in (names, rated, rated.notna()):
        xr.testing.assert_identical(fit.top(3, k=2, exclude=left_out), rest)


def test_what_is_known_is_left_out_in_every_container(fit, X, rng):
    seen = rng.random(X.shape) < 0.4
    seen[3] = True  # nothing is left of this row
    holes = pd.DataFrame(np.where(seen, X, np.nan), USERS, ITEMS)
    stored = sparse.coo_array((X[seen], np.nonzero(seen)), shape=X.shape)
    turned = holes.iloc[::-1, rng.permutation(9)]
    labelled = nmd_lab.observations_from_sparse(
        sparse.csr_array(np.nan_to_num(turned.to_numpy())), turned.index, turned.columns
    )
    flags = pd.DataFrame(seen, USERS, ITEMS)
    formats = (stored, stored.tocsc(), stored.todok(), stored.tolil())
    for exclude in (seen, holes, turned, *formats, labelled, flags, flags.T.T):
        best = fit.top(range(12), k=9, exclude=exclude)
        for row in range(12):
            left = set(best.position.values[row]) - {-1}
            assert left == set(np.flatnonzero(~seen[row]))
            padding = best.position.values[row] < 0
            assert np.all(np.isnan(best.values[row]) == padding)
            one = fit.top(row, k=9, exclude=exclude)
            np.testing.assert_array_equal(one, best.values[row][~padding])
    assert fit.top(3, exclude=seen).size == 0
    for nothing in (np.zeros(X.shape, bool), np.full(X.shape, np.nan), sparse.csr_array(X.shape)):
        assert fit.top(0, k=9, exclude=nothing).size == 9


def test_labels_that_the_fit_does_not_have_are_no_columns_to_leave_out(fit):
    seen = pd.DataFrame(
        {"user": ["user 2", "user 2", "new"], "item": ["item 4", "new", "item 5"], "rating": 1.0}
    )
    known = nmd_lab.observations_from_table(seen)
    best = fit.top([1, 2], k=9, exclude=known)
    assert set(best.position.values[0]) == {*range(9)} - {4} | {-1}
    assert set(best.position.values[1]) == set(range(9))


def test_rows_and_columns_of_several_dimensions(rng):
    cube = xr.DataArray(
        rng.random((4, 6, 5)), dims=("lat", "time", "lon"), coords={"lon": list("abcde")}
    )
    fit = nmd_lab.decompose(cube, 2, sample_dims="time", max_iter=5, tol=0)
    whole = fit.reconstruct()
    best = fit.top([3, 0], k=2)
    assert best.dims == ("time", "place")
    first = whole.isel(time=3)
    assert float(best[0, 0]) == pytest.approx(float(first.max()))
    place = first.isel(lat=int(best.lat[0, 0])).sel(lon=best.lon[0, 0].item())
    assert float(place) == pytest.approx(float(first.max()))
    fit = nmd_lab.decompose(cube, 2, sample_dims=["lat", "lon"], max_iter=5, tol=0)
    assert fit.top([0, 7], k=3).shape == (2, 3)
    assert fit.top(7, k=3).lon.item() == "c"


def test_labels_beside_a_duplicate_name_their_rows(X):
    frame = pd.DataFrame(X, [*"abcdefghijk", "a"], ITEMS)
    fit = nmd_lab.complete(frame, 2, alpha=0, max_iter=2, tol=0)
    assert fit.predict("b", "item 1") == fit.predict(1, 1)


def test_labels_keep_their_type_in_a_full_table(X):
    frame = pd.DataFrame(X, range(1, 13), range(101, 110))
    fit = nmd_lab.complete(frame, 2, alpha=0, max_iter=3, tol=0)
    table = fit.top([1, 2], k=2)
    assert table.column.dtype.kind == "i"
    assert set(table.column.values.ravel()) <= set(range(101, 110))


# Of components ----------------------------------------------------------------------------------

TERMS = np.maximum(np.random.default_rng(0).normal(size=(12, 7)), 0)
OPTIONS = {"max_iter": 5, "tol": 0, "random_state": 0}


def test_columns_come_by_the_size_of_the_numbers_of_their_component():
    names = [f"term {j}" for j in range(7)]
    fit = nmd_lab.decompose(pd.DataFrame(TERMS, columns=names), 3, **OPTIONS)
    top = fit.top_of_components(4)
    assert top.sizes == {"component": 3, "place": 4}
    assert (top < 0).any()
    for c in range(3):
        series = pd.Series(fit.H.values[c], names).sort_values(key=np.abs, ascending=False)[:4]
        assert list(top.column.values[c]) == list(series.index)
        np.testing.assert_array_equal(top.values[c], series)
        np.testing.assert_array_equal(fit.H.values[c][top.position[c]], series)


def test_all_columns_are_the_most_there_are():
    fit = nmd_lab.decompose(sparse.csr_array(TERMS), 2, **OPTIONS)
    top = fit.top_of_components(100)
    assert top.sizes["place"] == 7
    np.testing.assert_array_equal(np.sort(top.position.values, axis=1), [np.arange(7)] * 2)


def test_columns_of_several_dimensions_keep_their_labels():
    maps = xr.DataArray(
        TERMS[:, :6].reshape(12, 2, 3),
        dims=("time", "lat", "lon"),
        coords={"lat": [10, 20], "lon": [1, 2, 3]},
    )
    fit = nmd_lab.decompose(maps, 2, sample_dims="time", **OPTIONS)
    top = fit.top_of_components(1)
    for c in range(2):
        best = np.abs(fit.H.isel(component=c)).argmax(...)
        assert top.lat.values[c, 0] == maps.lat.values[int(best["lat"])]
        assert top.lon.values[c, 0] == maps.lon.values[int(best["lon"])]
