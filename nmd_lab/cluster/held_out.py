"""Held-out entries on workers, for early stopping."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmd_lab.data.entries import FloatArray

from .cluster import Cluster
from .passes import make_held_out, squared_errors
from .rows import ClusterRows, Named


class HeldOutOnCluster:
    """Observed entries on workers that are not used in the fit; see `HeldOut`."""

    def __init__(self, cluster: Cluster, data: str, model: Any) -> None:
        self.named = Named(cluster, "score", in_rows=True)
        cluster.map(make_held_out, self.named.name, data, model, changes=True)

    def rmse(self, W_aug: ClusterRows, H_aug: FloatArray, model: Any = None) -> float:
        """Return the root mean squared error of the expected values, in the units of X."""
        step = (squared_errors, self.named.name, W_aug.taken, H_aug, model)
        squares, weights = self.named.cluster.sum(*step)
        return float(np.sqrt(squares / weights))
