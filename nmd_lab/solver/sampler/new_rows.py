"""Draws of new rows, given the draws of a chain: each draw has its own H and noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.machine import all_threads
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.model.model import Model

from .cut_points import put
from .few_holes import MOST
from .groups import UNKNOWN, Groups
from .hyperparameters import Prior, RowPrior
from .noise import NoiseKind
from .problem import SampledProblem, sampled_problem
from .state import ChainState
from .work import Work

STEPS = 5
"""Draws of T and the rows for each draw of H; one is exact for rows alone."""


class DrawOfH(NamedTuple):
    """What the new rows depend on, of one draw.

    Attributes
    ----------
    columns : ndarray (n, rank [+ 1])
        Vectors of the columns: components, and the offset if there is one.
    rho, beta : ndarray (n_levels,)
        Precisions of the noise before f and after it, of all entries or of each column.
    row_prior : RowPrior
        Prior of a row.
    cuts : ndarray (n_kinds, n_levels - 1) or None
        Cut points of each kind, NaN where it has fewer; None without levels.
    """

    columns: FloatArray
    rho: NDArray[np.float64]
    beta: NDArray[np.float64]
    row_prior: RowPrior
    cuts: NDArray[np.float64] | None


@dataclass(frozen=True)
class NewRows:
    """New rows of a sampled problem.

    Attributes
    ----------
    observations : Observations
        New rows, at the columns of the problem.
    model : Model
        Nonlinearities, losses and units.
    noises : tuple of NoiseKind
        Where the noise of each kind is.
    rank : int
        Number of components.
    row_offsets, column_offsets : bool
        Whether rows and columns have offsets.
    mean : float
        Global offset.
    by_column : bool
        Whether each column has noise levels of its own.
    """

    observations: Observations
    model: Model
    noises: tuple[NoiseKind, ...]
    rank: int
    row_offsets: bool
    column_offsets: bool
    mean: float
    by_column: bool

    def draws(self, draws_of_H: Iterator[DrawOfH], seed: int) -> Iterator[FloatArray]:
        """Yield the vectors (m, rank [+ 1]) of the new rows for each draw of H."""
        problem = self._problem()
        work = Work(problem)
        fills = problem.units[0].size > MOST  # holes given the row, which is a step of its own
        state: ChainState | None = None
        for number, draw in enumerate(draws_of_H):
            if state is None:
                state = _first_state(problem, work, draw, seed)
            state.columns, state.row_prior = draw.columns, draw.row_prior
            state.rho, state.beta = draw.rho, draw.beta
            if draw.cuts is not None:
                put(state.cuts, draw.cuts)
            if state.groups is not None:
                state.groups.labels[:] = UNKNOWN
            is_exact = set(self.noises) == {"gaussian"} and not fills
            for step in range(1 if is_exact else STEPS):
                state.sweep = number * STEPS + step
                work.draw_T_and_rows(state)
            yield state.rows.copy()

    def _problem(self) -> SampledProblem:
        names = ("model", "noises", "rank", "row_offsets", "column_offsets", "mean", "by_column")
        fields = {name: getattr(self, name) for name in names}
        fields["prior"] = Prior(1.0, 1.0)  # the priors of the rows are drawn already
        return sampled_problem(self.observations.as_sparse(), fields, all_threads())


def _first_state(problem: SampledProblem, work: Work, draw: DrawOfH, seed: int) -> ChainState:
    """Return a state whose rows are at their prior mean."""
    m, (means, _, shares) = problem.shape[0], draw.row_prior
    rows = np.tile(shares @ means, (m, 1)).astype(problem.values.dtype)
    groups = None
    if shares.size > 1:
        groups = Groups(np.full(m, UNKNOWN), np.empty((0, 0)))
    numbers = draw.rho, draw.beta, work.first_T()
    return ChainState(rows, draw.columns, *numbers, seed, cuts=work.first_cuts(), groups=groups)
