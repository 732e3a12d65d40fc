"""Checks of the arguments of `nmd_lab.sample`, and the model and the start that follow."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np

from nmd_lab._checks import check_rank, check_size, check_word
from nmd_lab._threads import all_threads
from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.losses import LOSSES, Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.model.ordinal import Ordinal
from nmd_lab.model.proximal import Pair, make_pair
from nmd_lab.solver.bounds import with_bounds
from nmd_lab.solver.columns import is_mixed
from nmd_lab.solver.limit_noise import smallest_value
from nmd_lab.solver.scaling import Scaling, scaling_for
from nmd_lab.solver.storage import storage_of

from .limits import sampled_limits
from .model import SamplerModel
from .noise import noise_kind
from .options import SampleOptions
from .prior import Prior


class PreparedSample(NamedTuple):
    """A checked model with what the result needs.

    Attributes
    ----------
    model : SamplerModel
        Model, in the units of the sampler.
    observations : Observations
        Data, in the units of X.
    nonlinearity : Nonlinearity
        Nonlinearity, in the units of X.
    loss : Loss or Ordinal
        Loss, or the ordinal model with its levels.
    scaling : Scaling
        Units of the sampler.
    """

    model: SamplerModel
    observations: Observations
    nonlinearity: Nonlinearity
    loss: Loss | Ordinal
    scaling: Scaling

    @property
    def n_levels(self) -> int:
        """Number of levels of ordinal data; 0 for others."""
        levels = self.loss.levels if isinstance(self.loss, Ordinal) else None
        return 0 if levels is None else levels.size


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
    if is_mixed(nonlinearity) or is_mixed(loss) or observations.labels.table is not None:
        raise ValueError(
            "sample() takes one loss and one nonlinearity for all columns of numbers: use "
            "complete() for mixed columns, or convert X to numbers."
        )
    ordinal = _ordinal(loss)
    f = with_bounds(nonlinearity, observations)
    if ordinal is None:
        pair = make_pair(f, cast(Any, loss))
        pair.loss.check_data(smallest, largest)
        pair = make_pair(f, pair.loss.for_data(*observations.observed()))
        scaling = scaling_for(pair, size)
    else:
        if not f.linear:
            raise ValueError(
                f"nonlinearity={f!r} does not go with ordinal data, whose cut points are learned: "
                "leave it out."
            )
        if observations.weights is not None and observations.weights.dtype != bool:
            raise ValueError("weights= do not go with ordinal data: leave them out.")
        pair = make_pair("identity", "frobenius")
        ordinal = ordinal.for_data(_levels(observations))
        scaling = Scaling(pair)
    kind = noise_kind(options.noise, f, ordinal or pair.loss, observations)
    if scaling.exponent:
        pair = cast(Pair, scaling.scaled_pair())
    own = scaling.scaled_observations(observations)
    model = _model(own, rank, pair, kind, ordinal, options)
    return PreparedSample(model, observations, f, ordinal or scaling.pair.loss, scaling)


def _ordinal(loss: Any) -> Ordinal | None:
    """Return the ordinal model, by name or as it is; None for a loss."""
    if isinstance(loss, str):
        check_word("loss", loss.lower(), sorted(LOSSES), " or a Loss object")
    if isinstance(loss, str) and loss.lower() == Ordinal.name:
        return Ordinal()
    return loss if isinstance(loss, Ordinal) else None


def _levels(observations: Observations) -> FloatArray:
    """Return the different values of X."""
    blocks = [np.unique(x) for x, _ in observations.observed_blocks()]
    return np.unique(np.concatenate(blocks))


def _model(
    observations: Observations,
    rank: int,
    pair: Pair,
    kind: Any,
    ordinal: Ordinal | None,
    options: SampleOptions,
) -> SamplerModel:
    """Return the model in the units of the sampler."""
    f, smallest = pair.nonlinearity, smallest_value(observations)
    complete = observations.weights is None and observations.pattern is None
    stored = observations if complete else observations.as_sparse()
    values = np.ascontiguousarray(stored.values).ravel()
    offsets = options.offsets
    if offsets == "auto":
        offsets = "none" if f.even else "both"
    if ordinal is not None:
        values = ordinal.codes(values).astype(values.dtype)
        mean, spread, spread_of_X = 0.0, 1.0, 1.0
    else:
        T = pair.preimage(values)
        mean = 0.0 if offsets == "none" else float(np.mean(T, dtype=np.float64))
        around = math.sqrt(float(np.mean(np.square(T - mean), dtype=np.float64)))
        spread = around or abs(mean) or 1.0
        spread_of_X = float(np.std(values, dtype=np.float64)) or float(np.abs(values).max()) or 1.0
    return SamplerModel(
        storage=storage_of(stored),
        values=values,
        weights=stored.weights,
        pair=pair,
        kind=kind,
        rank=rank,
        row_offsets=offsets in ("rows", "both"),
        column_offsets=offsets in ("columns", "both"),
        mean=mean,
        prior=Prior(spread, spread_of_X),
        threads=options.threads or all_threads(),
        limits=sampled_limits(stored, pair, kind, smallest),
    )
