"""What can be fitted on a cluster: arrays and tables of Dask, stores, and all else."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cluster_runs import PLAIN, assert_close, made
from helpers import check_all_refused, some
from scipy import sparse

import nmd_lab as nmd

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")

START = {"init": "random"}
OPEN = PLAIN | START | {"alpha": 0.1, "offsets": "none"}


@pytest.mark.parametrize("chunks", [(12, 24), (50, 7)])
def test_dask_arrays(chunks, on_workers):
    X, _ = made("dense", (60, 24))
    expected, fit = (
        nmd.decompose(data, 3, "relu", **PLAIN, **START, **where)
        for data, where in ((X, {}), (da.from_array(X, chunks=chunks), on_workers))
    )
    assert_close(expected, fit)


@pytest.mark.exhaustive
def test_dask_arrays_with_holes_masks_and_weights(on_workers):
    X, options = made("weights")
    seen = made("masked")[1]["observed"]
    lazy = {"weights": da.from_array(options["weights"], chunks=50)}
    for data, own, given in (
        (np.where(seen, X, np.nan), options, lazy),
        (X, {"observed": seen}, {"observed": seen}),
    ):
        chunks = da.from_array(data, chunks=(31, 40))
        fit = nmd.complete(chunks, 3, "relu", **given, **OPEN, **on_workers)
        assert_close(nmd.complete(data, 3, "relu", **own, **OPEN), fit)


@pytest.mark.exhaustive
def test_the_active_client_is_taken_for_collections(cluster):
    X, _ = made("dense")
    lazy = da.from_array(X, chunks=(40, 40))
    with pytest.raises(ValueError, match="X is a collection of Dask, and no client is active"):
        nmd.decompose(lazy, 2)
    with pytest.raises(ValueError, match="client='active', and no client is active"):
        nmd.decompose(X, 2, compute=nmd.Compute(client="active"))
    with distributed.Client(cluster):
        fit = nmd.decompose(lazy, 3, "relu", **PLAIN, **START)
        again = nmd.NMD(
            3, nonlinearity="relu", compute=nmd.Compute(client="active"), **PLAIN, **START
        ).fit(X)
    assert_close(nmd.decompose(X, 3, "relu", **PLAIN, **START), fit)
    assert_close(fit, again.decomposition_)


@pytest.mark.exhaustive
def test_labels_of_a_dataarray_over_a_dask_array(on_workers):
    X, _ = made("dense", (60, 24))
    array = xr.DataArray(
        X.reshape(60, 4, 6),
        dims=("time", "y", "x"),
        coords={"time": pd.date_range("2020", periods=60), "y": list("abcd")},
        name="rain",
        attrs={"units": "mm"},
    )
    options = PLAIN | START | {"sample_dims": "time"}
    expected = nmd.decompose(array, 2, "relu", **options)
    fit = nmd.decompose(array.chunk({"time": 13, "x": 2}), 2, "relu", **options, **on_workers)
    xr.testing.assert_allclose(fit.reconstruct(), expected.reconstruct())
    assert fit.reconstruct().attrs == {"units": "mm"}


def test_tables_of_dask(on_workers):
    dd = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(0)
    S = sparse.random_array((300, 50), density=0.2, rng=rng, format="coo")
    table = pd.DataFrame(
        {"user": [f"u{i:03}" for i in S.row], "item": S.col * 10, "stars": S.data}
    ).sample(frac=1, random_state=0)
    expected = nmd.complete(
        nmd.observations_from_table(table, row="user", column="item", value="stars"),
        2, "relu", **OPEN,
    )  # fmt: skip
    lazy = dd.from_pandas(table, npartitions=5)
    fit = nmd.complete(lazy, 2, "relu", **OPEN, **on_workers)
    assert_close(expected, fit)
    np.testing.assert_allclose(
        fit.predict("u007", [10, 20]), expected.predict("u007", [10, 20]), rtol=1e-8
    )
    twice = dd.from_pandas(pd.concat([table, table.iloc[:1]]), npartitions=3)
    with pytest.raises(ValueError, match="X has an entry twice in the table"):
        nmd.complete(twice, 2, **OPEN, **on_workers)
    without = dd.from_pandas(table.assign(item=table["item"].replace(0, np.nan)), npartitions=3)
    with pytest.raises(ValueError, match="X has a line without a label in 'item': leave it out"):
        nmd.complete(without, 2, **OPEN, **on_workers)
    with pytest.raises(ValueError, match="X has the columns"):
        nmd.complete(lazy[["user", "stars"]], 2, **OPEN, **on_workers)


@pytest.mark.parametrize("container", some(["float32", "frame", "masked array", "list"], 2))
def test_all_else_is_sent_to_the_workers(container, client):
    X, _ = made("dense")
    given = {
        "frame": pd.DataFrame(X, index=[f"r{i}" for i in range(len(X))]),
        "masked array": np.ma.masked_array(X, made("masked")[1]["observed"]),
        "list": X.tolist(),
        "float32": X.astype(np.float32),
    }[container]
    one, other = (
        nmd.complete(given, 3, "relu", compute=nmd.Compute(client=each), **OPEN)
        for each in (None, client)
    )
    assert_close(one, other, 1e-4 if container == "float32" else 1e-8)
    assert other.W.dtype == other.H.dtype == one.W.dtype
    assert one.W.indexes.keys() == other.W.indexes.keys()


ON_WORKERS = "does not go with data that are on the workers of a cluster"
REFUSED = some(
    [
        ({"rank": "auto"}, f"rank='auto' {ON_WORKERS}"),
        ({"alpha": "auto"}, f"alpha='auto' {ON_WORKERS}"),
        ({"at_most": np.ones((120, 40), bool)}, f"at_most= {ON_WORKERS}"),
        ({"client": 3}, "client=3 is no client of Dask"),
        ({"client": "actve"}, "did you mean 'active'"),
        ({"loss": "ordinal"}, f"learns a parameter, {ON_WORKERS}"),
        ({"loss": "negative_binomial"}, f"learns a parameter, {ON_WORKERS}"),
        ({"nonlinearity": "monotone"}, f"which is learned, {ON_WORKERS}"),
        ({"loss": {"a": "l1"}}, f"for each column {ON_WORKERS}"),
        ({"device": "cpu"}, f"device='cpu' {ON_WORKERS}"),
        ({"memory_limit": 1}, f"memory_limit=1 {ON_WORKERS}"),
        ({"rank": 0}, "rank=0"),
        ({"w_constraint": "orthonormal"}, "w_constraint=Orthonormal.* does not go with rows on a"),
    ],
    6,
)
"""Arguments, and the messages about them."""


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_does_not_go_is_refused(arguments, message, client):
    X, _ = made("dense")
    given = {"rank": 2, "alpha": 0.1, "nonlinearity": "relu", "client": client} | arguments
    of_compute = {each.name for each in fields(nmd.Compute)} & given.keys()
    compute = nmd.Compute(**{name: given.pop(name) for name in of_compute})
    with pytest.raises((ValueError, TypeError), match=message):
        nmd.complete(X, compute=compute, **given)


@pytest.mark.exhaustive
def test_wrong_arrays_are_refused(on_workers):
    X, _ = made("dense")
    lazy = da.from_array(X, chunks=(50, 40))
    fit = lambda given: nmd.decompose(rank=2, nonlinearity="relu", **given, **on_workers)  # noqa: E731
    check_all_refused([
        ("unknown chunk sizes", fit, {"X": lazy[lazy[:, 0] > 0]}),
        ("X has 1 dimensions", fit, {"X": lazy[0]}),
        (r"observed has shape \(3, 3\): give it the shape of X, \(120, 40\)", fit,
         {"X": lazy, "observed": np.ones((3, 3), bool)}),
        ("convert it to real numbers", fit, {"X": lazy * 1j}),
        ("X has no observed entry", fit, {"X": da.full((120, 40), np.nan, chunks=50)}),
        ("X holds an infinity", fit, {"X": da.full((120, 40), np.inf, chunks=50)}),
        ("kl", fit, {"X": lazy - 1, "loss": "kl"}),
    ])  # fmt: skip
