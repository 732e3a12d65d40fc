"""What `validation` holds out: for early stopping, and for the choice of settings."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import errors_about, new_stream
from nmd_lab.data.folds import Fold, draw_folds, make_fold, row_folds, row_splits, split, without
from nmd_lab.data.inputs import at_observed, is_mask, row_groups
from nmd_lab.data.matching import match_data
from nmd_lab.data.observations import Observations
from nmd_lab.data.units import facts_of
from nmd_lab.model.model import Model
from nmd_lab.request.options import Options
from nmd_lab.request.settings import Choice

from .held_out import HeldOut
from .summary import DataSummary


def hold_out(known: DataSummary, X: Any, options: Options, rng: np.random.Generator) -> DataSummary:
    """Return what is known without what is held out; without empty rows in `decompose`."""
    choice: Choice = options.validation
    observations = known.observations
    if not choice.stops_early:
        folds, drawn = _folds_of_trials(observations, X, choice, new_stream(rng))
        return known._replace(folds=folds, drawn=drawn)
    rest, held_out = _out_of_the_fit(observations, X, choice, rng)
    if options.absent_are_zeros:
        refuse_empty(rest)
    held_out = held_out.as_sparse()
    facts, folds = facts_of(rest, by_column=known.facts.columns is not None), [Fold(rest, held_out)]
    return known._replace(observations=rest, facts=facts, held_out=held_out, folds=folds)


def _out_of_the_fit(
    observations: Observations, X: Any, choice: Choice, rng: np.random.Generator
) -> tuple[Observations, Any]:
    """Return the observations of the fit, and others that stop it early."""
    splitter = choice.splitter
    if choice.is_share:
        rest, held_out = split(observations, float(splitter), new_stream(rng))
        if not held_out.n_observed:
            raise ValueError(
                f"validation={splitter} holds out none of the {rest.n_observed} observed "
                "entries, since each row and column keeps one: give validation=None, or more data."
            )
        return rest, held_out
    if is_mask(splitter):
        hidden = _mask_of(observations, X, splitter, "validation")
        return observations.select(~hidden), observations.select(hidden)
    with errors_about("validation"):
        matched = match_data(observations.labels, splitter, owner="X")
    rest, held_out = without(observations, matched.as_sparse(observations.labels))
    if not rest.n_observed:
        raise ValueError(
            "validation holds out every observed entry of X: give fewer entries, or a fraction "
            "between 0 and 1."
        )
    return rest, held_out


def _folds_of_trials(
    observations: Observations, X: Any, choice: Choice, rng: np.random.Generator
) -> tuple[list[Fold], str]:
    """Return folds that judge the trials alone, and how they were drawn."""
    splitter = choice.splitter
    if choice.has_masks:
        masks = [
            _mask_of(observations, X, mask, f"splitter[{position}]")
            for position, mask in enumerate(splitter)
        ]
        return [make_fold(observations, mask) for mask in masks], "given"
    if choice.splits_rows:
        groups = None if choice.groups is None else row_groups(choice.groups, X, observations)
        splits = row_splits(splitter, groups, observations.shape[0], rng)
        folds = row_folds(splits, observations, rng)
        if not folds:
            raise ValueError(
                f"splitter={splitter!r} holds out nothing, since each row and column keeps an "
                "entry: give fewer splits, or more data."
            )
        return folds, f"by {type(splitter).__name__}"
    return draw_folds(observations, rng, splitter)


def _mask_of(observations: Observations, X: Any, mask: Any, name: str) -> NDArray[np.bool_]:
    """Return a mask at the observed entries, of which it hides some."""
    if observations.remote:
        raise ValueError(f"{name} is a mask, and X is on workers: give a fraction of the entries.")
    hidden = at_observed(name, mask, X, observations)
    if hidden.all() or not hidden.any():
        every = "every" if hidden.all() else "no"
        raise ValueError(
            f"{name} holds out {every} observed entry of X: give a mask with True at some of them."
        )
    return hidden


def refuse_empty(observations: Observations) -> None:
    """Raise ValueError if a row or a column has no observed entry."""
    both = zip(("row", "column"), observations.empty_rows_and_columns(), strict=True)
    for name, empty in both:
        if empty.size:
            raise ValueError(
                f"X has no observed entry in {name} {empty[0]}: drop it, or use complete(), which "
                "lets it fall back to f of the offsets."
            )


@singledispatch
def score_of(held_out: Any, model: Model) -> Any:
    """Return what compares the model with held-out entries, None without any."""
    return None if held_out is None else HeldOut(held_out, model)
