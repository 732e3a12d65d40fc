"""One chain: Gibbs sampling in the order of the sweep of Algorithm 1.

Where ADMM takes the proximal map for T, the chain draws T.  Where ADMM solves for W and H, the
chain draws their rows.  The hyperparameters are drawn between.  Nothing is to be tuned but the step
widths of cut points.

    T ~ p(T | X, WH)          T_ij ~ N((WH)_ij + offsets, 1/ρ), weighted by exp(-β d(x_ij, f(T_ij)))
    W ~ p(W | T, H)           one Gaussian for each row
    ρ, β ~ p(ρ, β | T, W, H)  Gamma
    H ~ p(H | T, W)           one Gaussian for each column

It is the split Gibbs sampler of M. Vono, N. Dobigeon and P. Chainais, "Split-and-augmented Gibbs
sampler", 2019.
"""

from __future__ import annotations

import math

import numpy as np

from .hyperparameters import draw_precision, draw_row_prior
from .model import Model
from .noise import NO_PRECISION, PRECISIONS
from .state import ChainState
from .streams import HYPER
from .work import Work


def sweep(model: Model, work: Work, state: ChainState, seed: int, *, tune: bool = False) -> None:
    """Do one sweep, which overwrites the state."""
    state.sweep += 1
    rng = np.random.Generator(np.random.Philox(key=[seed, state.sweep * 8 + HYPER]))
    prior, of_rows, of_columns = model.prior, *model.units
    state.row_prior = draw_row_prior(state.rows, of_rows, prior.strength, rng)
    misfit, losses = work.draw_rows(state, seed)
    _draw_noise(model, state, misfit, losses, rng)
    state.column_prior = draw_row_prior(state.columns, of_columns, prior.strength, rng)
    work.draw_columns(state, seed)
    if state.cuts is not None:
        work.look_at_levels(state)
        state.log_likelihood = state.cuts.draw(work.log_likelihood, rng, tune=tune)


def _draw_noise(
    model: Model,
    state: ChainState,
    misfit: float,
    losses: float,
    rng: np.random.Generator,
) -> None:
    """Draw ρ and β, and note the log-likelihood."""
    if model.kind == "ordinal":  # T has the variance 1
        return
    prior, count = model.prior, model.n_entries
    rate = prior.noise_rate * prior.spread**2
    state.rho = draw_precision(prior.noise_shape + count / 2, rate + misfit / 2, rng)
    state.log_likelihood = 0.5 * (count * math.log(state.rho) - state.rho * misfit)
    if model.kind != "after":
        return
    precision = PRECISIONS.get(type(model.pair.loss), NO_PRECISION)
    if precision.shape:
        rate = prior.noise_rate * prior.spread_of_X**precision.power
        shape = prior.noise_shape + count * precision.shape
        state.beta = draw_precision(shape, rate + losses, rng)
    state.log_likelihood += precision.shape * count * math.log(state.beta) - state.beta * losses
