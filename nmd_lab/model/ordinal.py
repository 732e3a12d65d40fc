"""Ordered levels, such as stars or answers of a survey, whose distances are not known.

A level means that y + noise lies between two cut points, with standard normal noise (the cumulative
probit model).  The cut points are those of highest likelihood, given the modelled values.  Minus
the log-likelihood is convex in them.  The logarithm of the normal probability of an interval is
exact far into the tails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri

from nmd_lab._runtime.compiler import cached_kernel, compile_scalar, number_at

from .loss import Array, FloatArray, Loss

MIN_GAP = 1e-7
"""Distance of the cut points around a level that X does not have."""


def _derivatives(codes, y, weights, ends, gradient, hessian):  # type: ignore[no-untyped-def]
    """Return minus the log-likelihood, and add its derivatives; those of infinite ends are NaN."""
    total = 0.0
    for i in range(codes.size):
        k, w = codes[i], weights[i]
        a, b = ends[k] - y[i], ends[k + 1] - y[i]
        total -= w * log_probability(a, b)
        at_a, at_b, _ = slopes(a, b)
        gradient[k] += w * at_a
        gradient[k + 1] -= w * at_b
        hessian[k, k] += w * at_a * (at_a - a)
        hessian[k + 1, k + 1] += w * at_b * (at_b + b)
        hessian[k, k + 1] -= w * at_a * at_b
        hessian[k + 1, k] -= w * at_a * at_b
    return total


def best_cut_points(
    codes: NDArray[np.intp], y: FloatArray, weights: FloatArray, cuts: Array
) -> Array:
    """Return ascending cut points of highest likelihood."""
    present = np.unique(codes)
    if present.size < 2:
        return cuts
    among_present = np.searchsorted(present, codes).astype(np.intp)
    shares = np.ascontiguousarray(weights / weights.sum(), np.float64)
    data = among_present, np.ascontiguousarray(y, np.float64), shares
    kernel = cached_kernel(_derivatives, "cut_point_derivatives")

    def derivatives(at: Array) -> Any:
        ends = np.array([-np.inf, *at, np.inf])
        gradient, hessian, cost = np.zeros(ends.size), np.zeros((ends.size, ends.size)), math.inf
        if np.all(np.diff(at) > MIN_GAP):
            cost = float(kernel(*data, ends, gradient, hessian))
        return cost, gradient[1:-1], hessian[1:-1, 1:-1]

    found = minimize(  # type: ignore[call-overload]
        lambda at: derivatives(at)[:2],
        cuts[present[:-1]] + 2 * MIN_GAP * np.arange(present.size - 1),  # those of absent levels
        jac=True,
        hess=lambda at: derivatives(at)[2],
        method="trust-exact",
        tol=1e-7,
    ).x
    result = np.array(cuts, dtype=np.float64)
    for at, first, last in zip(found, present[:-1], present[1:], strict=True):
        result[first:last] = at + MIN_GAP * np.arange(last - first)
    for k in range(present[0] - 1, -1, -1):
        result[k] = min(result[k], result[k + 1] - 1.0)
    for k in range(present[-1], cuts.size):
        result[k] = max(result[k], result[k - 1] + 1.0)
    return result


LOG_ROOT = 0.5 * math.log(2.0 * math.pi)
DENSITY = math.exp(-LOG_ROOT)  # of a standard normal variable at 0
MAX_NARROW = 1e-2
SQRT_HALF = math.sqrt(0.5)
SQRT_HALF_PI = math.sqrt(0.5 * math.pi)


@compile_scalar
def mills_ratio(z: float) -> float:
    """Return the probability above z >= 0 over the density at z, for a standard normal variable."""
    if z < 12.0:  # from here on, ten terms of the asymptotic series have an error below 2e-13
        return SQRT_HALF_PI * math.exp(0.5 * z * z) * math.erfc(z * SQRT_HALF)
    inverse, series = 1.0 / (z * z), 1.0
    for k in range(10, 0, -1):
        series = 1.0 - (2 * k - 1) * inverse * series
    return series / z


@compile_scalar
def mass_between(a: float, b: float, width: float) -> float:
    """Return the integral of exp(-z²/2) from a to b = a + width, over its maximum there.

    It neither overflows nor underflows, however far from zero a and b are.  The width is an
    argument, because b - a loses digits where the limits are close to each other.
    """
    if a <= 0.0 <= b:
        return SQRT_HALF_PI * (math.erf(b * SQRT_HALF) - math.erf(a * SQRT_HALF))
    near, far = (a, b) if a > 0.0 else (-b, -a)
    if width < 1e-4:  # the quadratic term does not count
        fall = near * width
        return width * (1.0 - 0.5 * fall) if fall < 1e-8 else -math.expm1(-fall) / near
    fall, above = 0.5 * width * (near + far), mills_ratio(near)
    ratio: float = above - math.exp(-fall) * mills_ratio(far) if fall < 50.0 else above
    return ratio


@compile_scalar
def log_probability(a: float, b: float) -> float:
    """Return log(Φ(b) - Φ(a)) for a < b; either may be infinite."""
    near = max(a, -b, 0.0)
    return math.log(mass_between(a, b, b - a)) - 0.5 * near * near - LOG_ROOT


def interval_mass(a: Array, b: Array) -> Array:
    """Return the standard normal probability between a and b, exact in both tails; 0 if a > b."""
    upper = a > 0  # there the difference of small numbers keeps its digits
    low, high = np.where(upper, -b, a), np.where(upper, -a, b)
    return np.asarray(np.maximum(ndtr(high) - ndtr(low), 0))


@compile_scalar
def slopes(a: float, b: float) -> tuple[float, float, float]:
    """Return density at a and at b over Φ(b) - Φ(a), and their difference b minus a."""
    p = 0.5 * (math.erf(b * SQRT_HALF) - math.erf(a * SQRT_HALF))
    if p > 1e-2:  # a difference of distribution functions is exact enough
        at_a, at_b = DENSITY * math.exp(-0.5 * a * a) / p, DENSITY * math.exp(-0.5 * b * b) / p
        return at_a, at_b, at_b - at_a
    near, mass = max(a, -b, 0.0), mass_between(a, b, b - a)
    at_a = math.exp(0.5 * (near * near - a * a)) / mass
    at_b = math.exp(0.5 * (near * near - b * b)) / mass
    if (b - a) * max(1.0, abs(a + b)) < MAX_NARROW:  # the difference would cancel
        return at_a, at_b, -0.5 * (a + b)
    return at_a, at_b, at_b - at_a


@compile_scalar
def derivatives_between(a: float, b: float) -> tuple[float, float]:
    """Return the derivatives of -log P(a < z < b) when both ends move down, for normal z.

    They are minus the mean of z between the ends, and one less its variance.
    """
    at_a, at_b, slope = slopes(a, b)
    curvature = slope * slope
    curvature += (b * at_b if b < math.inf else 0.0) - (a * at_a if a > -math.inf else 0.0)
    return slope, min(max(curvature, 0.0), 1.0)


@compile_scalar
def level_ends(x: float, p: tuple[float, ...]) -> tuple[float, float]:
    """Return the cut points below and above the level x.

    p has the size and the address of a table of n levels and n - 1 cut points.
    """
    n, table = (int(p[0]) + 1) // 2, int(p[1])
    low, high = -math.inf, math.inf
    for k in range(n - 1):
        middle = 0.5 * (number_at(table, k) + number_at(table, k + 1))
        if x > middle:  # levels as float32 differ from those of the table by their rounding
            low = number_at(table, n + k)
        elif high == math.inf:
            high = number_at(table, n + k)
    return low, high


class Ordinal(Loss):
    """Ordinal data with learned cut points: cumulative probit.

    With cut points c_1 < c_2 < ..., level k has the probability Φ(c_k - y) - Φ(c_(k-1) - y), and d
    is minus its logarithm.  The values are numbers, but only their order matters.

    Parameters
    ----------
    levels : sequence of float, optional
        All values in ascending order, at least two; by default those that X has.  Predictions are
        expected values, and so depend on these numbers; the fit does not.
    cut_points : sequence of float, optional
        Cut points between the values, ascending, one fewer than values; by default they are learned
        from X.
    learns : bool, optional
        Whether the cut points are learned, from the given ones on; by default only if none are
        given.

    Raises
    ------
    ValueError
        If `levels` are fewer than two, not finite, or not ascending, or if the cut points do not
        go with them.

    Notes
    -----
    P. McCullagh, "Regression models for ordinal data", Journal of the Royal Statistical Society B
    42, 1980.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.Ordinal([1, 2, 3, 4, 5])
    Ordinal([1, 2, 3, 4, 5])
    >>> nmd.losses.Ordinal([1, 2, 3], cut_points=[-1, 1])([1.0, 2.0, 3.0], 0.0).round(4)
    array([1.841 , 0.3817, 1.841 ])
    """

    name = "ordinal"
    label = "ordinal: ordered levels"
    likelihood = True
    noise = "ordinal"
    smooth = True
    classes = "ordered"
    smallest_at_x = False
    link = "identity"
    parameter_names = ("levels", "cut_points", "learns")

    def __init__(
        self,
        levels: Sequence[float] | None = None,
        cut_points: Sequence[float] | None = None,
        learns: bool | None = None,
    ) -> None:
        self.levels = None if levels is None else _ascending("levels", "two", levels)
        self.cut_points: NDArray[np.float64] | None = None
        if cut_points is not None:
            self.cut_points = _ascending("cut_points", "one", cut_points)
            if self.levels is None or self.cut_points.size != self.levels.size - 1:
                raise ValueError(
                    f"cut_points={cut_points!r} do not go with levels={levels!r}: give one cut "
                    "point fewer than values."
                )
        self.learns = self.cut_points is None if learns is None else bool(learns)
        self._cuts = np.empty(0)
        if self.levels is not None:
            self.level_values, n = tuple(self.levels.tolist()), self.levels.size
            # by default all levels have the same probability at y = 0
            equal = np.asarray(ndtri(np.arange(1, n) / n))
            self._cuts = equal if self.cut_points is None else self.cut_points
            self.parameters = (*self.level_values, *self._cuts.tolist())
            self.table = np.array(self.parameters)

    @property
    def settings(self) -> tuple[tuple[float, ...] | bool, ...]:
        """Values and cut points, as far as they are known, and whether the latter are learned."""
        levels = self.level_values
        if self.cut_points is None:
            return (levels,) if levels else ()
        cuts = tuple(self.cut_points.tolist())
        return (levels, cuts, True) if self.learns else (levels, cuts)

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return minus the logarithm of the probability of the level x."""
        low, high = level_ends(x, p)
        logarithm: float = log_probability(low - y, high - y)
        return -logarithm

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return the derivatives of minus the logarithm of the probability."""
        low, high = level_ends(x, p)
        slope, curvature = derivatives_between(low - y, high - y)
        return slope, curvature

    @staticmethod
    def latent_ends(x: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return the cut points around x; the latent variable has standard deviation 1."""
        low, high = level_ends(x, p)
        return low, high

    @staticmethod
    def least_at(x: float, p: tuple[float, ...]) -> float:
        """Return the middle between the cut points around x."""
        low, high = level_ends(x, p)
        middle: float = 0.5 * low + 0.5 * high
        return middle

    def for_data(self, x: FloatArray, weights: FloatArray | None = None) -> Ordinal:
        """Return the same model with its values and first cut points.

        Parameters
        ----------
        x, weights : ndarray (n_observed,)
            Observed values and their weights; ones by default.

        Raises
        ------
        ValueError
            If X has a value that is no level, or a single one.
        """
        present, position = np.unique(x, return_inverse=True)
        levels = present if self.levels is None else self.levels
        if levels.size < 2:
            raise ValueError(
                "X has a single value: give all values, for example nmd.losses.Ordinal([1, 2, 3])."
            )
        unknown = present[~np.isin(present, levels)]
        if unknown.size:
            raise ValueError(
                f"X has the value {unknown[0]:g}, which is no level of {self!r}: add it."
            )
        if self.cut_points is not None:
            return self
        counts = np.full(levels.size, 0.5)  # no level is impossible
        counts[np.searchsorted(levels, present)] += np.bincount(position.ravel(), weights)
        shares = np.cumsum(counts)[:-1] / counts.sum()
        return Ordinal(levels.tolist(), np.asarray(ndtri(shares)).tolist(), learns=True)

    def learned(self, x: FloatArray, y: FloatArray, weights: FloatArray) -> Ordinal:
        """Return the loss with the cut points of highest likelihood."""
        if not self.learns or self.levels is None or self.cut_points is None:
            return self
        cuts = best_cut_points(self.codes(x), y, weights, self.cut_points)
        return Ordinal(self.levels.tolist(), cuts.tolist(), learns=True)

    def target(self, x: FloatArray) -> FloatArray:
        """Return a y in the middle of each level's part of a standard normal variable."""
        if self.levels is None:
            return x
        shares = np.concatenate([[0.0], ndtr(self._cuts), [1.0]])
        middle = np.clip(ndtri((shares[1:] + shares[:-1]) / 2), -2.5, 2.5)
        codes = np.minimum(self.codes(x), middle.size - 1)  # what is missing holds any number
        return np.asarray(middle[codes], dtype=x.dtype)

    def constant(self, mean: float) -> float:
        """Return 0, around which the first cut points lie."""
        return 0.0

    def expected(self, y: FloatArray) -> FloatArray:
        """Return the expected level."""
        levels, y = self.level_values, np.asarray(y)
        total = np.full(y.shape, levels[0])
        for k, cut in enumerate(self._cuts.tolist()):
            total += (levels[k + 1] - levels[k]) * ndtr(y - cut)
        return total.astype(np.result_type(y.dtype, np.float32), copy=False)

    def probabilities(self, y: FloatArray) -> NDArray[np.float64]:
        """Return the probability of each level (n_values, n_levels) at modelled values (n_values,).

        Values and cut points must be known.
        """
        cuts = np.array([-np.inf, *self._cuts, np.inf])
        ends = cuts - np.asarray(y, dtype=np.float64)[:, None]
        p = interval_mass(ends[:, :-1], ends[:, 1:])
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def residuals(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return the level minus the expected one."""
        return x - self.expected(y)

    def codes(self, x: ArrayLike) -> NDArray[np.intp]:
        """Return the position of each value in `levels`."""
        assert self.levels is not None
        return np.searchsorted(self.levels, np.asarray(x, dtype=np.float64))


def _ascending(name: str, least: str, values: Sequence[float]) -> NDArray[np.float64]:
    """Return numbers that ascend, `least` of them or more."""
    numbers = np.asarray(values, dtype=np.float64)
    enough = numbers.ndim == 1 and numbers.size >= (2 if least == "two" else 1)
    if not enough or not np.isfinite(numbers).all() or not np.all(np.diff(numbers) > 0):
        thing = "list of levels" if name == "levels" else "list of cut points"
        raise ValueError(f"{name}={values!r} is no {thing}: give {least} or more, ascending.")
    return numbers


class CensoredFrobenius(Loss):
    """-σ² log P(low <= x <= high | y): what the squared loss is for an entry with limits.

    The parameters `p` are low, high and σ > 0; the argument x has no influence.
    """

    name = "frobenius_limits"
    smooth = True
    smallest_at_x = False

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return -σ² log P."""
        low, high, sd = p
        log_mass: float = log_probability((low - y) / sd, (high - y) / sd)
        return -sd * sd * log_mass

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return y - m(y) and its slope."""
        low, high, sd = p
        slope, curvature = derivatives_between((low - y) / sd, (high - y) / sd)
        return sd * slope, curvature

    @staticmethod
    def least_at(x: float, p: tuple[float, ...]) -> float:
        """Return the middle between the limits, or a y from which P is 1 up to rounding."""
        low, high, sd = p
        first = low if low > -math.inf else high - 80.0 * sd
        last = high if high < math.inf else low + 80.0 * sd
        return 0.5 * first + 0.5 * last
