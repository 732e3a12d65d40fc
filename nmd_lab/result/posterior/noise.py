"""Parameters of the noise of an observation given a draw, and helpers of normal distributions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from nmd_lab.model.censored import all_pieces
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity

from .kernels import Array as Array

LARGEST_SET = 16
"""Largest number of points for the noise of one draw, where there is no closed form."""

POINTS = 1024
"""Number of points for all draws together that is enough."""


class Noise(NamedTuple):
    """The model of an observation x: T ~ N(v, sd²), and x from f(T).

    Attributes
    ----------
    nonlinearity : Nonlinearity
        Nonlinearity f.
    loss : Loss
        Loss d, which says the noise after f.
    sd : ndarray (draws, 1) or (draws, entries)
        Standard deviation of T, 1/√ρ, of all entries or of each.
    beta : ndarray (draws, 1) or (draws, entries), or None
        Precision β of the noise after f.
    cuts : ndarray (draws, K - 1) or None
        Cut points of ordinal data.
    levels : tuple of float (K,) or None
        Values of the levels of ordinal data.
    """

    nonlinearity: Nonlinearity
    loss: Loss
    sd: Array
    beta: Array | None = None
    cuts: Array | None = None
    levels: tuple[float, ...] | None = None

    def of_draw(self, draw: int) -> Noise:
        """Return the noise in one draw alone."""
        beta, cuts = (None if a is None else a[[draw]] for a in (self.beta, self.cuts))
        return self._replace(sd=self.sd[[draw]], beta=beta, cuts=cuts)

    def at(self, rows: NDArray[np.integer]) -> Noise:
        """Return the noise at entries of some rows: the same, unless each row has its own."""
        if self.sd.shape[1] == 1:
            return self
        beta = None if self.beta is None else self.beta[:, rows]
        return self._replace(sd=self.sd[:, rows], beta=beta)


def is_increasing(nonlinearity: Nonlinearity) -> bool:
    """Return whether f is known to be non-decreasing."""
    pieces = all_pieces(nonlinearity)
    return pieces is not None and all(piece.slope >= 0 for piece in pieces)


def interval_mass(a: Array, b: Array) -> Array:
    """Return the standard normal probability between a and b, exact in both tails; 0 if a > b."""
    upper = a > 0  # there the difference of small numbers keeps its digits
    low, high = np.where(upper, -b, a), np.where(upper, -a, b)
    mass: Array = np.maximum(ndtr(high) - ndtr(low), 0)
    return mass


def normal_density(z: Array) -> Array:
    """Return the standard normal density."""
    density: Array = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return density


def points_of(n_draws: int) -> Array:
    """Return standard normal points (set, draws, 1), equally likely in each draw.

    They are the same at each call.  With few draws each gets `LARGEST_SET` points.  With many, each
    gets fewer, which are shifted from draw to draw, so that all together fill the distribution.
    """
    size = min(LARGEST_SET, max(math.ceil(POINTS / n_draws), 1))
    shifts = (0.5 + np.arange(n_draws) * 0.6180339887498949) % 1
    shares = (np.arange(size)[:, None] + np.clip(shifts, 1e-3, 1 - 1e-3)) / size
    points: Array = ndtri(shares)[:, :, None]
    return points
