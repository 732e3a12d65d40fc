"""The periodic wrap of angles."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .nonlinearity import Nonlinearity


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
        self.period = float(period)
        if not 0 < self.period < math.inf:
            raise ValueError(f"period={period!r} is no period: give a number > 0.")
        self.start = -self.period / 2 if start is None else float(start)
        if not math.isfinite(self.start):
            raise ValueError(f"start={start!r} is not finite: give the smallest value of X.")
        self.parameters = (self.period, self.start)

    @property
    def settings(self) -> tuple[float, ...]:
        """Period, and start if it is not the usual one."""
        usual = self.start == -self.period / 2
        return (self.period,) if usual else (self.period, self.start)

    @property
    def range(self) -> tuple[float, float]:
        """Start and end of a period."""
        return self.start, self.start + self.period

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return t moved by whole periods to the range."""
        wrapped = t - p[0] * math.floor((t - p[1]) / p[0])
        return min(max(wrapped, p[1]), p[1] + p[0])

    def pseudo_inverse(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return x moved to the range."""
        return np.asarray(self(x), dtype=x.dtype)

    def scaled(self, size: float) -> Wrap:
        """Return the same f for data that are divided by `size`."""
        return Wrap(self.period / size, self.start / size)
