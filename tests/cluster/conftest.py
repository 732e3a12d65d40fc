"""A cluster of two processes on this machine, for the tests of this folder."""

from collections.abc import Iterator
from typing import Any

import pytest

import nmd_lab as nmd

ONE_THREAD_EACH = {"threads_per_worker": 1, "dashboard_address": ":0"}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Two workers with one thread each."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, **ONE_THREAD_EACH) as started:
        yield started


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """Return a client of the cluster, which is not the default one."""
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster, set_as_default=False) as connected:
        yield connected


@pytest.fixture
def on_workers(client: Any) -> dict[str, Any]:
    """Return the argument of a fit that runs it on the cluster."""
    return {"compute": nmd.Compute(client=client)}


@pytest.fixture
def own_client(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return a client of some workers, which a test may kill."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=request.param, **ONE_THREAD_EACH) as started,
        distributed.Client(started, set_as_default=False) as connected,
    ):
        yield connected
