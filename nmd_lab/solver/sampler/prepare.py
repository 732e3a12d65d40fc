"""Checks of the arguments of `nmd_lab.sample`, and the problem that follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_rank, check_size, is_auto
from nmd_lab._runtime.machine import all_threads
from nmd_lab.data.entries import FloatArray, Transform
from nmd_lab.data.masks import AT_MOST
from nmd_lab.data.observations import Observations
from nmd_lab.model.loss import Loss
from nmd_lab.model.mixed import groups
from nmd_lab.model.model import Model
from nmd_lab.solver.limit_noise import smallest_value
from nmd_lab.solver.scaling import Scaling, scaling_for

from .latent_draws import DRAWS_OF_X
from .noise import NoiseKind, noise_kind
from .priors import Prior
from .problem import SampledProblem, sampled_problem
from .sampled_model import SampleOptions, has_noise_by_column, sampled_model, with_ends
from .t_draw import SampledLimits

RANK = 20
"""Upper bound for the rank, if none is given."""

GROUPS = 8
"""Upper bound for the number of groups of rows in a table."""

ROWS_OF_A_GROUP = 20
"""Smallest number of rows for each of these groups."""

MOST_PRECISE = 1e4
"""Largest precision of T of a column in units of its variance, for near copies."""


class PreparedSample(NamedTuple):
    """A checked problem with what the result needs.

    Attributes
    ----------
    problem : SampledProblem
        Problem, in the units of the sampler.
    observations : Observations
        Data, in the units of X.
    model : Model
        Nonlinearities and losses, in the units of X, as the posterior has them.
    noises : tuple of str
        Where the noise of each kind is, as the posterior has it.
    scaling : Scaling
        Units of the sampler.
    """

    problem: SampledProblem
    observations: Observations
    model: Model
    noises: tuple[str, ...]
    scaling: Scaling

    def with_groups(self, number: int) -> PreparedSample:
        """Return the same with at most so many groups of rows."""
        return self._replace(problem=replace(self.problem, n_groups=number))

    def of_entries(self, observations: Observations, options: SampleOptions) -> PreparedSample:
        """Return the problem of some of the observations, with the same model."""
        before = self.problem
        problem = _problem(
            self.scaling.scaled_observations(observations),
            before.rank,
            before.model,
            before.noises,
            before.by_column,
            options,
        )
        return self._replace(problem=problem, observations=observations)


def prepare_sample(
    observations: Observations, options: SampleOptions, *, is_table: bool = False
) -> PreparedSample:
    """Return the problem of checked arguments; see `nmd_lab.sample`."""
    rank, nonlinearity = options.rank, options.nonlinearity
    rank = _most(observations) if is_auto(rank) else check_rank(rank, observations.shape)
    smallest, largest = observations.range()
    size = check_size("X", max(-smallest, largest), observations.dtype)
    by_column = has_noise_by_column(observations, options, is_table=is_table)
    model = sampled_model(observations, options, by_column=by_column, is_table=is_table)
    noises = _noises(options.noise, model, observations)
    scaling = scaling_for(model, size)
    scaled = scaling.scaled_observations(observations)
    problem = _problem(scaled, rank, scaling.scaled_model(), noises, by_column, options)
    shown: tuple[Model, tuple[str, ...]] = model, noises
    has_ends = is_table and model.which is not None
    if has_ends and (is_auto(nonlinearity) or isinstance(nonlinearity, Mapping)):
        shown = with_ends(model, noises, observations, nonlinearity)
    return PreparedSample(problem, observations, *shown, scaling)


def _most(observations: Observations) -> int:
    """Return an upper bound for the rank: components that nothing speaks for stay small."""
    m, n = observations.shape
    table = observations.labels.table
    columns = (
        n
        if table is None
        else sum(len(c.categories) if c.kind == "values" else 1 for c in table.columns)
    )
    return max(1, min(m, columns - 1, RANK))


def _noises(wanted: str, model: Model, observations: Observations) -> tuple[NoiseKind, ...]:
    """Return where the noise of each kind is."""
    if model.which is None:
        f, loss = model.nonlinearity, model.loss
        return (noise_kind(wanted, f, loss, observations.sum_of_blocks),)
    _, columns, x = observations.entries()
    order, ends = groups(columns, len(model.kinds))
    noises = []
    for k, kind in enumerate(model.kinds):
        values = x[order[ends[k] : ends[k + 1]]]
        has_choice = kind.loss.classes != "ordered"
        chosen = wanted if has_choice and not kind.nonlinearity.linear else "auto"
        noises.append(
            noise_kind(chosen, kind.nonlinearity, kind.loss, partial(_apply, values=values))
        )
    return tuple(noises)


def _apply(count: Callable[..., NDArray[np.intp]], *, values: FloatArray) -> NDArray[np.intp]:
    """Return what a function counts in some values."""
    return count(values, np.ones(0))


def _problem(
    observations: Observations,
    rank: int,
    model: Model,
    noises: tuple[NoiseKind, ...],
    by_column: bool,
    options: SampleOptions,
) -> SampledProblem:
    """Return the problem in the units of the sampler."""
    complete = observations.weights is None and observations.pattern is None
    n_groups = _n_groups(options.groups, observations.shape[0], by_column=by_column)
    by_entry = by_column or n_groups > 1
    stored = observations if complete and not by_entry else observations.as_sparse()
    offsets = options.offsets
    if offsets == "auto":
        offsets = "columns" if by_column else "none" if model.even else "both"
    mean = mean_of_T = 0.0
    if by_column:
        prior = Prior(1.0, _spreads(stored), most_precise=MOST_PRECISE)
    elif noises[0] == "ordinal":
        prior = Prior(1.0, 1.0)
    else:
        mean_of_T = _mean(stored, model.pseudo_inverse)
        mean = 0.0 if offsets == "none" else mean_of_T
        prior = _prior(stored, model, mean)
    problem = sampled_problem(
        stored,
        threads=options.compute.threads or all_threads(),
        model=model,
        noises=noises,
        rank=rank,
        row_offsets=offsets in ("rows", "both"),
        column_offsets=offsets in ("columns", "both"),
        mean=mean,
        prior=prior,
        mean_of_T=mean_of_T,
        n_groups=n_groups,
        by_column=by_column,
    )
    limits = _limits(problem, stored)
    return problem if limits is None else replace(problem, limits=limits)


def _n_groups(wanted: Any, m: int, *, by_column: bool) -> int:
    """Return the upper bound for the number of groups of m rows."""
    if not is_auto(wanted):
        return int(wanted)
    return max(1, min(GROUPS, m // ROWS_OF_A_GROUP)) if by_column else 1


def _limits(problem: SampledProblem, stored: Observations) -> SampledLimits | None:
    """Return the limits of the entries of a problem, None if there are none.

    Those of ordered levels are positions of levels.
    """
    limits = stored.limit_reader()
    if limits is None:
        return None
    weighted = stored.weights is not None and stored.weights.dtype != bool
    smallest = -math.inf if problem.by_column else smallest_value(stored)
    x = np.asarray(stored.values, dtype=np.float64).ravel()
    low, high = np.zeros((2, x.size))
    kinds = zip(problem.model.kinds, problem.noises, problem.entries_of_kinds, strict=True)
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


def _spreads(stored: Observations) -> NDArray[np.float64]:
    """Return the standard deviation of each column of X, 1 for constants."""
    _, columns, x = stored.entries()
    x, n = x.astype(np.float64), stored.shape[1]
    counts = np.maximum(np.bincount(columns, minlength=n), 1)
    means = np.bincount(columns, x, n) / counts
    variances = np.bincount(columns, np.square(x - means[columns]), n) / counts
    return np.sqrt(np.where(variances > 0, variances, 1.0))


def _mean(stored: Observations, transform: Transform) -> float:
    """Return the mean of transform(X) over the stored entries."""
    return float(stored.row_sums(transform).sum()) / stored.n_stored


def _prior(stored: Observations, model: Model, mean: float) -> Prior:
    """Return the scales of the priors for T around a global offset."""
    around = math.sqrt(_mean(stored, partial(_square, model.pseudo_inverse, mean)))
    mean_of_X = _mean(stored, _same)
    spread_of_X = math.sqrt(_mean(stored, partial(_square, _same, mean_of_X)))
    largest = max(map(abs, stored.range()))
    return Prior(around or abs(mean) or 1.0, spread_of_X or largest or 1.0)


def _same(x: FloatArray) -> FloatArray:
    return x


def _square(transform: Transform, mean: float, x: FloatArray) -> FloatArray:
    """Return (transform(x) - mean)², in double precision."""
    return np.square(transform(x).astype(np.float64) - mean)
