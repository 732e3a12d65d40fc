"""Smooth nonlinearities: sigmoid, softplus, tanh and powers.

Each has a derivative.  Exp, whose T-updates have formulas, is in `exponential`.

>>> import nmd_lab as nmd
>>> nmd.nonlinearities.Softplus()([-2.0, 0.0, 2.0]).round(4)
array([0.1269, 0.6931, 2.1269])
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .nonlinearity import Nonlinearity

EDGE = 0.02
"""Share of the range of f that the starting T leaves out at each bound, where f is flat."""


class Sigmoid(Nonlinearity):
    """f(t) = 1 / (1 + exp(-t)): shares and probabilities, between 0 and 1.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.Sigmoid()([-2.0, 0.0, 2.0]).round(4)
    array([0.1192, 0.5   , 0.8808])
    """

    name = "sigmoid"
    label = "sigmoid: 1 / (1 + exp(-t))"
    monotone = True

    @property
    def range(self) -> tuple[float, float]:
        """0 and 1."""
        return 0.0, 1.0

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return 1 / (1 + exp(-t))."""
        small = math.exp(-abs(t))
        return 1.0 / (1.0 + small) if t > 0.0 else small / (1.0 + small)

    @staticmethod
    def derivative(t: float, p: tuple[float, ...]) -> float:
        """Return f(t) (1 - f(t))."""
        small = math.exp(-abs(t))
        return small / ((1.0 + small) * (1.0 + small))

    def pseudo_inverse(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return log(x / (1 - x)) for x moved away from 0 and 1."""
        inner = np.clip(x, EDGE, 1 - EDGE)
        return np.asarray(np.log(inner / (1 - inner)), dtype=x.dtype)


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
    monotone = True

    @property
    def range(self) -> tuple[float, float]:
        """-1 and 1."""
        return -1.0, 1.0

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return tanh(t)."""
        return math.tanh(t)

    @staticmethod
    def derivative(t: float, p: tuple[float, ...]) -> float:
        """Return 1 - tanh(t)^2, without the cancellation of this formula."""
        small = math.exp(-2.0 * abs(t))
        return 4.0 * small / ((1.0 + small) * (1.0 + small))

    def pseudo_inverse(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
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
    monotone = True

    @property
    def range(self) -> tuple[float, float]:
        """0 and infinity."""
        return 0.0, math.inf

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return log(1 + exp(t))."""
        return max(t, 0.0) + math.log1p(math.exp(-abs(t)))

    @staticmethod
    def derivative(t: float, p: tuple[float, ...]) -> float:
        """Return 1 / (1 + exp(-t))."""
        small = math.exp(-abs(t))
        return 1.0 / (1.0 + small) if t > 0.0 else small / (1.0 + small)

    def pseudo_inverse(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
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
    even = True
    parameter_names = ("p",)

    def __init__(self, p: float = 2.0) -> None:
        self.p = float(p)
        if not 0 < self.p < math.inf:
            raise ValueError(f"p={p!r} is no exponent of |t|^p: give a number > 0.")
        self.parameters = (self.p,)

    @property
    def range(self) -> tuple[float, float]:
        """0 and infinity."""
        return 0.0, math.inf

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return |t|^p."""
        return math.pow(abs(t), p[0])

    @staticmethod
    def derivative(t: float, p: tuple[float, ...]) -> float:
        """Return p |t|^(p - 1), with the sign of t."""
        if t == 0.0:
            return math.inf if p[0] < 1.0 else 0.0
        return math.copysign(p[0] * math.pow(abs(t), p[0] - 1.0), t)

    def pseudo_inverse(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return X^(1/p), 0 for negative x."""
        return np.asarray(np.maximum(x, 0) ** (1 / self.p), dtype=x.dtype)
