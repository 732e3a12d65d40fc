"""What should worry about a fit, in sentences."""

from __future__ import annotations

import re

import numpy as np

from .selection import TRIAL, Selections, as_text

DECREASE = 1e-3  # fall of the objective in the last tenth of the run from which it is unfinished
OVERFIT = 0.25  # ratio of the errors where seen and held out below which a fit knows X by heart

STOPPED = {
    "time_limit": "Stopped by the time limit before it was done.",
    "interrupted": "Interrupted before it was done.",
    "not finite": "Stopped at numbers that are not finite.",
}
"""Sentences by the code of a stop reason."""


def unfinished(fit: Selections) -> float:
    """Return by which share the last tenth of the iterations lowered the objective, or 0.

    It is 0 for a small share, and where so many iterations were wanted.
    """
    if fit.parameters.get("tol", 0) == 0 or fit.stop_reason.code != "max_iter":
        return 0.0
    lowest = np.minimum.accumulate(fit.history["objective"].values)
    before, after = lowest[-1 - max(1, lowest.size // 10) :][0], lowest[-1]
    return float((before - after) / abs(before)) if before - after > DECREASE * abs(after) else 0.0


def flags_of(fit: Selections) -> list[str]:
    """Return a sentence for each thing that should worry about a fit."""
    flags = [STOPPED[code]] if (code := fit.stop_reason.code) in STOPPED else []
    if share := unfinished(fit):
        flags.append(f"Not converged: the last tenth of the iterations lowered it by {share:.1%}.")
    trials = fit.selection
    if not trials.sizes[TRIAL]:
        return flags
    about, error = trials.attrs, float(trials["error"].values[trials.attrs["chosen"]])
    alone, seen = about.get("offsets_alone"), about.get("error_where_seen")
    if "stopped" in about.get("reason", ""):
        flags.append("The search was stopped: another choice may be better.")
    if alone is not None and error >= alone:
        flags.append(f"Offsets alone are as good ({as_text(alone, 2)}): the components say little.")
    if seen is not None and seen < OVERFIT * error:
        flags.append(f"Overfits: {as_text(seen, 2)} off where seen, {as_text(error, 2)} held out.")
    notes = re.split(r"(?<=\.) (?=[A-Z])", about.get("note", ""))
    return flags + [note for note in notes if note]
