"""Whatever kind of data `complete` takes also goes into what compares a fit with data."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse

import nmd_lab
from nmd_lab import metrics

USERS = [f"user {i}" for i in range(12)]
ITEMS = [f"item {j}" for j in range(9)]
FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]


def make_data(seed: int = 0):
    """Return a matrix and a mask of some test entries."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2)) @ rng.normal(size=(2, 9)) + 4
    return X, rng.random(X.shape) < 0.3


def make_fit(labelled: bool = True, **options):
    X, test = make_data()
    train = np.where(test, np.nan, X)
    data = pd.DataFrame(train, USERS, ITEMS) if labelled else train
    options = {"alpha": 0, "max_iter": 5, "tol": 0, "random_state": 0} | options
    return nmd_lab.complete(data, 2, **options)


def kinds(X, test):
    """Return the test entries in every kind of container."""
    holes = np.where(test, X, np.nan)
    stored = sparse.coo_array((X[test], np.nonzero(test)), shape=X.shape)
    frame = pd.DataFrame(holes, USERS, ITEMS)
    turn = np.random.default_rng(3).permutation
    table = frame.stack().rename("value").rename_axis(["row", "column"]).reset_index()
    return {
        "array": holes,
        "list": holes.tolist(),
        "fortran": np.asfortranarray(holes),
        "masked": np.ma.masked_array(X, ~test),
        "frame": frame,
        "frame in another order": frame.iloc[turn(12), turn(9)],
        "frame without labels": pd.DataFrame(holes),
        "array with labels": xr.DataArray(holes, {"row": USERS, "column": ITEMS}),
        "transposed": xr.DataArray(holes, {"row": USERS, "column": ITEMS}).transpose(),
        "observations": nmd_lab.observations_from_sparse(stored, USERS, ITEMS),
        "long table": nmd_lab.observations_from_table(table, "row", "column", "value"),
        **{format: stored.asformat(format) for format in FORMATS if X[test].all()},
        "matrix": sparse.csc_matrix(stored),
    }


def matrix_of(data):
    """Return the entries of a container in the order of the fit, and NaN for what it lacks."""
    if isinstance(data, nmd_lab.SparseObservations):
        data = pd.DataFrame(data.to_array(), data.row_labels, data.column_labels)
    if sparse.issparse(data):
        found = np.full(data.shape, np.nan)
        found[data.tocoo().coords] = data.tocoo().data
        return found
    if isinstance(data, pd.DataFrame) and isinstance(data.index[0], str):
        data = data.reindex(index=USERS, columns=ITEMS)
    return np.asarray(data.transpose("row", ...) if isinstance(data, xr.DataArray) else data)


X, TEST = make_data()
KINDS = kinds(X, TEST)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_compared_with_the_fit(kind):
    fit, data = make_fit(offsets="both"), KINDS[kind]
    model = fit.reconstruct().values
    error = X[TEST] - model[TEST]
    assert fit.score(data) == pytest.approx(1 - np.sum(error**2) / np.sum(X[TEST] ** 2))
    scores = nmd_lab.compare({"a": fit}, data)
    assert float(scores.rmse[0]) == pytest.approx(np.sqrt(np.mean(error**2)))
    assert float(scores.mae[0]) == pytest.approx(np.mean(np.abs(error)))
    for model_of_data in (fit.predict(data), fit.reconstruct()):
        assert metrics.rmse(data, model_of_data) == pytest.approx(np.sqrt(np.mean(error**2)))
        assert metrics.mae(data, model_of_data) == pytest.approx(np.mean(np.abs(error)))


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_at_test_entries_look_like_them(kind):
    fit, data = make_fit(), KINDS[kind]
    predicted = fit.predict(data)
    is_plain = kind in ("array", "list", "fortran", "masked")
    like = data.tocsr() if sparse.issparse(data) else data
    assert type(predicted) is (np.ndarray if is_plain else type(like))
    for name in ("index", "columns", "dims"):
        assert np.array_equal(getattr(predicted, name, 0), getattr(data, name, 0)) or is_plain
    expected = np.where(TEST, fit.reconstruct().values, np.nan)
    np.testing.assert_allclose(matrix_of(predicted), expected)


