"""What evaluations of the augmented Lagrangian change, and what comes out of one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from nmd_lab.data.base import FloatArray

from .lbfgs import Pairs


class Candidate(NamedTuple):
    """Factors after one pass of a refinement over the data.

    Attributes
    ----------
    W_aug, H_aug : ndarray (m, rank + ...) and (rank + ..., n)
        Factors extended by the offsets.
    data_term : float
        Weighted loss of f(W_aug H_aug).
    objective : float
        `data_term` plus the ridge of the objective.
    cost : float
        Work since the candidate before, in iterations of Algorithm 1.
    primal, slope : float
        ‖T - WH‖ and the norm of the gradient of L.
    penalty : float
        ρ.
    """

    W_aug: FloatArray
    H_aug: FloatArray
    data_term: float
    objective: float
    cost: float
    primal: float = math.nan
    slope: float = math.nan
    penalty: float = math.nan


@dataclass
class Variables:
    """All that evaluations of L and descents on it change.

    Attributes
    ----------
    W_aug, H_aug : ndarray (m, rank + ...) and (rank + ..., n)
        Factors of the beginning, with the columns that no descent changes.
    x : ndarray (size,)
        Point from which the next descent starts.
    candidate : Candidate
        Factors of the last evaluation.
    pairs : Pairs
        L-BFGS memory.
    best, lowest : ndarray (size,), float
        Point of lowest objective so far, and that objective.
    penalty : float
        ρ.
    U : array (n_stored,) on the device, or None
        Multipliers of the stored entries.
    inverses, computed_for, uses : tuple of ndarray or None, float, int
        The preconditioner, its ρ, and how often it was used.
    cost : float
        Work since the last candidate.
    """

    W_aug: FloatArray
    H_aug: FloatArray
    x: FloatArray
    candidate: Candidate
    pairs: Pairs
    best: FloatArray
    lowest: float = math.inf
    penalty: float = math.nan
    U: Any = None
    inverses: tuple[FloatArray, FloatArray] | None = None
    computed_for: float = math.nan
    uses: int = 0
    cost: float = 0.0
