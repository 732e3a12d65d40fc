"""The draws that a chain keeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.base import FloatArray


@dataclass(frozen=True)
class Probes:
    """Entries whose predictions are recorded after each sweep, to judge convergence.

    Attributes
    ----------
    rows, columns : ndarray of int (n_probes,)
        Positions.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]

    @classmethod
    def random(cls, shape: tuple[int, int], number: int, seed: int) -> Probes:
        """Return entries at random positions."""
        rng = np.random.default_rng(seed)
        return cls(rng.integers(shape[0], size=number), rng.integers(shape[1], size=number))


@dataclass
class Draws:
    """Draws of all chains, in the units of the sampler.

    Attributes
    ----------
    rows, columns : ndarray of float32 (chain, draw, m or n, d)
        Vectors of rows and columns.
    rho, beta : ndarray (chain, draw)
        Precisions of the noise.
    row_means, row_precisions : ndarray (chain, draw, d) and (chain, draw, d, d)
        Priors of the rows, for new rows.
    cut_points : ndarray (chain, draw, n_levels - 1) or None
        Cut points of ordinal data.
    log_likelihood : ndarray (chain, sweep)
        Log-likelihood after each sweep that is not for tuning.
    predictions : ndarray (chain, sweep, n_probes)
        f(WH) at the probes.
    probes : Probes
        Entries of `predictions`.
    step : int
        Number of sweeps from one draw to the next.
    """

    rows: NDArray[np.float32]
    columns: NDArray[np.float32]
    rho: NDArray[np.float64]
    beta: NDArray[np.float64]
    row_means: NDArray[np.float64]
    row_precisions: NDArray[np.float64]
    cut_points: NDArray[np.float64] | None
    log_likelihood: NDArray[np.float64]
    predictions: FloatArray
    probes: Probes
    step: int
