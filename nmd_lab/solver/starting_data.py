"""The starting T as data, for what begins from it, and the offsets that are its means."""

from __future__ import annotations

import numpy as np

from nmd_lab.data.observations import FloatArray, Observations
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.model.model import Model, make_model

from .problem import Problem
from .split_variable import pseudo_inverses


def starting_data(problem: Problem) -> tuple[Observations, Model]:
    """Return observations and a model of one kind whose pseudo-inverse gives the starting T.

    For several kinds the observations have the starting T already, since it depends on the columns.
    """
    observations, model = problem.observations, problem.model
    if model.single is not None:
        return observations, model
    T = pseudo_inverses(observations, model)
    return observations.with_stored(T), make_model("identity", "frobenius")


def starting_offsets(problem: Problem, kind: str, ridge: float) -> Offsets:
    """Return the mean of the starting T, and shrunken deviations of rows and columns from it."""
    observations, model = starting_data(problem)
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
    sums = observations.centred_sums(model.pseudo_inverse, *offsets, axis=axis)
    means: FloatArray = sums / np.maximum(observations.counts(axis) + zeros, 1)
    return means


def offsets_of(problem: Problem) -> Offsets:
    """Return the offsets with which a fit of a problem begins, in its units."""
    columns = problem.offset_columns
    return starting_offsets(problem, columns.kind, problem.offset_alpha / columns.constant**2)
