"""The priors of the sampler, in units of the data.

Rows of W and columns of H are Gaussian with an unknown mean and precision matrix, which have a
Normal-Wishart prior.  Offsets belong to them: the offset of a row is one more component of its
vector.  The precisions of the noise have Gamma priors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Prior:
    """Scales of the priors.

    Attributes
    ----------
    spread : float
        Standard deviation of T, > 0.
    spread_of_X : float or array_like (n_kinds,)
        Standard deviation of X, > 0, for the noise after f, of all entries or of each kind.
    share : float
        Unit of T in the priors of W and H, as a share of its spread.  A component has the square
        root of this unit, an offset the unit itself.
    strength : float
        Number of rows that the prior of their mean counts for.
    noise_shape : float
        Shape of the Gamma priors of the noise.
    noise_rate : float
        Their rate, in units of the variance of the data (of their spread for the L1 loss).
    most_precise : float
        Largest precision of T in units of its variance, so that a copy of a column, or a row that
        is fitted exactly, has some noise.
    """

    spread: float
    spread_of_X: ArrayLike
    share: float = 0.25
    strength: float = 2.0
    noise_shape: float = 1.0
    noise_rate: float = 0.01
    most_precise: float = math.inf

    @property
    def spreads_of_X(self) -> NDArray[np.float64]:
        """Standard deviation of X of each kind."""
        return np.atleast_1d(np.asarray(self.spread_of_X, dtype=np.float64))

    def units(self, rank: int, offset: bool) -> NDArray[np.float64]:
        """Return the unit of each component of a row, and that of its offset if it has one."""
        unit = self.share * self.spread
        units = np.full(rank + offset, math.sqrt(unit))
        if offset:
            units[-1] = unit
        return units
