"""The problem of a posterior, from data and arguments."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nmd_lab._runtime.checks import check_rank, check_size, is_auto
from nmd_lab._runtime.machine import all_threads
from nmd_lab.data.entries import Transform
from nmd_lab.data.inputs import AT_MOST
from nmd_lab.data.observations import Observations
from nmd_lab.data.units import Facts, units_of_groups
from nmd_lab.fit.limit_noise import smallest_value
from nmd_lab.model.loss import Loss
from nmd_lab.model.mixed import groups
from nmd_lab.model.model import Model
from nmd_lab.problem.scaling import OffsetColumns, Scaling, scaling_for
from nmd_lab.request.options import SampleOptions

from .latent_draws import DRAWS_OF_X, SampledLimits
from .priors import Prior
from .problem import SampledProblem
from .sampled_model import NoiseKind, noise_of, sampled_model

RANK = 20
"""Upper bound for the rank, if none is given."""

MOST_PRECISE = 1e4
"""Largest precision of T of a column in units of its variance, for near copies."""


def prepare_sample(
    observations: Observations, facts: Facts, options: SampleOptions, *, is_table: bool = False
) -> SampledProblem:
    """Return the problem of checked arguments; see `nmd_lab.sample`."""
    rank, (smallest, largest) = options.rank, facts.range
    if is_auto(rank):  # an upper bound: components that nothing speaks for stay small
        (m, n), table = observations.shape, observations.labels.table
        if table is not None:
            n = sum(len(c.categories) if c.kind == "values" else 1 for c in table.columns)
        rank = max(1, min(m, n - 1, RANK))
    rank = check_rank(rank, observations.shape)
    size = check_size("X", max(-smallest, largest), observations.dtype)
    model = sampled_model(observations, facts, options, is_table=is_table)
    wanted = options.noise
    if model.is_mixed:
        _, columns, x = observations.entries()
        order, ends = groups(columns, len(model.column_models))
        noises = []
        for k, (f, loss, *_) in enumerate(model.column_models):
            chosen = "auto" if loss.classes == "ordered" or f.linear else wanted
            noises.append(noise_of(chosen, f, loss, x[order[ends[k] : ends[k + 1]]]))
    else:
        noises = [noise_of(wanted, model.nonlinearity, model.loss, observations.observed()[0])]
    return problem_of(observations, options, rank, scaling_for(model, size), tuple(noises))


def problem_of(
    observations: Observations,
    options: SampleOptions,
    rank: int,
    scaling: Scaling,
    noises: tuple[NoiseKind, ...],
) -> SampledProblem:
    """Return the problem of some observations, in the units of the sampler."""
    observations, model = scaling.scaled_observations(observations), scaling.scaled_model()
    by_column = model.is_mixed
    complete = observations.weights is None and observations.pattern is None
    one_group = is_auto(options.groups) or int(options.groups) == 1
    is_dense = complete and one_group and not by_column
    stored = observations if is_dense else observations.as_sparse()
    offsets = options.offsets
    if offsets == "auto":
        offsets = "columns" if by_column else "none" if model.even else "both"
    mean = mean_of_T = 0.0
    if by_column:
        _, columns, x = stored.entries()
        spreads = units_of_groups(columns, x, stored.shape[1]).deviation
        prior = Prior(1.0, spreads, most_precise=MOST_PRECISE)
    elif noises[0] == "ordinal":
        prior = Prior(1.0, 1.0)
    else:
        mean_of_T = _mean(stored, model.pseudo_inverse)
        mean = 0.0 if offsets == "none" else mean_of_T
        prior = _prior(stored, model, mean)
    problem = SampledProblem(
        observations=stored,
        threads=options.compute.threads or all_threads(),
        scaling=scaling,
        noises=noises,
        rank=rank,
        offset_columns=OffsetColumns(offsets, mean),
        prior=prior,
        mean_of_T=mean_of_T,
    )
    if stored.limits is None:
        return problem
    return replace(problem, limits=_limits(problem))


def _limits(problem: SampledProblem) -> SampledLimits:
    """Return the limits of the entries of a problem; those of ordered levels are positions."""
    stored = problem.observations
    limits = stored.limit_reader()
    assert limits is not None
    weighted = stored.weights is not None and stored.weights.dtype != bool
    smallest = -math.inf if problem.by_column else smallest_value(stored)
    x = np.asarray(stored.values, dtype=np.float64).ravel()
    low, high = np.zeros((2, x.size))
    kinds = zip(problem.model.column_models, problem.noises, problem.entries_of_kinds, strict=True)
    for kind, noise, at in kinds:
        loss, codes = kind.loss, limits.codes[at]
        if noise == "after":
            _refuse_limits(loss, weighted=weighted)
        low[at], high[at] = limits.at(at).ends(x[at], max(smallest, loss.domain[0]))
        if loss.classes == "ordered":
            first = np.searchsorted(loss.level_values, low[at])
            low[at] = np.where(codes == AT_MOST, 0, first)
            high[at] = np.searchsorted(loss.level_values, high[at], side="right") - 1
    return SampledLimits(limits.codes != 0, low, high)


def _refuse_limits(loss: Loss, *, weighted: bool) -> None:
    """Raise ValueError if x with the noise of a loss cannot be drawn within limits."""
    noise = loss.noise_model
    if noise not in DRAWS_OF_X or (not noise.shape and weighted):
        words = " with weights" if noise in DRAWS_OF_X else ""
        raise ValueError(
            f"at_most= and at_least= do not go with loss={loss.name!r}{words} in sample(): "
            "use loss='frobenius', 'l1' or 'kl', or complete()."
        )


def _mean(stored: Observations, transform: Transform) -> float:
    """Return the mean of transform(X) over the stored entries."""
    return float(stored.row_sums(transform).sum()) / stored.n_stored


def _prior(stored: Observations, model: Model, mean: float) -> Prior:
    """Return the scales of the priors for T around a global offset."""

    def spread(transform: Transform, centre: float) -> float:
        squares = _mean(stored, lambda x: np.square(transform(x).astype(np.float64) - centre))
        return math.sqrt(squares)

    around = spread(model.pseudo_inverse, mean)
    spread_of_X = spread(lambda x: x, _mean(stored, lambda x: x))
    largest = max(map(abs, stored.range()))
    return Prior(around or abs(mean) or 1.0, spread_of_X or largest or 1.0)
