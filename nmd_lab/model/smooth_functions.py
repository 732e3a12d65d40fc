"""Smooth nonlinearities: sigmoid, softplus, tanh, powers, and exp.

>>> import nmd_lab as nmd
>>> nmd.nonlinearities.Softplus()([-2.0, 0.0, 2.0]).round(4)
array([0.1269, 0.6931, 2.1269])

The T-update of f(t) = exp(t) with a loss that is convex in t is a proximal map: that of d(x, e^t).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from scipy.special import logit

from nmd_lab._runtime.checks import check_number

from .curve_search import formula_with
from .loss import FloatArray
from .losses import KL, Frobenius, Loss
from .nonlinearity import Nonlinearity
from .positive import ItakuraSaito, NegativeBinomial, SquaredLog, exponential_minimum

EDGE = 0.02
"""Fraction of the range of f that the starting T leaves out at each bound, where f is flat."""


class Sigmoid(Nonlinearity):
    """f(t) = 1 / (1 + exp(-t)): fractions and probabilities, between 0 and 1.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.Sigmoid()([-2.0, 0.0, 2.0]).round(4)
    array([0.1192, 0.5   , 0.8808])
    """

    name = "sigmoid"
    label = "sigmoid: 1 / (1 + exp(-t))"
    range = (0.0, 1.0)
    monotone = True

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return 1 / (1 + exp(-t))."""
        small = math.exp(-abs(t))
        return 1.0 / (1.0 + small) if t > 0.0 else small / (1.0 + small)

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return log(x / (1 - x)) for x moved away from 0 and 1."""
        return np.asarray(logit(np.clip(x, EDGE, 1 - EDGE)), dtype=x.dtype)


class Tanh(Nonlinearity):
    """f(t) = tanh(t): correlations and other data between -1 and 1.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.Tanh()([-1.0, 0.0, 3.0]).round(4)
    array([-0.7616,  0.    ,  0.9951])
    """

    name = "tanh"
    label = "tanh(t)"
    range = (-1.0, 1.0)
    monotone = True

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return tanh(t)."""
        return math.tanh(t)

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return artanh(x) for x moved away from -1 and 1."""
        return np.asarray(np.arctanh(np.clip(x, 2 * EDGE - 1, 1 - 2 * EDGE)), dtype=x.dtype)


class Softplus(Nonlinearity):
    """f(t) = log(1 + exp(t)): positive data; a smooth ReLU.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.Softplus()([-2.0, 0.0, 2.0]).round(4)
    array([0.1269, 0.6931, 2.1269])
    """

    name = "softplus"
    label = "softplus: log(1 + exp(t))"
    range = (0.0, math.inf)
    monotone = True

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return log(1 + exp(t))."""
        return max(t, 0.0) + math.log1p(math.exp(-abs(t)))

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return log(exp(x) - 1), at least about -4."""
        above = np.maximum(x, EDGE)
        return np.asarray(above + np.log(-np.expm1(-above)), dtype=x.dtype)


class Power(Nonlinearity):
    """f(t) = abs(t)^p: non-negative data; p = 1 is the modulus, p = 2 the square.

    Parameters
    ----------
    p : float, default 2
        Exponent, > 0.

    Raises
    ------
    ValueError
        If the exponent is not a positive, finite number.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.Power(3)([-2.0, 0.5])
    array([8.   , 0.125])
    """

    name = "power"
    label = "power: |t|^p"
    range = (0.0, math.inf)
    even = True
    parameter_names = ("p",)

    def __init__(self, p: float = 2.0) -> None:
        self.p = check_number("p", p, above=0)
        self.parameters = (self.p,)

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return |t|^p."""
        return math.pow(abs(t), p[0])

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return X^(1/p), 0 for negative x."""
        return np.asarray(np.maximum(x, 0) ** (1 / self.p), dtype=x.dtype)


MAX_EXPONENT = 300.0
"""Where exp(t) stops: it is exp(300) or exp(-300) beyond, so that no product overflows."""

Numbers = tuple[float, ...]


def exp_frobenius(v: float, x: float, rho: float, pf: Numbers, pd: Numbers) -> float:
    """Return the minimiser of (x - e^t)^2 / 2 + rho/2 (t - v)^2."""
    t: float = exponential_minimum(rho, v, 1.0, x, -math.inf, MAX_EXPONENT)
    return t


def exp_squared_log(v: float, x: float, rho: float, pf: Numbers, pd: Numbers) -> float:
    """Return the minimiser of (log x - t)^2 / 2 + rho/2 (t - v)^2."""
    return (math.log(x) + rho * v) / (1.0 + rho)


def _exp(t):  # type: ignore[no-untyped-def]
    """Return exp(t) and its derivatives."""
    y = math.exp(min(max(t, -MAX_EXPONENT), MAX_EXPONENT))
    return y, y, y


def _log(y):  # type: ignore[no-untyped-def]
    """Return log y, where it is finite."""
    return math.log(y) if y > 0.0 else -MAX_EXPONENT


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
    range = (0.0, math.inf)
    monotone = True
    closed_forms: ClassVar[dict[type[Loss], Callable[..., float]]] = {
        Frobenius: exp_frobenius,
        SquaredLog: exp_squared_log,
        **{each: formula_with(each, _exp, _log) for each in (KL, ItakuraSaito, NegativeBinomial)},
    }

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return exp(t)."""
        return math.exp(min(max(1.0 * float(t), -MAX_EXPONENT), MAX_EXPONENT))

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return log(x), and log(0.1) where x is not positive."""
        positive = np.where(x > 0, np.maximum(x, 1e-30), 0.1)
        return np.asarray(np.log(positive), dtype=x.dtype)
