"""Workers that die, come or are slow; checkpoints of fits on a cluster."""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
from cluster_runs import PLAIN, assert_close, made
from some import some

import nmd_lab as nmd
from nmd_lab.cluster import placement as placements
from nmd_lab.cluster import tasks
from nmd_lab.cluster.part import PARTS, Part, RowRange
from nmd_lab.cluster.placement import Placement

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")

LONG = PLAIN | {"max_iter": 24, "alpha": 0.1, "offsets": "both"}


def killer(client, *iterations):
    """Return a callback that kills a worker after some iterations."""

    def callback(state):
        if state.iteration in iterations:
            workers = sorted(client.run(os.getpid).items())
            os.kill(workers[state.iteration % len(workers)][1], signal.SIGKILL)

    return callback


@pytest.mark.exhaustive
@pytest.mark.parametrize(("storage", "embedded"), some([("dense", 1 << 16), ("observed", 0)], 1))
def test_killed_workers_cost_time_only(storage, embedded, own_client, caplog, monkeypatch):
    """Whether H is sent with each task, or before."""
    monkeypatch.setattr(tasks, "EMBEDDED", embedded)
    X, options = made(storage, (3000, 40))
    settings = LONG | options
    expected = nmd.complete(X, 3, "relu", **settings)
    moments = np.random.default_rng(len(storage)).choice(np.arange(1, 24), 3, replace=False)
    kill = killer(own_client, *moments.tolist())
    with caplog.at_level(logging.WARNING, "nmd_lab"):
        fit = nmd.complete(
            X, 3, "relu", callback=kill, compute=nmd.Compute(client=own_client), **settings
        )
    assert_close(expected, fit, 1e-6)
    lost = [record.getMessage() for record in caplog.records if "lost: rows" in record.message]
    assert 1 <= len(lost) <= 3
    assert "were made again on other workers" in lost[0]


@pytest.mark.exhaustive
def test_the_state_of_a_checkpoint_shortens_what_is_done_again(own_client, tmp_path, caplog):
    X, options = made("observed", (3000, 40))
    settings = LONG | options
    expected = nmd.complete(X, 3, "relu", **settings)
    path = tmp_path / "run.checkpoint"
    kill = killer(own_client, 11, 19)
    compute = nmd.Compute(client=own_client, checkpoint=path, checkpoint_every=0)
    with caplog.at_level(logging.WARNING, "nmd_lab"):
        fit = nmd.complete(X, 3, "relu", callback=kill, compute=compute, **settings)
    assert_close(expected, fit, 1e-6)
    assert any("lost: rows" in record.message for record in caplog.records)


@pytest.mark.exhaustive
@pytest.mark.parametrize("storage", some(["observed", "dense", "masked", "zeros"], 1))
def test_a_run_goes_on_from_its_checkpoint(storage, client, tmp_path):
    X, options = made(storage, (3000, 40))
    function = nmd.decompose if storage == "zeros" else nmd.complete
    settings = PLAIN | {"max_iter": 12, "alpha": 0.1, "offsets": "none"} | options
    on_cluster = nmd.Compute(client=client)
    expected = function(X, 3, "relu", compute=on_cluster, **settings)
    path = tmp_path / "run.checkpoint"

    def stop(state):
        if state.iteration == 7:
            raise SystemExit

    kept = nmd.Compute(client=client, checkpoint=path, checkpoint_every=0)
    with pytest.raises(SystemExit):
        function(X, 3, "relu", callback=stop, compute=kept, **settings)
    assert len(list((tmp_path / "run.checkpoint.parts").iterdir())) == 2
    data = {name: options[name] for name in ("observed",) if name in options}
    fit = nmd.resume(path, X, compute=on_cluster, **data)
    assert_close(expected, fit, 1e-12)
    assert fit.n_iter == 12
    with pytest.raises(ValueError, match="was written with and without a cluster: give client="):
        nmd.resume(path, X, **data)


@pytest.mark.exhaustive
def test_workers_may_die_after_a_run_went_on(own_client, tmp_path):
    """Its files of before are gone by then."""
    X, options = made("observed", (3000, 40))
    settings, on_cluster = LONG | options, nmd.Compute(client=own_client)
    expected = nmd.complete(X, 3, "relu", compute=on_cluster, **settings)
    path = tmp_path / "run.checkpoint"

    def stop(state):
        if state.iteration == 6:
            raise SystemExit

    kept = nmd.Compute(client=own_client, checkpoint=path, checkpoint_every=0)
    with pytest.raises(SystemExit):
        nmd.complete(X, 3, "relu", callback=stop, compute=kept, **settings)
    kill, seen = killer(own_client, 15), options["observed"]
    fit = nmd.resume(path, X, compute=on_cluster, callback=kill, observed=seen)
    assert_close(expected, fit, 1e-6)


