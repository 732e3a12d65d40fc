"""Draws of the rows of W given all else: of new rows, and of those that were not tuned with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.machine import all_threads
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.matching import mixed_with
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.model.model import Model
from nmd_lab.problem.scaling import OffsetColumns, Scaling

from .chain import Chain, ChainStart, ChainState, T_of, draw_rows, draw_T
from .cut_points import CutPoints, put
from .priors import UNLABELLED, Groups, Prior, RowPrior
from .problem import SampledProblem
from .random_numbers import Keys

SWEEPS_FROM_PRIOR, SWEEPS_LATENT = 3, 5
"""Draws of T and of rows that begin at their prior, and of those with noise after f, which moves
slowly; new rows that continue from the last draw of H take one."""


class DrawOfH(NamedTuple):
    """What new rows depend on, of one draw of a chain.

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
    member : tuple of int
        Chain, and member of its ensemble, that made the draw.
    """

    columns: FloatArray
    rho: NDArray[np.float64]
    beta: NDArray[np.float64]
    row_prior: RowPrior
    cuts: NDArray[np.float64] | None
    member: tuple[int, int] = (0, 0)


def draw_new_rows(
    observations: SparseObservations,
    draws_of_H: Iterator[DrawOfH],
    seed: int,
    row_keys: NDArray[np.int64],
    *,
    model: Model,
    noises: tuple[Any, ...],
    rank: int,
    offsets: str,
    mean: float,
) -> Iterator[FloatArray]:
    """Yield the vectors (m, rank [+ 1]) of new rows for each draw of H.

    The priors of the rows are drawn already.  What is drawn for a row depends on its key, and not
    on its position.
    """
    of_entries = np.repeat(row_keys, np.diff(observations.indptr))
    problem = SampledProblem(
        scaling=Scaling(model),
        noises=noises,
        rank=rank,
        offset_columns=OffsetColumns(offsets, mean),
        prior=Prior(1.0, np.ones(len(noises))),
        observations=observations,
        threads=all_threads(),
        keys=Keys(row_keys, mixed_with(of_entries, observations.indices)),
    )
    states: dict[tuple[int, int], ChainState] = {}  # a member continues from its last draw
    for number, draw in enumerate(draws_of_H):
        steps = SWEEPS_LATENT if "after" in problem.noises else 1
        if draw.member not in states:
            steps = max(steps, SWEEPS_FROM_PRIOR)
            states[draw.member] = _first(problem, draw.columns, draw.row_prior, seed)
        state = states[draw.member]
        state.columns, state.rho, state.beta, state.row_prior, cuts, _ = draw
        if cuts is not None:
            put(state.cuts, cuts)
        _draw_rows_alone(
            problem, state, range(number * SWEEPS_LATENT, number * SWEEPS_LATENT + steps)
        )
        yield state.rows.copy()


def unhide_cells(problem: SampledProblem, state: ChainState) -> ChainState:
    """Return the state of a chain that was tuned with some cells, or some rows, with all of them.

    All rows are drawn anew if only some were there.
    """
    if len(state.rows) == problem.shape[0]:
        new = Chain().init(problem, ChainStart(state.rows, state.columns, state.seed))
        return replace(state, T=new.T, x=new.x, tuning=0)
    new = _first(problem, state.columns, state.row_prior, state.seed)
    groups, cuts = state.groups, list(state.cuts)
    for k, (each, first) in enumerate(zip(state.cuts, new.cuts, strict=True)):
        if each is not None and first is not None:  # more entries move cut points less
            cuts[k] = CutPoints(each.ends, np.minimum(each.steps, first.steps))
    if groups is not None:
        groups = replace(groups, labels=np.full(len(new.rows), UNLABELLED))
    state = replace(state, rows=new.rows, T=new.T, x=new.x, tuning=0, groups=groups, cuts=cuts)
    steps = SWEEPS_LATENT if "after" in problem.noises else SWEEPS_FROM_PRIOR
    _draw_rows_alone(problem, state, range(state.sweep + 1, state.sweep + 1 + steps))
    return state


def _first(problem: SampledProblem, columns: FloatArray, prior: RowPrior, seed: int) -> ChainState:
    """Return a state whose rows are all at the mean of their prior."""
    mean = prior.shares @ prior.mean
    rows = np.tile(mean, (problem.shape[0], 1)).astype(problem.dtype)
    state = Chain().init(problem, ChainStart(rows, columns, seed))
    if prior.shares.size > 1:
        state.groups = Groups(np.full(len(rows), UNLABELLED), np.empty((0, 0)))
    return state


def _draw_rows_alone(problem: SampledProblem, state: ChainState, sweeps: Iterable[int]) -> None:
    """Draw T and the rows, and their groups, in sweeps of these numbers."""
    for state.sweep in sweeps:
        if state.groups is not None:
            state.groups.labels[:] = UNLABELLED
        draw_T(problem, state)
        draw_rows(problem, state, T_of(problem, state))
