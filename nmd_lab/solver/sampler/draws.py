"""The draws that a chain keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.scaling import Scaling

from .problem import SampledProblem

FLOAT32_RANGE = 60
"""Logarithm to base 2 of a unit up to which draws are kept in float32."""


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
    rho, beta : ndarray (chain, draw, n_levels)
        Precisions of the noise of all entries, or of each column or row.
    row_means, row_precisions : ndarray (chain, draw, n_groups, d) and (chain, draw, n_groups, d, d)
        Priors of the rows, for new rows.
    cut_points : ndarray (chain, draw, n_kinds, n_levels - 1) or None
        Cut points of each kind, NaN where it has fewer; None without levels.
    log_likelihood : ndarray (chain, sweep)
        Log-likelihood after each sweep that is not for tuning.
    predictions : ndarray (chain, sweep, n_probes)
        f(WH) at the probes.
    probes : Probes
        Entries of `predictions`.
    step : int
        Number of sweeps from one draw to the next.
    row_share, row_group, group_scale, group_strength : ndarray or None
        Shares of the groups of rows (chain, draw, n_groups), the groups (chain, draw, m), and what
        they have in common (chain, draw, d, d) and (chain, draw); None for one group.
    rho_shape, rho_rate, beta_shape, beta_rate : ndarray (chain, draw) or None
        Gamma priors of the noise levels of rows; None if rows have none.
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
    row_share: NDArray[np.float64] | None = None
    row_group: NDArray[np.int16] | None = None
    group_scale: NDArray[np.float64] | None = None
    group_strength: NDArray[np.float64] | None = None
    rho_shape: NDArray[np.float64] | None = None
    rho_rate: NDArray[np.float64] | None = None
    beta_shape: NDArray[np.float64] | None = None
    beta_rate: NDArray[np.float64] | None = None

    def in_units_of_X(self, scaling: Scaling, problem: SampledProblem) -> dict[str, Any]:
        """Return the arrays of a `Posterior`, in the units of X."""
        rank, of_T = problem.rank, 2 * scaling.exponent
        # In float32 the units of very large or small data would overflow.
        dtype = np.float32 if abs(of_T) < FLOAT32_RANGE else np.float64

        def scaled(array: NDArray[Any], exponent: int) -> NDArray[Any]:
            return np.ldexp(array.astype(dtype, copy=False), exponent) if exponent else array

        units = np.ldexp(np.ones(rank + problem.row_offsets), scaling.exponent)
        units[rank:] = math.ldexp(1.0, of_T)
        has_beta = [
            noise == "after" and kind.loss.noise_model.shape > 0
            for noise, kind in zip(problem.noises, problem.model.kinds, strict=True)
        ]
        loss = problem.model.kinds[0].loss  # several kinds have no exponent
        of_levels = -2 * of_T, -loss.noise_model.power * scaling.of_X
        rho: Any = np.ldexp(self.rho, of_levels[0])
        beta: Any = np.ldexp(self.beta, of_levels[1]) if any(has_beta) else None
        cuts: Any = self.cut_points
        if problem.noise_by == "one":
            rho, beta, cuts = (
                None if each is None else each[:, :, 0] for each in (rho, beta, cuts)
            )
        priors: dict[str, Any] = {}
        if self.rho_rate is not None:
            priors = {"rho_shape": self.rho_shape, "rho_rate": np.ldexp(self.rho_rate, 2 * of_T)}
        if self.beta_rate is not None and beta is not None:
            beta_rate = np.ldexp(self.beta_rate, -of_levels[1])
            priors |= {"beta_shape": self.beta_shape, "beta_rate": beta_rate}
        return {
            "W": scaled(self.rows[..., :rank], scaling.exponent),
            "H": scaled(self.columns[..., :rank], scaling.exponent),
            "row_offsets": scaled(self.rows[..., rank], of_T) if problem.row_offsets else None,
            "column_offsets": (
                scaled(self.columns[..., rank], of_T) if problem.column_offsets else None
            ),
            "mean": math.ldexp(problem.mean, of_T),
            "rho": rho,
            "beta": beta,
            "cut_points": cuts,
            **priors,
            "row_mean": self.row_means * units,
            "row_precision": self.row_precisions / np.outer(units, units),
            "row_share": self.row_share,
            "row_group": self.row_group,
            "group_scale": self.group_scale,
            "group_strength": self.group_strength,
            "log_likelihood": self.log_likelihood,
            "predictions": np.ldexp(self.predictions.astype(dtype), scaling.of_X),
        }
