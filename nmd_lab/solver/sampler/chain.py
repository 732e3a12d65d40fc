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
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nmd_lab.data.base import FloatArray
from nmd_lab.solver.storage import Block

from .cut_points import CutPoints
from .hyperparameters import RowPrior, draw_precision, draw_row_prior
from .latent import latent_kernel
from .limits import limit_kernel
from .model import SamplerModel
from .noise import NO_PRECISION, PRECISIONS
from .sides import Key

ROWS, COLUMNS, LATENT, HYPER, LIMITS = range(5)
"""Kinds of random numbers (`Key.kind`)."""


@dataclass
class ChainState:
    """All that the next sweep depends on.

    Attributes
    ----------
    rows, columns : ndarray (m, rank [+ 1]) and (n, rank [+ 1])
        Vectors of the rows of X and of its columns: components, and the offset if there is one.
    rho, beta : float
        Precisions of the noise before f and after it.
    T : ndarray (n_entries,)
        T at the stored entries; X itself if there is no T.
    sweep : int
        Number of sweeps so far.
    row_prior, column_prior : RowPrior
        Gaussian priors of the rows and of the columns.
    x : ndarray (n_entries,) or None
        X at the stored entries, drawn where only limits are known; None if all values are known.
    cuts : CutPoints or None
        Cut points of ordinal data.
    log_likelihood : float
        Log-likelihood of the data given T and of T given WH, up to a constant; for ordinal data
        that of the levels given WH.
    """

    rows: FloatArray
    columns: FloatArray
    rho: float
    beta: float
    T: FloatArray
    sweep: int = 0
    row_prior: RowPrior = field(default=RowPrior(np.empty(0), np.empty((0, 0))))
    column_prior: RowPrior = field(default=RowPrior(np.empty(0), np.empty((0, 0))))
    cuts: CutPoints | None = None
    x: FloatArray | None = None
    log_likelihood: float = math.nan

    def kept(self, model: SamplerModel) -> dict[str, Any]:
        """Return all that a sweep changes, for a checkpoint; T is None where it is X itself."""
        own = {name: getattr(self, name) for name in KEPT}
        cuts = None if self.cuts is None else (self.cuts.ends, self.cuts.steps)
        return own | {"T": None if self.T is model.values else self.T, "cuts": cuts}

    def restore(self, kept: dict[str, Any]) -> None:
        """Set what `kept` has returned."""
        T, cuts = kept.pop("T"), kept.pop("cuts")
        vars(self).update(kept)
        if T is not None:
            self.T = T
        if cuts is not None and self.cuts is not None:
            self.cuts.ends, self.cuts.steps = cuts


KEPT = (
    *("rows", "columns", "rho", "beta", "sweep", "row_prior", "column_prior", "x"),
    "log_likelihood",
)
"""Attributes of a chain that each sweep changes, beside T and the cut points."""


def sweeps(model: SamplerModel, state: ChainState, seed: int, tune: int) -> Iterator[ChainState]:
    """Do one sweep after another, and yield the state, which the next sweep overwrites.

    Parameters
    ----------
    model : SamplerModel
        Data, model and priors.
    state : ChainState
        Where to begin.
    seed : int
        Seed of the random numbers, which depend on it and on the number of the sweep.
    tune : int
        Number of the sweep up to which step widths are adapted.
    """
    while True:
        state.sweep += 1
        _sweep(model, state, seed, state.sweep <= tune)
        yield state


def _sweep(model: SamplerModel, state: ChainState, seed: int, tune: bool) -> None:
    rng = np.random.Generator(np.random.Philox(key=[seed, state.sweep * 8 + HYPER]))
    prior, of_rows, of_columns = model.prior, *model.units
    losses = draw_T(model, state, seed)
    state.row_prior = draw_row_prior(state.rows, of_rows, prior.strength, rng)
    misfit = model.sides[0].draw(
        state.T,
        model.partner_of_rows(state.columns),
        state.row_prior,
        state.rho,
        Key(seed, state.sweep, ROWS),
        state.rows,
    )
    _draw_noise(model, state, misfit, losses, rng)
    state.column_prior = draw_row_prior(state.columns, of_columns, prior.strength, rng)
    model.sides[1].draw(
        state.T,
        model.partner_of_columns(state.rows),
        state.column_prior,
        state.rho,
        Key(seed, state.sweep, COLUMNS),
        state.columns,
    )
    if state.cuts is not None:
        state.log_likelihood = state.cuts.draw(all_products(model, state), rng, tune=tune)


def draw_T(model: SamplerModel, state: ChainState, seed: int) -> float:
    """Draw T in place, and return the sum of the weighted losses at f(T)."""
    if model.limits is not None and model.kind == "after":
        draw_within_limits(model, state, seed)
    if model.kind == "gaussian":
        if model.limits is not None:
            draw_within_limits(model, state, seed)
        return 0.0
    pair = model.pair
    x = model.values if state.x is None else state.x
    kernel = latent_kernel(model.kind, pair, f"{state.T.dtype}")
    cuts = np.empty(0) if state.cuts is None else state.cuts.ends
    weights = np.empty(0, state.T.dtype) if model.weights is None else model.weights
    numbers = (state.rho, state.beta, *pair.arguments, cuts, seed, state.sweep, LATENT)
    losses = np.zeros(model.shape[0])

    A, B = model.augmented(state.rows, state.columns)

    def block(here: Block) -> None:
        rows = here.rows.start, here.rows.stop
        V = model.products(A, B, here)
        kernel(model.starts, *rows, x, weights, V, *numbers, state.T, losses)

    model.each_block(block)
    if model.limits is not None and model.kind == "before":
        draw_within_limits(model, state, seed)
    return float(losses.sum())


def draw_within_limits(model: SamplerModel, state: ChainState, seed: int) -> None:
    """Draw T in place where only limits are known; if the noise is after f, x given f(T)."""
    limits, pair = model.limits, model.pair
    assert limits is not None
    if state.x is None:
        state.x = model.values.copy()
        state.T = state.T.copy()  # where there is no T, it is the shared X
        state.T[np.isnan(state.T)] = pair.nonlinearity.preimage(state.x)[np.isnan(state.T)]
    x, T = state.x, state.T
    kernel = limit_kernel(model.kind, pair, f"{T.dtype}")
    weights = np.empty(0, T.dtype) if model.weights is None else model.weights
    pieces, pf, _ = pair.arguments
    numbers = (state.rho, state.beta, pieces, pf, seed, state.sweep, LIMITS)
    A, B = model.augmented(state.rows, state.columns)

    def block(here: Block) -> None:
        V = model.products(A, B, here)
        entries = (limits.limited, limits.low, limits.high, weights, V)
        kernel(model.starts, here.rows.start, here.rows.stop, *entries, *numbers, T, x)

    model.each_block(block)


def all_products(model: SamplerModel, state: ChainState) -> FloatArray:
    """Return WH with offsets at every stored entry, flat."""
    A, B = model.augmented(state.rows, state.columns)
    V = np.empty(model.values.size, A.dtype)

    def block(here: Block) -> None:
        V[here.entries] = model.products(A, B, here)

    model.each_block(block)
    return V


def _draw_noise(
    model: SamplerModel,
    state: ChainState,
    misfit: float,
    losses: float,
    rng: np.random.Generator,
) -> None:
    """Draw ρ and β, and note the log-likelihood."""
    if model.kind == "ordinal":  # T has the variance 1
        return
    prior, count = model.prior, model.values.size
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
