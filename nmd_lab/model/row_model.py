"""What determines the rows of W for new rows of X, with H fixed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .model import Model
from .offsets import Offsets


class RowModel(NamedTuple):
    """The parts of a fit that determine rows of W.

    Attributes
    ----------
    model : Model
        Nonlinearities and losses, with what is known of entries with limits.
    H : ndarray (rank, n)
        Right factor.
    offsets : Offsets
        Offsets, which are added to WH inside f; a new row has one if those of rows are not None.
    alpha, offset_alpha, epsilon : float
        Ridges of W and offsets in the objective, and relative ridge of the factor steps.
    constraint : str or None
        Constraint on the rows of W, as ``parameters["w_constraint"]`` has it.
    absent_are_zeros : bool
        Whether absent entries of new sparse rows are zeros.
    """

    model: Model
    H: NDArray[np.floating]
    offsets: Offsets
    alpha: float
    offset_alpha: float
    epsilon: float
    constraint: str | None = None
    absent_are_zeros: bool = False
