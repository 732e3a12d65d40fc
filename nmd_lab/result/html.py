"""The HTML representation of a fit in a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab._html import facts_table, frame, table
from nmd_lab._thumbnails import curve, picture
from nmd_lab.data.labels import COMPONENT

from .flags import flags_of
from .headline import headline_of
from .selection import TRIAL, VARIABLES, Selections, as_text, best_trials, in_short
from .thumbnail import small_picture

BEST = 8  # trials in the table of the best

ALWAYS = ("rank", "alpha", "error", "spread")
"""Columns of the table of trials; others are left out if they are the same in all trials."""

DIGITS = {"spread": 2, "seconds": 2}
"""Numbers of digits in the table of trials, where they are not 4."""


def fit_html(fit: Selections, facts: Mapping[str, Any]) -> str:
    """Return a fit as HTML, with facts for its details."""
    trials = fit.selection
    size = f"{fit.rank} component{'s' if fit.rank != 1 else ''}"
    model = small_picture(
        fit.shape[0],
        fit.H.isel({COMPONENT: 0}, drop=True),
        fit.fitted.block,
        by_column=fit.kinds is not None,
    )
    name = f"nmd_lab.Decomposition: X ≈ {fit.nonlinearity}(W H), {size}"
    return frame(
        [name, trials.attrs.get("sentence", "")],
        headline_of(fit),
        thumbnails=[picture(model, "model"), _errors_by_rank(trials)],
        flags=flags_of(fit),
        details={
            "Details": facts_table(facts),
            f"Trials: the best of {trials.sizes[TRIAL]}": _best_trials(trials),
            "Parameters": facts_table(in_short(fit.parameters)),
        },
    )


def _errors_by_rank(trials: xr.Dataset) -> str:
    """Return the lowest held-out error of each rank as a small curve; "" for one rank."""
    if not trials.sizes[TRIAL]:
        return ""
    chosen = trials.isel({TRIAL: trials.attrs["chosen"]})
    same_loss = trials["loss"].values == chosen["loss"].item()
    comparable = same_loss & np.isfinite(trials["error"].values)
    errors = trials[["rank", "error"]].isel({TRIAL: comparable}).to_dataframe()
    lowest = errors.groupby("rank")["error"].min()
    ranks, rank = lowest.index.to_numpy(), int(chosen["rank"])
    if ranks.size < 2:
        return ""
    ends = f"{lowest.max():.3g} → {lowest.min():.3g}"
    caption = f"held-out error {ends}, rank {ranks[0]} to {ranks[-1]}, ring at {rank}"
    return curve(np.log(ranks), lowest.to_numpy(), math.log(rank), caption)


def _best_trials(trials: xr.Dataset) -> str:
    """Return the best trials as a table, and the reason of the choice; "" without trials."""
    if not trials.sizes[TRIAL]:
        return ""
    names = [name for name in VARIABLES if name in ALWAYS or len(np.unique(trials[name])) > 1]
    best, chosen = best_trials(trials, BEST), trials.attrs["chosen"]
    rows = []
    for position in range(best.sizes[TRIAL]):
        row = best.isel({TRIAL: position})
        texts = [as_text(row[name].values, DIGITS.get(name, 4)) for name in names]
        rows.append([*texts, "chosen" if int(row[TRIAL]) == chosen else ""])
    return table([*names, ""], rows) + facts_table(_notes(trials.attrs))


def _notes(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what the numbers of the trials are, and the reason of the choice."""
    held_out = f"{about.get('held_out_entries', 'the')} held-out entries"
    if (parts := about.get("held_out_parts", 1)) != 1:
        held_out += f" in {parts} parts"
    if drawn := about.get("held_out_drawn"):
        held_out += f" ({drawn})"
    notes = {
        "error": f"{about.get('measure', 'error')} of {held_out}",
        "spread": "standard error of the difference to the lowest error",
    }
    return notes | ({"chosen": about["reason"]} if "reason" in about else {})
