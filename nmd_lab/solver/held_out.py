"""Held-out entries that watch a fit: their error after each iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.data.observations import observe
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.split import split
from nmd_lab.model.nonlinearities import Nonlinearity

from .storage import SparseLayout


class Validation:
    """Entries at which f(WH) is compared with what was held out.

    Parameters
    ----------
    held_out : SparseObservations
        Where, and what was observed there.
    f : Nonlinearity
        The model's f.
    """

    def __init__(self, held_out: SparseObservations, f: Nonlinearity) -> None:
        self.f = f
        self.values: NDArray[Any] = held_out.values
        self.weights = held_out.weights
        self.layout = SparseLayout(held_out.shape, held_out.indptr, held_out.indices)

    def rmse(self, left: FloatArray, right: FloatArray) -> float:
        """Return the root mean squared error of f(left @ right), in the units of X."""
        model = self.f(self.layout.all_products(left, right))
        squares = np.square(self.values - model, dtype=np.float64)
        return float(np.sqrt(np.average(squares, weights=self.weights)))


def take_validation(
    observations: Observations, given: Any, f: Nonlinearity, rng: np.random.Generator
) -> tuple[Observations, Validation | None]:
    """Return what is left to train on, and the validation.

    Parameters
    ----------
    observations : Observations
        All observations.
    given : float, matrix or None
        A share of the observations to hold out, or held-out entries of their own.
    f : Nonlinearity
        The model's f.
    rng : Generator
        Chooses the share.

    Raises
    ------
    ValueError, TypeError
        If `given` makes no sense.
    """
    if given is None:
        return observations, None
    if isinstance(given, float):
        if not 0 < given < 1:
            raise ValueError(f"validation={given} is out of range: give a share between 0 and 1.")
        observations, held_out = split(observations, given, rng)
    else:
        held_out = observe(given)
    if held_out.shape != observations.shape:
        raise ValueError(
            f"validation has shape {held_out.shape}: give it the shape of X, {observations.shape}."
        )
    return observations, Validation(held_out.as_sparse(), f)
