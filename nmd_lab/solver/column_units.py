"""The units of the columns of a mixed table, so that none drowns another.

**Centre.**  The best constant y of a column is the value of lowest loss among those that f takes.
Its centre is the T with f(T) = y, so that WH = 0 stands for the constant.

**Weight.**  A loss that measures a distance, such as the Frobenius loss, has no natural unit.  It
is divided by twice its mean at the best constant.  For the Frobenius loss the column then has
variance one.  Every other loss is minus the logarithm of a likelihood, whose unit is that of noise.
It has the weight `NOISE`, as if this were the share of noise in the variance of the numbers: with
more, classes drown numbers, of which most is usually explained.  For a divergence whose mean at the
constant is large, as that of large counts may be, the smaller of the two weights is taken.

**Size.**  The unit of WH is such that the mean of the loss, weighted if it measures a distance, has
the second derivative one at the centre, so that a ridge restricts all columns alike.  For the
Frobenius loss this is the standard deviation.  A loss with a kink has the standard deviation, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from nmd_lab.data.base import FloatArray
from nmd_lab.model.kind import Kind
from nmd_lab.model.losses import Frobenius, Loss
from nmd_lab.model.monotone import Monotone

REACH = 5.0  # standard deviations of the starting T in which the best constant is looked for
GRID = 17  # constants that are compared first
PRECISION = 1e-8  # error of the best constant, as a share of this distance
STEP = 1e-2  # distance for the second derivative, in standard deviations of the starting T
LARGEST = 3.0  # size of a column whose T has a unit of its own (log-odds, logarithms), at most
NULL = 0.5  # mean loss at the best constant, to which a loss without a unit is brought
NOISE = 0.3  # weight of minus the logarithm of a likelihood; share of noise in the variance


def with_units(kind: Kind, x: FloatArray, weights: FloatArray) -> Kind:
    """Return the kind of a column with its units."""
    f, loss = kind.nonlinearity, kind.loss
    T = np.asarray(kind.pseudo_inverse(x), dtype=np.float64)
    mean = float(np.average(T, weights=weights))
    spread = math.sqrt(float(np.average(np.square(T - mean), weights=weights)))
    values, position = np.unique(x, return_inverse=True)
    shares = np.bincount(position, weights)

    def cost(t: float) -> float:
        value = float(np.average(loss(values, f(np.full(values.size, t))), weights=shares))
        return value if math.isfinite(value) else math.inf

    if type(loss) is Frobenius and isinstance(f, Monotone):  # T has the units of X
        return kind._replace(centre=mean, size=spread or 1.0, weight=_weight(loss, cost(mean)))
    if f.even:  # the sign of T is not known: the centre has to be 0
        size = math.sqrt(float(np.average(np.square(T), weights=weights))) or 1.0
        return kind._replace(centre=0.0, size=size, weight=_weight(loss, cost(mean)))
    plain = type(loss) is Frobenius and f.linear
    centre = mean if plain else _best_constant(cost, mean, spread)
    median = float(np.median(T))
    if cost(median) <= (1 + PRECISION) * cost(centre):
        centre = median  # many constants may be best for absolute errors
    weight = _weight(loss, cost(centre))
    size = _size(loss, cost, centre, spread, weight)
    return kind._replace(centre=centre, size=size, weight=weight)


def _measures_distance(loss: Loss) -> bool:
    """Return whether a loss compares x and y in the units of X, and is no likelihood."""
    return loss.smallest_at_x and not loss.link


def _weight(loss: Loss, null: float) -> float:
    """Return the factor of a loss, given its mean at the best constant."""
    distance = _measures_distance(loss)
    largest = 1.0 if distance else NOISE
    if not 0 < null < math.inf:
        return largest
    if distance:
        return NULL / null
    return largest if loss.degree is None else min(largest, NULL / null)


def _size(
    loss: Loss, cost: Callable[[float], float], centre: float, spread: float, weight: float
) -> float:
    """Return the unit of T."""
    distance = _measures_distance(loss)
    step = STEP * (spread or 1.0)
    size = spread or 1.0
    if loss.smooth and spread:
        change = cost(centre + step) + cost(centre - step) - 2 * cost(centre)
        curvature = (weight if distance else weight / NOISE) * change / step**2
        if 0 < curvature < math.inf:
            size = 1 / math.sqrt(curvature)
    return size if distance else min(size, LARGEST)


def _best_constant(cost: Callable[[float], float], mean: float, spread: float) -> float:
    """Return the T of lowest cost near the mean of the starting T."""
    reach = REACH * (spread or 1.0)
    grid = np.append(np.linspace(-1.0, 1.0, GRID), 0.0)
    costs = [cost(mean + reach * float(s)) for s in grid]
    best, step = int(np.argmin(costs)), 2.0 / (GRID - 1)
    found = minimize_scalar(
        lambda s: cost(mean + reach * s),
        bounds=(grid[best] - step, grid[best] + step),
        method="bounded",
        options={"xatol": PRECISION},
    )
    return mean + reach * float(found.x if found.fun < costs[best] else grid[best])
