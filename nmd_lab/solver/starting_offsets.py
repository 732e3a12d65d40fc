"""The offsets with which a fit begins: means of rows and columns."""

from __future__ import annotations

import numpy as np

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.model import Model
from nmd_lab.model.offsets import Offsets

from .problem import Problem
from .starting_data import starting_data


def starting_offsets(problem: Problem, kind: str, ridge: float) -> Offsets:
    """Return the mean of the starting T, and shrunken deviations of rows and columns from it."""
    observations, pair = starting_data(problem)
    zeros = ridge / problem.natural_penalty if ridge else 0.0
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


def offsets_of(problem: Problem) -> Offsets:
    """Return the offsets with which a fit of a problem begins, in its units."""
    columns = problem.offset_columns
    return starting_offsets(problem, columns.kind, problem.offset_alpha / columns.constant**2)
