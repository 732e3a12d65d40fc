"""The choice of held-out entries, for early stopping."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmd_lab._checks import errors_about, new_stream
from nmd_lab.data.base import Observations
from nmd_lab.data.matching import match_data
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.data.split import flat_positions, split
from nmd_lab.model.mixed import AnyPair

from .held_out import HeldOut
from .options import Options


def hold_out(
    observations: Observations, options: Options, rng: np.random.Generator
) -> tuple[Observations, SparseObservations | None]:
    """Return the observations for the fit, and the held-out entries."""
    validation = options.validation
    if validation is None:
        return observations, None
    rest: Any
    held_out: Any
    if options.holds_out_share:
        share, own_stream = float(validation), new_stream(rng)
        if (elsewhere := observations.elsewhere) is None:
            rest, held_out = split(observations, share, own_stream)
        else:
            rest, held_out = elsewhere.split(share, own_stream)
        if not held_out.n_observed:
            raise ValueError(
                f"validation={validation} holds out none of the {rest.n_observed} observed "
                "entries, since each row and column keeps one: give validation=None, or more data."
            )
    else:
        held_out = _given(validation, observations)
        if (elsewhere := observations.elsewhere) is None:
            rest = _without(observations, held_out)
        else:
            rest, held_out = elsewhere.without(held_out)
    return rest, held_out.as_sparse()


def judge_of(held_out: Any, pair: AnyPair) -> Any:
    """Return what compares the model with held-out entries, None without any."""
    if held_out is None:
        return None
    elsewhere = held_out.elsewhere
    return HeldOut(held_out, pair) if elsewhere is None else elsewhere.held_out_score(pair)


def _given(validation: Any, observations: Observations) -> SparseObservations:
    """Return given held-out entries at their positions in X."""
    with errors_about("validation"):
        matched = match_data(observations.labels, validation, owner="X")
    return matched.as_sparse(observations.labels)


def _without(observations: Observations, held_out: Observations) -> Observations:
    """Return the observations at all positions that are not held out."""
    own, held = (flat_positions(each) for each in (observations, held_out))
    keep = ~np.isin(own, held, assume_unique=True)
    if keep.all():
        return observations
    if not keep.any():
        raise ValueError(
            "validation holds out every observed entry of X: give fewer entries, or a share "
            "between 0 and 1."
        )
    return observations.select(keep)
