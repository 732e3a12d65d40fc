"""The offsets with which a fit begins: means of the starting T."""

from __future__ import annotations

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.model.model import Model

from .problem import Problem


def starting_offsets(problem: Problem, kind: str, ridge: float) -> Offsets:
    """Return the mean of the starting T, and shrunken deviations of rows and columns from it."""
    observations, model = problem.starting_data
    zeros = ridge / problem.natural_penalty if ridge else 0.0
    mean = 0.0
    if kind != "none":
        total, size = observations.weighted_sums(model.pseudo_inverse)
        mean = size / total
    offsets = Offsets(mean, None, None)
    if kind in ("rows", "both"):
        offsets = offsets._replace(rows=_shrunken_means(observations, model, offsets, 1, zeros))
    if kind in ("columns", "both"):
        offsets = offsets._replace(columns=_shrunken_means(observations, model, offsets, 0, zeros))
    return offsets


def _shrunken_means(
    observations: Observations, model: Model, offsets: Offsets, axis: int, zeros: float
) -> FloatArray:
    """Return the means along an axis of the starting T, minus the given offsets."""
    sums = observations.centred_sums(model.pseudo_inverse, offsets, axis)
    means: FloatArray = sums / np.maximum(observations.counts(axis) + zeros, 1)
    return means


def offsets_of(problem: Problem) -> Offsets:
    """Return the offsets with which a fit of a problem begins, in its units."""
    columns = problem.offset_columns
    return starting_offsets(problem, columns.kind, problem.offset_alpha / columns.constant**2)
