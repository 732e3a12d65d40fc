"""One chain: Gibbs sampling in the order of the sweep of Algorithm 1.

Where ADMM takes the proximal map for T, the chain draws T.  Where ADMM solves for W and H, the
chain draws their rows.  The hyperparameters are drawn between.  Nothing is to be tuned but the step
widths of cut points.

    T ~ p(T | X, WH)          T_ij ~ N((WH)_ij + offsets, 1/ρ), weighted by exp(-β d(x_ij, f(T_ij)))
    W ~ p(W | T, H)           one Gaussian for each row, with the prior of its group
    ρ, β ~ p(ρ, β | T, W, H)  Gamma, one for all entries, or one for each column
    H ~ p(H | T, W)           one Gaussian for each column

It is the split Gibbs sampler of M. Vono, N. Dobigeon and P. Chainais, "Split-and-augmented Gibbs
sampler", 2019.  T of one column model is drawn by blocks of rows.  In a table of several, the
columns of each are drawn together, in their units and each with its noise levels.

Rows alone are drawn given all else: new rows, and those that a chain was not tuned with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.sparse import SparseObservations

from .latent_draws import first_cuts, middles
from .ordered_rows import draw_ordered_rows
from .priors import (
    SWEEPS_PER_LABEL_DRAW,
    UNLABELLED,
    Doubles,
    Groups,
    RowPrior,
    draw_prior,
    draw_used_priors,
    first_groups,
)
from .problem import SampledProblem, problem_of_rows
from .random_numbers import COLUMNS, HYPER, ROWS, numbers
from .row_updates import StreamId, each_share


@dataclass
class ChainState:
    """All that the next sweep depends on.

    Attributes
    ----------
    rows, columns : ndarray (m, rank [+ 1]) and (n, rank [+ 1])
        Vectors of the rows of X and of its columns: components, and the offset if there is one.
    rho, beta : ndarray (n_levels,)
        Precisions of the noise before f and after it, of all entries or of each column.
    T : ndarray (n_entries,)
        T at the stored entries, without the units of its kind.
    row_prior, column_prior : RowPrior
        Priors of the rows and of the columns.
    groups : Groups
        Groups of the rows.
    seed : int
        Seed of its random numbers.
    tuning : int
        Number of further sweeps in which the step widths of cut points are tuned.
    sweep : int
        Number of sweeps so far.
    in_order : bool
        Whether each row depends on the one before it.
    season : ndarray (period, n) or None
        Offsets of each column by phase of the season, if there is one.
    x : ndarray (n_entries,) or None
        X at the stored entries, drawn where only limits are known; None if all values are known.
    ends, steps : ndarray (n_kinds, n_levels + 1) and (n_kinds, n_levels)
        Ends of the levels of each kind, with infinity behind the last, and widths of the steps of
        cut points.
    log_likelihood : float
        Log-likelihood of the data given T and of T given WH, up to a constant; for three or
        more ordered levels that of the levels given WH.
    """

    rows: FloatArray
    columns: FloatArray
    rho: NDArray[np.float64]
    beta: NDArray[np.float64]
    T: FloatArray
    row_prior: RowPrior
    column_prior: RowPrior
    groups: Groups
    ends: Doubles
    steps: Doubles
    seed: int = 0
    tuning: int = 0
    sweep: int = 0
    in_order: bool = False
    season: FloatArray | None = None
    x: FloatArray | None = None
    log_likelihood: float = math.nan


def draw_T(problem: SampledProblem, state: ChainState) -> Doubles:
    """Draw T in place, and return sums of the weighted losses at f(T) that have the same noise."""
    losses = np.zeros(problem.counts.size)
    if not problem.batches:  # T is known
        return losses
    products, values = linear_at_entries(problem, state), state.x
    values = problem.values if values is None else values
    for batch in problem.batches:
        which, at = batch.model_indices, batch.at
        x, V, T = (each[at] for each in (values, products, state.T))
        batch_losses = np.zeros(batch.starts.size - 1)
        centre, size = problem.units_of_kinds[which].T.copy()
        levels = state.rho[which] / size**2, state.beta[which], centre, size, state.ends[which]
        entries, key = (batch.starts, *batch.known), (state.seed, state.sweep, *batch.key)
        arguments = entries, levels, batch.arguments, key, x, V, T, batch_losses
        each_share(batch.starts, problem.threads, partial(batch.kernel, *arguments))
        state.T[at] = T
        if state.x is not None:
            state.x[at] = x
        losses[which] = batch_losses if problem.model.is_mixed else batch_losses.sum()
    return losses


Draw = dict[str, NDArray[Any]]
"""Arrays of one draw by name."""


def new_state(
    problem: SampledProblem, rows: FloatArray, columns: FloatArray, n_groups: int = 1, **more: Any
) -> ChainState:
    """Return the state before the first sweep; `more` are other fields of it.

    The noise has half of the spread.
    """
    (of_rows, of_columns), one_group = problem.units, np.zeros(len(rows), np.int64)
    (ends, steps), (of_T, _, _, shapes, units) = first_cuts(problem.levels), problem.noise_levels
    one = math.ldexp(1.0, problem.scaling.log2_unit_of_objective)  # 1 in the units of X
    return ChainState(
        rows=rows,
        columns=columns,
        rho=np.where(of_T, 4.0 / problem.prior.spread**2, 1.0),
        beta=np.where(shapes > 0, 4.0 / units, one),
        T=first_T(problem),
        row_prior=RowPrior.first(n_groups, of_rows.size),
        column_prior=RowPrior.first(1 + problem.column_groups.max(), of_columns.size),
        groups=Groups.apart(one_group, of_rows**2, problem.prior.strength),
        ends=ends,
        steps=steps,
        x=problem.values.copy() if problem.is_limited else None,
        **more,
    )


def one_sweep(problem: SampledProblem, state: ChainState) -> ChainState:
    """Do one sweep, which overwrites the state, and return it."""
    state.sweep += 1
    rng = numbers(state.seed, state.sweep, HYPER)
    state.row_prior = _draw_prior_of_rows(problem, state, rng)
    losses = draw_T(problem, state)
    T = with_season(problem, state, state.T, -1.0)
    draw_rows(problem, state, T)
    draw_noise(problem, state, sums_of_squares(problem, state, T), losses, rng)
    columns = Groups.apart(problem.column_groups, problem.units[1] ** 2, problem.prior.strength)
    state.column_prior = draw_used_priors(columns, state.column_prior, state.columns, rng)
    draw_columns(problem, state, T)
    draw_season(problem, state, rng)
    draw_cut_points(problem, state, rng)
    state.tuning -= 1
    return state


def draw_of(state: ChainState) -> Draw:
    """Return the draw to keep."""
    prior = state.row_prior
    draw: Draw = {
        "rows": state.rows.astype(np.float32),
        "columns": state.columns.astype(np.float32),
        "rho": state.rho.copy(),
        "beta": state.beta.copy(),
        "row_means": prior.mean,
        "row_precisions": prior.precision,
    }
    if (cuts := state.ends[:, 1:-1]).size:
        draw["cut_points"] = np.where(np.isfinite(cuts), cuts, np.nan)
    if prior.phi is not None:
        draw["phi"] = prior.phi
    if state.season is not None:
        draw["season"] = state.season.astype(np.float32)
    if prior.shares.size > 1:
        draw["row_share"], draw["row_group"] = prior.shares, state.groups.labels.astype(np.int16)
    return draw


def _draw_prior_of_rows(
    problem: SampledProblem, state: ChainState, rng: np.random.Generator
) -> RowPrior:
    """Return a draw of the prior of the rows; every few sweeps their groups are to be drawn."""
    units, rank = problem.units[0], problem.rank
    if state.in_order:
        assert problem.order is not None
        if state.sweep > 1:
            prior = RowPrior(*(each[problem.column_groups] for each in state.column_prior[:2]))
            scaled = state.rows[:, :rank] / units[:rank]
            sizes = problem.order.draw_sizes(scaled, state.columns, prior, rng)
            state.rows[:, :rank] *= sizes
            state.columns[:, :rank] /= sizes
        phi = problem.order.draw_phi(state.rows / units, rng)
        return RowPrior(np.zeros((1, units.size)), np.diag(units**-2)[None], phi=phi)
    n_groups = state.row_prior.shares.size
    if n_groups > 1 and state.sweep == 1:
        components = state.columns[:, :rank]
        state.groups = first_groups(state.rows, components, units, n_groups, rng)
    prior = draw_prior(state.groups, state.row_prior, state.rows, state.sweep, rng, units)
    if n_groups > 1 and state.sweep % SWEEPS_PER_LABEL_DRAW == 0:
        state.groups.labels[:] = UNLABELLED
    return prior


def first_T(problem: SampledProblem) -> FloatArray:
    """Return T = f⁻¹(X) without units; for ordered levels, their scores."""
    T, (ends, _) = np.empty_like(problem.values), first_cuts(problem.levels)
    for (noise, kind, at), row in zip(problem.kinds, ends, strict=True):
        x = problem.values[at]
        is_level = noise == "ordinal"
        T[at] = middles(row)[x.astype(np.intp)] if is_level else kind.pseudo_inverse(x)
    return T


def draw_noise(
    problem: SampledProblem,
    state: ChainState,
    squares: FloatArray,
    losses: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Draw ρ and β, and note the log-likelihood but that of drawn cut points."""
    counts, prior = problem.counts, problem.prior
    of_T, after, exact, shapes, units = problem.noise_levels
    shape: Any = prior.noise_shape + counts / 2
    rate: Any = prior.noise_rate * prior.spread**2 + squares / 2
    rho = rng.gamma(shape[of_T], 1 / rate[of_T])
    state.rho[of_T] = np.minimum(rho, prior.most_precise / prior.spread**2)
    has_beta = shapes > 0
    shape, rate = prior.noise_shape + counts * shapes, prior.noise_rate * units + losses
    state.beta[has_beta] = rng.gamma(shape[has_beta], 1 / rate[has_beta])
    density_of_T = 0.5 * (counts * np.log(state.rho) - state.rho * squares)
    density_of_x = shapes * counts * np.log(state.beta) - state.beta * losses
    state.log_likelihood = float(density_of_T[exact].sum() + density_of_x[after].sum())


