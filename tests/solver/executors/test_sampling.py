"""Posteriors that are drawn on a cluster: the bits of a single machine, whatever happens."""

from __future__ import annotations

import logging
import os
import signal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from some import some

import nmd_lab as nmd
from nmd_lab.solver.executors import tasks

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")

SHAPE = 1100, 280
"""More rows and columns than one dense block has."""

RNG = np.random.default_rng(0)
TRUTH = RNG.normal(size=(SHAPE[0], 3)) @ RNG.normal(size=(3, SHAPE[1]))
SEEN = RNG.random(SHAPE) < 0.2
SEEN[3], SEEN[:, 7] = False, False
FEW = {"draws": 4, "tune": 2, "random_state": 0, "progress": False}
LEVELS = np.where(SEEN, np.clip(np.round(TRUTH) + 3, 1, 5), np.nan)
RATINGS = sparse.csr_array(np.where(SEEN, TRUTH + 20, 0))

CASES = {
    "dense": (TRUTH, ("identity", "frobenius"), {}),
    "dense with T": (np.maximum(TRUTH, 0), ("relu", "frobenius"), {}),
    "masked with T": (np.clip(TRUTH, -1, 1), (nmd.MinMax(-1, 1), "frobenius"), {"observed": SEEN}),
    "ratings": (RATINGS, ("identity", "frobenius"), {"chains": 2}),
    "float32": (RATINGS.astype(np.float32), ("identity", "frobenius"), {}),
    "no offsets": (RATINGS, ("identity", "frobenius"), {"offsets": "none"}),
    "row offsets": (RATINGS, ("identity", "l1"), {"offsets": "rows", "init": "random"}),
    "counts": (np.exp(TRUTH.clip(-2, 2)).round(), ("relu", "kl"), {"observed": SEEN}),
    "weights": (TRUTH, ("identity", "frobenius"), {"weights": SEEN * RNG.random(SHAPE)}),
    "levels": (LEVELS, ("identity", "ordinal"), {}),
    "even": (TRUTH**2, ("square", "kl"), {"observed": SEEN, "init": "svd"}),
    "T with a memory": (1 / (1 + np.exp(-TRUTH)), ("sigmoid", "frobenius"), {"observed": SEEN}),
}


def assert_same(one, other):
    """Compare all draws, and what was recorded beside them, bit for bit."""
    assert set(one.draws) == set(other.draws)
    for name, expected in one.draws.items():
        np.testing.assert_array_equal(other.draws[name].values, expected.values, err_msg=name)
    for name, expected in one.trace.items():
        np.testing.assert_array_equal(other.trace[name].values, expected.values, err_msg=name)


@pytest.mark.parametrize("case", some(list(CASES), 1))
def test_draws_are_those_of_one_machine_bit_for_bit(case, client):
    X, model, options = CASES[case]
    options = FEW | options
    expected = nmd.sample(X, 4, *model, **options)
    assert_same(expected, nmd.sample(X, 4, *model, compute=nmd.Compute(client=client), **options))


@pytest.mark.exhaustive
def test_targets_are_the_same(client):
    options = FEW | {"targets": ([0, 5], [2, 3])}
    expected, found = (
        nmd.sample(RATINGS, 4, compute=nmd.Compute(client=each), **options)
        for each in (None, client)
    )
    i, j = [0, 5], [2, 3]
    np.testing.assert_array_equal(found.predict(i, j), expected.predict(i, j))


@pytest.mark.exhaustive
def test_dask_arrays_and_tables(client):
    """Blocks of any size, and entries in any order."""
    X = np.where(SEEN, TRUTH, np.nan)
    expected = nmd.sample(X, 4, **FEW)
    assert_same(
        expected,
        nmd.sample(
            da.from_array(X, chunks=(301, 77)), 4, compute=nmd.Compute(client=client), **FEW
        ),
    )
    dense = da.from_array(TRUTH, chunks=(301, 77))
    assert_same(
        nmd.sample(TRUTH, 4, **FEW), nmd.sample(dense, 4, compute=nmd.Compute(client=client), **FEW)
    )
    given = nmd.complete(X, 4, max_iter=20, random_state=0)
    options = FEW | {"init": given}
    expected = nmd.sample(X, 4, **options)
    assert_same(expected, nmd.sample(X, 4, compute=nmd.Compute(client=client), **options))


