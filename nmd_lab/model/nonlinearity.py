"""The base class of nonlinearities, and the linear pieces of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

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