def draw_rows(problem: SampledProblem, state: ChainState, T: FloatArray) -> None:
    """Draw the rows given T without the season."""
    prior, labels = state.row_prior, state.groups.labels
    if (labels > 0).any():  # only groups that have rows
        used, labels = np.unique(labels, return_inverse=True)
        prior = RowPrior(*(each[used] for each in prior[:3]))
    other = problem.factor(state.columns, for_rows=True)
    key = StreamId(state.seed, state.sweep, ROWS, problem.keys)
    if prior.phi is None:
        problem.updates[0].draw(T, state.rows, other, prior, state.rho, key, labels)
    else:
        assert problem.order is not None
        entries = problem.storage, problem.weights_of_T, T
        draw_ordered_rows(problem.order, state.rows, *entries, other, prior, state.rho, key)


def sums_of_squares(problem: SampledProblem, state: ChainState, T: FloatArray) -> FloatArray:
    """Return the weighted sums of (T - WH)² over the entries of each noise level."""
    residual, weights = T - problem.products(state.rows, state.columns), problem.weights_of_T
    squares = np.square(residual, dtype=np.float64)
    squares = squares if weights is None else squares * weights
    if not problem.model.is_mixed:
        return np.array([squares.sum()])
    return np.bincount(problem.storage.indices, squares, problem.counts.size).astype(np.float64)


