"""The rows of a matrix in the plane of two components."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.labels import Labels

from .axis_labels import groups, texts

MOST = 20_000
"""Largest number of rows that are drawn; of more, a random sample that is always the same."""


class Plane:
    """Two components whose plane is shown, and the rows that are drawn in it."""

    def __init__(self, labels: Labels) -> None:
        self.of, self.a, self.b = labels, 0, 1
        m = labels.matrix_shape[0]
        rows = np.arange(m)
        if m > MOST:
            rows = np.sort(np.random.default_rng(0).choice(m, MOST, replace=False))
        self.rows, self._total = rows, m
        names = texts(labels, "rows")
        self.color, numbers, self.values = groups(labels)
        self._labels = [names[row] for row in rows] if names else []
        self._groups = [numbers[row] for row in rows] if numbers else []

    def points(self, W: NDArray[Any] | None) -> dict[str, Any] | None:
        """Return the points; None without W or with fewer than two components."""
        if W is None or W.shape[1] < 2:
            return None
        rank = W.shape[1]
        a, b = min(self.a, rank - 1), min(self.b, rank - 1)
        return {
            "rank": rank,
            "a": a,
            "b": b,
            "x": np.ascontiguousarray(W[self.rows, a], dtype="<f4").tobytes(),
            "y": np.ascontiguousarray(W[self.rows, b], dtype="<f4").tobytes(),
            "rows": self.rows.astype("<i4").tobytes(),
            "labels": self._labels,
            "groups": self._groups,
            "color": self.color,
            "values": self.values,
            "total": self._total,
        }
