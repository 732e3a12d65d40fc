"""Bounds and knots of a nonlinearity that is only named, and data outside the bounds of any."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.base import Observations
from nmd_lab.model.nonlinearities import MinMax, Nonlinearity, as_nonlinearity

from .problem import Problem

ROUNDING = 1e-6
"""Distance from a bound, relative to the larger bound, that is not counted as outside."""


def with_bounds(nonlinearity: str | Nonlinearity, observations: Observations) -> Nonlinearity:
    """Return a nonlinearity, with bounds or knots that the observations decide; see `bounded`."""
    f = bounded(nonlinearity, observations.range(), observations.labels.valid_range)
    return f.for_data(observations.observed()[0]) if f.learns else f


def bounded(
    nonlinearity: str | Nonlinearity,
    ends: tuple[float, float],
    valid_range: tuple[float, float] | None,
) -> Nonlinearity:
    """Return a nonlinearity, with bounds that the data decide if it is only named.

    The bounds of "minmax" are the range that the data document, or else 0 and 1.
    """
    f = as_nonlinearity(nonlinearity)
    if not isinstance(nonlinearity, str) or not isinstance(f, MinMax):
        return f
    if valid_range is not None:
        return MinMax(*valid_range)
    if not any(outside.any() for outside in _outside(f, np.array(ends))):
        return f
    raise ValueError(
        f"nonlinearity={nonlinearity!r} has the bounds 0 and 1, and X goes from {ends[0]:g} to "
        f"{ends[1]:g}: give the bounds of your data, for example "
        f"nonlinearity=nmd.{MinMax(*ends)!r}."
    )


def out_of_bounds(problem: Problem) -> str:
    """Return how many values of the data lie outside the bounds of f, empty if none do."""
    kind, observations = problem.model.single, problem.observations
    if kind is None or not isinstance(kind.nonlinearity, MinMax):
        return ""
    f = kind.nonlinearity
    zeros = observations.absent_are_zeros

    def count(values: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
        # A weight is the number of entries where one value stands for all absent zeros.
        number = weights if zeros else np.ones(values.size)
        return np.array([number[outside].sum() for outside in _outside(f, values)])

    below, above = map(int, observations.sum_of_blocks(count))
    if not below and not above:
        return ""
    return (
        f"X has {below} values below and {above} above the bounds of "
        f"{problem.units.model.nonlinearity!r}, of {observations.n_observed} observed: no fit "
        "comes closer to them than the bounds, so widen these unless such values are noise."
    )


def _outside(f: Nonlinearity, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return masks of the values below and above the bounds of f, by more than rounding."""
    a, b = f.parameters
    slack = ROUNDING * max(abs(bound) if math.isfinite(bound) else 0.0 for bound in (a, b))
    return values < a - slack, values > b + slack