def draw_columns(problem: SampledProblem, state: ChainState, T: FloatArray) -> None:
    """Draw the columns given T without the season."""
    other = problem.factor(state.rows, for_rows=False)
    key = StreamId(state.seed, state.sweep, COLUMNS)
    labels, prior = problem.column_groups, state.column_prior
    problem.updates[1].draw(T, state.columns, other, prior, state.rho, key, labels)


def draw_cut_points(problem: SampledProblem, state: ChainState, rng: np.random.Generator) -> None:
    """Draw the cut points of each kind with levels, and add their log-likelihood.

    Of two levels, the only cut point stays where it is.
    """
    if state.ends.shape[1] < 4:
        return
    V, tune = linear_at_entries(problem, state), state.tuning > 0
    for k, levels in enumerate(problem.levels):
        if levels is not None and levels.counts.size > 2:
            v, ends, steps = V[problem.entries_of_kinds[k]], state.ends[k], state.steps[k]
            state.log_likelihood += levels.draw(v, ends, steps, rng, tune=tune)


def with_season(
    problem: SampledProblem, state: ChainState, numbers: FloatArray, times: float = 1.0
) -> FloatArray:
    """Return numbers at the stored entries plus a multiple of the season, if there is one."""
    if state.season is None:
        return numbers
    season = state.season.ravel()[problem.season_of_entries]
    return numbers + times * season.astype(problem.dtype)


def linear_at_entries(problem: SampledProblem, state: ChainState) -> FloatArray:
    """Return WH with offsets, and with the season, at the stored entries."""
    return with_season(problem, state, problem.products(state.rows, state.columns))


def linear_at(
    problem: SampledProblem, state: ChainState, i: NDArray[np.intp], j: NDArray[np.intp]
) -> FloatArray:
    """Return WH with offsets, and with the season, at single entries, rows i and columns j."""
    A, B = problem.augmented(state.rows[i], state.columns[j])
    v: FloatArray = np.einsum("ij,ij->i", A, B)
    if state.season is None or problem.order is None:
        return v
    return v + state.season[problem.order.phases[i], j].astype(v.dtype)


SWEEPS_FROM_PRIOR, SWEEPS_LATENT = 3, 5
"""Draws of T and of rows that begin at their prior, and of those with noise after f, which moves
slowly; new rows that continue from the last draw of H take one."""


