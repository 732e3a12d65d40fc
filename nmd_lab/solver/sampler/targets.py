"""Running moments of predictions at some entries, for data whose draws are too large to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import check_positions
from nmd_lab.data.base import FloatArray
from nmd_lab.model.moments import expected_value
from nmd_lab.model.nonlinearities import Nonlinearity

from .noise import NoiseKind
from .prepare import PreparedSample


@dataclass
class Moments:
    """Number, mean and sum of squares of what was added."""

    mean: FloatArray
    squares: FloatArray
    count: int = 0


class Targets:
    """Mean and variance of E f(T) over sweeps, by Welford's update."""

    def __init__(
        self,
        rows: NDArray[np.intp],
        columns: NDArray[np.intp],
        nonlinearity: Nonlinearity,
        kind: NoiseKind,
    ) -> None:
        self.rows, self.columns = rows, columns
        self._f, self._kind = nonlinearity, kind
        self.now = Moments(np.zeros(rows.size), np.zeros(rows.size))

    def add(self, products: FloatArray, rho: float) -> None:
        """Add a sweep with these WH with offsets at the targets."""
        v = products.astype(np.float64)
        value = v if self._kind == "gaussian" else expected_value(self._f, v, 1 / math.sqrt(rho))
        now = self.now
        now.count += 1
        change = value - now.mean
        now.mean += change / now.count
        now.squares += change * (value - now.mean)

    def moments(self, exponent: int) -> dict[str, Any]:
        """Return positions, means and standard deviations, in units 2^exponent of those here."""
        std = np.sqrt(self.now.squares / max(self.now.count, 1))
        return {
            "target_row": self.rows,
            "target_column": self.columns,
            "target_mean": np.ldexp(self.now.mean, exponent),
            "target_std": np.ldexp(std, exponent),
        }


def check_targets(targets: Any, prepared: PreparedSample) -> Targets | None:
    """Return the targets of `nmd_lab.sample`, checked; None without any."""
    if targets is None:
        return None
    model = prepared.model
    if not isinstance(targets, tuple | list) or len(targets) != 2:
        raise TypeError(f"targets is a {type(targets).__name__}: give a pair (rows, columns).")
    i, j = np.broadcast_arrays(np.atleast_1d(targets[0]), np.atleast_1d(targets[1]))
    (m, n), f = model.shape, model.pair.nonlinearity
    rows, columns = check_positions("targets", i, m), check_positions("targets", j, n)
    return Targets(rows, columns, f, model.kind)
