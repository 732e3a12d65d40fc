"""The state with which a chain begins: at singular vectors, at a short fit, or at a given fit.

A chain with as many components as columns may begin at the columns: W is T, and H the identity.
Such a member of an ensemble is a Gaussian with a full covariance, or a mixture of them.  It knows
exact relations of columns, such as a column that is the sum of others, which a few components with
a noise for each column do not.  It takes the position of a level, or 0 and 1, for a number with
normal noise.  So does linear regression, while the other members draw T between cut points.  Each
kind is ahead on some tables.

A draw of such a member is one of the other kind with cut points half-way between the levels, in
units in which the noise is 1.  Draws of both kinds are kept in this form, with zeros for the
components that one of the other kind does not have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.fit.starts import first_start
from nmd_lab.fit.summary import make_problem
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.model.model import make_model
from nmd_lab.problem.initialization import Start, svd_start
from nmd_lab.request.options import Options

from .chain import ChainState, Draw, first_season, first_T, new_state
from .latent_draws import first_cuts
from .problem import SampledProblem

COLUMNS = "columns"
"""Name of the start at the columns."""


def first_chain(
    problem: SampledProblem, data: Observations, init: Any, rng: np.random.Generator, **more: Any
) -> ChainState:
    """Return the state of a chain before its first sweep; `init` is a name or a fit.

    `more` is what else `new_state` takes.
    """
    seed, is_name = int(rng.integers(2**62)), isinstance(init, str)
    factors = _first_factors(problem, data, init if is_name else "random", rng)
    if not is_name:
        _take_fit(problem, init, *factors)
    state = new_state(problem, *factors, seed=seed, **more)
    if state.in_order:
        _to_unit_variance(problem, *factors)
        if problem.order is not None and problem.order.period:
            state.season = first_season(problem, state.T)
    if is_name and init == COLUMNS:
        state.rho[:] = 1000 / problem.prior.spread**2  # nearly all of T is WH
    return state


def _to_unit_variance(problem: SampledProblem, rows: FloatArray, columns: FloatArray) -> None:
    """Make the components of the rows as large as their prior says; the product stays the same."""
    rank = problem.rank
    sizes = np.sqrt(np.mean(np.square(rows[:, :rank]), axis=0)) / problem.units[0][:rank]
    sizes[sizes == 0] = 1.0
    rows[:, :rank] /= sizes
    columns[:, :rank] *= sizes


def _take_fit(problem: SampledProblem, fit: Any, rows: FloatArray, columns: FloatArray) -> None:
    """Put factors and offsets of a fit into vectors of rows and columns."""
    (m, n), rank, (W, H) = problem.shape, problem.rank, fit._factors
    start = problem.scaling.scaled_start(Start(W, H, True, fit.offsets))
    rest = start.offsets.mean - problem.offset_columns.mean
    of_rows, of_columns = start.offsets.of_rows(m, float), start.offsets.of_columns(n, float)
    for vectors, factor, offsets in ((rows, start.W, of_rows), (columns, start.H.T, of_columns)):
        vectors[:, :rank] = factor
        if vectors.shape[1] > rank:
            vectors[:, rank], rest = offsets + rest, 0.0


def _first_factors(
    problem: SampledProblem, observations: Observations, init: str, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the vectors of rows and columns with which a chain begins; offsets are zero."""
    (m, n), rank, dtype = problem.shape, problem.rank, problem.dtype
    few = 3 * problem.storage.n_entries < m * n
    if init == "auto":
        init = "fit" if problem.model.even else "svd"
    units = problem.units
    rows, columns = np.zeros((m, units[0].size), dtype), np.zeros((n, units[1].size), dtype)
    if init == "random":
        for vectors, unit in zip((rows, columns), units, strict=True):
            vectors[:] = 0.1 * unit * rng.standard_normal(vectors.shape)
        return rows, columns
    if init == COLUMNS:
        rows[problem.observations.rows, problem.storage.indices] = first_T(problem)
        columns[:, :n] = np.eye(n)
        return rows, columns
    if init == "svd":
        T = problem.observations.with_stored(first_T(problem))
        of_columns = np.zeros(n) if problem.offset_columns.after else None
        offsets = Offsets(problem.offset_columns.mean, None, of_columns)
        identity = make_model("identity", "frobenius")
        start = svd_start(T, identity, rank, offsets, rng, "randomized")
        # Of few data with many missing cells, a chain leaves small components faster than large
        # ones that have fitted noise; with many data it is the other way round.
        size = 0.3 if few and problem.storage.n_entries < 1 << 18 else 1.0
    else:
        options, of_X, size = Options(random_state=rng).settled(), problem.scaling, 1.0
        fit = make_problem(observations, of_X, options, observed_only=few)
        start = first_start(fit, rank, options, rng)
    rows[:, :rank], columns[:, :rank] = size * start.W, size * start.H.T
    return rows, columns


def with_cut_points(problem: SampledProblem, full: SampledProblem, state: ChainState) -> ChainState:
    """Return the state of a member of full rank with cut points for the levels."""
    at = np.flatnonzero(np.array(problem.noises) == "ordinal")
    centres, sizes = full.units_of_kinds[at].T
    roots, scale = np.sqrt(state.rho[at]), np.ones_like(state.rho)
    scale[at] = roots
    columns = state.columns * scale[:, None].astype(problem.dtype)
    columns[at, -1] += roots * centres / sizes
    rho, (ends, _) = np.where(scale == 1, state.rho, 1.0), first_cuts(problem.levels)
    season = None if state.season is None else state.season * scale
    for j, root, size in zip(at, roots, sizes, strict=True):
        values = np.asarray(problem.model.column_models[j].loss.level_values)
        ends[j, 1 : values.size] = 0.5 * (values[1:] + values[:-1]) * root / size
    return replace(state, columns=columns, rho=rho, ends=ends, season=season)


def with_rank(draw: Draw, rank: int, more: int) -> Draw:
    """Return a draw with `more` components after the first `rank`, of which H is zero."""
    names, at, new = ("rows", "columns", "row_means"), [rank] * more, range(rank, rank + more)
    precisions = np.insert(np.insert(draw["row_precisions"], at, 0, axis=1), at, 0, axis=2)
    precisions[:, new, new] = 1.0
    padded = {name: np.insert(draw[name], at, 0, axis=1) for name in names}
    if "phi" in draw:
        padded["phi"] = np.insert(draw["phi"], at, 0)
    return draw | padded | {"row_precisions": precisions}
