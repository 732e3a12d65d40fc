"""The objective of a baseline, and what it says of one pair of factors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nmd_lab._runtime.checks import check_size
from nmd_lab.data.observations import FloatArray, Observations
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.solver.storage import storage_of


class Record(NamedTuple):
    """The numbers of one iterate that a history keeps; see `Iterate`."""

    objective: float
    relative_error: float
    seconds: float


@dataclass(frozen=True)
class Iterate:
    """Factors after one iteration, with their objective. Callbacks get it.

    Attributes
    ----------
    iteration : int
        Number of the iteration, 1 for the first.
    W, H : ndarray (m, rank), (rank, n)
        Factors. The arrays are never changed later.
    objective : float
        Weighted loss of f(WH) on the observed entries plus alpha/2 (‖W‖² + ‖H‖²).
    relative_error : float
        Relative error of f(WH) on the observed entries, as the loss defines it.
    seconds : float
        Time of all iterations so far. The time of evaluating the objective is not included.
    """

    iteration: int
    W: FloatArray
    H: FloatArray
    objective: float
    relative_error: float
    seconds: float

    @property
    def record(self) -> Record:
        """The numbers for the history."""
        return Record(self.objective, self.relative_error, self.seconds)

    @property
    def is_finite(self) -> bool:
        """Whether the objective and both factors are finite."""
        return all(bool(np.all(np.isfinite(a))) for a in (self.objective, self.W, self.H))


@dataclass(frozen=True)
class Objective:
    """The weighted loss of f(WH) on the observed entries, plus a ridge on the factors."""

    observations: Observations
    nonlinearity: Nonlinearity
    loss: Loss
    alpha: float = 0.0

    def __post_init__(self) -> None:
        """Refuse data that the loss does not allow, or whose errors overflow or vanish."""
        values, _ = self.observations.observed()
        smallest, largest = float(values.min()), float(values.max())
        self.loss.check_data(smallest, largest)
        check_size("X", max(-smallest, largest), values.dtype)

    @cached_property
    def reference(self) -> float:
        """The data term that stands for a relative error of one."""
        return self.loss.reference(*self.observations.observed())

    def evaluate(
        self, W: FloatArray, H: FloatArray, *, iteration: int = 1, seconds: float
    ) -> Iterate:
        """Return an iterate with copies of the factors, in the precision of the data."""
        dtype = self.observations.dtype
        W, H = (np.array(factor, dtype=dtype, order="C") for factor in (W, H))
        data_term = self._data_term(W, H)
        norms = np.sum(np.square(W), dtype=float) + np.sum(np.square(H), dtype=float)
        return Iterate(
            iteration,
            W,
            H,
            objective=data_term + 0.5 * self.alpha * float(norms),
            relative_error=self.loss.relative_error(data_term, self.reference),
            seconds=seconds,
        )

    def _data_term(self, W: FloatArray, H: FloatArray) -> float:
        """Return the weighted loss of f(WH), summed block by block."""
        observations = self.observations
        storage, values = storage_of(observations), observations.values.ravel()
        weights = None if observations.weights is None else observations.weights.ravel()
        H_packed, buffer = storage.pack(H), np.empty(storage.block_size, dtype=W.dtype)
        total = 0.0
        for block in storage.blocks():
            model = buffer[: block.entries.stop - block.entries.start]
            storage.products(block, W, H_packed, model)
            losses = self.loss(values[block.entries], self.nonlinearity(model))
            total += float(np.sum(losses if weights is None else losses * weights[block.entries]))
        return total
