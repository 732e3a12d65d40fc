"""Nonlinearities: the entrywise function f in X ≈ f(WH).

A piecewise-linear nonlinearity is one small class with its forward map and the table of its pieces.
The exact T-update with *every* convex loss follows from these (see `nmd_lab.model.entry`).
Square has a closed form for each loss instead.  Any other f is solved by a safeguarded search.

>>> import nmd_lab as nmd
>>> nmd.MinMax(1, 5).pieces()[1]
Piece(low=1.0, high=5.0, slope=1.0, intercept=0.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from nmd_lab._runtime.checks import check_number

from .curve_search import formula_with
from .loss import FloatArray, as_object
from .losses import KL, L1, Frobenius, Loss
from .monotone import Monotone
from .nonlinearity import AbsoluteOffset, LeakyReLU, PiecewiseLinear, SoftThreshold
from .nonlinearity import Nonlinearity as Nonlinearity
from .nonlinearity import Piece as Piece
from .ordinal import CensoredFrobenius
from .positive import minmax_kl, relu_kl, square_frobenius, square_kl, square_l1
from .smooth import Exp, Power, Sigmoid, Softplus, Tanh


class Identity(Nonlinearity):
    """f(t) = t: the linear model, for comparison and for ratings.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.Identity()([-1.0, 2.0])
    array([-1.,  2.])
    """

    name = "identity"
    form = "identity"
    label = "identity: t"
    degree = 1
    linear = True
    monotone = True

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return t."""
        return t

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of f."""
        return (Piece(-math.inf, math.inf, 1.0, 0.0),)


class ReLU(Nonlinearity):
    """f(t) = max(0, t): sparse non-negative data.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.ReLU()([-1.0, 2.0])
    array([0., 2.])
    """

    name = "relu"
    form = "relu"
    label = "ReLU: max(0, t)"
    degree = 1
    monotone = True
    closed_forms: ClassVar[dict[type[Loss], Callable[..., float]]] = {KL: relu_kl}

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return max(0, t)."""
        return max(t, 0.0)

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of f."""
        return (Piece(-math.inf, 0.0, 0.0, 0.0), Piece(0.0, math.inf, 1.0, 0.0))


class MinMax(Nonlinearity):
    """f(t) = min(b, max(a, t)): data with bounds, such as images and ratings.

    Values of X outside the bounds are out of reach of a fit, which warns of them.  The name
    "minmax" takes the range that X documents, or else 0 and 1 if X lies between them: see
    `decompose`.

    Parameters
    ----------
    a, b : float, default 0 and 1
        Bounds with a <= b, in the units of X; either may be infinite.

    Raises
    ------
    ValueError
        If a bound is NaN, if a > b, or if no finite value lies between them.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.MinMax(1, 5)([0.0, 2.5, 9.0])
    array([1. , 2.5, 5. ])
    """

    name = "minmax"
    form = "minmax"
    label = "MinMax: bounded"
    degree = 1
    monotone = True
    parameter_names = ("a", "b")
    closed_forms: ClassVar[dict[type[Loss], Callable[..., float]]] = {KL: minmax_kl}

    def __init__(self, a: float = 0.0, b: float = 1.0) -> None:
        try:
            a, b = float(a), float(b)
        except (TypeError, ValueError) as error:
            raise TypeError(f"MinMax({a!r}, {b!r}) has no bounds: give two numbers.") from error
        if math.isnan(a) or math.isnan(b):
            raise ValueError(f"MinMax(a={a}, b={b}) has a NaN bound: give two numbers a <= b.")
        if a > b:
            raise ValueError(f"MinMax(a={a:g}, b={b:g}) has a > b: swap the bounds.")
        if a == math.inf or b == -math.inf:
            raise ValueError(f"MinMax(a={a}, b={b}) leaves no finite value: move the bounds.")
        self.a, self.b = a, b
        self.parameters = (a, b)

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return min(b, max(a, t))."""
        return min(max(t, p[0]), p[1])

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of f."""
        # With an infinite bound, one piece holds no finite t; `proximal` leaves it out.
        return (
            Piece(-math.inf, self.a, 0.0, self.a),
            Piece(self.a, self.b, 1.0, 0.0),
            Piece(self.b, math.inf, 0.0, self.b),
        )

    def scaled(self, size: float) -> MinMax:
        """Return MinMax with bounds for data that are divided by `size`."""
        return MinMax(self.a / size, self.b / size)

    def with_wider_bounds(self, width: float, domain: tuple[float, float]) -> MinMax | None:
        """Return MinMax with wider bounds, the paper's idea of a homotopy."""
        shift = width * (self.b - self.a)
        if not 0 < shift < math.inf:
            return None
        return MinMax(max(self.a - shift, min(self.a, domain[0])), min(self.b + shift, domain[1]))


