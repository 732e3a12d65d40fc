"""Data on other machines: where they are observed, which alone imports `nmd_lab.cluster`."""

from __future__ import annotations

from typing import Any

from nmd_lab.data.base import Observations
from nmd_lab.data.labels import is_dask


def client_for(X: Any, client: Any) -> Any:
    """Return the client of a fit: that which is given, or the active one if X is of Dask."""
    if client is None and not is_dask(X):
        return None
    from nmd_lab.cluster.inputs import checked_client

    return checked_client(X, client)


def observe_elsewhere(X: Any, client: Any, **data: Any) -> Observations:
    """Return observations on the workers of a client; see `nmd_lab.data.observations.observe`."""
    from nmd_lab.cluster.inputs import observe_on_cluster

    return observe_on_cluster(X, client, **data)
