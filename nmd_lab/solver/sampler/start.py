"""The state with which a chain begins."""

from __future__ import annotations

import math

import numpy as np

from nmd_lab.data.observations import FloatArray, Observations
from nmd_lab.solver.formulation import make_problem
from nmd_lab.solver.initialization import svd_by_random_range
from nmd_lab.solver.options import Options
from nmd_lab.solver.scaling import Scaling
from nmd_lab.solver.starts import first_start

from .chain import Chain, ChainStart
from .cut_points import CutPoints
from .prepare import PreparedSample
from .problem import SampledProblem
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


def first_chain(
    prepared: PreparedSample, engine: Chain, init: str, tune: int, rng: np.random.Generator
) -> ChainState:
    """Return the state of a chain before its first sweep."""
    problem, scaling = prepared.problem, prepared.scaling
    observations = scaling.scaled_observations(prepared.observations)
    seed = int(rng.integers(2**62))
    factors = first_factors(problem, prepared.work, observations, init, rng)
    state = engine.init(problem, ChainStart(*factors, seed, tune))
    for k, kind in enumerate(problem.model.kinds):
        if not kind.loss.noise_model.shape:  # β is 1 in the units of X
            state.beta[problem.levels_of(k)] = math.ldexp(1.0, scaling.of_objective)
    return state


def first_factors(
    problem: SampledProblem,
    work: Work,
    observations: Observations,
    init: str,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return the vectors of rows and columns with which a chain begins; offsets are zero."""
    (m, n), rank, dtype = problem.shape, problem.rank, problem.dtype
    few = 3 * problem.n_entries < m * n
    if init == "auto":
        init = "fit" if problem.model.even else "svd"
    units = problem.units
    rows, columns = np.zeros((m, units[0].size), dtype), np.zeros((n, units[1].size), dtype)
    if init == "random":
        for vectors, unit in zip((rows, columns), units, strict=True):
            vectors[:] = SMALL * unit * rng.standard_normal(vectors.shape)
        return rows, columns
    if init == "svd":
        fill = 0.0 if problem.mean or problem.n_entries == m * n else problem.mean_of_T
        T = _first_T(problem, work.first_cuts()).astype(np.float64, copy=False)
        T = T - (problem.mean + fill)
        W, H = svd_by_random_range(work.matrix(T, fill), rank, rng)
        if few and problem.n_entries < FEW:
            W, H = SHRUNK * W, SHRUNK * H
    else:
        options = Options(random_state=rng).settled()
        scaling = Scaling(problem.model)
        of_fit, offsets = make_problem(observations, scaling, options, observed_only=few)
        start = first_start(of_fit, offsets, rank, options, rng)
        W, H = start.W, start.H
    rows[:, :rank], columns[:, :rank] = W, H.T
    return rows, columns


def _first_T(problem: SampledProblem, cuts: list[CutPoints | None]) -> FloatArray:
    """Return T = f⁻¹(X) without units at the entries; for ordered levels, their scores."""
    T = np.empty_like(problem.values)
    for kind, cut, at in zip(problem.model.kinds, cuts, problem.entries_of_kinds, strict=True):
        x = problem.values[at]
        T[at] = kind.pseudo_inverse(x) if cut is None else cut.scores()[x.astype(np.intp)]
    return T
