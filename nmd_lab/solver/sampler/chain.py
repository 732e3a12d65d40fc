"""One chain: Gibbs sampling in the order of the sweep of Algorithm 1.

Where ADMM takes the proximal map for T, the chain draws T.  Where ADMM solves for W and H, the
chain draws their rows.  The hyperparameters are drawn between.  Nothing is to be tuned but the step
widths of cut points.

    T ~ p(T | X, WH)          T_ij ~ N((WH)_ij + offsets, 1/ρ), weighted by exp(-β d(x_ij, f(T_ij)))
    W ~ p(W | T, H)           one Gaussian for each row, with the prior of its group
    ρ, β ~ p(ρ, β | T, W, H)  Gamma, one for all entries, or one for each column
    H ~ p(H | T, W)           one Gaussian for each column

It is the split Gibbs sampler of M. Vono, N. Dobigeon and P. Chainais, "Split-and-augmented Gibbs
sampler", 2019.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray

from .cut_points import padded
from .groups import EVERY, UNKNOWN, draw_group_priors, first_groups
from .hyperparameters import RowPrior, draw_precision, draw_row_prior
from .problem import SampledProblem
from .state import ChainState
from .streams import HYPER
from .work import Work

Draw = dict[str, NDArray[Any]]
"""Arrays of one draw, by the names that they have in `Draws`."""


class ChainStart(NamedTuple):
    """Where a chain begins.

    Attributes
    ----------
    rows, columns : ndarray (m, rank [+ 1]) and (n, rank [+ 1])
        Vectors of the rows of X and of its columns.
    seed : int
        Seed of its random numbers.
    tune : int
        Number of sweeps in which step widths are tuned.
    """

    rows: FloatArray
    columns: FloatArray
    seed: int
    tune: int = 0


class Chain:
    """Gibbs sampling as an engine: a step is a sweep, an iterate is a draw."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def init(self, problem: SampledProblem, start: ChainStart) -> ChainState:
        """Return the state before the first sweep."""
        work = self._work
        return ChainState(
            *(start.rows, start.columns, *first_noise(problem), work.first_T()),
            seed=start.seed,
            tuning=start.tune,
            cuts=work.first_cuts(),
            x=work.first_x(),
        )

    def step(self, problem: SampledProblem, state: ChainState) -> ChainState:
        """Do one sweep, which overwrites the state, and return it."""
        state.sweep += 1
        rng, work = hyper_stream(state), self._work
        state.row_prior = _draw_prior_of_rows(problem, state, rng)
        misfits, losses = work.draw_rows(state)
        draw_noise(problem, state, misfits, losses, rng)
        state.column_prior = _draw_prior_of_columns(problem, state, rng)
        work.draw_columns(state)
        work.draw_cut_points(state, rng)
        state.tuning -= 1
        return state

    def iterate(self, problem: SampledProblem, state: ChainState) -> Draw:
        """Return the draw to keep."""
        draw: Draw = {
            "rows": state.rows.astype(np.float32),
            "columns": state.columns.astype(np.float32),
            "rho": state.rho.copy(),
            "beta": state.beta.copy(),
            "row_means": state.row_prior.mean.copy(),
            "row_precisions": state.row_prior.precision.copy(),
        }
        if any(state.cuts):
            draw["cut_points"] = padded(state.cuts)
        if (groups := state.groups) is not None:
            draw["row_share"] = state.row_prior.shares.copy()
            draw["row_group"] = groups.labels.astype(np.int16)
            draw["group_scale"] = groups.scale.copy()
            draw["group_strength"] = np.array(groups.strength)
        return draw

    def status(self, state: ChainState) -> None:
        """Return None: a chain has no end of its own."""


def hyper_stream(state: ChainState) -> np.random.Generator:
    """Return the random numbers of a sweep for all but T and the vectors."""
    return np.random.Generator(np.random.Philox(key=[state.seed, state.sweep * 8 + HYPER]))


def _draw_prior_of_rows(
    problem: SampledProblem, state: ChainState, rng: np.random.Generator
) -> RowPrior:
    """Return a draw of the prior of the rows; every few sweeps their groups are to be drawn."""
    units = problem.units[0]
    if problem.n_groups == 1:
        return draw_row_prior(state.rows, units, problem.prior.strength, rng)
    if state.groups is None:
        state.groups = first_groups(state.rows, units, problem.n_groups, rng)
    prior = draw_group_priors(state.groups, problem.n_groups, state.rows, units, rng)
    if state.sweep % EVERY == 0:
        state.groups.labels[:] = UNKNOWN
    return prior


def _draw_prior_of_columns(
    problem: SampledProblem, state: ChainState, rng: np.random.Generator
) -> RowPrior:
    """Return a draw of the prior of the columns: one of numbers, and one of levels."""
    units, strength = problem.units[1], problem.prior.strength
    groups = problem.column_groups
    if groups is None:
        return draw_row_prior(state.columns, units, strength, rng)
    each = [draw_row_prior(state.columns[groups == k], units, strength, rng) for k in range(2)]
    return RowPrior(*(np.concatenate(parts) for parts in zip(*each, strict=True)))


def first_noise(problem: SampledProblem) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ρ and β before the first sweep: the noise has half of the spread."""
    rho, beta = np.ones((2, problem.counts.size))
    for k, (noise, kind) in enumerate(zip(problem.noises, problem.model.kinds, strict=True)):
        precision, at = kind.loss.noise_model, problem.levels_of(k)
        if precision.shape:
            beta[at] = 4.0 / float(problem.prior.spreads_of_X[k]) ** precision.power
        if noise != "ordinal":
            rho[at] = 4.0 / problem.prior.spread**2
    return rho, beta


def draw_noise(
    problem: SampledProblem,
    state: ChainState,
    misfits: FloatArray,
    losses: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Draw ρ and β, and note the log-likelihood but that of drawn cut points."""
    of_T, exact, after, shapes, units = problem.noise_of_levels
    counts, prior = problem.counts, problem.prior
    shape, rate = prior.noise_shape + counts / 2, prior.noise_rate * prior.spread**2 + misfits / 2
    rho = draw_precision(shape[of_T], rate[of_T], rng)
    state.rho[of_T] = np.minimum(rho, prior.most_precise / prior.spread**2)
    has_beta = shapes > 0
    shape, rate = prior.noise_shape + counts * shapes, prior.noise_rate * units + losses
    state.beta[has_beta] = draw_precision(shape[has_beta], rate[has_beta], rng)
    of_misfits = 0.5 * (counts * np.log(state.rho) - state.rho * misfits)
    of_losses = shapes * counts * np.log(state.beta) - state.beta * losses
    state.log_likelihood = float(of_misfits[exact].sum() + of_losses[after].sum())
