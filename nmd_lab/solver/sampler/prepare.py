"""Checks of the arguments of `nmd_lab.sample`, and the problem that follows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from nmd_lab._checks import check_rank, check_size, is_auto
from nmd_lab._threads import all_threads
from nmd_lab.data.base import FloatArray, Observations, Transform
from nmd_lab.data.labels import Labels
from nmd_lab.model.kind import Kind, make_kind
from nmd_lab.model.likelihoods.binary import Logistic
from nmd_lab.model.losses import Loss
from nmd_lab.model.mixed import groups
from nmd_lab.model.model import Model, make_model
from nmd_lab.model.nonlinearities import Identity
from nmd_lab.model.ordinal import Ordinal
from nmd_lab.solver.bounds import with_bounds
from nmd_lab.solver.columns import is_mixed, mixed_model
from nmd_lab.solver.limit_noise import smallest_value
from nmd_lab.solver.scaling import Scaling, scaling_for

from .limits import SampledLimits, sampled_limits
from .noise import NoiseKind, noise_kind
from .options import SampleOptions
from .prior import Prior
from .problem import SampledProblem, sampled_problem
from .work import Work

RANK = 20
"""Upper bound for the rank, if none is given."""

GROUPS = 8
"""Upper bound for the number of groups of rows in a table."""

ROWS_OF_A_GROUP = 20
"""Smallest number of rows for each of these groups."""

MOST_PRECISE = 1e4
"""Largest precision of T of a column in units of its variance, for near copies of columns."""


class PreparedSample(NamedTuple):
    """A checked problem with what the result needs.

    Attributes
    ----------
    problem : SampledProblem
        Problem, in the units of the sampler.
    work : Work
        What is done with its entries.
    observations : Observations
        Data, in the units of X.
    model : Model
        Nonlinearities and losses, in the units of X.
    scaling : Scaling
        Units of the sampler.
    """

    problem: SampledProblem
    work: Work
    observations: Observations
    model: Model
    scaling: Scaling


def prepare_sample(
    observations: Observations,
    rank: int | str,
    nonlinearity: Any,
    loss: Any,
    options: SampleOptions,
    *,
    is_table: bool = False,
) -> PreparedSample:
    """Return the problem of checked arguments; see `nmd_lab.sample`."""
    rank = _most(observations) if is_auto(rank) else check_rank(rank, observations.shape)
    smallest, largest = observations.range()
    size = check_size("X", max(-smallest, largest), observations.dtype)
    if _by_column(observations, nonlinearity, loss, options.noise_by, is_table=is_table):
        model = _of_columns(mixed_model(nonlinearity, loss, observations))
        _refuse_classes_as_numbers(model, observations.labels)
    else:
        model = _of_all(nonlinearity, loss, observations)
    noises = _noises(options.noise, model, observations)
    scaling = scaling_for(model, size)
    scaled = scaling.scaled_observations(observations)
    problem = _problem(scaled, rank, scaling.scaled_model(), noises, options)
    return PreparedSample(problem, Work(problem), observations, model, scaling)


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


def _by_column(
    observations: Observations, nonlinearity: Any, loss: Any, noise_by: str, *, is_table: bool
) -> bool:
    """Return whether each column has units and a noise for itself."""
    if is_mixed(nonlinearity) or is_mixed(loss) or observations.labels.table is not None:
        if noise_by == "one":
            raise ValueError(
                "noise_by='one' does not go with columns of several kinds: leave it out."
            )
        return True
    if noise_by != "auto":
        return noise_by == "columns"
    m, n = observations.shape
    plain = (nonlinearity, loss) == ("identity", "frobenius")
    return is_table and plain and 2 * observations.n_observed >= m * n


def _of_all(nonlinearity: Any, loss: Any, observations: Observations) -> Model:
    """Return the model of one nonlinearity and one loss."""
    f = with_bounds(nonlinearity, observations)
    model = make_model(f, loss)
    d = model.loss
    _refuse_nonlinearity(model.only)
    d.check_data(*observations.range())
    if isinstance(d, Ordinal):
        levels = observations.different_values()
        return make_model(f, d.for_data(levels))
    if type(d).for_data is not Loss.for_data:
        return make_model(f, d.for_data(*observations.observed()))
    return model


def _of_columns(model: Model) -> Model:
    """Return the model of several kinds with yes and no as two ordered levels."""
    assert model.which is not None
    if model.which.ndim == 2:
        raise ValueError("loss= for each entry does not go with sample(): give one a column.")
    kinds = []
    for kind in (
        model.kinds[k] for k in model.which
    ):  # columns of one kind have noise of their own
        loss = kind.loss
        if isinstance(loss, Logistic):
            share = float(loss.expected(np.array(kind.centre)) - loss.parameters[0])
            share /= 1 - loss.parameters[0]
            loss = Ordinal([loss.parameters[0], 1.0], [-float(ndtri(share))], learns=True)
        if isinstance(loss, Ordinal):  # T has the unit of its noise
            kind = make_kind(kind.nonlinearity, loss)._replace(weight=kind.weight)
            _refuse_nonlinearity(kind)
        kinds.append(kind)
    return Model(tuple(kinds), np.arange(len(kinds)))


def _refuse_classes_as_numbers(model: Model, labels: Labels) -> None:
    """Raise ValueError for a column of booleans, levels or categories with a loss of numbers."""
    if labels.table is None:
        return
    for column, kind in zip(labels.table.of_matrix, model.kinds, strict=True):
        if column.kind in ("boolean", "ordered", "categories") and type(kind.loss) is not Ordinal:
            raise ValueError(
                f"loss={kind.loss.name!r} of column {column.name!r} is for numbers, and its values "
                "are classes: leave it out, or convert the column to numbers."
            )


def _refuse_nonlinearity(kind: Kind) -> None:
    """Raise ValueError for a nonlinearity of ordered levels."""
    if isinstance(kind.loss, Ordinal) and not isinstance(kind.nonlinearity, Identity):
        raise ValueError(
            f"nonlinearity={kind.nonlinearity!r} does not go with ordered levels in sample(): "
            "leave it out, since cut points are learned."
        )


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
        has_choice = not isinstance(kind.loss, Ordinal)
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
    options: SampleOptions,
) -> SampledProblem:
    """Return the problem in the units of the sampler."""
    complete = observations.weights is None and observations.pattern is None
    by_column = model.which is not None
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
    fields: dict[str, Any] = {
        "model": model,
        "noises": noises,
        "rank": rank,
        "row_offsets": offsets in ("rows", "both"),
        "column_offsets": offsets in ("columns", "both"),
        "mean": mean,
        "prior": prior,
        "mean_of_T": mean_of_T,
        "limits": _limits(stored, model, noises),
        "n_groups": n_groups,
    }
    return sampled_problem(stored, fields, options.compute.threads or all_threads())


def _n_groups(wanted: Any, m: int, *, by_column: bool) -> int:
    """Return the upper bound for the number of groups of m rows."""
    if not is_auto(wanted):
        return int(wanted)
    return max(1, min(GROUPS, m // ROWS_OF_A_GROUP)) if by_column else 1


def _limits(
    stored: Observations, model: Model, noises: tuple[NoiseKind, ...]
) -> SampledLimits | None:
    """Return the limits of stored entries, None if there are none."""
    limits = stored.limit_reader()
    if limits is None:
        return None
    weighted = stored.weights is not None and stored.weights.dtype != bool
    values = np.asarray(stored.values).ravel()
    if model.which is None:
        smallest = smallest_value(stored)
        return sampled_limits(
            limits, values, model.only, noises[0], smallest=smallest, weighted=weighted
        )
    limited, low, high = np.zeros(values.size, bool), *np.zeros((2, values.size))
    order, ends = groups(stored.stored_positions()[1], len(model.kinds))
    for j, (kind, noise) in enumerate(zip(model.kinds, noises, strict=True)):
        at = order[ends[j] : ends[j + 1]]
        of_column = sampled_limits(
            limits.at(at), values[at], kind, noise, smallest=-math.inf, weighted=weighted
        )
        limited[at], low[at], high[at] = of_column.limited, of_column.low, of_column.high
    return SampledLimits(limited, low, high)


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