def test_some_labelled_rows_and_columns_are_enough():
    fit = make_fit()
    part = pd.DataFrame([[1.0, np.nan], [2.0, 3.0]], ["user 7", "user 2"], ["item 5", "item 0"])
    whole = fit.reconstruct()
    predicted = fit.predict(part)
    assert predicted.loc["user 2", "item 5"] == pytest.approx(float(whole[2, 5]))
    assert np.isnan(predicted.loc["user 7", "item 0"])


def test_nothing_is_modified_and_precision_stays():
    fit = make_fit(dtype="float32")
    for data in KINDS.values():
        fit.score(data)
        assert getattr(fit.predict(data), "dtype", np.float32) == np.float32
    for kind, data in kinds(X, TEST).items():
        again = KINDS[kind]
        if isinstance(data, nmd_lab.SparseObservations):
            np.testing.assert_array_equal(data.to_array(), again.to_array())
        elif sparse.issparse(data):
            assert abs(data - again).sum() == 0
        else:
            np.testing.assert_array_equal(np.asarray(data), np.asarray(again))


def test_masks_and_weights():
    fit = make_fit()
    rng = np.random.default_rng(1)
    weights = rng.uniform(0, 2, X.shape)
    error, w = (X - fit.reconstruct().values)[TEST], weights[TEST]
    expected = 1 - np.sum(w * error**2) / np.sum(w * X[TEST] ** 2)
    rmse = np.sqrt(np.sum(w * error**2) / w.sum())
    frame = pd.DataFrame(X, USERS, ITEMS)
    for data, options in (
        (X, {"observed": TEST}),
        (frame, {"observed": TEST}),
        (KINDS["csr"], {}),
        (KINDS["observations"], {}),
    ):
        assert fit.score(data, weights=weights, **options) == pytest.approx(expected)
        found = nmd_lab.compare(fit, X=data, weights=weights, **options)
        assert float(found.rmse[0]) == pytest.approx(rmse)
        found = metrics.rmse(data, fit.reconstruct(), weights=weights, **options)
        assert found == pytest.approx(rmse)


def test_scores_of_perfect_and_zero_predictions():
    X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0])
    fit = nmd_lab.complete(X, 1, alpha=0, random_state=0)
    assert fit.score(X) == pytest.approx(1)
    assert fit.score(np.zeros((3, 2))) < 1
    fit.W.values[:] = 0
    assert fit.score(X) == 0
    assert fit.score(np.zeros((3, 2))) == 1


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.UnobservedWarning")
@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.OverfitWarning")  # of two iterations
def test_a_huge_sparse_matrix_stays_sparse():
    """Neither 10^10 predictions nor 10^10 zeros are made."""
    rng = np.random.default_rng(0)
    m = n = 100_000
    rows, columns = rng.integers(0, m, 5000), rng.integers(0, n, 5000)
    X = sparse.csr_array((rng.random(5000) + 1, (rows, columns)), shape=(m, n))
    fit = nmd_lab.complete(X, 1, init="random", alpha=1, max_iter=2, tol=0, random_state=0)
    assert fit.predict(X).nnz == X.nnz
    assert np.isfinite(fit.score(X))
    assert metrics.rmse(X, fit.predict(X)) == pytest.approx(float(nmd_lab.compare(fit, X).rmse[0]))


def test_maps_over_time(rng):
    cube = xr.DataArray(
        rng.random((4, 6, 5)),
        dims=("lat", "time", "lon"),
        coords={"lat": [1, 2, 3, 4], "time": np.arange(6) * 10, "lon": list("abcde")},
    )
    fit = nmd_lab.decompose(cube, 2, sample_dims="time", max_iter=5, tol=0)
    part = cube.isel(time=[4, 1], lon=[3, 0]).transpose("lon", "lat", "time")
    predicted = fit.predict(part)
    assert predicted.dims == part.dims
    expected = fit.reconstruct().isel(time=[4, 1], lon=[3, 0]).transpose("lon", "lat", "time")
    np.testing.assert_allclose(predicted, expected)
    assert metrics.rmse(part, predicted) == pytest.approx(metrics.rmse(part, expected))
    assert metrics.rmse(part, fit.reconstruct()) == pytest.approx(metrics.rmse(part, expected))
