"""Losses that outliers hardly move, and losses of quantiles: Huber and pinball."""

from __future__ import annotations

import math

from nmd_lab.model.loss import Loss


class Huber(Loss):
    """Least squares near zero and absolute deviations beyond: Gaussian noise with outliers.

    With r = abs(x - y), d is r^2 / 2 up to r = delta, and delta (r - delta / 2) beyond.

    Parameters
    ----------
    delta : float, default 1
        Residual from which an entry counts as an outlier, in the units of X; > 0.

    Raises
    ------
    ValueError
        If `delta` is not a positive, finite number.

    Notes
    -----
    P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35,
    1964.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.Huber(1.0)([0.0, 0.0], [0.5, 3.0])
    array([0.125, 2.5  ])
    """

    name = "huber"
    label = "Huber"
    noise = "Gaussian with outliers"
    smooth = True
    degree = 2
    parameter_names = ("delta",)

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = float(delta)
        if not 0 < self.delta < math.inf:
            raise ValueError(f"delta={delta!r} is no size of a residual: give a number > 0.")
        self.parameters = (self.delta,)

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return r^2 / 2 for small r = |x - y|, and delta (r - delta / 2) for large r."""
        r = abs(x - y)
        return 0.5 * r * r if r <= p[0] else p[0] * (r - 0.5 * p[0])

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the mean of x and q with weights 1 and rho, at most delta/rho from q."""
        step = (x - q) / (1.0 + rho)
        return q + min(max(step, -p[0] / rho), p[0] / rho)

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return y - x and 1 for small residuals, ± delta and 0 for large ones."""
        return min(max(y - x, -p[0]), p[0]), 1.0 if abs(y - x) <= p[0] else 0.0

    def scaled(self, size: float) -> Huber:
        """Return the same loss for data that are divided by `size`."""
        return Huber(self.delta / size)


class Quantile(Loss):
    """Pinball loss: the model is a quantile of x instead of its mean.

    d(x, y) = q (x - y) for x > y, and (1 - q) (y - x) for x < y.  With q = 0.9, the model lies
    above nine of ten observed values.

    Parameters
    ----------
    q : float, default 0.5
        Share of the data below the model, between 0 and 1.  0.5 is half of L1.

    Raises
    ------
    ValueError
        If `q` does not lie between 0 and 1.

    Notes
    -----
    R. Koenker and G. Bassett, "Regression quantiles", Econometrica 46, 1978.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.Quantile(0.9)([1.0, 1.0], [0.0, 2.0]).round(3)
    array([0.9, 0.1])
    """

    name = "quantile"
    label = "quantile (pinball)"
    noise = "asymmetric Laplace"
    degree = 1
    parameter_names = ("q",)

    def __init__(self, q: float = 0.5) -> None:
        self.q = float(q)
        if not 0 < self.q < 1:
            raise ValueError(f"q={q!r} is no share of the data: give a number between 0 and 1.")
        self.parameters = (self.q,)

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return q (x - y) or (1 - q) (y - x), whichever is positive."""
        return p[0] * (x - y) if x > y else (1.0 - p[0]) * (y - x)

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return -q below x and 1 - q above, and 0."""
        return (-p[0] if y < x else 1.0 - p[0] if y > x else 0.0), 0.0

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return x clipped to the two y at which a slope of d balances the quadratic."""
        return min(max(x, q - (1.0 - p[0]) / rho), q + p[0] / rho)
