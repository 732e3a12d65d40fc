"""One chain: Gibbs sampling in the order of the sweep of Algorithm 1.

Where ADMM takes the proximal map for T, the chain draws T.  Where ADMM solves for W and H, the
chain draws their rows.  The hyperparameters are drawn between.  Nothing is to be tuned but the step
widths of cut points.

    T ~ p(T | X, WH)          T_ij ~ N((WH)_ij + offsets, 1/ρ), weighted by exp(-β d(x_ij, f(T_ij)))
    W ~ p(W | T, H)           one Gaussian for each row
    ρ, β ~ p(ρ, β | T, W, H)  Gamma, for each kind of entries
    H ~ p(H | T, W)           one Gaussian for each column

It is the split Gibbs sampler of M. Vono, N. Dobigeon and P. Chainais, "Split-and-augmented Gibbs
sampler", 2019.
"""

from __future__ import annotations

import math

import numpy as np

from nmd_lab.data.base import FloatArray

from .hyperparameters import draw_precision, draw_row_prior
from .model import Model
from .noise import precision_of
from .state import ChainState
from .streams import HYPER
from .work import Work


def sweep(model: Model, work: Work, state: ChainState, seed: int, *, tune: bool = False) -> None:
    """Do one sweep, which overwrites the state."""
    state.sweep += 1
    rng = np.random.Generator(np.random.Philox(key=[seed, state.sweep * 8 + HYPER]))
    prior, of_rows, of_columns = model.prior, *model.units
    state.row_prior = draw_row_prior(state.rows, of_rows, prior.strength, rng)
    misfits, losses = work.draw_rows(state, seed)
    draw_noise(model, state, misfits, losses, rng)
    state.column_prior = draw_row_prior(state.columns, of_columns, prior.strength, rng)
    work.draw_columns(state, seed)
    work.draw_cut_points(state, rng, tune=tune)


def draw_noise(
    model: Model,
    state: ChainState,
    misfits: FloatArray,
    losses: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Draw ρ and β of each kind, and note the log-likelihood of kinds without levels."""
    state.log_likelihood = 0.0
    for k, noise in enumerate(model.noises):
        if noise != "ordinal":  # there T has the variance 1
            state.log_likelihood += _draw_levels(model, state, k, misfits[k], losses[k], rng)


def _draw_levels(
    model: Model, state: ChainState, k: int, misfit: float, loss: float, rng: np.random.Generator
) -> float:
    """Draw ρ and β of a kind, and return the log-likelihood of its entries."""
    prior, count = model.prior, int(model.counts[k])
    rate = prior.noise_rate * prior.spread**2
    rho = draw_precision(prior.noise_shape + count / 2, rate + misfit / 2, rng)
    state.rho[k] = rho = min(rho, prior.most_precise)
    log_likelihood = 0.5 * (count * math.log(rho) - rho * misfit)
    if model.noises[k] != "after":
        return log_likelihood
    precision, spread = precision_of(model.pair.kinds[k].loss), float(prior.spreads_of_X[k])
    if precision.shape:
        rate = prior.noise_rate * spread**precision.power
        shape = prior.noise_shape + count * precision.shape
        state.beta[k] = draw_precision(shape, rate + loss, rng)
    beta = float(state.beta[k])
    return log_likelihood + (precision.shape * count * math.log(beta) - beta * loss)
