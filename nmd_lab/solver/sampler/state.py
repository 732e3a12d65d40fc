"""The state of a chain: all that its next sweep depends on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray

from .cut_points import CutPoints
from .priors import NO_PRIOR, Groups, RowPrior


@dataclass
class ChainState:
    """All that the next sweep depends on.

    Attributes
    ----------
    rows, columns : ndarray (m, rank [+ 1]) and (n, rank [+ 1])
        Vectors of the rows of X and of its columns: components, and the offset if there is one.
    rho, beta : ndarray (n_levels,)
        Precisions of the noise before f and after it, of all entries or of each column.
    T : ndarray (n_entries,) or None
        T at the stored entries, with the units of its kind; None if it is X itself.
    seed : int
        Seed of its random numbers.
    tuning : int
        Number of further sweeps in which the step widths of cut points are tuned.
    sweep : int
        Number of sweeps so far.
    row_prior, column_prior : RowPrior
        Priors of the rows and of the columns.
    groups : Groups or None
        Groups of the rows; None before the first sweep, or if there is one.
    x : ndarray (n_entries,) or None
        X at the stored entries, drawn where only limits are known; None if all values are known.
    cuts : list of CutPoints or None
        Cut points of each kind, None for a kind without levels.
    log_likelihood : float
        Log-likelihood of the data given T and of T given WH, up to a constant; for three or
        more ordered levels that of the levels given WH.
    """

    rows: FloatArray
    columns: FloatArray
    rho: NDArray[np.float64]
    beta: NDArray[np.float64]
    T: FloatArray | None
    seed: int = 0
    tuning: int = 0
    sweep: int = 0
    row_prior: RowPrior = NO_PRIOR
    column_prior: RowPrior = NO_PRIOR
    groups: Groups | None = None
    cuts: list[CutPoints | None] = field(default_factory=lambda: [None])
    x: FloatArray | None = None
    log_likelihood: float = math.nan
