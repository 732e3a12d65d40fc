"""Losses of positive data in which only ratios count: Itakura-Saito and squared logarithmic."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nmd_lab._numba import compile_scalar
from nmd_lab.model.loss import Loss

from ._roots import cubic_minima, exponential_minimum

RATIO_FLOOR = 1e-6
"""Smallest f(WH) in a reported objective, as a share of x.  The optimisation has no such bound."""


@compile_scalar
def ratio_divergence(x: float, y: float) -> float:
    """Return x/y - log(x/y) - 1."""
    excess = (x - y) / y
    if abs(excess) < 0.5:  # near y = x the plain formula cancels
        return excess - math.log1p(excess)
    return excess - math.log(x / y)


class _RatioLoss(Loss):
    """A loss of x / y, for x > 0 and y > 0."""

    smooth = True
    link = "exp"
    convex = False
    domain = (0.0, math.inf)
    floor = 0.0
    relative_floor = RATIO_FLOOR

    def check_data(self, smallest: float, largest: float) -> None:
        """Raise ValueError if some data are not positive."""
        if smallest <= 0:
            raise ValueError(
                f"X holds the value {smallest:g}, which the loss {self.name!r} does not define: "
                "add a small constant to X, mask such entries, or use loss='frobenius'."
            )

    def target(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return x, and 1 where an entry is missing and its value therefore 0."""
        return np.where(x > 0, x, x.dtype.type(1))


class ItakuraSaito(_RatioLoss):
    """Itakura-Saito divergence, d(x, y) = x/y - log(x/y) - 1: power spectra, gamma noise.

    Both x and y must be positive.  A multiple of X has the same loss, so that weak and strong
    entries count alike.  Reported objectives use max(f(WH), 1e-6 x).

    Notes
    -----
    C. Févotte, N. Bertin and J.-L. Durrieu, "Nonnegative matrix factorization with the
    Itakura-Saito divergence", Neural Computation 21, 2009.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.ItakuraSaito()([1.0, 10.0], [2.0, 20.0]).round(4)
    array([0.1931, 0.1931])
    """

    name = "itakura_saito"
    label = "Itakura-Saito"
    noise = "gamma"
    residual_name = "relative residual"

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return x/y - log(x/y) - 1."""
        if y <= 0.0 or y == math.inf:
            return math.inf
        value: float = ratio_divergence(x, y)
        return value

    @staticmethod
    def proximal_within(
        q: float, x: float, rho: float, low: float, high: float, p: tuple[float, ...]
    ) -> float:
        """Return the better of the roots of rho y^3 - rho q y^2 + y - x that are minima."""
        left, right = min(q, x), max(q, x)
        left, right = max(left, low, 0.0), min(right, high)
        if left >= right:
            return min(max(left, low), high)
        size = right  # roots of a cubic in y / size keep their digits
        weight, data, centre = rho * size * size, x / size, q / size
        scaled = cubic_minima(left / size, 1.0, weight, -weight * centre, 1.0, -data)
        best, lowest = right, math.inf
        for z in scaled:
            if z > 0.0:
                objective = ratio_divergence(data, z)
                objective += 0.5 * weight * (z - centre) * (z - centre)
                if objective < lowest:
                    best, lowest = z * size, objective
        return min(max(best, low), high)

    def residuals(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return x / y - 1."""
        residuals: NDArray[np.floating] = x / np.maximum(y, RATIO_FLOOR * x) - 1
        return residuals


class SquaredLog(_RatioLoss):
    """Squared logarithmic error, d(x, y) = (log x - log y)^2 / 2: log-normal noise.

    Both x and y must be positive.  A multiple of X has the same loss.  Reported objectives use
    max(f(WH), 1e-6 x).

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.SquaredLog()([1.0, 10.0], [2.0, 20.0]).round(4)
    array([0.2402, 0.2402])
    """

    name = "squared_log"
    label = "squared logarithm"
    noise = "log-normal"
    residual_name = "residual of the logarithm"

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return (log x - log y)^2 / 2."""
        if y <= 0.0 or y == math.inf:
            return math.inf
        excess = (x - y) / y
        r = math.log1p(excess) if abs(excess) < 0.5 else math.log(x / y)
        return 0.5 * r * r

    @staticmethod
    def proximal_within(
        q: float, x: float, rho: float, low: float, high: float, p: tuple[float, ...]
    ) -> float:
        """Return exp(u) for the minimiser u of (u - log x)^2 / 2 + rho/2 (exp(u) - q)^2."""
        first = math.log(low) if low > 0.0 else -math.inf
        last = math.log(high) if high > 0.0 else -math.inf
        u = exponential_minimum(1.0, math.log(x), rho, q, first, last)
        return min(max(math.exp(u), low), high)

    def residuals(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return log x - log y."""
        residuals: NDArray[np.floating] = np.log(x) - np.log(np.maximum(y, RATIO_FLOOR * x))
        return residuals
