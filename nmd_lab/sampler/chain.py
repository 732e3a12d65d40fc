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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.matching import mixed_with
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.kernels.products import CsrStorage
from nmd_lab.model.model import Model
from nmd_lab.problem.problem import OffsetColumns

from . import priors
from .latent_draws import Batch, CutPoints, ends_in_rows, latent_kernel, padded, put
from .ordered_rows import RowOrder, draw_ordered_rows
from .priors import NO_PRIOR, UNLABELLED, Doubles, Groups, RowPrior
from .problem import SampledProblem, problem_of_rows
from .random_numbers import COLUMNS, HYPER, NO_KEYS, ROWS, Keys, numbers
from .row_updates import NO_LABELS, RowInputs, StreamId, each_share


@dataclass
class ChainState:
    """All that the next sweep depends on.

    Attributes
    ----------
    rows, columns : ndarray (m, rank [+ 1]) and (n, rank [+ 1])
        Vectors of the rows of X and of its columns: components, and the offset if there is one.
    rho, beta : ndarray (n_levels,)
        Precisions of the noise before f and after it, of all entries or of each column.
    T : ndarray (n_entries,) or None
        T at the stored entries, with the units of its kind; None if it is X itself.
    seed : int
        Seed of its random numbers.
    tuning : int
        Number of further sweeps in which the step widths of cut points are tuned.
    sweep : int
        Number of sweeps so far.
    row_prior, column_prior : RowPrior
        Priors of the rows and of the columns.
    n_groups : int
        Largest number of groups of rows.
    in_order : bool
        Whether each row depends on the one before it.
    season : ndarray (period, n) or None
        Offsets of each column by phase of the season, if there is one.
    groups : Groups or None
        Groups of the rows; None before the first sweep, or if there is one.
    x : ndarray (n_entries,) or None
        X at the stored entries, drawn where only limits are known; None if all values are known.
    cuts : list of CutPoints or None
        Cut points of each kind, None for a kind without levels.
    log_likelihood : float
        Log-likelihood of the data given T and of T given WH, up to a constant; for three or
        more ordered levels that of the levels given WH.
    """

    rows: FloatArray
    columns: FloatArray
    rho: NDArray[np.float64]
    beta: NDArray[np.float64]
    T: FloatArray | None
    seed: int = 0
    tuning: int = 0
    sweep: int = 0
    row_prior: RowPrior = NO_PRIOR
    column_prior: RowPrior = NO_PRIOR
    n_groups: int = 1
    in_order: bool = False
    season: FloatArray | None = None
    groups: Groups | None = None
    cuts: list[CutPoints | None] = field(default_factory=lambda: [None])
    x: FloatArray | None = None
    log_likelihood: float = math.nan


def draw_T(problem: SampledProblem, state: ChainState) -> Doubles:
    """Draw T in place, and return sums of the weighted losses at f(T) that have the same noise."""
    losses = np.zeros(problem.counts.size)
    if state.T is None or not problem.batches:  # X itself
        return losses
    products = linear_at_entries(problem, state)
    for batch in problem.batches:
        T, V = state.T[batch.entries], products[batch.entries]
        x = batch.x if state.x is None else state.x[batch.entries]
        if batch.units:
            centre, size = batch.units
            V = centre + size * V
        batch_losses = np.zeros(batch.starts.size - 1)
        draw = _compiled_draw(problem, state, batch)
        each_share(batch.starts, problem.threads, partial(draw, x, V, T, batch_losses))
        state.T[batch.entries] = T
        if state.x is not None:
            state.x[batch.entries] = x
        losses[batch.model_indices] = batch_losses if problem.by_column else batch_losses.sum()
    return losses


def _compiled_draw(problem: SampledProblem, state: ChainState, batch: Batch) -> Callable[..., None]:
    """Return a function of x, WH with offsets, T, losses, and the first and last row or column."""
    column_model, model_indices = batch.column_model, batch.model_indices
    rho = state.rho[model_indices] / problem.units_of_kinds[model_indices, 1] ** 2
    levels = rho, state.beta[model_indices], ends_in_rows([state.cuts[k] for k in model_indices])
    kernel = latent_kernel(batch.noise, column_model.structure)
    keys = problem.keys.entries[batch.entries] if problem.keys.entries.size else NO_KEYS.entries
    key = state.seed, state.sweep, batch.shift, keys
    entries = batch.starts, batch.weights, tuple(batch.limits)
    return partial(kernel, entries, levels, column_model.arguments, key)