@pytest.mark.exhaustive
def test_the_death_of_the_scheduler_leaves_a_checkpoint(tmp_path):
    X, _ = made("dense", (3000, 40))
    options = PLAIN | {"max_iter": 12, "init": "random"}
    expected, path = nmd.decompose(X, 3, "relu", **options), tmp_path / "run"
    with processes(tmp_path) as (address, scheduler):
        client = distributed.Client(address, timeout=3, set_as_default=False)
        client.wait_for_workers(1, timeout=60)

        def kill_it(state):
            if state.iteration == 6:
                scheduler.kill()

        kept = nmd.Compute(client=client, checkpoint=path, checkpoint_every=0)
        with pytest.raises(ConnectionError, match="the scheduler of the cluster is gone"):
            nmd.decompose(X, 3, "relu", callback=kill_it, compute=kept, **options)
        client.close(timeout=1)
    with processes(tmp_path) as (address, _):
        client = distributed.Client(address, timeout=10, set_as_default=False)
        client.wait_for_workers(1, timeout=60)
        fit = nmd.resume(path, X, compute=nmd.Compute(client=client))
        client.close()
    assert fit.n_iter == 12
    assert_close(expected, fit)


@contextmanager
def processes(folder):
    """Start a scheduler and a worker in processes of their own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    host, port = address.split(":")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--dashboard-address", ":0"]
    scheduler = subprocess.Popen([*command, "--host", host, "--port", port], **quiet)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1"]
    worker = subprocess.Popen([*command, "--no-dashboard", "--death-timeout", "60"], **quiet)
    try:
        yield address, scheduler
    finally:
        for process in (worker, scheduler):
            process.terminate()
        for process in (worker, scheduler):
            process.wait(30)


def test_checkpoints_that_workers_cannot_write_end_with_a_warning(client, tmp_path):
    X, _ = made("dense")
    (tmp_path / "run.parts").write_text("no folder")
    with pytest.warns(nmd.warnings.CheckpointWarning, match="No further checkpoint is written"):
        nmd.decompose(
            X,
            2,
            compute=nmd.Compute(client=client, checkpoint=tmp_path / "run", checkpoint_every=0),
            **PLAIN,
        )


@pytest.mark.exhaustive
def test_a_new_worker_is_used(monkeypatch):
    monkeypatch.setattr(placements, "LEAST", 0.0)
    X, _ = made("dense", (40_000, 60))
    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    homes = []
    with (
        distributed.LocalCluster(**settings) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):

        def grow(state):
            if state.iteration == 3:
                cluster.scale(2)
                client.wait_for_workers(2)
            if state.iteration > 3:
                time.sleep(0.3)  # so that the cluster is looked at
            homes.append(set(state.W.cluster.placement.homes))

        options = PLAIN | {"max_iter": 14, "init": "random"}
        fit = nmd.decompose(
            X, 3, "relu", "l1", callback=grow, compute=nmd.Compute(client=client), **options
        )
    assert len(homes[0]) == 1
    assert len(homes[-1]) == 2
    assert_close(nmd.decompose(X, 3, "relu", "l1", **options), fit, 1e-6)


def test_without_workers_a_fit_ends_with_a_sentence(own_client):

    own_client.cluster.scale(0)
    while own_client.nthreads():
        time.sleep(0.05)
    with pytest.raises(ConnectionError, match="the cluster has no worker: start one before"):
        nmd.decompose(made("dense")[0], 2, compute=nmd.Compute(client=own_client))


def test_parts_are_gone_after_a_fit(client):
    X, _ = made("dense")
    nmd.decompose(X, 2, "relu", compute=nmd.Compute(client=client), **PLAIN)
    for _ in range(50):
        left = client.run(_number_of_parts)
        if not any(left.values()):
            break
        time.sleep(0.1)
    assert not any(left.values())


def _number_of_parts():
    gc.collect()
    return len(PARTS)


def test_a_part_is_not_copied():
    part = Part(RowRange(0, slice(0, 1)), {})
    with pytest.raises(TypeError, match="stays in the memory of its worker"):
        pickle.dumps(part)


def test_work_goes_from_the_slowest_worker_to_the_idlest():
    placement = Placement.even([10] * 8, {"a": 1, "b": 1})
    assert placement.homes == ["a"] * 4 + ["b"] * 4
    placement.note({number: 0.4 if number < 4 else 0.1 for number in range(8)})
    number, worker = placement.move({"a": 1, "b": 1})
    assert (worker, number < 4) == ("b", True)
    placement.homes[number] = worker
    placement.note(dict.fromkeys(range(8), 0.1))
    placement.homes[number] = "a"
    assert placement.move({"a": 1, "b": 1}) is None
    assert placement.move({"a": 1, "b": 1, "c": 1})[1] == "c"
    placement.leave({"b"}, {"a": 1, "c": 1})
    assert set(placement.homes) == {"a", "c"}


def test_work_is_shared_by_threads():
    placement = Placement.even([1] * 12, {"a": 1, "b": 3})
    assert placement.homes.count("a") == 3
    assert placement.shares() == {"a": 3, "b": 9}
