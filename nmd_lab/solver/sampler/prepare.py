"""Checks of the arguments of `nmd_lab.sample`, and the model and the start that follow."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from nmd_lab._checks import check_rank, check_size, check_word
from nmd_lab._threads import all_threads
from nmd_lab.data.base import FloatArray, Observations, Transform
from nmd_lab.model.losses import LOSSES, Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.model.ordinal import Ordinal
from nmd_lab.model.proximal import Pair, make_pair
from nmd_lab.solver.bounds import with_bounds
from nmd_lab.solver.limit_noise import smallest_value
from nmd_lab.solver.scaling import Scaling, scaling_for

from .limits import sampled_limits
from .model import Model, make_model, number_of_levels
from .noise import noise_kind
from .options import SampleOptions
from .prior import Prior
from .work import Work


class PreparedSample(NamedTuple):
    """A checked model with what the result needs.

    Attributes
    ----------
    model : Model
        Model, in the units of the sampler.
    work : Work
        What is done with its entries.
    observations : Observations
        Data, in the units of X.
    nonlinearity : Nonlinearity
        Nonlinearity, in the units of X.
    loss : Loss or Ordinal
        Loss, or the ordinal model with its levels.
    scaling : Scaling
        Units of the sampler.
    """

    model: Model
    work: Work
    observations: Observations
    nonlinearity: Nonlinearity
    loss: Loss | Ordinal
    scaling: Scaling

    @property
    def n_levels(self) -> int:
        """Number of levels of ordinal data; 0 for others."""
        return number_of_levels(self.loss)


def prepare_sample(
    observations: Observations,
    rank: int,
    nonlinearity: str | Nonlinearity,
    loss: str | Loss | Ordinal,
    options: SampleOptions,
) -> PreparedSample:
    """Return the model of checked arguments; see `nmd_lab.sample`."""
    rank = check_rank(rank, observations.shape)
    smallest, largest = observations.range()
    size = check_size("X", max(-smallest, largest), observations.dtype)
    ordinal = as_ordinal(loss)
    f = with_bounds(nonlinearity, observations)
    if ordinal is None:
        pair = make_pair(f, cast(Any, loss))
        pair.loss.check_data(smallest, largest)
        if type(pair.loss).for_data is not Loss.for_data:
            pair = make_pair(f, pair.loss.for_data(*observations.observed()))
        scaling = scaling_for(pair, size)
    else:
        pair = make_pair("identity", "frobenius")
        ordinal = ordinal.for_data(observations.different_values())
        scaling = Scaling(pair)
    kind = noise_kind(options.noise, f, ordinal or pair.loss, observations)
    if scaling.exponent:
        pair = cast(Pair, scaling.scaled_pair())
    own = scaling.scaled_observations(observations)
    model, work = _model(own, rank, pair, kind, ordinal, options)
    return PreparedSample(model, work, observations, f, ordinal or scaling.pair.loss, scaling)


def as_ordinal(loss: Any) -> Ordinal | None:
    """Return the ordinal model, by name or as it is; None for a loss."""
    if isinstance(loss, str):
        check_word("loss", loss.lower(), sorted(LOSSES), " or a Loss object")
    if isinstance(loss, str) and loss.lower() == Ordinal.name:
        return Ordinal()
    return loss if isinstance(loss, Ordinal) else None


def _model(
    observations: Observations,
    rank: int,
    pair: Pair,
    kind: Any,
    ordinal: Ordinal | None,
    options: SampleOptions,
) -> tuple[Model, Work]:
    """Return the model in the units of the sampler, and what is done with its entries."""
    f, smallest = pair.nonlinearity, smallest_value(observations)
    complete = observations.weights is None and observations.pattern is None
    stored = observations if complete else observations.as_sparse()
    offsets = options.offsets
    if offsets == "auto":
        offsets = "none" if f.even else "both"
    if ordinal is not None:
        mean, mean_of_T, prior = 0.0, 0.0, Prior(1.0, 1.0)
    else:
        mean_of_T = _mean(stored, pair.preimage)
        mean = 0.0 if offsets == "none" else mean_of_T
        prior = _prior(stored, pair, mean)
    fields: dict[str, Any] = {
        "pair": pair,
        "kind": kind,
        "rank": rank,
        "row_offsets": offsets in ("rows", "both"),
        "column_offsets": offsets in ("columns", "both"),
        "mean": mean,
        "prior": prior,
        "mean_of_T": mean_of_T,
    }
    model = make_model(stored, fields, ordinal, options.compute.threads or all_threads())
    limits = sampled_limits(stored, pair, kind, smallest)
    model = replace(model, limits=limits)
    return model, Work(model, number_of_levels(ordinal))


def _mean(stored: Observations, transform: Transform) -> float:
    """Return the mean of transform(X) over the stored entries."""
    return float(stored.row_sums(transform).sum()) / stored.n_stored


def _prior(stored: Observations, pair: Pair, mean: float) -> Prior:
    """Return the scales of the priors for T around a global offset."""
    around = math.sqrt(_mean(stored, partial(_square, pair.preimage, mean)))
    mean_of_X = _mean(stored, _same)
    spread_of_X = math.sqrt(_mean(stored, partial(_square, _same, mean_of_X)))
    largest = max(map(abs, stored.range()))
    return Prior(around or abs(mean) or 1.0, spread_of_X or largest or 1.0)


def _same(x: FloatArray) -> FloatArray:
    return x


def _square(transform: Transform, mean: float, x: FloatArray) -> FloatArray:
    """Return (transform(x) - mean)², in double precision."""
    return np.square(transform(x).astype(np.float64) - mean)
