"""The change of WH on all entries, from r x r matrices alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmd_lab.data.entries import FloatArray


class ProductChange(NamedTuple):
    """The change of WH on all entries since the last pass.

    The change is ΔW H + W⁺ ΔH.  Its norm follows from r x r matrices, without WH itself.

    Attributes
    ----------
    gram, cross, step : ndarray (rank, rank)
        W⁺ᵀW⁺, W⁺ᵀΔW and ΔWᵀΔW.
    H, H_change : ndarray (rank, n)
        H before the change, and ΔH.
    """

    gram: FloatArray
    cross: FloatArray
    step: FloatArray
    H: FloatArray
    H_change: FloatArray

    def squared_norm(self) -> float:
        """Return ‖W⁺H⁺ - WH‖²."""
        mixed = np.sum(self.cross.T * (self.H @ self.H_change.T))
        ends = np.sum(self.step * (self.H @ self.H.T))
        ends += np.sum(self.gram * (self.H_change @ self.H_change.T))
        return float(ends + 2 * mixed)

    def projected(self) -> FloatArray:
        """Return W⁺ᵀ(W⁺H⁺ - WH)."""
        return self.cross @ self.H + self.gram @ self.H_change
