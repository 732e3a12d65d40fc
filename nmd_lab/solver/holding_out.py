"""The choice of held-out entries, for early stopping."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmd_lab._checks import errors_about, new_stream
from nmd_lab.data.base import Observations
from nmd_lab.data.matching import match_data
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.data.split import flat_positions, split
from nmd_lab.model.model import Model

from .held_out import HeldOut
from .options import Options


def hold_out(
    observations: Observations, options: Options, rng: np.random.Generator, *, may_be_empty: bool
) -> tuple[Observations, SparseObservations | None]:
    """Return the observations for the fit, and the held-out entries.

    Rows and columns of the former may be empty only if that is allowed.
    """
    validation = options.validation
    if validation is None:
        return observations, None
    rest: Any
    held_out: Any
    if options.holds_out_share:
        share, stream = float(validation), new_stream(rng)
        if (elsewhere := observations.elsewhere) is None:
            rest, held_out = split(observations, share, stream)
        else:
            rest, held_out = elsewhere.split(share, stream)
        if not held_out.n_observed:
            raise ValueError(
                f"validation={validation} holds out none of the {rest.n_observed} observed "
                "entries, since each row and column keeps one: give validation=None, or more data."
            )
    else:
        with errors_about("validation"):
            matched = match_data(observations.labels, validation, owner="X")
        held_out = matched.as_sparse(observations.labels)
        if (elsewhere := observations.elsewhere) is None:
            rest = _without(observations, held_out)
        else:
            rest, held_out = elsewhere.without(held_out)
    if not may_be_empty:
        refuse_empty(rest)
    return rest, held_out.as_sparse()


def refuse_empty(observations: Observations) -> None:
    """Raise ValueError if a row or a column has no observed entry."""
    both = zip(("row", "column"), observations.empty_rows_and_columns(), strict=True)
    for name, empty in both:
        if empty.size:
            raise ValueError(
                f"X has no observed entry in {name} {empty[0]}: drop it, or use complete(), which "
                "lets it fall back to f of the offsets."
            )


def score_of(held_out: Any, model: Model) -> Any:
    """Return what compares the model with held-out entries, None without any."""
    if held_out is None:
        return None
    elsewhere = held_out.elsewhere
    return HeldOut(held_out, model) if elsewhere is None else elsewhere.held_out_score(model)


def _without(observations: Observations, held_out: Observations) -> Observations:
    """Return the observations at all positions that are not held out."""
    all_of_X, held = (flat_positions(each) for each in (observations, held_out))
    keep = ~np.isin(all_of_X, held, assume_unique=True)
    if keep.all():
        return observations
    if not keep.any():
        raise ValueError(
            "validation holds out every observed entry of X: give fewer entries, or a share "
            "between 0 and 1."
        )
    return observations.select(keep)
