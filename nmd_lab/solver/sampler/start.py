"""The state with which a chain begins."""

from __future__ import annotations

import numpy as np

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.offsets import Offsets
from nmd_lab.solver.formulation import make_problem
from nmd_lab.solver.initialization import svd_start
from nmd_lab.solver.options import Options
from nmd_lab.solver.scaling import Scaling
from nmd_lab.solver.starts import first_start

from .chain import ChainState
from .cut_points import CutPoints
from .model import SamplerModel
from .noise import NO_PRECISION, PRECISIONS

SMALL = 0.1
"""Size of random factors, in units of the prior."""

SHRUNK = 0.3
"""Size of the first W and H, as a share of the singular vectors, for few data with many holes.

There a chain leaves small components faster than large ones that have fitted noise; with many data
it is the other way round."""

FEW = 1 << 18
"""Number of entries that counts as few."""


def start_chain(
    model: SamplerModel,
    observations: Observations,
    n_levels: int,
    init: str,
    rng: np.random.Generator,
) -> ChainState:
    """Return the first state of a chain.

    Parameters
    ----------
    model : SamplerModel
        Data, model and priors.
    observations : Observations
        Data in the units of the model.
    n_levels : int
        Number of levels of ordinal data; 0 for others.
    init : {"auto", "random", "svd"}
        Starting factors.  "auto": for an even f those of a short fit, which has found the signs;
        from the singular value decomposition otherwise.  "random": small random numbers, from which
        components need many sweeps to grow.
    rng : Generator
        Random numbers.
    """
    cuts = CutPoints(model.values, n_levels) if n_levels else None
    if cuts is not None and observations.pattern is None:
        observations = observations.as_sparse()
    if cuts is not None:
        observations = observations.with_values(cuts.scores()[model.values.astype(np.intp)])
    rows, columns = _factors(model, observations, init, rng)
    prior, loss = model.prior, type(model.pair.loss)
    T = model.values
    if model.kind != "gaussian":
        T = np.full(model.values.size, np.nan, model.values.dtype)
    precision = PRECISIONS.get(loss, NO_PRECISION)
    beta = 4.0 / prior.spread_of_X**precision.power if precision.shape else 1.0
    rho = 1.0 if n_levels else 4.0 / prior.spread**2
    return ChainState(rows, columns, rho, beta, T, cuts=cuts)


def _factors(
    model: SamplerModel, observations: Observations, init: str, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the vectors of rows and columns to begin with; offsets are zero."""
    (m, n), rank, dtype = model.shape, model.rank, model.values.dtype
    f = model.pair.nonlinearity
    few = 3 * model.values.size < m * n
    if init == "auto":
        init = "fit" if f.even else "svd"
    units = model.units
    rows, columns = np.zeros((m, units[0].size), dtype), np.zeros((n, units[1].size), dtype)
    if init == "random":
        for vectors, unit in zip((rows, columns), units, strict=True):
            vectors[:] = SMALL * unit * rng.standard_normal(vectors.shape)
        return rows, columns
    if init == "svd":
        offsets = Offsets(model.mean, None, None)
        start = svd_start(observations, model.pair, rank, offsets, rng, "randomized")
        if few and model.values.size < FEW:
            start = start._replace(W=SHRUNK * start.W, H=SHRUNK * start.H)
    else:
        options = Options(random_state=rng).settled()
        scaling = Scaling(model.pair)
        problem, offsets = make_problem(observations, scaling, options, observed_only=few)
        start = first_start(problem, offsets, rank, options, rng)
    rows[:, :rank], columns[:, :rank] = start.W, start.H.T
    return rows, columns