def draw_new_rows(
    observations: SparseObservations,
    draws_of_H: Iterator[Any],
    seed: int,
    row_keys: NDArray[np.int64],
    **known: Any,
) -> Iterator[FloatArray]:
    """Yield the vectors (m, rank [+ 1]) of new rows for each draw of H.

    A draw is the numbers of a chain and of a member of its ensemble, the vectors of the rows that
    are fitted or None, the cut points or None, and what else a `ChainState` takes of it by name.
    The priors of the rows are drawn already, and what is `known` belongs to `problem_of_rows`.
    What is drawn for a row depends on its key, and not on its position; with an order it depends on
    all of them, and fitted rows stand behind the new ones, without entries.
    """
    problem = problem_of_rows(observations, keys=row_keys, **known)
    n_new = row_keys.size if problem.order is None else np.count_nonzero(~problem.order.is_known)
    states: dict[tuple[int, int], ChainState] = {}  # a member continues from its last draw
    for number, (member, rows, cuts, taken) in enumerate(draws_of_H):
        steps = SWEEPS_LATENT if "after" in problem.noises else 1
        if member not in states:
            steps = max(steps, SWEEPS_FROM_PRIOR)
            states[member] = _first(problem, taken["columns"], taken["row_prior"], seed)
        state = states[member] = replace(states[member], **taken)
        if rows is not None:
            state.rows[n_new:] = rows
        if cuts is not None:
            state.ends[:, 1:-1] = np.where(np.isnan(cuts), np.inf, cuts)
        _draw_rows_alone(
            problem, state, range(number * SWEEPS_LATENT, number * SWEEPS_LATENT + steps)
        )
        yield state.rows[:n_new].copy()


def unhide_cells(problem: SampledProblem, state: ChainState) -> ChainState:
    """Return the state of a chain that was tuned with some cells, or some rows, with all of them.

    All rows are drawn anew if only some were there.
    """
    if len(state.rows) == problem.shape[0]:
        new = new_state(problem, state.rows, state.columns)
        return replace(state, T=new.T, x=new.x, tuning=0)
    new = _first(problem, state.columns, state.row_prior, state.seed)
    groups = replace(state.groups, labels=new.groups.labels)
    steps = np.minimum(state.steps, new.steps)  # more entries move cut points less
    state = replace(state, rows=new.rows, T=new.T, x=new.x, tuning=0, groups=groups, steps=steps)
    number = SWEEPS_LATENT if "after" in problem.noises else SWEEPS_FROM_PRIOR
    _draw_rows_alone(problem, state, range(state.sweep + 1, state.sweep + 1 + number))
    return state


def _first(problem: SampledProblem, columns: FloatArray, prior: RowPrior, seed: int) -> ChainState:
    """Return a state whose rows are all at the mean of their prior."""
    mean = prior.shares @ prior.mean
    rows = np.tile(mean, (problem.shape[0], 1)).astype(problem.dtype)
    return new_state(problem, rows, columns, seed=seed)


def _draw_rows_alone(problem: SampledProblem, state: ChainState, sweeps: Iterable[int]) -> None:
    """Draw T and the rows, and their groups, in sweeps of these numbers."""
    for state.sweep in sweeps:
        state.groups.labels[:] = UNLABELLED if state.row_prior.shares.size > 1 else 0
        draw_T(problem, state)
        draw_rows(problem, state, with_season(problem, state, state.T, -1.0))


def first_season(problem: SampledProblem, T: FloatArray) -> Doubles:
    """Return the season to begin with: means of T at each phase, less that of the column."""
    assert problem.order is not None
    shape, at = (problem.order.period, problem.shape[1]), problem.season_of_entries
    counts, sums = (np.bincount(at, each, np.prod(shape)).reshape(shape) for each in (None, T))
    means = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    return np.asarray((sums - counts * means) / np.maximum(counts, 1))


def draw_season(problem: SampledProblem, state: ChainState, rng: np.random.Generator) -> None:
    """Draw S, if there is one, given T less all else at the entries."""
    if (season := state.season) is None:
        return
    residual = state.T - problem.products(state.rows, state.columns)
    at, weights = problem.season_of_entries, problem.weights_of_T
    rate = 0.5 * np.sum(season**2, axis=0)
    rate += problem.prior.noise_rate * problem.prior.spread**2
    inverse_variance = rng.gamma(1.0 + 0.5 * len(season), 1 / rate)
    weighted = residual if weights is None else residual * weights
    counts, sums = (
        state.rho * np.bincount(at, each, season.size).reshape(season.shape)
        for each in (weights, weighted)
    )
    precision = counts + inverse_variance
    state.season = sums / precision + rng.standard_normal(season.shape) / np.sqrt(precision)
