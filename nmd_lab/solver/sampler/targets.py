"""Running moments of predictions at some entries, for data whose draws are too large to keep."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import check_positions
from nmd_lab.data.base import FloatArray
from nmd_lab.model.moments import expected_value
from nmd_lab.model.nonlinearities import Nonlinearity

from .noise import NoiseKind
from .prepare import PreparedSample


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
        self._count = 0
        self._mean, self._squares = np.zeros(rows.size), np.zeros(rows.size)

    def kept(self) -> dict[str, Any]:
        """Return what changes, for a checkpoint."""
        return {name: getattr(self, name) for name in ("_count", "_mean", "_squares")}

    def add(self, products: FloatArray, rho: float) -> None:
        """Add a sweep with these WH with offsets at the targets."""
        v = products.astype(np.float64)
        value = v if self._kind == "gaussian" else expected_value(self._f, v, 1 / math.sqrt(rho))
        self._count += 1
        change = value - self._mean
        self._mean += change / self._count
        self._squares += change * (value - self._mean)

    def moments(self, exponent: int) -> dict[str, Any]:
        """Return positions, means and standard deviations, in units 2^exponent of those here."""
        std = np.sqrt(self._squares / max(self._count, 1))
        return {
            "target_row": self.rows,
            "target_column": self.columns,
            "target_mean": np.ldexp(self._mean, exponent),
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
