"""A rising f that is learned from the values of a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from nmd_lab._runtime.checks import check_share
from nmd_lab._runtime.compiler import number_at

from ._pieces import nearest_values
from .base import FloatArray
from .piecewise import PiecewiseLinear, shortest

KNOTS = 20
"""Knots of a learned f; fewer fit the middle alone, more follow single values of small tables."""

FLATTEST = 0.02
"""Smallest slope of a learned f, in units of the column: equal values at an end stay apart."""

FEWEST = 8
"""Different values from which f is learned; with fewer it is the straight line."""

LEAST = 1e-9
"""Standard deviation of X, over its largest size, below which f is the straight line, too."""


class Monotone(PiecewiseLinear):
    """A rising, piecewise linear f that is learned, for columns whose values are skewed.

    Without knots it is learned from the values of the column, or of all of X.  f maps the quantiles
    of a normal variable, with the mean and the standard deviation of X, to those of X, and has
    straight tails.  With fewer than eight different values f is the straight line.

    `decompose` and `complete` go on from there: between rounds of iterations f becomes the rising
    function with the same knots, and the same rise between the first and the last one, that is
    nearest to X at the present WH, by weighted least squares in which changes of slope count, too.
    It does so if the loss falls, whatever the loss.

    Parameters
    ----------
    t : sequence of float, optional
        Knots, ascending; at least two.
    x : sequence of float, optional
        Values of f there, ascending, in units of X.
    share : float, default 1
        Weight of the quantiles in the first f, in (0, 1]; the straight line has the rest.
    learns : bool, optional
        Whether a fit learns f, from the given knots on; by default only if none are given.

    Raises
    ------
    ValueError
        If the numbers of t and x differ, do not ascend, or are not finite, or `share` is out of
        range.

    See Also
    --------
    PiecewiseLinear : An f of given pieces.

    Notes
    -----
    Least squares over rising functions is isotonic regression: R. E. Barlow and H. D. Brunk, "The
    isotonic regression problem and its dual", Journal of the American Statistical Association 67,
    1972.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> income = np.exp(np.random.default_rng(0).normal(size=500))
    >>> f = nmd.nonlinearities.Monotone().for_data(income)
    >>> middle = float(f([income.mean()])[0])  # of a normal variable, to that of the data
    >>> bool(abs(middle - np.median(income)) < 0.02)
    True
    """

    name = "monotone"
    form = "monotone"
    label = "monotone, learned"
    degree = 1
    monotone = True
    parameter_names = ("t", "x", "share", "learns")

    def __init__(
        self,
        t: Sequence[float] = (),
        x: Sequence[float] = (),
        share: float = 1.0,
        learns: bool | None = None,
    ) -> None:
        self.share = check_share("share", share, zero=False, one=True)
        self.t, self.x = (tuple(np.asarray(each, dtype=np.float64).tolist()) for each in (t, x))
        self._learns = not self.t if learns is None else bool(learns)
        if not self.t and not self.x:
            super().__init__([0.0], [1.0, 1.0])
            self._table = np.array(self.parameters)
            return
        steps = [np.diff(each) for each in (self.t, self.x)]
        if len(self.t) != len(self.x) or len(self.t) < 2 or not all((d > 0).all() for d in steps):
            raise ValueError(
                f"t={t!r} and x={x!r} are no knots: give two ascending sequences of one length, of "
                "two numbers or more, or none."
            )
        slopes = (steps[1] / steps[0]).tolist()
        super().__init__(self.t, [slopes[0], *slopes, slopes[-1]], (self.t[0], self.x[0]))
        self._table = np.array(self.parameters)

    @property
    def learns(self) -> bool:
        """Whether f is learned."""
        return self._learns

    @property
    def numbers(self) -> tuple[float, ...]:
        """Number of breaks, and the address of breaks, slopes and intercepts."""
        return float(len(self.breaks)), float(self._table.ctypes.data)

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return slope * t + intercept of the piece of t."""
        n, table = int(p[0]), int(p[1])
        k = 0
        while k < n and t > number_at(table, k):
            k += 1
        value: float = number_at(table, n + k) * t + number_at(table, 2 * n + 1 + k)
        return value

    @property
    def settings(self) -> tuple[Any, ...]:
        """Knots and values, share, and whether f is learned if that does not follow from them."""
        if self._learns == bool(self.t):
            return self.t, self.x, self.share, self._learns
        return (self.t, self.x, self.share) if self.share < 1 else (self.t, self.x)

    def __repr__(self) -> str:
        words = [f"[{', '.join(map(shortest, each))}]" for each in (self.t, self.x) if each]
        words += [f"share={self.share!r}"] if self.share < 1 else []
        words += [f"learns={self._learns}"] if self._learns == bool(self.t) else []
        return f"Monotone({', '.join(words)})"

    def __str__(self) -> str:
        return f"Monotone({len(self.t)} knots)" if self.t else repr(self)

    def for_data(self, x: FloatArray, *, centred: bool = False) -> Monotone:
        """Return f with knots from values, the straight line for few; itself if it has knots."""
        if self.t:
            return self
        x = np.asarray(x, dtype=np.float64)
        values, counts = np.unique(x, return_counts=True)
        centre = float(x.mean()) if centred and x.size else 0.0
        spread = float(x.std()) if x.size else 0.0
        if values.size < FEWEST or spread < LEAST * float(np.abs(x).max()):
            return Monotone([0.0, 1.0], [centre, centre + 1.0])
        scores = ndtri((np.cumsum(counts) - counts / 2) / x.size)
        z = ndtri((np.arange(KNOTS) + 0.5) / KNOTS)
        quantiles = np.interp(z, scores, values)
        t = float(x.mean()) + spread * z
        knots = self.share * quantiles + (1 - self.share) * t
        rises = np.maximum(np.diff(knots), FLATTEST * np.diff(t))
        middle = KNOTS // 2
        knots = knots[middle] + np.concatenate([[0.0], np.cumsum(rises)]) - rises[:middle].sum()
        return Monotone((t - centre).tolist(), knots.tolist(), self.share, self._learns)

    def learned(self, x: FloatArray, t: FloatArray, weights: FloatArray) -> Monotone:
        """Return f with the values at the knots that are nearest to X at values of WH."""
        if not self._learns or not self.t:
            return self
        knots, values = np.array(self.t), np.array(self.x)
        slowest = np.minimum(FLATTEST * np.diff(knots), np.diff(values))
        wide = (np.asarray(each, dtype=np.float64) for each in (t, x, weights))
        best = nearest_values(knots, values, slowest, *wide)
        return Monotone(self.t, best.tolist(), self.share, learns=True)

    def scaled(self, size: float) -> Monotone:
        """Return the same f for data that are divided by `size`."""
        t, x = ([value / size for value in each] for each in (self.t, self.x))
        return Monotone(t, x, self.share, self._learns)
