"""The distribution of an observation in a table of several kinds: that of its column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nmd_lab.model.mixed import each_group

from .mixture import Predictive
from .noise import Array


class Column(NamedTuple):
    """The distribution in a column, of which centre + size v has the units of the column.

    Attributes
    ----------
    predictive : Predictive
        Distribution of an observation.
    centre, size : float
        Units.
    """

    predictive: Predictive
    centre: float
    size: float


class OfColumns(Predictive):
    """The distribution at entries whose columns `at` says."""

    def __init__(self, each: list[Column], columns: NDArray[np.integer] | None = None) -> None:
        self._each, self._columns = each, columns

    @property
    def numbers(self) -> int:
        """Most numbers that are computed for a draw and an entry of any column."""
        return max(column.predictive.numbers for column in self._each)

    def at(self, rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Self:
        """Return the distribution at entries of some columns."""
        if columns.size and columns.min() < 0:
            raise ValueError(
                "columns holds a label that X does not have, whose kind is not known: give "
                "columns of X."
            )
        return type(self)(self._each, columns)

    def of_draw(self, draw: int) -> Self:
        """Return the distribution given one draw alone."""
        each = [c._replace(predictive=c.predictive.of_draw(draw)) for c in self._each]
        return type(self)(each, self._columns)

    def mean(self, v: Array) -> Array:
        """Return the mean in each draw."""
        return self._filled(v.shape, lambda p, at, u: p.mean(u), v)

    def mean_and_variance(self, v: Array) -> tuple[Array, Array]:
        """Return mean and variance in each draw."""
        mean, variance = np.empty(v.shape), np.empty(v.shape)
        for predictive, at, u in self._columns_of(v):
            mean[:, at], variance[:, at] = predictive.mean_and_variance(u)
        return mean, variance

    def cdf(self, v: Array, x: Array) -> Array:
        """Return P(observation <= x) over all draws."""
        return self._filled(v.shape[1:], lambda p, at, u: p.cdf(u, x[at]), v)

    def log_densities(self, v: Array, x: Array) -> Array:
        """Return the logarithm of the density, or probability, of x over all draws, in one row."""
        return self._filled((1, v.shape[1]), lambda p, at, u: p.log_density(u, x[at]), v)

    def quantile(self, v: Array, level: float) -> Array:
        """Return a quantile over all draws for each entry."""
        return self._filled(v.shape[1:], lambda p, at, u: p.quantile(u, level), v)

    def point(self, v: Array, point: str) -> Array:
        """Return the best guess for each entry."""
        return self._filled(v.shape[1:], lambda p, at, u: p.point(u, point), v)

    def draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a new observation of each entry from a single draw."""
        return self._filled(v.shape, lambda p, at, u: p.draw(u, rng), v)

    def _columns_of(self, v: Array) -> Iterator[tuple[Predictive, NDArray[np.intp], Array]]:
        """Yield each column: its distribution, its entries, and v in its units there."""
        assert self._columns is not None
        for j, at in each_group(self._columns, len(self._each)):
            predictive, centre, size = self._each[j]
            yield predictive, at, np.ascontiguousarray(centre + size * v[..., at])

    def _filled(
        self, shape: tuple[int, ...], function: Callable[[Predictive, Any, Array], Array], v: Array
    ) -> Array:
        """Return a function of each column at its entries."""
        out = np.empty(shape)
        for predictive, at, u in self._columns_of(v):
            out[..., at] = function(predictive, at, u)
        return out
