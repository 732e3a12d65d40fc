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
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmd_lab._checks import check_word
from nmd_lab._numba import compile_kernel, compile_scalar, is_ours

from .base import ModelPart

KL_FLOOR = 1e-12
"""Smallest f(WH) in a *reported* KL objective, as a share of x.  Without it, f(WH) = 0 at x > 0
would give infinity.  The optimisation itself uses the exact divergence."""


class Loss(ModelPart):
    """An entrywise loss d(x, y), convex in y.

    A subclass sets `name` and writes the static methods `value` and `proximal` in plain scalar
    Python.  Numba compiles them, so they may use `math` but no Python objects.  Their argument `p`
    is the tuple `parameters`.

    Attributes
    ----------
    name : str
        Name that selects the loss, as in ``loss="frobenius"``.
    label : str
        Short text for menus and legends; `name` by default.
    noise : str
        Noise that the loss fits: "Gaussian", "Laplace" or "Poisson"; "" (default) for another.
    residual_name : str
        Name of what `residuals` returns; "residual" by default.
    parameters : tuple of float
        Numbers that the compiled functions receive as `p`; empty by default.
    domain : tuple of float
        Smallest and largest y with a finite d, both included; all numbers by default.
    floor, relative_floor : float
        Reported objectives put the lower bound floor + relative_floor |x| on the modelled value of
        an entry x; none by default.
    convex : bool
        Whether d is convex in y; True by default.
    smooth : bool
        Whether d has a derivative in y everywhere inside its domain; False by default.  If so, the
        last iterations descend on the objective itself.
    reference_is_sum : bool
        Whether `reference` is a sum over the entries; False by default, and for a subclass with a
        `reference` of its own that says nothing else.  If so, it gets the entries in blocks, and
        their results are added, without arrays of the size of X.
    """

    noise: ClassVar[str] = ""
    residual_name: ClassVar[str] = "residual"
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    domain: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    floor: ClassVar[float] = -math.inf
    relative_floor: ClassVar[float] = 0.0
    reference_is_sum: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Claim no sum for a class that has a `reference` of its own and does not say so."""
        super().__init_subclass__(**options)
        own = vars(cls)
        if "reference" in own and "reference_is_sum" not in own:
            cls.reference_is_sum = False

    @property
    def floors(self) -> tuple[float, float]:
        """`floor` and `relative_floor`, as compiled functions take them."""
        return float(self.floor), float(self.relative_floor)

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return d(x, y)."""
        raise NotImplementedError

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the minimiser y of d(x, y) + rho/2 (y - q)^2 over the domain."""
        raise NotImplementedError

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return the first and the second derivative of d(x, y) in y.

        A loss may leave it out.  With it, the T-update of a smooth f takes fewer steps.
        """
        raise NotImplementedError

    def reference(self, x: NDArray[np.floating], weights: NDArray[np.floating]) -> float:
        """Return the objective at which the relative error is one.

        Parameters
        ----------
        x, weights : ndarray (n_observed,)
            Observed values and their weights.

        Returns
        -------
        float
            By default the objective of the constant matrix that holds the mean of X.

        Notes
        -----
        If X is constant, that objective is zero.  The rounding error of the sum takes its place.
        """
        rounding = float(np.finfo(np.float64).eps * np.sum(weights * np.abs(x)))
        return max(float(np.sum(weights * self(x, np.average(x, weights=weights)))), rounding)

    def relative_error(self, objective: float, reference: float) -> float:
        """Return the relative error of a fit.

        Parameters
        ----------
        objective : float
            Sum of the weighted losses over the observed entries.
        reference : float
            Result of the method `reference` for the same data.

        Returns
        -------
        float
            By default the ratio of the two.
        """
        return objective / reference if reference > 0 else (0.0 if objective == 0 else math.inf)

    def scaled(self, size: float) -> Loss:
        """Return the same loss for data that are divided by `size`, if it has a `degree`."""
        return self

    def residuals(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the residuals of a model, for plots that compare them with the noise.

        Parameters
        ----------
        x, y : ndarray (n_observed,)
            Observed and modelled values.

        Returns
        -------
        ndarray
            By default x - y.
        """
        return x - y

    def check_data(self, smallest: float, largest: float) -> None:
        """Raise ValueError if d is not defined for every x from smallest to largest."""

    def __call__(self, x: ArrayLike, y: ArrayLike) -> NDArray[np.floating]:
        """Return d(x, y) for each entry of the broadcast arrays, with the floors on y."""
        pair = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        shape = np.broadcast_shapes(*(each.shape for each in pair))
        # A copy, since Numba may not touch what np.broadcast_arrays returns.
        data, model = (
            each if each.shape == shape else np.array(np.broadcast_to(each, shape)) for each in pair
        )
        out = np.empty(data.size)
        values = _values_kernel(self.value, self.name, is_ours(type(self)))
        values(data.ravel(), model.ravel(), self.parameters, self.floors, out)
        return out.reshape(data.shape)


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
    smooth = True
    degree = 2
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

    def reference(self, x: NDArray[np.floating], weights: NDArray[np.floating]) -> float:
        """Return ‖X‖² / 2."""
        return 0.5 * float(np.sum(weights * np.square(x, dtype=np.float64)))

    def relative_error(self, objective: float, reference: float) -> float:
        """Return ‖X - Y‖ / ‖X‖."""
        return math.sqrt(super().relative_error(objective, reference))


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
    degree = 1
    reference_is_sum = True

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return |x - y|."""
        return abs(x - y)

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return x clipped to q ± 1/rho."""
        return min(max(x, q - 1.0 / rho), q + 1.0 / rho)

    def reference(self, x: NDArray[np.floating], weights: NDArray[np.floating]) -> float:
        """Return the sum of |X|."""
        return float(np.sum(weights * np.abs(x), dtype=np.float64))


class KL(Loss):
    """Kullback-Leibler divergence, d(x, y) = x log(x/y) - x + y (y if x = 0): counts.

    Both x and y must be non-negative.  The relative error is the divergence, divided by that of the
    constant matrix that holds the mean of X (the paper's section on synthetic data).  Reported
    objectives use max(f(WH), `KL_FLOOR` x).

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> float(nmd.prox(0.0, 2.0, 1.0, nonlinearity="identity", loss=nmd.KL()))
    1.0
    """

    name = "kl"
    label = "Kullback-Leibler"
    noise = "Poisson"
    residual_name = "Pearson residual"
    smooth = True
    degree = 1
    domain = (0.0, math.inf)
    floor = 0.0
    relative_floor = KL_FLOOR

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return x log(x/y) - x + y."""
        if x == 0.0:
            return y
        if y <= 0.0:
            return math.inf
        excess = (y - x) / x
        if abs(excess) < 0.5:  # near y = x the plain formula cancels
            return x * (excess - math.log1p(excess))
        return x * (excess - math.log(y / x))

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the positive root of rho y^2 + (1 - rho q) y - x, free of cancellation."""
        b = 1.0 - rho * q
        root = math.sqrt(b * b + 4.0 * rho * x)
        if b > 0.0:
            return 2.0 * x / (b + root)  # the usual form would cancel here
        return (root - b) / (2.0 * rho)

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return 1 - x/y and x/y^2."""
        ratio = x / y
        return 1.0 - ratio, ratio / y

    def residuals(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return (x - y) / √y where y > 0; a count of mean 0 has no spread to divide by."""
        positive = y > KL_FLOOR * x
        scaled: NDArray[np.floating] = (x - y)[positive] / np.sqrt(y[positive])
        return scaled

    def check_data(self, smallest: float, largest: float) -> None:
        """Raise ValueError if some data are negative."""
        if smallest < 0:
            raise ValueError(
                f"X holds the negative value {smallest:g}, which the loss 'kl' does not define: "
                "shift or clip X, or use loss='frobenius' or 'l1'."
            )


@cache
def _values_kernel(value: Callable[..., float], name: str, cached: bool) -> Callable[..., None]:
    """Return the compiled loop of a loss over flat arrays."""
    compiled = compile_scalar(value)

    def values(x: Any, y: Any, p: Any, floors: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = compiled(x[i], max(y[i], floors[0] + floors[1] * abs(x[i])), p)

    return compile_kernel(values, f"values_{name}", cached=cached)


LOSSES: dict[str, type[Loss]] = {cls.name: cls for cls in (Frobenius, L1, KL)}
"""Losses of the package by name."""


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss of this name; a Loss object is returned as it is."""
    if isinstance(loss, Loss):
        return loss
    name = loss.lower() if isinstance(loss, str) else loss
    check_word("loss", name, sorted(LOSSES), " or a Loss object")
    return LOSSES[name]()
