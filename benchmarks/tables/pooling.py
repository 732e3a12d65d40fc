"""Regressions on completed tables, and their pooled estimates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

import nmd_lab as nmd

Array = np.ndarray

LEVEL = 0.95
"""Level of the intervals of coefficients."""


class Estimate(NamedTuple):
    """Coefficients (k,) with their variances, and the degrees of freedom of their intervals."""

    value: Array
    variance: Array
    degrees: Array | float

    @property
    def interval(self) -> Array:
        """Ends of the intervals, (k, 2)."""
        reach = stats.t.ppf((1 + LEVEL) / 2, self.degrees) * np.sqrt(self.variance)
        return np.stack([self.value - reach, self.value + reach], axis=-1)

    def record(self) -> dict[str, list[float]]:
        """Return the coefficients and the ends of their intervals, as a journal has them."""
        low, high = self.interval.T
        return {"value": self.value.tolist(), "low": low.tolist(), "high": high.tolist()}


def least_squares(X: Array, y: Array) -> Estimate:
    """Return the least-squares coefficients of y on X (n, k), without that of the constant."""
    A = np.column_stack([np.ones(len(y)), X])
    inverse = np.linalg.inv(A.T @ A)
    value = inverse @ (A.T @ y)
    degrees = len(y) - A.shape[1]
    noise = np.sum((y - A @ value) ** 2) / degrees
    return Estimate(value[1:], noise * np.diag(inverse)[1:], degrees)


def pool(estimates: list[Estimate]) -> Estimate:
    """Return one estimate from those of several completed copies of a table, by `nmd.pool`."""
    pairs = [(each.value, each.variance) for each in estimates]
    found = nmd.pool(pairs, df=float(estimates[0].degrees))
    value, error, degrees = (found[key].to_numpy() for key in ("estimate", "std_error", "df"))
    return Estimate(value, error**2, degrees)