Draw = dict[str, NDArray[Any]]
"""Arrays of one draw by name."""


class Chain:
    """Gibbs sampling as an engine: a step is a sweep, an iterate is a draw."""

    def init(
        self, problem: SampledProblem, rows: FloatArray, columns: FloatArray, **more: Any
    ) -> ChainState:
        """Return the state before the first sweep; `more` are other fields of it."""
        levels = problem.levels
        is_X = set(problem.noises) == {"gaussian"} and not problem.by_column
        T = None if is_X and problem.limits is None else first_T(problem)
        return ChainState(
            *(rows, columns, *first_noise(problem), T),
            cuts=[None if each is None else CutPoints.first(each.counts) for each in levels],
            x=None if problem.limits is None else problem.values.copy(),
            **more,
        )

    def step(self, problem: SampledProblem, state: ChainState) -> ChainState:
        """Do one sweep, which overwrites the state, and return it."""
        state.sweep += 1
        rng = numbers(state.seed, state.sweep, HYPER)
        state.row_prior = _draw_prior_of_rows(problem, state, rng)
        losses = draw_T(problem, state)
        T = without_season(problem, state)
        draw_rows(problem, state, T)
        draw_noise(problem, state, sums_of_squares(problem, state, T), losses, rng)
        state.column_prior = _draw_prior_of_columns(problem, state, rng)
        draw_columns(problem, state, T)
        if state.season is not None:
            residual = without_units(problem, state.T) - problem.products(state.rows, state.columns)
            state.season = draw_season(problem, state.season, residual, state.rho, rng)
        draw_cut_points(problem, state, rng)
        state.tuning -= 1
        return state

    def iterate(self, problem: SampledProblem, state: ChainState) -> Draw:
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
        if any(state.cuts):
            draw["cut_points"] = padded(state.cuts)
        if prior.phi is not None:
            draw["phi"] = prior.phi
        if state.season is not None:
            draw["season"] = state.season.astype(np.float32)
        if prior.shares.size > 1:
            labels = np.zeros(len(state.rows)) if state.groups is None else state.groups.labels
            draw["row_share"], draw["row_group"] = prior.shares, labels.astype(np.int16)
        return draw


def _draw_prior_of_rows(
    problem: SampledProblem, state: ChainState, rng: np.random.Generator
) -> RowPrior:
    """Return a draw of the prior of the rows; every few sweeps their groups are to be drawn."""
    units, rank = problem.units[0], problem.rank
    if state.in_order:
        assert problem.order is not None
        if state.sweep > 1:
            prior, groups = state.column_prior, problem.column_groups
            scaled = state.rows[:, :rank] / units[:rank]
            sizes = problem.order.draw_sizes(scaled, state.columns, prior, groups, rng)
            state.rows[:, :rank] *= sizes
            state.columns[:, :rank] /= sizes
        phi = problem.order.draw_phi(state.rows / units, rng)
        return RowPrior(np.zeros((1, units.size)), np.diag(units**-2)[None], phi=phi)
    scaled = state.rows / units
    if state.n_groups == 1:
        one_group = np.zeros(len(scaled), np.int64)
        return priors.draw_row_prior(scaled, one_group, problem.prior.strength, rng).times(units)
    if state.groups is None:
        components = state.columns[:, :rank]
        state.groups = priors.first_groups(state.rows, components, units, state.n_groups, rng)
    elif state.sweep % priors.SWEEPS_PER_LABEL_DRAW:
        before = state.row_prior.times(1 / units)
        return priors.draw_used_priors(state.groups, before, scaled, rng).times(units)
    prior = priors.draw_group_priors(state.groups, state.n_groups, scaled, rng).times(units)
    if state.sweep % priors.SWEEPS_PER_LABEL_DRAW == 0:
        state.groups.labels[:] = UNLABELLED
    return prior


def _draw_prior_of_columns(
    problem: SampledProblem, state: ChainState, rng: np.random.Generator
) -> RowPrior:
    """Return a draw of the prior of the columns: one of numbers, and one of levels."""
    units, groups = problem.units[1], problem.column_groups
    scaled, strength = state.columns / units, problem.prior.strength
    return priors.draw_row_prior(scaled, groups, strength, rng).times(units)


