"""Workers that die, come or are slow; checkpoints of fits on a cluster."""

import gc
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from cluster_runs import PLAIN, assert_close, made
from helpers import wait_for

import nmd_lab as nmd
from nmd_lab.cluster.sweeps import PartitionSweep

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")

LONG = PLAIN | {"max_iter": 24, "alpha": 0.1, "offsets": "both"}


def wait_for_release(condition):
    """Wait until a condition holds once what nothing refers to is let go, in another thread."""

    def look():
        gc.collect()
        return condition()

    wait_for(look)


@pytest.mark.parametrize("own_client", [3], indirect=True)
def test_a_killed_worker_ends_a_fit_that_resumes_on_other_workers(own_client, tmp_path):
    X, options = made("observed", (3000, 40))
    settings, path = LONG | options, tmp_path / "run.checkpoint"
    expected = nmd.complete(X, 3, "relu", **settings)

    def kill(state):
        if state.iteration == 7:
            os.kill(min(own_client.run(os.getpid).values()), signal.SIGKILL)

    kept = nmd.Compute(client=own_client, checkpoint=path, checkpoint_every=0)
    with pytest.raises(ConnectionError, match=r"a worker .* is gone.*: call nmd_lab.resume\(\)"):
        nmd.complete(X, 3, "relu", callback=kill, compute=kept, **settings)
    wait_for_release(lambda: not own_client.futures)  # whose memory the next fit needs
    assert len(list((tmp_path / "run.checkpoint.parts").iterdir())) == 3
    own_client.wait_for_workers(1, timeout=60)
    data = {"observed": options["observed"]}
    with pytest.raises(ValueError, match="was written with and without a cluster: give client="):
        nmd.resume(path, X, **data)
    own = nmd.Compute(client=own_client, checkpoint_every=0)  # writes before the first iteration
    fit = nmd.resume(path, X, compute=own, **data)
    assert fit._n_iter == LONG["max_iter"]
    assert_close(expected, fit, 1e-6)


@pytest.mark.exhaustive
def test_the_death_of_the_scheduler_leaves_a_checkpoint(tmp_path):
    X, _ = made("dense", (3000, 40))
    options = PLAIN | {"max_iter": 12, "init": "random"}
    expected, path = nmd.decompose(X, 3, "relu", **options), tmp_path / "run"
    with processes(tmp_path) as (client, scheduler):

        def kill_it(state):
            if state.iteration == 6:
                scheduler.kill()

        kept = nmd.Compute(client=client, checkpoint=path, checkpoint_every=0)
        with pytest.raises(ConnectionError, match="the scheduler of the cluster is gone"):
            nmd.decompose(X, 3, "relu", callback=kill_it, compute=kept, **options)
    with processes(tmp_path) as (client, _):
        fit = nmd.resume(path, X, compute=nmd.Compute(client=client, checkpoint_every=0))
    assert fit._n_iter == 12
    assert_close(expected, fit)


@contextmanager
def processes(folder):
    """Start a scheduler and a worker in two processes; yield a client and the scheduler."""
    address = f"127.0.0.1:{distributed.utils.open_port()}"
    host, port = address.split(":")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--dashboard-address", ":0"]
    scheduler = subprocess.Popen([*command, "--host", host, "--port", port], **quiet)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1"]
    worker = subprocess.Popen([*command, "--no-dashboard", "--death-timeout", "60"], **quiet)
    try:
        client = distributed.Client(address, timeout=20, set_as_default=False)
        client.wait_for_workers(1, timeout=60)
        yield client, scheduler
        client.close(timeout=1)
    finally:
        for process in (worker, scheduler):
            process.terminate()
        for process in (worker, scheduler):
            process.wait(30)


def test_checkpoints_that_workers_cannot_write_end_with_a_warning(client, tmp_path):
    X, _ = made("dense")
    (tmp_path / "run.parts").write_text("no folder")
    compute = nmd.Compute(client=client, checkpoint=tmp_path / "run", checkpoint_every=0)
    with pytest.warns(nmd.warnings.CheckpointWarning, match="No further checkpoint is written"):
        nmd.decompose(X, 2, "relu", compute=compute, **PLAIN)


@pytest.mark.parametrize("own_client", [0], indirect=True)
def test_without_workers_a_fit_ends_with_a_sentence(own_client):
    with pytest.raises(ConnectionError, match="the cluster has no worker: start one before"):
        nmd.decompose(made("dense")[0], 2, compute=nmd.Compute(client=own_client))


def test_nothing_is_left_on_the_workers_after_a_fit(client):
    X, _ = made("dense")
    on_workers = {"compute": nmd.Compute(client=client), **PLAIN}
    nmd.decompose(X, 2, "relu", **on_workers)
    with pytest.raises(ZeroDivisionError):
        nmd.decompose(X, 2, "relu", callback=lambda _: 1 / 0, **on_workers)
    wait_for_release(lambda: not any(client.run(_number_of_sweeps).values()))
    wait_for_release(lambda: not any(client.has_what().values()))
    assert not any(client.processing().values())


def _number_of_sweeps():
    return sum(isinstance(each, PartitionSweep) for each in gc.get_objects())
