"""Held-out entries, and the error at them, for early stopping."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.data.observations import observe
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.split import split
from nmd_lab.model.nonlinearities import Nonlinearity

from .storage import CsrStorage


class HeldOut:
    """Observed entries that are not used in the fit; f(WH) is compared with them.

    Parameters
    ----------
    observations : SparseObservations
        Positions and values of the entries.
    f : Nonlinearity
        Nonlinearity of the model.
    """

    def __init__(self, observations: SparseObservations, f: Nonlinearity) -> None:
        self.f = f
        self.values: NDArray[Any] = observations.values
        self.weights = observations.weights
        self.storage = CsrStorage(observations.shape, observations.indptr, observations.indices)

    def rmse(self, W_aug: FloatArray, H_aug: FloatArray) -> float:
        """Return the root mean squared error of f(W_aug H_aug), in the units of X."""
        model = self.f(self.storage.all_products(W_aug, H_aug))
        squares = np.square(self.values - model, dtype=np.float64)
        return float(np.sqrt(np.average(squares, weights=self.weights)))


def hold_out(
    observations: Observations, validation: Any, f: Nonlinearity, rng: np.random.Generator
) -> tuple[Observations, HeldOut | None]:
    """Return the observations for the fit, and the held-out entries.

    Parameters
    ----------
    observations : Observations
        All observations.
    validation : float, matrix or None
        Share of the observations to hold out, or a matrix with the held-out entries.
    f : Nonlinearity
        Nonlinearity of the model.
    rng : Generator
        Random numbers for the choice of a share.

    Raises
    ------
    ValueError, TypeError
        If `validation` is not a share between 0 and 1, or not a matrix of the shape of X.
    """
    if validation is None:
        return observations, None
    if isinstance(validation, float):
        if not 0 < validation < 1:
            raise ValueError(
                f"validation={validation} is out of range: give a share between 0 and 1."
            )
        observations, held_out = split(observations, validation, rng)
    else:
        held_out = observe(validation)
    if held_out.shape != observations.shape:
        raise ValueError(
            f"validation has shape {held_out.shape}: give it the shape of X, {observations.shape}."
        )
    return observations, HeldOut(held_out.as_sparse(), f)
