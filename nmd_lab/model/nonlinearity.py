"""The base class of nonlinearities, the linear pieces of one, and classes of such pieces.

>>> import nmd_lab as nmd
>>> nmd.nonlinearities.PiecewiseLinear([0, 1], [0, 1, 0.1])([-1.0, 0.5, 2.0])
array([0. , 0.5, 1.1])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nmd_lab._runtime.checks import check_number
from nmd_lab._runtime.compiler import compile_kernel, compile_scalar, is_ours

from .loss import FloatArray, Loss, ModelPart


class Piece(NamedTuple):
    """A linear piece of f: f(t) = slope * t + intercept for low <= t <= high.

    Attributes
    ----------
    low, high : float
        Ends of the piece; either may be infinite.
    slope, intercept : float
        Coefficients of f on the piece.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> flat, rising = nmd.ReLU().pieces()
    >>> flat
    Piece(low=-inf, high=0.0, slope=0.0, intercept=0.0)
    """

    low: float
    high: float
    slope: float
    intercept: float


class Nonlinearity(ModelPart):
    """An entrywise, continuous function f.

    A subclass sets `name` and writes `forward` in plain scalar Python.  Numba compiles it; its
    argument `p` is the tuple `parameters`.  A piecewise-linear f also returns its `pieces`.  A
    smooth f can have a `derivative`, which `check_nonlinearity` compares with f.

    Attributes
    ----------
    name : str
        Name that selects the nonlinearity, as in ``nonlinearity="relu"``.
    label : str
        Short text for menus and legends; `name` by default.
    range : tuple of float
        Bounds that f(t) never leaves; all numbers by default.
    linear : bool
        Whether f is linear, so that f(WH) has rank r; False by default.
    monotone : bool
        Whether f never falls, or never rises; False by default.
    form : {"identity", "relu", "modulus", "square", "minmax", "monotone"} or None
        Which of these functions f is, for code that has a formula for it; None (default, and for a
        subclass with formulas of its own) for any other.
    parameters : tuple of float
        Numbers that the compiled functions receive as `p`; empty by default.
    even : bool
        Whether f(-t) = f(t); False by default.  If so, pieces and closed forms cover t >= 0 only,
        and the T-update has the sign of v.
    periodic : bool
        Whether f is `Wrap`, or another f(t) = t - k period with k such that f(t) lies between start
        and start + period; `parameters` are then (period, start).  False by default.
    ends : tuple of float
        Values of t beyond which an increasing f is constant, where its values there are none of X;
        infinite by default.
    closed_forms : dict
        Scalar functions ``(v, x, rho) -> t`` that solve the T-update, by loss class; empty by
        default.  They may take two more arguments, the parameters of f and of the loss.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> class Cube(nmd.nonlinearities.Nonlinearity):
    ...     name = "cube"
    ...
    ...     @staticmethod
    ...     def forward(t, p):
    ...         return t * t * t
    >>> fit = nmd.decompose(nmd.datasets.digits(50), 2, Cube(), random_state=0)
    >>> fit.nonlinearity
    Cube()
    """

    range: tuple[float, float] = (-math.inf, math.inf)
    ends: tuple[float, float] = (-math.inf, math.inf)
    linear: ClassVar[bool] = False
    form: ClassVar[str | None] = None
    even: ClassVar[bool] = False
    monotone: ClassVar[bool] = False
    periodic: ClassVar[bool] = False
    closed_forms: ClassVar[dict[type[Loss], Callable[..., float]]] = {}

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return f(t)."""
        raise NotImplementedError

    @staticmethod
    def derivative(t: float, p: tuple[float, ...]) -> float:
        """Return the derivative of f at t."""
        raise NotImplementedError

    def pieces(self) -> tuple[Piece, ...] | None:
        """Return the linear pieces of f from left to right; None if f is not piecewise linear."""
        return None

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return the initial T, with f(T) near X (the paper's section on experiments)."""
        return x

    def scaled(self, size: float) -> Nonlinearity:
        """Return the same f for data that are divided by `size`, if it has a `degree`."""
        return self

    def for_data(self, x: FloatArray, *, centred: bool = False) -> Nonlinearity:
        """Return f with what is learned from observed values; itself if nothing is.

        If `centred`, a learned f takes the mean of x near 0, where WH is without offsets.
        """
        return self

    def learned(self, x: FloatArray, t: FloatArray, weights: FloatArray) -> Nonlinearity:
        """Return an f that is nearer to observed values.

        Parameters
        ----------
        x, t, weights : ndarray (n_observed,)
            Values that f should have, its arguments, and weights.

        Returns
        -------
        Nonlinearity
            Itself by default.
        """
        return self

    def with_wider_bounds(self, width: float, domain: tuple[float, float]) -> Nonlinearity | None:
        """Return f with wider bounds, for a homotopy; None if f has not two finite bounds.

        Parameters
        ----------
        width : float
            Distance by which each bound moves outwards, in units of the distance between the two.
        domain : tuple of float
            Smallest and largest value at which the loss is finite; the new bounds stay inside.
        """
        return None

    def __call__(self, t: ArrayLike) -> FloatArray:
        """Return f of each entry, float32 for float32 input and float64 otherwise."""
        array = np.asarray(t)
        flat = array.ravel().astype(np.result_type(array.dtype, np.float32), copy=False)
        out = np.empty_like(flat)
        apply = _forward_kernel(type(self))  # type: ignore[arg-type]  # a class has a hash
        apply(flat, self.numbers, out)
        return out.reshape(array.shape)


@cache
def _forward_kernel(f: type[Nonlinearity]) -> Callable[..., None]:
    """Return the compiled loop of f over flat arrays."""
    compiled = compile_scalar(f.forward)

    def apply(t: Any, p: Any, out: Any) -> None:
        for i in range(t.size):
            out[i] = compiled(t[i], p)

    return compile_kernel(apply, f"forward_{f.name}", cached=is_ours(f))


ROUNDING = 32 * float(np.finfo(np.float64).eps)
"""Difference of f(t) and x, relative to x and to the intercept, that is rounding alone."""


class _Pieces(Nonlinearity):
    """A nonlinearity of pieces on which it has slopes, and so an inverse."""

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return the t nearest to zero with f(t) = x, or else with f(t) as near as possible."""
        dtype, best, x = np.asarray(x).dtype, np.zeros(np.shape(x)), np.asarray(x, np.float64)
        gap, length = np.full(best.shape, math.inf), np.full(best.shape, math.inf)
        for low, high, slope, intercept in self.pieces() or ():
            nearest = min(max(0.0, low), high)
            t = np.full(best.shape, nearest) if slope == 0 else (x - intercept) / slope
            t = np.clip(t, low, high)
            misfit = np.abs(slope * t + intercept - x)
            misfit = np.where(misfit <= ROUNDING * (np.abs(x) + abs(intercept)), 0, misfit)
            better = (misfit < gap) | ((misfit == gap) & (np.abs(t) < length))
            best, gap = np.where(better, t, best), np.where(better, misfit, gap)
            length = np.where(better, np.abs(t), length)
        return best.astype(dtype)


class LeakyReLU(_Pieces):
    """f(t) = t for t > 0 and slope * t below: data with small negative values.

    Parameters
    ----------
    slope : float, default 0.01
        Slope below zero, >= 0.  0 is ReLU, 1 the identity.

    Raises
    ------
    ValueError
        If the slope is negative or not finite.

    Notes
    -----
    A. L. Maas, A. Y. Hannun and A. Y. Ng, "Rectifier nonlinearities improve neural network acoustic
    models", 2013.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.LeakyReLU(0.1)([-2.0, 3.0])
    array([-0.2,  3. ])
    """

    name = "leaky_relu"
    label = "leaky ReLU: max(t, slope t)"
    degree = 1
    monotone = True
    parameter_names = ("slope",)

    def __init__(self, slope: float = 0.01) -> None:
        self.slope = check_number("slope", slope, 0)
        self.parameters = (self.slope,)

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return t if it is positive, else slope * t."""
        return t if t > 0.0 else p[0] * t

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of f."""
        return (Piece(-math.inf, 0.0, self.slope, 0.0), Piece(0.0, math.inf, 1.0, 0.0))


class SoftThreshold(_Pieces):
    """f(t) = sign(t) max(abs(t) - threshold, 0): sparse data with both signs.

    Parameters
    ----------
    threshold : float, default 1
        Largest abs(t) that gives 0, in the units of X; >= 0.

    Raises
    ------
    ValueError
        If the threshold is negative or not finite.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.SoftThreshold(1)([-3.0, 0.5, 2.0])
    array([-2.,  0.,  1.])
    """

    name = "soft_threshold"
    label = "soft threshold: sign(t) max(|t| - c, 0)"
    degree = 1
    monotone = True
    parameter_names = ("threshold",)

    def __init__(self, threshold: float = 1.0) -> None:
        self.threshold = check_number("threshold", threshold, 0)
        self.parameters = (self.threshold,)

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return sign(t) max(|t| - threshold, 0)."""
        return max(t - p[0], 0.0) + min(t + p[0], 0.0)

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of f."""
        c = self.threshold
        return (Piece(-math.inf, -c, 1.0, c), Piece(-c, c, 0.0, 0.0), Piece(c, math.inf, 1.0, -c))

    def scaled(self, size: float) -> SoftThreshold:
        """Return the same f for data that are divided by `size`."""
        return SoftThreshold(self.threshold / size)


class AbsoluteOffset(_Pieces):
    """f(t) = abs(t) + offset: magnitudes above a known background.

    A shift of t needs no nonlinearity of its own: offsets inside f, or one more component, give it.

    Parameters
    ----------
    offset : float, default 0
        Smallest value of f, in the units of X, such as the dark level of a detector.

    Raises
    ------
    ValueError
        If the offset is not finite.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.AbsoluteOffset(0.5)([-2.0, 1.0])
    array([2.5, 1.5])
    """

    name = "absolute_offset"
    label = "modulus with offset: |t| + c"
    degree = 1
    even = True
    parameter_names = ("offset",)

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = check_number("offset", offset)
        self.parameters = (self.offset,)

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return |t| + offset."""
        return abs(t) + p[0]

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of f for t >= 0."""
        return (Piece(0.0, math.inf, 1.0, self.offset),)

    def scaled(self, size: float) -> AbsoluteOffset:
        """Return the same f for data that are divided by `size`."""
        return AbsoluteOffset(self.offset / size)


class PiecewiseLinear(_Pieces):
    """A continuous f of straight pieces.

    The T-update is exact with every loss, as for ReLU and MinMax.

    Parameters
    ----------
    breaks : sequence of float
        Where the slope changes, ascending; at least one.
    slopes : sequence of float
        Slope of each piece from left to right, one more than breaks.
    at : tuple of float, default (0, 0)
        A point (t, f(t)) of the graph.

    Raises
    ------
    ValueError
        If the breaks do not ascend, the numbers of breaks and slopes do not match, or a number is
        not finite.

    Examples
    --------
    A leaky ReLU, and the positive part of t, up to 5:

    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.PiecewiseLinear([0], [0.01, 1])([-100.0, 2.0])
    array([-1.,  2.])
    >>> nmd.nonlinearities.PiecewiseLinear([0, 5], [0, 1, 0])([-1.0, 2.0, 9.0])
    array([0., 2., 5.])

    A line with a step of 10 between 1 and 2, which passes through (0, 3):

    >>> nmd.nonlinearities.PiecewiseLinear([1, 2], [1, 10, 1], at=(0, 3))([0.0, 1.0, 2.0])
    array([ 3.,  4., 14.])
    """

    name = "piecewise_linear"
    label = "piecewise linear"
    degree = 1
    parameter_names: ClassVar[tuple[str, ...]] = ("breaks", "slopes", "at")

    def __init__(
        self, breaks: Sequence[float], slopes: Sequence[float], at: Sequence[float] = (0.0, 0.0)
    ) -> None:
        self.breaks = _numbers("breaks", breaks)
        self.slopes = _numbers("slopes", slopes)
        point = _numbers("at", at)
        if not self.breaks or any(np.diff(self.breaks) <= 0):
            raise ValueError(f"breaks={breaks!r} do not ascend: give one or more, in order.")
        if len(self.slopes) != len(self.breaks) + 1:
            raise ValueError(
                f"slopes={slopes!r} has {len(self.slopes)} slopes for {len(self.breaks)} breaks: "
                "give one more than breaks."
            )
        if len(point) != 2:
            raise ValueError(f"at={at!r} is no point: give a pair (t, f(t)).")
        self.at = point
        self.parameters = (*self.breaks, *self.slopes, *self._intercepts())

    def _intercepts(self) -> tuple[float, ...]:
        """Return f(t) - slope t on each piece."""
        t, y = self.at
        here = int(np.searchsorted(self.breaks, t))
        level, rises = y - self.slopes[here] * t, np.diff(self.slopes) * self.breaks
        left = level + np.cumsum(rises[:here][::-1])[::-1]  # from the point on, where digits count
        return (*left.tolist(), level, *(level - np.cumsum(rises[here:])).tolist())

    @property
    def settings(self) -> tuple[tuple[float, ...], ...]:
        """Breaks, slopes and the point."""
        return self.breaks, self.slopes, self.at

    def __repr__(self) -> str:
        point = "" if self.at == (0.0, 0.0) else f", at=({', '.join(map(shortest, self.at))})"
        breaks, slopes = (", ".join(map(shortest, each)) for each in (self.breaks, self.slopes))
        return f"PiecewiseLinear([{breaks}], [{slopes}]{point})"

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return slope * t + intercept of the piece of t."""
        n = len(p) // 3  # p has n breaks, n + 1 slopes and n + 1 intercepts
        slope, intercept = p[n], p[2 * n + 1]
        for k in range(n):
            above = t > p[k]
            slope = p[n + 1 + k] if above else slope
            intercept = p[2 * n + 2 + k] if above else intercept
        return slope * t + intercept

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of f."""
        ends = (-math.inf, *self.breaks, math.inf)
        rows = zip(ends[:-1], ends[1:], self.slopes, self._intercepts(), strict=True)
        return tuple(Piece(*row) for row in rows)

    def scaled(self, size: float) -> PiecewiseLinear:
        """Return the same f for data that are divided by `size`."""
        breaks, point = ([value / size for value in each] for each in (self.breaks, self.at))
        return PiecewiseLinear(breaks, self.slopes, point)


def _numbers(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Return finite numbers as a tuple."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not np.all(np.isfinite(numbers)):
        raise ValueError(f"{name}={values!r} is no list of finite numbers: give one.")
    return tuple(numbers.tolist())


def shortest(value: float) -> str:
    """Return the shortest text that gives the same number."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)
