"""The ridge of the factor steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from nmd_lab.data.entries import FloatArray


@dataclass(frozen=True)
class Ridge:
    """The ridge of a factor step, epsilon ‖other factor‖² + alphas / ρ, for each solved column."""

    epsilon: float
    alphas: FloatArray

    def __call__(self, other: FloatArray, penalty: float) -> FloatArray:
        """Return the ridge (n_solved,); it is positive even if the other factor is zero."""
        return self.for_norm(float(np.sum(other * other, dtype=np.float64)), other.dtype, penalty)

    def for_norm(self, squares: float, dtype: DTypeLike, penalty: float) -> FloatArray:
        """Return the ridge, given the squared norm of the other factor and its type."""
        smallest = float(np.finfo(np.dtype(dtype)).tiny) * 16
        total: FloatArray = self.epsilon * squares + self.alphas / penalty + smallest
        return total

    def objective(self, factor: FloatArray) -> float:
        """Return the term of the objective for the solved columns, (m, n_solved)."""
        return self.of_squares(np.einsum("ij,ij->j", factor, factor, dtype=np.float64))

    def of_squares(self, squares: FloatArray) -> float:
        """Return that term, given the squared norms of the columns."""
        return 0.5 * float(self.alphas @ squares)
