"""What f does: the entrywise nonlinearity in X ≈ f(WH).

A piecewise-linear nonlinearity is one small class: its forward map and the table of its pieces.
From these the exact T-update with *every* convex loss follows (see `nmd_lab.model.proximal`).  Square
has a closed form for each loss instead; any other f falls back to a safeguarded search.

>>> import nmd_lab as nmd
>>> nmd.MinMax(1, 5).pieces()[1]
Piece(low=1.0, high=5.0, slope=1.0, intercept=0.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmd_lab._checks import check_word
from nmd_lab._numba import compile_kernel, compile_scalar, is_ours

from .base import ModelPart
from .losses import KL, L1, Frobenius, Loss


class Piece(NamedTuple):
    """On low <= t <= high, f(t) = slope * t + intercept."""

    low: float
    high: float
    slope: float
    intercept: float


class Nonlinearity(ModelPart):
    """An entrywise, continuous f.

    A subclass sets `name`, writes `forward` in plain scalar Python (it is compiled by Numba; `p`
    is the tuple `parameters`, known only at run time) and, if f is piecewise linear, returns its
    `pieces`.

    Attributes
    ----------
    name : str
        The word that selects the nonlinearity, as in ``nonlinearity="relu"``.
    parameters : tuple of float
        Numbers that the compiled functions receive as `p`.
    even : bool
        Whether f(-t) = f(t).  Then pieces and closed forms need cover t >= 0 only, and the
        T-update takes the sign of v.
    closed_forms : dict
        For a loss class, a scalar function ``(v, x, rho) -> t`` that solves the T-update.
    """

    even: ClassVar[bool] = False
    closed_forms: ClassVar[dict[type[Loss], Callable[[float, float, float], float]]] = {}

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return f(t)."""
        raise NotImplementedError

    def pieces(self) -> tuple[Piece, ...] | None:
        """Return the linear pieces of f from left to right, or None if f is not of that kind."""
        return None

    def preimage(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return a t with f(t) near x, the starting T (the paper's section on experiments)."""
        return x

    def widened(self, width: float, domain: tuple[float, float]) -> Nonlinearity | None:
        """Return f with its flat ends `width` intervals further out, or None if it has not two.

        Parameters
        ----------
        width : float
            In units of the distance between the two ends.
        domain : tuple of float
            Where the loss is finite; the ends stay inside.
        """
        return None

    def __call__(self, t: ArrayLike) -> NDArray[np.floating]:
        """Return f entry by entry, as float32 for float32 input and as float64 otherwise."""
        given = np.asarray(t)
        flat = given.ravel().astype(np.result_type(given.dtype, np.float32), copy=False)
        out = np.empty_like(flat)
        name = f"{self.name}_{flat.dtype}"
        apply = _forward_kernel(self.forward, name, is_ours(type(self)))
        apply(flat, self.parameters, out)
        return out.reshape(given.shape)


class Identity(Nonlinearity):
    """f(t) = t: the linear model, for comparison and for ratings."""

    name = "identity"

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

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return max(0, t)."""
        return max(t, 0.0)

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of f."""
        return (Piece(-math.inf, 0.0, 0.0, 0.0), Piece(0.0, math.inf, 1.0, 0.0))


class MinMax(Nonlinearity):
    """f(t) = min(b, max(a, t)): data with bounds, such as images and ratings.

    Parameters
    ----------
    a, b : float, default 0 and 1
        The bounds, a <= b, in the units of X.  Either may be infinite.

    Raises
    ------
    ValueError
        If a bound is NaN or a > b.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.MinMax(1, 5)([0.0, 2.5, 9.0])
    array([1. , 2.5, 5. ])
    """

    name = "minmax"

    def __init__(self, a: float = 0.0, b: float = 1.0) -> None:
        a, b = float(a), float(b)
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
        # An infinite bound leaves a piece that holds no finite t; `proximal` passes over it.
        return (
            Piece(-math.inf, self.a, 0.0, self.a),
            Piece(self.a, self.b, 1.0, 0.0),
            Piece(self.b, math.inf, 0.0, self.b),
        )

    def widened(self, width: float, domain: tuple[float, float]) -> MinMax | None:
        """Return MinMax with its bounds moved apart: the paper's idea of a homotopy."""
        by = width * (self.b - self.a)
        if not 0 < by < math.inf:
            return None
        return MinMax(max(self.a - by, min(self.a, domain[0])), min(self.b + by, domain[1]))


class Modulus(Nonlinearity):
    """f(t) = |t|: non-negative dense data whose parts may cancel."""

    name = "modulus"
    even = True

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return |t|."""
        return abs(t)

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of f."""
        return (Piece(0.0, math.inf, 1.0, 0.0),)


def _square_frobenius(v: float, x: float, rho: float) -> float:
    """Return the positive root of t^3 + (rho/2 - x) t - rho v/2.

    The cubic is convex for t > 0 and non-negative at the start, so Newton falls monotonically.
    """
    linear, constant = 0.5 * rho - x, 0.5 * rho * v
    t = max(math.sqrt(max(x, 0.0)), v)
    for _ in range(80):
        slope = 3.0 * t * t + linear
        if slope <= 0.0:
            break
        step = (t * (t * t + linear) - constant) / slope
        t -= step
        if step <= 1e-15 * t:
            break
    return max(t, 0.0)


def _square_l1(v: float, x: float, rho: float) -> float:
    """Return √x clipped to between where the two slopes of |x - t^2| balance the quadratic."""
    t = max(math.sqrt(max(x, 0.0)), rho * v / (rho + 2.0))
    return min(t, rho * v / (rho - 2.0)) if rho > 2.0 else t


def _square_kl(v: float, x: float, rho: float) -> float:
    """Return the positive root of (rho + 2) t^2 - rho v t - 2 x."""
    b = rho * v
    return (b + math.sqrt(b * b + 8.0 * x * (rho + 2.0))) / (2.0 * (rho + 2.0))


class Square(Nonlinearity):
    """f(t) = t^2, the paper's component-wise square factorisation (CSF)."""

    name = "square"
    even = True
    closed_forms: ClassVar[dict[type[Loss], Callable[[float, float, float], float]]] = {
        Frobenius: _square_frobenius,
        L1: _square_l1,
        KL: _square_kl,
    }

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return t squared."""
        return t * t

    def preimage(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return √X, 0 for negative x."""
        return np.asarray(np.sqrt(np.maximum(x, 0)))


@cache
def _forward_kernel(forward: Callable[..., float], name: str, cached: bool) -> Callable[..., None]:
    """Compile an f over flat arrays."""
    compiled = compile_scalar(forward)

    def apply(t: Any, p: Any, out: Any) -> None:
        for i in range(t.size):
            out[i] = compiled(t[i], p)

    return compile_kernel(apply, f"forward_{name}", cached=cached)


NONLINEARITIES: dict[str, type[Nonlinearity]] = {
    cls.name: cls for cls in (ReLU, Square, MinMax, Modulus, Identity)
}
"""The nonlinearities that can be chosen by name."""


def as_nonlinearity(nonlinearity: str | Nonlinearity) -> Nonlinearity:
    """Return the nonlinearity that a name or an object stands for."""
    if isinstance(nonlinearity, Nonlinearity):
        return nonlinearity
    name = nonlinearity.lower() if isinstance(nonlinearity, str) else nonlinearity
    check_word("nonlinearity", name, sorted(NONLINEARITIES), " or a Nonlinearity object")
    return NONLINEARITIES[name]()
