"""The one number of a result: its held-out error in the unit of the data, beside that of rivals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .selection import TRIAL, Selections, as_text

WORSE = 1.02
"""Ratio to the error of a rival from which a model is said to be worse."""


def headline(error: float, where: str, rivals: Mapping[str, float]) -> dict[str, Any]:
    """Return an error in the unit of the data, where it was measured, and those of rivals.

    >>> headline(0.15, "off where hidden", {"linear": 0.16})["rivals"]
    '· linear 0.16'
    """
    return {
        "value": _two_digits(error),
        "text": where,
        "rivals": " ".join(f"· {name} {_two_digits(each)}" for name, each in rivals.items()),
        "worse": any(error > WORSE * each for each in rivals.values()),
    }


def _two_digits(error: float) -> str:
    """Return an error with two digits, from 1 on behind the point."""
    return as_text(error, 2 + (error >= 1))


def headline_of(fit: Selections, rivals: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Return the held-out error that a fit knows of; if there is none, that where it has seen X."""
    trials, off = fit.selection, f"{fit.labels.attrs.get('units', '')} off at".strip()
    if (validation := validation_error(fit)) is not None:
        return headline(validation, f"{off} held-out entries", rivals or {})
    if not trials.sizes[TRIAL]:
        where = "relative error where seen, nothing is held out"
        return headline(_returned(fit, "relative_error"), where, {})
    error = float(trials["error"].values[trials.attrs["chosen"]])
    where = f"{off} {trials.attrs['held_out_entries']} held-out entries"
    measure = str(trials.attrs.get("measure", ""))
    rooted = measure.startswith("root mean squared")
    alone = trials.attrs.get("offsets_alone")
    beside = {} if alone is None else {"offsets alone": alone}
    return headline(error, where if rooted else f"{measure}, held out", beside)


def validation_error(fit: Selections) -> float | None:
    """Return the error of a fit at the entries that stopped it early; None without any."""
    return _returned(fit, "validation_rmse") if "validation_rmse" in fit.history else None


def _returned(fit: Selections, name: str) -> float:
    """Return a number of the history, at the iteration of W and H."""
    at = np.flatnonzero(fit.history.iteration.values == fit.parameters["iteration"])
    return float(fit.history[name].values[at[0] if at.size else -1])
