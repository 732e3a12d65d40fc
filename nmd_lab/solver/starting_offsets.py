"""The offsets with which a fit begins: means of rows and columns."""

from __future__ import annotations

import numpy as np

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.model import Model
from nmd_lab.model.offsets import Offsets


def starting_offsets(observations: Observations, pair: Model, kind: str, zeros: float) -> Offsets:
    """Return the mean of the starting T, and shrunken deviations of rows and columns from it."""
    mean = 0.0
    if kind != "none":
        total, size = observations.weighted_sums(pair.pseudo_inverse)
        mean = size / total
    offsets = Offsets(mean, None, None)
    if kind in ("rows", "both"):
        offsets = offsets._replace(rows=_shrunken_means(observations, pair, offsets, 1, zeros))
    if kind in ("columns", "both"):
        offsets = offsets._replace(columns=_shrunken_means(observations, pair, offsets, 0, zeros))
    return offsets


def _shrunken_means(
    observations: Observations, pair: Model, offsets: Offsets, axis: int, zeros: float
) -> FloatArray:
    """Return the means along an axis of the starting T, minus the given offsets."""
    sums = observations.centred_sums(pair.pseudo_inverse, *offsets, axis=axis)
    means: FloatArray = sums / np.maximum(observations.counts(axis) + zeros, 1)
    return means
