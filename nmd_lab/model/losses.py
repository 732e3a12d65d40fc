"""What "close" means: the loss d(x, y) between an observed x and a modelled y.

A loss is one small class.  It says what d is, how d behaves next to a quadratic (its proximal
map), for which y it is finite, and what its objective is compared with to give a relative error.
Everything else (the exact T-update with any nonlinearity, dense, masked and sparse) follows.

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
"""Smallest f(WH) used when a KL objective is *reported*, so that f(WH) = 0 at x > 0 gives a large
finite number instead of infinity.  The optimisation itself uses the exact divergence."""


class Loss(ModelPart):
    """An entrywise loss d(x, y), convex in y.

    A subclass sets `name` and writes the three static methods below in plain scalar Python; they
    are compiled by Numba, so they may use `math` but no Python objects.  `p` is the tuple
    `parameters`, known only at run time: changing it compiles nothing anew.

    Attributes
    ----------
    name : str
        The word that selects the loss, as in ``loss="frobenius"``.
    parameters : tuple of float
        Numbers that the compiled functions receive as `p`.
    domain : tuple of float
        Smallest and largest y at which d is finite, the ends included.
    floor : float
        Modelled values below it are replaced by it in reported objectives.
    smooth : bool
        Whether d has a derivative in y everywhere inside its domain, so that descent on the
        objective itself makes sense; False unless a class says otherwise.
    """

    smooth: ClassVar[bool] = False
    domain: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    floor: ClassVar[float] = -math.inf

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return d(x, y)."""
        raise NotImplementedError

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the y that minimises d(x, y) + rho/2 (y - q)^2 over the domain."""
        raise NotImplementedError

    def reference(self, x: NDArray[np.floating], weights: NDArray[np.floating]) -> float:
        """Return the objective that stands for a relative error of one.

        Parameters
        ----------
        x, weights : ndarray
            The observed values and their weights, both flat.

        Notes
        -----
        Unless a loss says otherwise it is the objective of the constant that holds X's mean, or
        what rounding leaves of it if X is constant.
        """
        rounding = float(np.finfo(np.float64).eps * np.sum(weights * np.abs(x)))
        return max(float(np.sum(weights * self(x, np.average(x, weights=weights)))), rounding)

    def relative_error(self, objective: float, reference: float) -> float:
        """Return the relative error of a data term, given the loss's `reference`."""
        return objective / reference if reference > 0 else (0.0 if objective == 0 else math.inf)

    def check_data(self, smallest: float, largest: float) -> None:
        """Raise ValueError if data in [smallest, largest] make no sense under this loss."""

    def __call__(self, x: ArrayLike, y: ArrayLike) -> NDArray[np.floating]:
        """Return d(x, y) entry by entry, broadcasting, with y raised to `floor`."""
        floored = np.maximum(np.asarray(y, dtype=float), self.floor)
        data, model = np.broadcast_arrays(np.asarray(x, dtype=float), floored)
        out = np.empty(data.size)
        values = _values_kernel(self.value, self.name, is_ours(type(self)))
        values(data.ravel(), model.ravel(), self.parameters, out)
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
    smooth = True

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return (x - y)^2 / 2."""
        return 0.5 * (x - y) * (x - y)

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the weighted mean of x and q."""
        return (x + rho * q) / (1.0 + rho)

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

    Both x and y must be non-negative.  The relative error is the divergence over that of the
    constant matrix that holds the mean of X (the paper's section on synthetic data).  Reported
    objectives raise f(WH) to `KL_FLOOR`.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> float(nmd.prox(0.0, 2.0, 1.0, nonlinearity="identity", loss=nmd.KL()))
    1.0
    """

    name = "kl"
    smooth = True
    domain = (0.0, math.inf)
    floor = KL_FLOOR

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return x log(x/y) - x + y."""
        if x == 0.0:
            return y
        if y <= 0.0:
            return math.inf
        excess = (y - x) / x
        if abs(excess) < 0.5:  # near y = x the plain formula loses every digit
            return x * (excess - math.log1p(excess))
        return x * (excess - math.log(y / x))

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the positive root of rho y^2 + (1 - rho q) y - x, without cancellation."""
        b = 1.0 - rho * q
        root = math.sqrt(b * b + 4.0 * rho * x)
        if b > 0.0:
            return 2.0 * x / (b + root)  # the usual form would cancel here
        return (root - b) / (2.0 * rho)

    def check_data(self, smallest: float, largest: float) -> None:
        """Refuse negative data."""
        if smallest < 0:
            raise ValueError(
                f"X holds the negative value {smallest:g}, which the loss 'kl' does not define: "
                "shift or clip X, or use loss='frobenius' or 'l1'."
            )


@cache
def _values_kernel(value: Callable[..., float], name: str, cached: bool) -> Callable[..., None]:
    """Compile a loss over flat arrays."""
    compiled = compile_scalar(value)

    def values(x: Any, y: Any, p: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = compiled(x[i], y[i], p)

    return compile_kernel(values, f"values_{name}", cached=cached)


LOSSES: dict[str, type[Loss]] = {cls.name: cls for cls in (Frobenius, L1, KL)}
"""The losses that can be chosen by name."""


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss that a name or an object stands for."""
    if isinstance(loss, Loss):
        return loss
    name = loss.lower() if isinstance(loss, str) else loss
    check_word("loss", name, sorted(LOSSES), " or a Loss object")
    return LOSSES[name]()
