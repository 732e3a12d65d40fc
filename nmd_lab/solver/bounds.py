"""What data decide of one nonlinearity and one loss, and data outside the bounds of f."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import is_auto
from nmd_lab.data.observations import Observations
from nmd_lab.model.loss import Loss
from nmd_lab.model.model import Model, make_model
from nmd_lab.model.nonlinearities import MinMax, Nonlinearity, as_nonlinearity

from .problem import Problem

ROUNDING = 1e-6
"""Distance from a bound that is not counted as outside, relative to that of both bounds."""

LARGE_SHARE = 0.1
"""Fraction of the squares of X beyond which values outside the range of f are no noise."""


def with_bounds(nonlinearity: str | Nonlinearity, observations: Observations) -> Nonlinearity:
    """Return a nonlinearity, with bounds or knots that the observations decide; see `bounded`."""
    return model_of_all(nonlinearity, "frobenius", observations).nonlinearity


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


def model_of_all(
    nonlinearity: Any, loss: Any, observations: Observations, *, centred: bool = False
) -> Model:
    """Return the model of one nonlinearity and one loss, with what the data decide of them.

    The identity stands for "auto".  If `centred`, a learned f takes the mean of X near 0, where WH
    is without offsets.
    """
    nonlinearity = "identity" if is_auto(nonlinearity) else nonlinearity
    ends, documented = observations.range(), observations.labels.valid_range
    d = make_model(nonlinearity, loss).loss  # refuses what does not go together
    d.check_data(*ends)
    f = bounded(nonlinearity, ends, documented)
    if type(d).for_data is not Loss.for_data:  # it takes arrays of the size of X
        d = d.for_data(*observations.observed())
    if f.learns:
        f = f.for_data(d.target(observations.observed()[0]), centred=centred)
    return make_model(f, d)


def out_of_bounds(problem: Problem) -> str:
    """Return how many values of the data lie outside the range of f, empty if none do.

    Bounds are given or documented, and all values beyond them count.  The range of another f is not
    a statement about the data: it is named if a tenth of their squares lies outside.
    """
    if not problem.model.fits_exactly:
        return ""
    observations, f = problem.observations, problem.model.nonlinearity
    has_bounds, zeros = isinstance(f, MinMax), observations.absent_are_zeros

    def count(values: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
        # A weight is the number of entries where one value stands for all absent zeros.
        number = weights if zeros else np.ones(values.size)
        return np.array([number[outside].sum() for outside in _outside(f, values)])

    below, above = map(int, observations.sum_of_blocks(count))
    if not below and not above:
        return ""
    if not has_bounds and _squares_outside(f, observations) < LARGE_SHARE:
        return ""
    remedy = "widen these" if has_bounds else "take another nonlinearity, such as 'identity',"
    return (
        f"X has {below} values below and {above} above the bounds of "
        f"{problem.units.model.nonlinearity!r}, of {observations.n_observed} observed: no fit "
        f"comes closer to them than the bounds, so {remedy} unless such values are noise."
    )


def _squares_outside(f: Nonlinearity, observations: Observations) -> float:
    """Return the fraction of values outside the range of f in the sum of squares."""
    outside, total = observations.sum_of_blocks(
        lambda x, weights: np.array(
            [np.sum(weights * x**2 * np.logical_or(*_outside(f, x))), np.sum(weights * x**2)]
        )
    )
    return float(outside / total)


def _outside(f: Nonlinearity, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return masks of the values below and above the bounds of f, by more than rounding."""
    a, b = _range(f)
    sizes = [abs(bound) for bound in (a, b) if math.isfinite(bound)]
    rounding = float(np.finfo(values.dtype).eps) * max(sizes, default=0.0)
    slack = rounding + ROUNDING * (b - a if len(sizes) == 2 else max(sizes, default=0.0))
    return values < a - slack, values > b + slack


def _range(f: Nonlinearity) -> tuple[float, float]:
    """Return the smallest and the largest value of f."""
    pieces = f.pieces()
    if pieces is None:
        return f.range
    ends = [
        piece.intercept + (piece.slope * t if piece.slope else 0.0)
        for piece in pieces
        for t in (piece.low, piece.high)
    ]
    return min(ends), max(ends)
