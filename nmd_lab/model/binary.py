"""The logistic loss of binary data."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit

from .loss import FloatArray, Loss


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
