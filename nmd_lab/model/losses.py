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
from scipy.special import expit, logit

from nmd_lab._runtime.checks import check_number, check_share

from .loss import LAPLACE, NORMAL, FloatArray, as_object
from .loss import Loss as Loss
from .ordinal import Ordinal
from .positive import KL as KL
from .positive import ItakuraSaito, NegativeBinomial, SquaredLog


class Logistic(Loss):
    """Binary data, coded as 0 and 1 or as -1 and 1; y is the log-odds of the value 1.

    With s = 1 where x is the larger value and s = -1 elsewhere, d(x, y) = log(1 + exp(-s y)), the
    negative log-likelihood of logistic regression.  Which coding X has is read from X; a matrix of
    ones alone counts as 0 and 1.

    Parameters
    ----------
    smaller : {None, 0, -1}
        Value that stands for "no"; by default the one that X has.

    Raises
    ------
    ValueError
        If `smaller` is another value.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.Logistic()([0.0, 1.0], 2.0).round(4)
    array([2.1269, 0.1269])
    >>> float(nmd.losses.Logistic().expected(2.0).round(4))
    0.8808
    """

    name = "logistic"
    label = "logistic: binary data"
    likelihood = True
    noise = "Bernoulli"
    residual_name = "Pearson residual"
    smooth = True
    classes = "two"
    smallest_at_x = False
    link = "identity"
    parameter_names = ("smaller",)

    def __init__(self, smaller: float | None = None) -> None:
        if smaller is not None and smaller not in (0, -1):
            raise ValueError(f"smaller={smaller!r} is no coding of binary data: give 0 or -1.")
        self.smaller = None if smaller is None else float(smaller)
        self.parameters = (self.smaller or 0.0,)

    @property
    def settings(self) -> tuple[float | None, ...]:
        """The value that stands for "no", if it is known."""
        return () if self.smaller is None else (self.smaller,)

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return log(1 + exp(-y)) for x = 1, and log(1 + exp(y)) for the smaller value."""
        against = -y if x > 0.5 else 1.0 * y
        return max(against, 0.0) + math.log1p(math.exp(-abs(against)))

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the root of rho (z - s q) = 1 / (1 + exp(z)), times s.

        The right side lies between 0 and 1.  It is convex for z > 0, concave for z < 0, and its
        tangent at 0 is 1/2 - z/4.  These bound the root, and Halley's iterates begin at the bound.
        """
        s = 1.0 if x > 0.5 else -1.0
        centre = s * q
        z = (rho * centre + 0.5) / (rho + 0.25)
        z = max(centre, z) if z > 0.0 else min(centre + 1.0 / rho, z)
        for _ in range(100):
            small = math.exp(-abs(z))
            inverse = 1.0 / (1.0 + small)
            share, variance = small * inverse if z > 0.0 else inverse, small * inverse * inverse
            gap, slope = rho * (z - centre) - share, rho + variance
            step = gap * slope / (slope * slope - gap * (share - 0.5) * variance)
            z -= step
            # After such a step no other one is needed.
            if abs(step) <= 1e-5 * (1.0 + abs(z)):
                break
        return s * z

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return P(x = 1) - x for x = 0 and 1, and the variance of x."""
        small = math.exp(-abs(y))
        share = 1.0 / (1.0 + small) if y > 0.0 else small / (1.0 + small)
        return share - (1.0 if x > 0.5 else 0.0), small / ((1.0 + small) * (1.0 + small))

    @staticmethod
    def latent_ends(x: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return the half of all numbers that stands for x."""
        return (0.0, math.inf) if x > 0.5 else (-math.inf, 0.0)

    @staticmethod
    def least_at(x: float, p: tuple[float, ...]) -> float:
        """Return plus or minus infinity."""
        return math.inf if x > 0.5 else -math.inf

    def for_data(self, x: FloatArray, weights: FloatArray | None = None) -> Logistic:
        """Return the loss with the coding of X, if X is binary."""
        smaller = self.smaller
        if smaller is None:
            smaller = -1.0 if np.any(x < 0) else 0.0
        strange = x[(x != 1) & (x != smaller)]
        if strange.size:
            raise ValueError(
                f"X holds the value {strange[0]:g}, which the loss 'logistic' does not define "
                f"with {smaller:g} and 1: code X as 0 and 1, or as -1 and 1."
            )
        return self if smaller == self.smaller else Logistic(smaller)

    def target(self, x: FloatArray) -> FloatArray:
        """Return moderate log-odds of the observed values."""
        return np.where(x > 0.5, 2.0, -2.0).astype(x.dtype)

    def constant(self, mean: float) -> float:
        """Return the log-odds of the fraction of larger values."""
        share = (mean - self.parameters[0]) / (1.0 - self.parameters[0])
        least = expit(-7.0)  # log-odds at most: one entry of a thousand differs
        return float(logit(min(max(share, least), 1 - least)))

    def expected(self, y: FloatArray) -> FloatArray:
        """Return the probability of 1 for data of 0 and 1, or 2 p - 1 for data of -1 and 1."""
        low = self.parameters[0]
        return np.asarray(low + (1 - low) * expit(y))

    def residuals(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return the residuals in units of their standard deviation, at most 1000."""
        s = np.where(x > 0.5, 1.0, -1.0)
        # (1 - p) / sqrt(p (1 - p)) = exp(-y / 2), with p the probability of what was observed
        return np.asarray(s * np.minimum(np.exp(np.minimum(-s * y / 2, 10.0)), 1000.0))


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