def test_entries_on_workers_need_no_memory_here(cluster, monkeypatch):
    """Also where the active client is taken, and none is given."""
    options = FEW | {"keep": 1, "draws": 2}
    needed = 8 * (sum(SHAPE) * 5)
    monkeypatch.setattr("nmd_lab._memory.free_memory", lambda: 2 * needed)
    with pytest.raises(MemoryError, match="are free: keep fewer"):
        nmd.sample(TRUTH, 4, **options)
    with distributed.Client(cluster):
        nmd.sample(da.from_array(TRUTH, chunks=(256, 280)), 4, **options)


def test_a_table_of_dask(client):
    dd = pytest.importorskip("dask.dataframe")
    pytest.importorskip("pyarrow")
    rows, columns = np.nonzero(SEEN)
    order = RNG.permutation(rows.size)
    table = pd.DataFrame({"row": rows, "column": columns, "value": TRUTH[SEEN]}).iloc[order]
    X = nmd.observations_from_table(table, row="row", column="column", value="value")
    expected = nmd.sample(X, 4, **FEW)
    lazy = dd.from_pandas(table, npartitions=5, sort=False)
    assert_same(expected, nmd.sample(lazy, 4, compute=nmd.Compute(client=client), **FEW))


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", ["ratings", "T with a memory", "levels"])
def test_killed_workers_change_no_bit(case, own_client, caplog, monkeypatch):
    monkeypatch.setattr(tasks, "LOOK", 0.2)
    X, model, options = CASES[case]
    options = FEW | options | {"draws": 10}
    expected = nmd.sample(X, 4, *model, **options)

    def kill(told):
        if told.sweep in (3, 8) and told.chain == 0:
            workers = sorted(own_client.run(os.getpid).items())
            os.kill(workers[told.sweep % len(workers)][1], signal.SIGKILL)

    with caplog.at_level(logging.WARNING, "nmd_lab"):
        found = nmd.sample(
            X, 4, *model, callback=kill, compute=nmd.Compute(client=own_client), **options
        )
    assert_same(expected, found)
    assert any("lost: rows" in record.getMessage() for record in caplog.records)


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", ["ratings", "masked with T", "levels"])
def test_a_chain_goes_on_from_its_checkpoint(case, client, tmp_path):
    X, model, options = CASES[case]
    options = FEW | options
    path = tmp_path / "run.nc"
    expected = nmd.sample(X, 4, *model, **options)

    def stop(told):
        if told.sweep == 4:
            raise SystemExit

    kept = nmd.Compute(checkpoint=path, checkpoint_every=0, client=client)
    with pytest.raises(SystemExit):
        nmd.sample(X, 4, *model, callback=stop, compute=kept, **options)
    own = {name: each for name, each in options.items() if name in ("observed", "weights")}
    assert_same(expected, nmd.resume(path, X, compute=nmd.Compute(client=client), **own))


@pytest.mark.exhaustive
def test_a_worker_that_comes_is_used(client, cluster, monkeypatch):
    from nmd_lab.solver.executors import placement

    monkeypatch.setattr(placement, "LEAST", 0.0)
    monkeypatch.setattr(tasks, "LOOK", 0.2)
    expected = nmd.sample(RATINGS, 4, **FEW | {"draws": 30})

    def more(told):
        if told.sweep == 3:
            cluster.scale(5)
            client.wait_for_workers(5, timeout=60)

    try:
        found = nmd.sample(
            RATINGS, 4, callback=more, compute=nmd.Compute(client=client), **FEW | {"draws": 30}
        )
    finally:
        cluster.scale(4)
    assert_same(expected, found)


def test_what_is_refused(client):
    with pytest.raises(ValueError, match="on a cluster needs a start: give init='svd', or a fit"):
        nmd.sample(TRUTH**2, 4, "square", compute=nmd.Compute(client=client), **FEW)
    with pytest.raises(ValueError, match="at_most= does not go with data that are on the workers"):
        nmd.sample(TRUTH, 4, at_most=TRUTH > 1, compute=nmd.Compute(client=client), **FEW)
    with pytest.raises(TypeError, match="client=3 is no client of Dask"):
        nmd.sample(TRUTH, 4, compute=nmd.Compute(client=3), **FEW)