def first_T(problem: SampledProblem) -> FloatArray:
    """Return T = f⁻¹(X) with its units; for ordered levels, their scores."""
    T = np.empty_like(problem.values)
    for (_, kind, at), levels in zip(problem.kinds, problem.levels, strict=True):
        x = problem.values[at]
        if levels is None:
            T[at] = kind.nonlinearity.pseudo_inverse(kind.loss.target(x))
        else:
            T[at] = CutPoints.first(levels.counts).scores()[x.astype(np.intp)]
    return T


def first_noise(problem: SampledProblem) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ρ and β before the first sweep: the noise has half of the spread."""
    rho = np.ones(problem.counts.size)
    beta = rho * math.ldexp(1.0, problem.scaling.log2_unit_of_objective)  # 1 in the units of X
    for k, (noise, kind, _) in enumerate(problem.kinds):
        precision = kind.loss.noise_model
        if precision.shape:
            beta[k] = 4.0 / float(problem.prior.spreads_of_X[k]) ** precision.power
        if noise != "ordinal":
            rho[k] = 4.0 / problem.prior.spread**2
    return rho, beta


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
    """Draw the rows given T without units."""
    prior = state.row_prior
    labels = NO_LABELS if state.groups is None else state.groups.labels
    if (labels >= 0).any():  # only groups that have rows
        used, labels = np.unique(labels, return_inverse=True)
        prior = RowPrior(*(each[used] for each in prior[:3]))
    other = problem.factor(state.columns, for_rows=True)
    key = StreamId(state.seed, state.sweep, ROWS, problem.keys.rows)
    inputs = RowInputs(other, prior, state.rho, key, labels)
    if prior.phi is None:
        problem.updates[0].draw(T, inputs, state.rows)
    else:
        assert problem.order is not None
        assert isinstance(problem.storage, CsrStorage)
        weights = problem.weights_of_T
        draw_ordered_rows(problem.order, problem.storage, weights, T, inputs, state.rows)


def sums_of_squares(problem: SampledProblem, state: ChainState, T: FloatArray) -> FloatArray:
    """Return the weighted sums of (T - WH)² over the entries of each noise level."""
    residual, weights = T - problem.products(state.rows, state.columns), problem.weights_of_T
    squares = np.square(residual, dtype=np.float64)
    squares = squares if weights is None else squares * weights
    if not problem.by_column:
        return np.array([squares.sum()])
    return np.bincount(problem.column_of, squares, problem.counts.size).astype(np.float64)


def draw_columns(problem: SampledProblem, state: ChainState, T: FloatArray) -> None:
    """Draw the columns given T without units."""
    other = problem.factor(state.rows, for_rows=False)
    key = StreamId(state.seed, state.sweep, COLUMNS)
    inputs = RowInputs(other, state.column_prior, state.rho, key, problem.column_groups)
    problem.updates[1].draw(T, inputs, state.columns)


def draw_cut_points(problem: SampledProblem, state: ChainState, rng: np.random.Generator) -> None:
    """Draw the cut points of each kind with levels, and add their log-likelihood.

    Of two levels, the only cut point stays where it is.
    """
    drawn = [k for k, cuts in enumerate(state.cuts) if cuts and cuts.steps.size > 1]
    if not drawn:
        return
    V = linear_at_entries(problem, state)
    for k in drawn:
        cuts, levels, v = state.cuts[k], problem.levels[k], V[problem.entries_of_kinds[k]]
        assert cuts is not None
        assert levels is not None
        state.log_likelihood += cuts.draw(levels, v, rng, tune=state.tuning > 0)


def season_at_entries(problem: SampledProblem, state: ChainState) -> FloatArray | None:
    """Return the season at the stored entries; None if there is none."""
    if state.season is None:
        return None
    return state.season.ravel()[problem.season_of_entries].astype(problem.dtype)


def without_season(problem: SampledProblem, state: ChainState) -> FloatArray:
    """Return T without units and without the season."""
    T, season = without_units(problem, state.T), season_at_entries(problem, state)
    return T if season is None else T - season


def linear_at_entries(problem: SampledProblem, state: ChainState) -> FloatArray:
    """Return WH with offsets, and with the season, at the stored entries."""
    products = problem.products(state.rows, state.columns)
    season = season_at_entries(problem, state)
    return products if season is None else products + season


def linear_at(
    problem: SampledProblem, state: ChainState, i: NDArray[np.intp], j: NDArray[np.intp]
) -> FloatArray:
    """Return WH with offsets, and with the season, at single entries, rows i and columns j."""
    v = problem.at(state.rows, state.columns, i, j)
    if state.season is None or problem.order is None:
        return v
    return v + state.season[problem.order.phases[i], j].astype(v.dtype)


def without_units(problem: SampledProblem, T: FloatArray | None) -> FloatArray:
    """Return T without units, which is X itself if there is no other."""
    if T is None:
        return problem.values
    if not problem.by_column:
        return T
    centre, size = problem.units_of_entries
    return np.asarray((T - centre) / size)


SWEEPS_FROM_PRIOR, SWEEPS_LATENT = 3, 5
"""Draws of T and of rows that begin at their prior, and of those with noise after f, which moves
slowly; new rows that continue from the last draw of H take one."""


def draw_new_rows(
    observations: SparseObservations,
    draws_of_H: Iterator[Any],
    seed: int,
    row_keys: NDArray[np.int64],
    *,
    model: Model,
    noises: tuple[Any, ...],
    rank: int,
    offsets: str,
    mean: float,
    order: RowOrder | None = None,
) -> Iterator[FloatArray]:
    """Yield the vectors (m, rank [+ 1]) of new rows for each draw of H.

    A draw is the numbers of a chain and of a member of its ensemble, the vectors of the rows that
    are fitted or None, the cut points or None, and what else a `ChainState` takes of it by name.
    The priors of the rows are drawn already.  What is drawn for a row depends on its key, and not
    on its position; with an order it depends on all of them, and fitted rows stand behind the new
    ones, without entries.
    """
    of_entries = np.repeat(row_keys, np.diff(observations.indptr))
    problem = problem_of_rows(
        observations,
        model,
        noises,
        rank=rank,
        offset_columns=OffsetColumns(offsets, mean),
        keys=Keys(row_keys, mixed_with(of_entries, observations.indices)),
        order=order,
    )
    n_new = row_keys.size if order is None else np.count_nonzero(~order.is_known)
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
            put(state.cuts, cuts)
        _draw_rows_alone(
            problem, state, range(number * SWEEPS_LATENT, number * SWEEPS_LATENT + steps)
        )
        yield state.rows[:n_new].copy()


def unhide_cells(problem: SampledProblem, state: ChainState) -> ChainState:
    """Return the state of a chain that was tuned with some cells, or some rows, with all of them.

    All rows are drawn anew if only some were there.
    """
    if len(state.rows) == problem.shape[0]:
        new = Chain().init(problem, state.rows, state.columns, seed=state.seed)
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
    state = Chain().init(problem, rows, columns, seed=seed)
    if prior.shares.size > 1:
        state.groups = Groups(np.full(len(rows), UNLABELLED), np.empty((0, 0)))
    return state


def _draw_rows_alone(problem: SampledProblem, state: ChainState, sweeps: Iterable[int]) -> None:
    """Draw T and the rows, and their groups, in sweeps of these numbers."""
    for state.sweep in sweeps:
        if state.groups is not None:
            state.groups.labels[:] = UNLABELLED
        draw_T(problem, state)
        draw_rows(problem, state, without_season(problem, state))


def first_season(problem: SampledProblem, T: FloatArray) -> Doubles:
    """Return the season to begin with: means of T at each phase, less that of the column."""
    assert problem.order is not None
    shape, at = (problem.order.period, problem.shape[1]), problem.season_of_entries
    counts, sums = (np.bincount(at, each, np.prod(shape)).reshape(shape) for each in (None, T))
    means = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    return np.asarray((sums - counts * means) / np.maximum(counts, 1))


def draw_season(
    problem: SampledProblem,
    season: FloatArray,
    residual: FloatArray,
    rho: Doubles,
    rng: np.random.Generator,
) -> Doubles:
    """Return a draw of S, given T less all else at the entries."""
    at, weights = problem.season_of_entries, problem.weights_of_T
    rate = 0.5 * np.sum(season**2, axis=0)
    rate += problem.prior.noise_rate * problem.prior.spread**2
    inverse_variance = rng.gamma(1.0 + 0.5 * len(season), 1 / rate)
    weighted = residual if weights is None else residual * weights
    counts, sums = (
        rho * np.bincount(at, each, season.size).reshape(season.shape)
        for each in (weights, weighted)
    )
    precision = counts + inverse_variance
    return np.asarray(sums / precision + rng.standard_normal(season.shape) / np.sqrt(precision))
