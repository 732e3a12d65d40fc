"""The state with which a chain begins."""

from __future__ import annotations

from functools import partial

import numpy as np

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.proximal import Pair
from nmd_lab.solver.formulation import make_problem
from nmd_lab.solver.initialization import svd_by_random_range
from nmd_lab.solver.options import Options
from nmd_lab.solver.scaling import Scaling
from nmd_lab.solver.starts import first_start

from .cut_points import CutPoints
from .model import Model
from .noise import NO_PRECISION, PRECISIONS
from .state import ChainState
from .work import Work

SMALL = 0.1
"""Size of random factors, in units of the prior."""

SHRUNK = 0.3
"""Size of the first W and H, as a share of the singular vectors, for few data with many holes.

There a chain leaves small components faster than large ones that have fitted noise; with many data
it is the other way round."""

FEW = 1 << 18
"""Number of entries that counts as few."""


def start_chain(
    model: Model,
    work: Work,
    observations: Observations,
    n_levels: int,
    init: str,
    rng: np.random.Generator,
) -> ChainState:
    """Return the first state of a chain."""
    cuts = CutPoints.first(work.level_counts()) if n_levels else None
    scores = None if cuts is None else cuts.scores()
    rows, columns = _factors(model, work, observations, scores, init, rng)
    prior, loss = model.prior, type(model.pair.loss)
    precision = PRECISIONS.get(loss, NO_PRECISION)
    beta = 4.0 / prior.spread_of_X**precision.power if precision.shape else 1.0
    rho = 1.0 if n_levels else 4.0 / prior.spread**2
    return ChainState(rows, columns, rho, beta, work.first_T(), cuts=cuts)


def _factors(
    model: Model,
    work: Work,
    observations: Observations,
    scores: FloatArray | None,
    init: str,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return the vectors of rows and columns to begin with; offsets are zero."""
    (m, n), rank, dtype = model.shape, model.rank, model.dtype
    few = 3 * model.n_entries < m * n
    if init == "auto":
        init = "fit" if model.pair.nonlinearity.even else "svd"
    units = model.units
    rows, columns = np.zeros((m, units[0].size), dtype), np.zeros((n, units[1].size), dtype)
    if init == "random":
        for vectors, unit in zip((rows, columns), units, strict=True):
            vectors[:] = SMALL * unit * rng.standard_normal(vectors.shape)
        return rows, columns
    if init == "svd":
        fill = 0.0 if model.mean or model.n_entries == m * n else model.mean_of_T
        to_T = partial(_centred_T, model.pair, model.mean + fill, scores)
        W, H = svd_by_random_range(work.matrix(to_T, fill), rank, rng)
        if few and model.n_entries < FEW:
            W, H = SHRUNK * W, SHRUNK * H
    else:
        options = Options(random_state=rng).settled()
        scaling = Scaling(model.pair)
        problem, offsets = make_problem(observations, scaling, options, observed_only=few)
        start = first_start(problem, offsets, rank, options, rng)
        W, H = start.W, start.H
    rows[:, :rank], columns[:, :rank] = W, H.T
    return rows, columns


def _centred_T(pair: Pair, mean: float, scores: FloatArray | None, x: FloatArray) -> FloatArray:
    """Return T = f⁻¹(X) minus a number; for ordinal data, the scores of their levels."""
    if scores is not None:
        return scores[x.astype(np.intp)] - mean
    return pair.preimage(x).astype(np.float64, copy=False) - mean
