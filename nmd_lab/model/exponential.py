"""The exponential f(t) = exp(t), and its T-updates.

The derivative of the objective of each T-update below rises from a concave to a convex part, or is
convex or concave throughout.  Newton's iterates from the right end of the bracket on a convex part,
and from its left end on a concave one, do not leap over the root.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .likelihoods._roots import exponential_minimum
from .likelihoods.counts import NegativeBinomial
from .likelihoods.positive import ItakuraSaito, SquaredLog
from .losses import KL, Frobenius, Loss
from .nonlinearity import Nonlinearity

LARGEST = 300.0
"""Where exp(t) stops: it is exp(300) or exp(-300) beyond, so that no product overflows."""

INSTEAD_OF_ZERO = 0.1
"""exp(T) at the start where X is not positive, as for a count of zero."""

Numbers = tuple[float, ...]


def exp_frobenius(v: float, x: float, rho: float, pf: Numbers, pd: Numbers) -> float:
    """Return the minimiser of (x - e^t)^2 / 2 + rho/2 (t - v)^2."""
    t: float = exponential_minimum(rho, v, 1.0, x, -math.inf, LARGEST)
    return t


def exp_squared_log(v: float, x: float, rho: float, pf: Numbers, pd: Numbers) -> float:
    """Return the minimiser of (log x - t)^2 / 2 + rho/2 (t - v)^2."""
    return (math.log(x) + rho * v) / (1.0 + rho)


def exp_kl(v: float, x: float, rho: float, pf: Numbers, pd: Numbers) -> float:
    """Return the root of e^t - x + rho (t - v), which is convex in t."""
    t = max(v, math.log(x)) if x > 0.0 else v
    if t > 0.0:  # e^t is at most x + rho (v - t)
        t = min(t, math.log(max(x + rho * max(v, 0.0), 1.0)))
    for _ in range(200):
        growth = math.exp(t)
        step = (growth - x + rho * (t - v)) / (growth + rho)
        t -= step
        if abs(step) <= 1e-15 * (1.0 + abs(t)):
            break
    return t


def exp_itakura_saito(v: float, x: float, rho: float, pf: Numbers, pd: Numbers) -> float:
    """Return the root of 1 - x e^-t + rho (t - v), which is concave in t."""
    t = min(v, math.log(x))
    t = max(t, min(0.0, math.log(x / (1.0 + rho * abs(v)))))
    for _ in range(200):
        decay = x * math.exp(-t)
        step = (1.0 - decay + rho * (t - v)) / (decay + rho)
        t -= step
        if abs(step) <= 1e-15 * (1.0 + abs(t)):
            break
    return t


def exp_negative_binomial(v: float, x: float, rho: float, pf: Numbers, pd: Numbers) -> float:
    """Return the root of (x + k) / (1 + k e^-t) - x + rho (t - v), convex below log k."""
    size = 1.0 / pd[0]
    bend = math.log(size)
    if 0.5 * (x + size) - x + rho * (bend - v) >= 0.0:  # the root lies on the convex part
        t = min(bend, max(v, math.log(x)) if x > 0.0 else v)
    else:
        t = max(bend, min(v, math.log(x)) if x > 0.0 else bend)
    for _ in range(200):
        small = math.exp(-abs(t - bend))
        share = 1.0 / (1.0 + small) if t > bend else small / (1.0 + small)
        slope = (x + size) * small / ((1.0 + small) * (1.0 + small))
        step = ((x + size) * share - x + rho * (t - v)) / (slope + rho)
        t -= step
        if abs(step) <= 1e-15 * (1.0 + abs(t)):
            break
    return t


class Exp(Nonlinearity):
    """f(t) = exp(t): positive data whose effects multiply, such as counts and rates.

    With Poisson or negative binomial counts this is the usual log link.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.Exp()([0.0, 1.0]).round(4)
    array([1.    , 2.7183])
    """

    name = "exp"
    label = "exp(t)"
    monotone = True
    closed_forms: ClassVar[dict[type[Loss], Callable[..., float]]] = {
        Frobenius: exp_frobenius,
        KL: exp_kl,
        ItakuraSaito: exp_itakura_saito,
        SquaredLog: exp_squared_log,
        NegativeBinomial: exp_negative_binomial,
    }

    @property
    def range(self) -> tuple[float, float]:
        """0 and infinity."""
        return 0.0, math.inf

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return exp(t)."""
        return math.exp(min(max(1.0 * float(t), -LARGEST), LARGEST))

    @staticmethod
    def derivative(t: float, p: tuple[float, ...]) -> float:
        """Return exp(t)."""
        return math.exp(1.0 * float(t)) if -LARGEST < t < LARGEST else 0.0

    def pseudo_inverse(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return log(x), and log(0.1) where x is not positive."""
        positive = np.where(x > 0, np.maximum(x, 1e-30), INSTEAD_OF_ZERO)
        return np.asarray(np.log(positive), dtype=x.dtype)