class Modulus(Nonlinearity):
    """f(t) = |t|: non-negative dense data, with components that may cancel.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.Modulus()([-1.0, 2.0])
    array([1., 2.])
    """

    name = "modulus"
    form = "modulus"
    label = "modulus: |t|"
    degree = 1
    even = True

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return |t|."""
        return abs(t)

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of f."""
        return (Piece(0.0, math.inf, 1.0, 0.0),)


def _square(t):  # type: ignore[no-untyped-def]
    """Return t^2 and its derivatives."""
    return t * t, 2.0 * t, 2.0


def _root(y):  # type: ignore[no-untyped-def]
    """Return the root of y, of 0 for negative y."""
    return math.sqrt(max(y, 0.0))


class Square(Nonlinearity):
    """f(t) = t^2, the paper's component-wise square factorisation (CSF).

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.Square()([-1.0, 2.0])
    array([1., 4.])
    """

    name = "square"
    form = "square"
    label = "square: t²"
    range = (0.0, math.inf)
    degree = 2
    even = True
    closed_forms: ClassVar[dict[type[Loss], Callable[..., float]]] = {
        Frobenius: square_frobenius,
        L1: square_l1,
        KL: square_kl,
        CensoredFrobenius: formula_with(CensoredFrobenius, _square, _root),
    }

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return t squared."""
        return t * t

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return √X, 0 for negative x."""
        return np.asarray(np.sqrt(np.maximum(x, 0)))


class Wrap(Nonlinearity):
    """f(t) = t - k period, with the whole number k for which f(t) is nearest to the middle: angles.

    T is the unwrapped angle.  f jumps at the ends of its range, so that an angle just below one end
    is fitted well from beyond the other.

    Parameters
    ----------
    period : float, default 2 π
        Length of the range, > 0.
    start : float, optional
        Smallest value of f; by default -period / 2.  ``Wrap(360, 0)`` is for degrees from 0 to 360.

    Raises
    ------
    ValueError
        If the period is not a positive, finite number, or the start is not finite.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.Wrap(360)([-190.0, 10.0, 350.0])
    array([170.,  10., -10.])
    >>> nmd.nonlinearities.Wrap(360, 0)([-10.0, 370.0])
    array([350.,  10.])
    """

    name = "wrap"
    label = "wrap: angles"
    degree = 1
    periodic = True
    parameter_names = ("period", "start")

    def __init__(self, period: float = 2 * math.pi, start: float | None = None) -> None:
        self.period = check_number("period", period, above=0)
        self.start = -self.period / 2 if start is None else check_number("start", start)
        self.parameters = (self.period, self.start)
        self.range = (self.start, self.start + self.period)

    @property
    def settings(self) -> tuple[float, ...]:
        """Period, and start if it is not the usual one."""
        usual = self.start == -self.period / 2
        return (self.period,) if usual else (self.period, self.start)

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return t moved by whole periods to the range."""
        wrapped = t - p[0] * math.floor((t - p[1]) / p[0])
        return min(max(wrapped, p[1]), p[1] + p[0])

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return x moved to the range."""
        return np.asarray(self(x), dtype=x.dtype)

    def scaled(self, size: float) -> Wrap:
        """Return the same f for data that are divided by `size`."""
        return Wrap(self.period / size, self.start / size)


NONLINEARITIES: dict[str, type[Nonlinearity]] = {
    cls.name: cls
    for cls in (
        *(ReLU, Square, MinMax, Modulus, Identity),
        *(LeakyReLU, SoftThreshold, AbsoluteOffset, Monotone),
        *(Sigmoid, Softplus, Exp, Tanh, Power, Wrap),
    )
}
"""Nonlinearities of the package by name."""

NONLINEARITY_CLASSES: dict[str, type[Nonlinearity]] = {
    **NONLINEARITIES,
    PiecewiseLinear.name: PiecewiseLinear,
}
"""These, and those that a name alone does not determine."""


def as_nonlinearity(nonlinearity: str | Nonlinearity) -> Nonlinearity:
    """Return the nonlinearity of this name; a Nonlinearity object is returned as it is."""
    return as_object("nonlinearity", nonlinearity, Nonlinearity, NONLINEARITIES)
