"""What comes out of fits on a cluster: W that stays on the workers, new rows, sizes of answers."""

import pickle

import numpy as np
import pytest
from cluster_runs import PLAIN, assert_close, made
from helpers import some

import nmd_lab as nmd
from nmd_lab.cluster import observations
from nmd_lab.cluster.partitions import Partitions

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")

OPEN = PLAIN | {"init": "random", "alpha": 0.1, "offsets": "both"}


@pytest.mark.exhaustive
def test_a_large_W_stays_on_the_workers(client, monkeypatch, tmp_path):
    X, options = made("masked")
    expected = nmd.complete(X, 3, "relu", **OPEN | options)
    monkeypatch.setattr(observations, "MAX_RESULT_BYTES", 0)
    fit = nmd.complete(X, 3, "relu", compute=nmd.Compute(client=client), **OPEN | options)
    assert isinstance(fit.W.data, da.Array)
    assert len(fit.W.data.chunks[0]) > 1
    with dask.config.set(scheduler=client.get):  # which it is for a default client
        assert_close(expected, fit)
        i, j = [5, 100, 7], [0, 3, 39]
        np.testing.assert_allclose(fit.predict(i, j), expected.predict(i, j), rtol=1e-8)
        np.testing.assert_allclose(
            fit.W.isel(row=slice(10, 20)).values, expected.W.values[10:20], rtol=1e-7, atol=1e-9
        )
        fit.save(tmp_path / "fit.nc")
    assert_close(expected, nmd.load(tmp_path / "fit.nc"))


@pytest.mark.parametrize("offsets", ["none", "both"])
def test_new_rows_of_a_dask_array(offsets):
    X, _ = made("dense")
    fit = nmd.complete(X[:100], 3, "relu", **OPEN | {"offsets": offsets})
    new = np.where(np.random.default_rng(0).random((20, 40)) < 0.8, X[100:], np.nan)
    new[3] = np.nan
    expected, lazy = (
        fit.fold_in(rows, unknown="offsets") for rows in (new, da.from_array(new, chunks=(7, 11)))
    )
    assert isinstance(lazy.data, da.Array)
    np.testing.assert_allclose(lazy.values, expected.values, rtol=1e-8, atol=1e-12)
    assert lazy.dims == expected.dims
    if offsets == "both":
        np.testing.assert_allclose(lazy.offset.values, expected.offset.values, rtol=1e-8)
    with pytest.raises(ValueError, match="give NaN where an entry is missing"):
        fit.fold_in(da.from_array(new), observed=np.isfinite(new))
    with pytest.raises(ValueError, match="give rows of the 40 columns"):
        fit.fold_in(da.from_array(new[:, 1:]))


@pytest.mark.parametrize("storage", some(["dense", "observed"], 1))
def test_what_travels_in_an_iteration_does_not_depend_on_the_rows(storage, on_workers, monkeypatch):
    results, sizes = Partitions.results, []

    def counted(self, futures):
        answers = results(self, futures)
        sizes[-1] += len(pickle.dumps(answers))
        return answers

    monkeypatch.setattr(Partitions, "results", counted)
    sent = []
    for rows_of_X in (2000, 4000):
        sizes[:] = [0]  # one for each iteration
        X, options = made(storage, (rows_of_X, 40))
        options |= {"callback": lambda _: sizes.append(0)}
        nmd.complete(X, 3, "relu", **OPEN | options, **on_workers)
        sent.append(sizes[2:5])
    np.testing.assert_allclose(sent[1], sent[0], rtol=0.02)
    assert sent[0][0] < 40 * 4 * 8 * 40
