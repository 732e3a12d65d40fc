"""Held-out entries on workers, for early stopping."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmd_lab.data.base import FloatArray

from .observations import ClusterObservations
from .passes import make_held_out, squared_errors
from .rows import ClusterRows, Named


class HeldOutOnCluster:
    """Observed entries on workers that are not used in the fit; see `HeldOut`."""

    def __init__(self, observations: ClusterObservations, pair: Any) -> None:
        self.observations, self.named = observations, Named(observations.cluster, "judge")
        names = (self.named.name, observations.name)
        observations.cluster.map(make_held_out, *names, pair, changes=True)

    def rmse(self, W_aug: ClusterRows, H_aug: FloatArray, pair: Any = None) -> float:
        """Return the root mean squared error of the expected values, in the units of X."""
        step = (squared_errors, self.named.name, W_aug.taken, H_aug, pair)
        squares, weights = self.observations.cluster.sum(*step)
        return float(np.sqrt(squares / weights))
