"""Ordered levels, such as stars or answers of a survey, whose distances are not known.

A level means that y + noise lies between two cut points, with standard normal noise.  The cut
points are learned.  This is the cumulative probit model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from nmd_lab._runtime.compiler import compile_scalar, number_at

from .base import FloatArray
from .cut_points import best_cut_points, log_probability, slopes
from .loss import Loss

SHORT = 1e-7  # of a step of Newton's method after which no other one is needed

FIRST_RANGE = 2.5
"""Largest magnitude of the y with which a fit begins."""


@compile_scalar
def level_ends(x: float, p: tuple[float, ...]) -> tuple[float, float]:
    """Return the cut points below and above the level x.

    p has the number n of levels, and the address of a table of n levels and n - 1 cut points.
    """
    n, table = int(p[0]), int(p[1])
    low, high = -math.inf, math.inf
    for k in range(n - 1):
        middle = 0.5 * (number_at(table, k) + number_at(table, k + 1))
        if x > middle:  # levels as float32 differ from those of the table by their rounding
            low = number_at(table, n + k)
        elif high == math.inf:
            high = number_at(table, n + k)
    return low, high


class Ordinal(Loss):
    """Ordered levels with learned cut points: cumulative probit.

    With cut points c_1 < c_2 < ..., level k has the probability Φ(c_k - y) - Φ(c_(k-1) - y), and d
    is minus its logarithm.  Levels are numbers, but only their order matters.

    Parameters
    ----------
    levels : sequence of float, optional
        All levels in ascending order, at least two; by default those that X has.  Predictions are
        expected levels, and so depend on these numbers; the fit does not.
    cut_points : sequence of float, optional
        Cut points between the levels, ascending, one fewer than levels; by default they are learned
        from X.
    learns : bool, optional
        Whether the cut points are learned, from the given ones on; by default only if none are
        given.

    Raises
    ------
    ValueError
        If the levels are fewer than two, not finite, or not ascending, or if the cut points do not
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
                    "point fewer than levels."
                )
        self.learns = self.cut_points is None if learns is None else bool(learns)
        if self.levels is not None:
            cuts = self._equal_shares() if self.cut_points is None else self.cut_points
            self.level_values = tuple(self.levels.tolist())
            self.parameters = (*self.level_values, *cuts.tolist())
            self._table = np.array(self.parameters)

    def _equal_shares(self) -> NDArray[np.float64]:
        """Return cut points that give all levels the same probability at y = 0."""
        assert self.levels is not None
        n = self.levels.size
        return np.asarray(ndtri(np.arange(1, n) / n))

    @property
    def numbers(self) -> tuple[float, ...]:
        """Number of levels, and the address of levels and cut points, whose count varies."""
        if self.levels is None:
            return ()
        return float(self.levels.size), float(self._table.ctypes.data)

    @property
    def settings(self) -> tuple[tuple[float, ...] | bool, ...]:
        """Levels and cut points, as far as they are known, and whether the latter are learned."""
        if self.levels is None:
            return ()
        levels = tuple(self.levels.tolist())
        if self.cut_points is None:
            return (levels,)
        cuts = tuple(self.cut_points.tolist())
        return (levels, cuts, True) if self.learns else (levels, cuts)

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return minus the logarithm of the probability of the level x."""
        low, high = level_ends(x, p)
        logarithm: float = log_probability(low - y, high - y)
        return -logarithm

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the root of the derivative, by Newton's method with bisection.

        The derivative rises, with a slope between rho and rho + 1.  So its value at q bounds the
        distance of the root from both sides.  After a short step the next one is its square.
        """
        low, high = level_ends(x, p)
        y = q
        left, right = -math.inf, math.inf
        for k in range(100):
            a, b = low - y, high - y
            at_a, at_b, slope = slopes(a, b)
            curvature = slope * slope
            curvature += (b * at_b if b < math.inf else 0.0) - (a * at_a if a > -math.inf else 0.0)
            rise = slope + rho * (y - q)
            if k == 0:
                near, far = q - slope / (rho + 1.0), q - slope / rho
                left, right = min(near, far), max(near, far)
            elif rise > 0.0:
                right = y
            else:
                left = y
            new = y - rise / (rho + min(max(curvature, 0.0), 1.0))
            if not left <= new <= right:
                new = 0.5 * (left + right)
            step = abs(new - y)
            y = new
            if step <= SHORT * (1.0 + abs(y)):
                break
        return y

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
        """Return the same model with its levels and first cut points.

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
                "X has a single level: give all levels, for example nmd.losses.Ordinal([1, 2, 3])."
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
        best = Ordinal(self.levels.tolist(), cuts.tolist(), learns=True)
        before, after = (float(np.sum(weights * loss(x, y))) for loss in (self, best))
        return best if after < before else self

    def target(self, x: FloatArray) -> FloatArray:
        """Return a y in the middle of each level's part of a standard normal variable."""
        if self.levels is None:
            return x
        cuts = self._equal_shares() if self.cut_points is None else self.cut_points
        shares = np.concatenate([[0.0], np.asarray(ndtr(cuts)), [1.0]])
        middle = np.clip(ndtri((shares[1:] + shares[:-1]) / 2), -FIRST_RANGE, FIRST_RANGE)
        codes = np.minimum(self.codes(x), middle.size - 1)  # what is missing holds any number
        return np.asarray(middle[codes], dtype=x.dtype)

    def constant(self, mean: float) -> float:
        """Return 0, around which the first cut points lie."""
        return 0.0

    def expected(self, y: FloatArray) -> FloatArray:
        """Return the expected level."""
        n = (len(self.parameters) + 1) // 2
        levels, cuts = self.parameters[:n], self.parameters[n:]
        y = np.asarray(y)
        total = np.full(y.shape, levels[0])
        for k, cut in enumerate(cuts):
            total += (levels[k + 1] - levels[k]) * ndtr(y - cut)
        return total.astype(np.result_type(y.dtype, np.float32), copy=False)

    def probabilities(self, y: FloatArray) -> NDArray[np.float64]:
        """Return the probability of each level (n_values, n_levels) at modelled values (n_values,).

        Levels and cut points must be known.
        """
        n = (len(self.parameters) + 1) // 2
        cuts = np.array([-np.inf, *self.parameters[n:], np.inf])
        above = ndtr(cuts - np.asarray(y, dtype=np.float64)[:, None])
        below = ndtr(np.asarray(y, dtype=np.float64)[:, None] - cuts)  # exact in the upper tail
        p = np.where(above[:, 1:] < 0.5, np.diff(above, axis=1), -np.diff(below, axis=1))
        probabilities: NDArray[np.float64] = p / p.sum(axis=1, keepdims=True)
        return probabilities

    def residuals(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return the level minus the expected one."""
        return x - self.expected(y)

    def codes(self, x: ArrayLike) -> NDArray[np.intp]:
        """Return the position of each value among the levels."""
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
