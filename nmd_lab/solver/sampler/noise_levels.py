"""Draws of the noise levels ρ and β, and of what the levels of the rows have in common.

A level has a Gamma prior.  Where all entries share one, or each column has its own, its scale is
that of the data, and it counts for one or two observations.  Where each row has its own, there may
be few entries for each, and new rows will come: the levels of rows have one Gamma law, whose shape
a and rate a v are drawn,

    ρ_i ~ Gamma(a, a v),    v ~ Gamma(1, 10) in units of the variance,    a on a grid.

A large a says that all rows are alike.  So levels that the data do not tell apart stay together.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, softmax

Doubles = NDArray[np.float64]
Numbers = float | NDArray[np.floating]

NoiseBy = Literal["one", "columns", "rows"]
"""Whose noise levels there are: one for all entries, or those of each column or row."""

SHAPES = 1.5 * 2.0 ** (np.arange(17) / 2)
"""Values of a.  The noise of a new row has the variance v a / (a - 1) on average."""

SHAPE_OF_V, RATE_OF_V = 1.0, 10.0
"""The law of v, in units of the variance of the data (of their spread for the L1 loss)."""


class GammaPrior(NamedTuple):
    """A Gamma distribution.

    Attributes
    ----------
    shape, rate : float
        Shape and rate.
    """

    shape: float
    rate: Numbers


class NoisePriors(NamedTuple):
    """The Gamma laws of ρ and of β, which is 1 where it is not drawn."""

    rho: GammaPrior
    beta: GammaPrior = GammaPrior(1.0, 1.0)


def draw_precision(shape: Numbers, rate: Numbers, rng: np.random.Generator) -> Doubles:
    """Return draws from Gamma distributions of these shapes and rates."""
    drawn: Doubles = rng.gamma(shape) / np.asarray(rate)
    return drawn


def draw_gamma_prior(levels: Doubles, unit: float, rng: np.random.Generator) -> GammaPrior:
    """Return a draw of the law that some levels have in common; 1/unit is their unit."""
    scaled, a = levels * unit, SHAPES
    count, total = levels.size, scaled.sum()
    shape, rate = SHAPE_OF_V + a * count, RATE_OF_V + a * total  # of v given a
    log_p = count * (a * np.log(a) - gammaln(a)) + a * np.log(scaled).sum()
    log_p += gammaln(shape) - shape * np.log(rate)  # v is integrated out
    k = rng.choice(a.size, p=softmax(log_p))
    v = float(draw_precision(shape[k], rate[k], rng))
    return GammaPrior(float(a[k]), float(a[k]) * v * unit)
