"""Losses of positive data and counts: Itakura-Saito, squared logarithmic, negative binomial."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from nmd_lab._runtime.compiler import compile_scalar

from .base import FloatArray
from .closed_forms import cubic_minima, exponential_minimum
from .loss import Loss

RATIO_FLOOR = 1e-6
"""Smallest f(WH) in a reported objective, as a fraction of x.  The solver has no such bound."""


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

    def target(self, x: FloatArray) -> FloatArray:
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

    def residuals(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return x / y - 1."""
        residuals: FloatArray = x / np.maximum(y, RATIO_FLOOR * x) - 1
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

    def residuals(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return log x - log y."""
        residuals: FloatArray = np.log(x) - np.log(np.maximum(y, RATIO_FLOOR * x))
        return residuals


COUNT_FLOOR = 1e-6
"""Smallest f(WH) in a reported objective, as a fraction of x.  The solver has no such bound."""

DISPERSIONS = (1e-8, 1e6)
"""Smallest and largest dispersion that is learned."""

FIRST_DISPERSIONS = (1e-3, 10.0)
"""Smallest and largest dispersion with which a fit begins."""


@compile_scalar
def stirling_excess(z: float) -> float:
    """Return log Γ(z) minus Stirling's formula (z - 1/2) log z - z + log(2 π) / 2; z > 0."""
    if z > 30.0:
        square = z * z
        return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / z
    return math.lgamma(z) - (z - 0.5) * math.log(z) + z - 0.5 * math.log(2.0 * math.pi)


@compile_scalar
def smallest_value(x: float, size: float, excess: float) -> float:
    """Return the value at y = x > 0, in which large terms cancel in the usual formula."""
    terms: float = stirling_excess(x) + excess - stirling_excess(x + size)
    return 0.5 * (math.log(2.0 * math.pi * x) + math.log1p(x / size)) + terms


@compile_scalar
def deviance(x: float, y: float, size: float) -> float:
    """Return how much the value at y > 0 exceeds that at y = x."""
    if x == 0.0:
        return size * math.log1p(y / size)
    narrow, wide = (y - x) / (x + size), (y - x) / x
    if abs(wide) < 0.5:  # near y = x the plain formula cancels
        return x * (wide - math.log1p(wide)) - (x + size) * (narrow - math.log1p(narrow))
    if wide > 0.0:
        return (x + size) * math.log1p(narrow) - x * math.log(y / x)
    return (x + size) * math.log((y + size) / (x + size)) - x * math.log(y / x)


class NegativeBinomial(Loss):
    """Counts of mean y and variance y + dispersion y^2: the negative log-likelihood.

    With k = 1 / dispersion,

        d(x, y) = log Γ(k) + log Γ(x + 1) - log Γ(x + k) + (x + k) log(1 + y/k) - x log(y/k).

    A dispersion of 0 would be the Poisson distribution, for which there is `KL`.  Reported
    objectives use max(f(WH), 1e-6 x).

    Parameters
    ----------
    dispersion : float, optional
        Dispersion, > 0; by default it is learned from X.
    learns : bool, optional
        Whether the dispersion is learned, from the given one on; by default only if none is given.

    Raises
    ------
    ValueError
        If the dispersion is not a positive, finite number.

    Notes
    -----
    The variance is that of J. M. Hilbe, *Negative Binomial Regression*, 2011, model NB2.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.NegativeBinomial(0.5)([0.0, 3.0], [1.0, 3.0]).round(4)
    array([0.8109, 1.9788])
    """

    name = "negative_binomial"
    label = "negative binomial"
    likelihood = True
    noise = "negative binomial"
    residual_name = "Pearson residual"
    smooth = True
    convex = False
    link = "exp"
    domain = (0.0, math.inf)
    floor = 0.0
    relative_floor = COUNT_FLOOR
    parameter_names = ("dispersion", "learns")

    def __init__(self, dispersion: float | None = None, learns: bool | None = None) -> None:
        if dispersion is not None and not 0 < float(dispersion) < math.inf:
            raise ValueError(
                f"dispersion={dispersion!r} is not positive: give a number > 0, or use loss='kl' "
                "for Poisson counts."
            )
        self.dispersion = None if dispersion is None else float(dispersion)
        self.learns = self.dispersion is None if learns is None else bool(learns)
        value = 1.0 if self.dispersion is None else self.dispersion
        # A constant of the value, which it would otherwise compute for each entry.
        self.parameters = (value, float(stirling_excess(1.0 / value)))

    @property
    def settings(self) -> tuple[float | bool | None, ...]:
        """Dispersion, and whether it is learned if that does not follow from it."""
        if self.learns == (self.dispersion is None):
            return () if self.dispersion is None else (self.dispersion,)
        return self.dispersion, self.learns

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return the negative log-likelihood of x for the mean y."""
        if y < 0.0 or y == math.inf:
            return math.inf
        if y == 0.0:
            return 0.0 if x == 0.0 else math.inf
        size = 1.0 / p[0]
        value: float = deviance(x, y, size)
        return value + (smallest_value(x, size, p[1]) if x > 0.0 else 0.0)

    @staticmethod
    def proximal_within(
        q: float, x: float, rho: float, low: float, high: float, p: tuple[float, ...]
    ) -> float:
        """Return the better of two roots of a cubic.

        It is k y times the derivative: rho/k y^3 + rho (1 - q/k) y^2 + (1 - rho q) y - x, with
        k = 1 / dispersion.
        """
        left, right = max(min(q, x), low, 0.0), min(max(q, x), high)
        if left >= right:
            return min(max(left, low), high)
        weight = rho * p[0]
        minima = cubic_minima(left, right, weight, rho - weight * q, 1.0 - rho * q, -x)
        best, lowest = right, math.inf
        for y in minima:
            if y > 0.0 or x == 0.0:
                objective = deviance(x, y, 1.0 / p[0]) + 0.5 * rho * (y - q) * (y - q)
                if objective < lowest:
                    best, lowest = y, objective
        return min(max(best, low), high)

    def check_data(self, smallest: float, largest: float) -> None:
        """Raise ValueError if some data are negative."""
        if smallest < 0:
            raise ValueError(
                f"X holds the negative value {smallest:g}, which the loss 'negative_binomial' does "
                "not define: shift or clip X, or use loss='frobenius' or 'l1'."
            )

    def for_data(self, x: FloatArray, weights: FloatArray | None = None) -> NegativeBinomial:
        """Return the loss with a first dispersion, that of the data around their mean."""
        if self.dispersion is not None:
            return self
        mean = float(np.average(x, weights=weights))
        variance = float(np.average(np.square(x - mean), weights=weights))
        rough = (variance - mean) / mean**2 if mean > 0 else 1.0
        smallest, largest = FIRST_DISPERSIONS
        return NegativeBinomial(min(max(rough, smallest), largest), learns=True)

    def learned(self, x: FloatArray, y: FloatArray, weights: FloatArray) -> NegativeBinomial:
        """Return the loss with the dispersion of highest likelihood."""
        if not self.learns:
            return self
        y = np.maximum(y, COUNT_FLOOR * x).astype(np.float64)
        counts, position = np.unique(x, return_inverse=True)
        totals = np.bincount(position.ravel(), weights, counts.size)
        total, sum_of_counts = float(totals.sum()), float(totals @ counts)

        def objective(logarithm: float) -> float:  # without the terms that stay
            size = math.exp(-logarithm)
            constants = float(totals @ (gammaln(counts + size) - gammaln(size)))
            growth = float(np.sum(weights * ((x + size) * np.log1p(y / size))))
            return (growth - constants - logarithm * sum_of_counts) / total

        present = math.log(self.dispersion or 1.0)
        low, high = (math.log(each) for each in DISPERSIONS)
        ends = max(low, present - 4), min(high, present + 4)
        found = minimize_scalar(objective, bounds=ends, method="bounded", options={"xatol": 1e-5})
        best = NegativeBinomial(math.exp(found.x), learns=True)
        before, after = (float(np.sum(weights * loss(x, y))) for loss in (self, best))
        return best if after < before else self

    def residuals(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return (x - y) / √(y + dispersion y²) where y > 0."""
        positive = y > COUNT_FLOOR * x
        mean = y[positive]
        spread = np.sqrt(mean + self.parameters[0] * mean**2)
        scaled: FloatArray = (x[positive] - mean) / spread
        return scaled
