"""The sampler on the workers: draws of T and of the rows, where the rows lie."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.base import FloatArray, Transform
from nmd_lab.model.ordinal import Ordinal
from nmd_lab.solver.lowrank import RowBlocks
from nmd_lab.solver.sampler.cut_points import CutPoints, Levels
from nmd_lab.solver.sampler.hyperparameters import RowPrior
from nmd_lab.solver.sampler.model import SamplerModel, model_here, number_of_levels
from nmd_lab.solver.sampler.state import ChainState
from nmd_lab.solver.sampler.work import (
    all_products,
    block_rows,
    draw_T_and_rows,
    entries_as_matrix,
)

from .part import Part, set_up

PRODUCTS, LOOKED = "products", "levels have the products"
"""Names of WH with offsets at the entries, and of a note that these are divided by levels."""


class Drawn(NamedTuple):
    """What T and the rows depend on, beside the entries.

    Attributes
    ----------
    columns : ndarray (n, d)
        Vectors of the columns.
    row_prior : RowPrior
        Prior of the rows.
    rho, beta : float
        Precisions.
    cuts : ndarray or None
        Cut points of ordinal data with their ends.
    seed, sweep : int
        Seed of the chain, and number of the sweep.
    """

    columns: FloatArray
    row_prior: RowPrior
    rho: float
    beta: float
    cuts: NDArray[np.float64] | None
    seed: int
    sweep: int

    def state(self, rows: FloatArray, T: FloatArray) -> ChainState:
        """Return the state of a chain for some of the rows."""
        cuts = None
        if self.cuts is not None:
            cuts = CutPoints(np.ones(self.cuts.size - 1, np.intp))
            cuts.ends = self.cuts
        state = ChainState(rows, self.columns, self.rho, self.beta, T, self.sweep, cuts=cuts)
        state.row_prior = self.row_prior
        return state


@set_up
def make_model(
    part: Part, data: str, name: str, fields: dict[str, Any], ordinal: Ordinal | None
) -> tuple[NDArray[np.integer]]:
    """Make the model of the rows of a part, and return the numbers of entries of the levels."""
    model = model_here(part.objects[data], fields, ordinal, part.threads, part.place.rows.start)
    part.objects[name] = model
    if ordinal is None:
        return (np.zeros(0, np.intp),)
    levels = Levels(model.values, model.starts, number_of_levels(ordinal))
    part.objects[_levels_of(name)] = levels
    return (levels.counts,)


def _levels_of(name: str) -> str:
    return f"levels of {name}"


def make_T(part: Part, name: str, of_T: str, T: FloatArray | None = None) -> tuple[()]:
    """Make T before the first sweep, or as it was kept."""
    model: SamplerModel = part.objects[name]
    part.objects[of_T] = np.full(model.n_entries, np.nan, model.dtype) if T is None else T
    return ()


def give_T(part: Part, of_T: str) -> tuple[FloatArray]:
    """Return T of a part."""
    return (part.objects[of_T],)


def draw_rows(
    part: Part, name: str, of_T: str | None, drawn: Drawn, rows: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw T and the rows of a part."""
    model: SamplerModel = part.objects[name]
    own = np.zeros((model.shape[0], model.units[0].size), model.dtype) if rows is None else rows
    T = model.values if of_T is None else part.objects[of_T]
    state = drawn.state(own.copy(), T)
    misfit, losses = draw_T_and_rows(model, state, drawn.seed)
    return state.rows, misfit, losses


def look_at_levels(part: Part, name: str, drawn: Drawn, rows: FloatArray) -> tuple[()]:
    """Compute WH with offsets, for the likelihood of ordinal data."""
    model: SamplerModel = part.objects[name]
    part.objects[PRODUCTS] = all_products(model, drawn.state(rows, model.values))
    part.objects.pop(LOOKED, None)
    return ()


def level_likelihoods(
    part: Part, name: str, level: int, low: float, high: float
) -> tuple[FloatArray]:
    """Return the log-likelihood of the entries of a level, for each row that has one."""
    levels: Levels = part.objects[_levels_of(name)]
    if LOOKED not in part.objects:  # a part that has moved brings the products alone
        levels.look(part.objects[PRODUCTS])
        part.objects[LOOKED] = True
    return (levels.log_likelihoods(level, low, high),)


def multiply(
    part: Part, name: str, transform: Transform, fill: float, V: FloatArray
) -> tuple[FloatArray]:
    """Return (transform(X) + fill) V for the rows of a part."""
    model: SamplerModel = part.objects[name]
    rows = RowBlocks(entries_as_matrix(model, transform), fill, block_rows(model.shape[1]))
    return (rows.product(V),)
