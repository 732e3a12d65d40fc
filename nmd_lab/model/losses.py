"""Losses: the distance d(x, y) between an observed value x and a modelled value y.

A loss is one small class.  It defines d, its proximal map, its domain in y, and the reference
objective of the relative error.  The exact T-update with every nonlinearity follows from these,
for dense, masked and sparse data.

>>> import nmd_lab as nmd
>>> nmd.KL().name
'kl'
"""

from __future__ import annotations

import math

import numpy as np

from nmd_lab._runtime.checks import check_number, check_share

from .binary import Logistic
from .loss import LAPLACE, NORMAL, FloatArray, as_object
from .loss import Loss as Loss
from .ordinal import Ordinal
from .positive import KL as KL
from .positive import ItakuraSaito, NegativeBinomial, SquaredLog


def _positive_mean(losses: FloatArray) -> float:
    """Return the mean loss, above 0."""
    return max(float(np.mean(losses)) if losses.size else 1.0, float(np.finfo(float).tiny))


class Frobenius(Loss):
    """Least squares, d(x, y) = (x - y)^2 / 2: Gaussian noise.

    The relative error is ||X - Y||_F / ||X||_F.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> float(nmd.prox(1.0, 3.0, 1.0, nonlinearity="identity", loss=nmd.Frobenius()))
    2.0
    """

    name = "frobenius"
    label = "Frobenius"
    noise = "Gaussian"
    noise_model, likelihood = NORMAL, True
    squares = True
    smooth = True
    degree = 2
    of_zero = "square"
    reference_is_sum = True

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return (x - y)^2 / 2."""
        return 0.5 * (x - y) * (x - y)

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the weighted mean of x and q."""
        return (x + rho * q) / (1.0 + rho)

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return y - x and 1."""
        return y - x, 1.0

    def reference(self, x: FloatArray, weights: FloatArray) -> float:
        """Return ‖X‖² / 2."""
        return 0.5 * float(np.sum(weights * np.square(x, dtype=np.float64)))

    def relative_error(self, objective: float, reference: float) -> float:
        """Return ‖X - Y‖ / ‖X‖."""
        return math.sqrt(super().relative_error(objective, reference))

    def log_scores(self, losses: FloatArray, x: FloatArray) -> FloatArray:
        """Return the scores under the variance that makes them lowest, twice the mean loss."""
        mean = _positive_mean(losses)
        return np.asarray(0.5 * np.log(4 * np.pi * mean) + 0.5 * losses / mean)


class L1(Loss):
    """Absolute deviations, d(x, y) = |x - y|: robust to outliers.

    The relative error is the sum of |X - Y| over the sum of |X|.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> float(nmd.prox(1.0, 3.0, 1.0, nonlinearity="identity", loss=nmd.L1()))
    2.0
    """

    name = "l1"
    label = "L1"
    noise = "Laplace"
    noise_model, likelihood = LAPLACE, True
    degree = 1
    of_zero = "absolute"
    reference_is_sum = True

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return |x - y|."""
        return abs(x - y)

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return x clipped to q ± 1/rho."""
        return min(max(x, q - 1.0 / rho), q + 1.0 / rho)

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return the sign of y - x and 0."""
        return (1.0 if y > x else -1.0 if y < x else 0.0), 0.0

    def reference(self, x: FloatArray, weights: FloatArray) -> float:
        """Return the sum of |X|."""
        return float(np.sum(weights * np.abs(x), dtype=np.float64))

    def log_scores(self, losses: FloatArray, x: FloatArray) -> FloatArray:
        """Return the scores under the scale that makes them lowest, the mean loss."""
        mean = _positive_mean(losses)
        return np.asarray(np.log(2 * mean) + losses / mean)


class Huber(Loss):
    """Least squares near zero and absolute deviations beyond: Gaussian noise with outliers.

    With r = abs(x - y), d is r^2 / 2 up to r = delta, and delta (r - delta / 2) beyond.

    Parameters
    ----------
    delta : float, default 1
        Residual from which an entry counts as an outlier, in the units of X; > 0.

    Raises
    ------
    ValueError
        If `delta` is not a positive, finite number.

    Notes
    -----
    P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35,
    1964.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.Huber(1.0)([0.0, 0.0], [0.5, 3.0])
    array([0.125, 2.5  ])
    """

    name = "huber"
    label = "Huber"
    noise = "Gaussian with outliers"
    smooth = True
    degree = 2
    parameter_names = ("delta",)

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = check_number("delta", delta, above=0)
        self.parameters = (self.delta,)

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return r^2 / 2 for small r = |x - y|, and delta (r - delta / 2) for large r."""
        r = abs(x - y)
        return 0.5 * r * r if r <= p[0] else p[0] * (r - 0.5 * p[0])

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the mean of x and q with weights 1 and rho, at most delta/rho from q."""
        step = (x - q) / (1.0 + rho)
        return q + min(max(step, -p[0] / rho), p[0] / rho)

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return y - x and 1 for small residuals, ± delta and 0 for large ones."""
        return min(max(y - x, -p[0]), p[0]), 1.0 if abs(y - x) <= p[0] else 0.0

    def scaled(self, size: float) -> Huber:
        """Return the same loss for data that are divided by `size`."""
        return Huber(self.delta / size)


class Quantile(Loss):
    """Pinball loss: the model is a quantile of x instead of its mean.

    d(x, y) = q (x - y) for x > y, and (1 - q) (y - x) for x < y.  With q = 0.9, the model lies
    above nine of ten observed values.

    Parameters
    ----------
    q : float, default 0.5
        Fraction of the data below the model, between 0 and 1.  0.5 is half of L1.

    Raises
    ------
    ValueError
        If `q` does not lie between 0 and 1.

    Notes
    -----
    R. Koenker and G. Bassett, "Regression quantiles", Econometrica 46, 1978.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.Quantile(0.9)([1.0, 1.0], [0.0, 2.0]).round(3)
    array([0.9, 0.1])
    """

    name = "quantile"
    label = "quantile (pinball)"
    noise = "asymmetric Laplace"
    degree = 1
    parameter_names = ("q",)

    def __init__(self, q: float = 0.5) -> None:
        self.q = check_share("q", q, zero=False)
        self.parameters = (self.q,)

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return q (x - y) or (1 - q) (y - x), whichever is positive."""
        return p[0] * (x - y) if x > y else (1.0 - p[0]) * (y - x)

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return -q below x and 1 - q above, and 0."""
        return (-p[0] if y < x else 1.0 - p[0] if y > x else 0.0), 0.0

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return x clipped to the two y at which a slope of d balances the quadratic."""
        return min(max(x, q - (1.0 - p[0]) / rho), q + p[0] / rho)


LOSSES: dict[str, type[Loss]] = {
    cls.name: cls
    for cls in (
        *(Frobenius, L1, KL),
        *(Huber, Quantile, Logistic, NegativeBinomial, ItakuraSaito, SquaredLog, Ordinal),
    )
}
"""Losses of the package by name."""


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss of this name; a Loss object is returned as it is."""
    return as_object("loss", loss, Loss, LOSSES)
