"""The bar of an explorer: the data, the model, and one held-out error beside its rivals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.selection import TRIAL, as_text
from nmd_lab.widgets.live.held_out import validation_error

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


def headline_of(fit: Decomposition, rivals: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Return the held-out error that a fit knows of; if there is none, that where it has seen X."""
    error = validation_error(fit)
    if error is not None:
        return headline(error, "off where hidden", rivals or {})
    trials = fit.selection
    if trials.sizes[TRIAL]:
        error = float(trials["error"].values[trials.attrs["chosen"]])
        where = f"off at {trials.attrs['held_out_entries']} held-out entries"
        measure = str(trials.attrs.get("measure", ""))
        rooted = measure.startswith("root mean squared")
        return headline(error, where if rooted else f"{measure}, held out", {})
    return headline(fit.relative_error, "relative error where seen, nothing is held out", {})


def model_text(fit: Any) -> str:
    """Return rank, nonlinearity and ridge of a fit or a posterior in a few words."""
    words = [f"{fit.rank} component{'s' if fit.rank != 1 else ''}", _name(fit.nonlinearity)]
    alpha = fit.parameters.get("alpha")
    if isinstance(alpha, float | int) and alpha > 0:
        words.append(f"ridge {as_text(alpha, 3)}")
    return " · ".join(words)


def _name(f: Any) -> str:
    """Return the name of f: "linear" for the identity."""
    names = {"identity": "linear", "relu": "ReLU", "minmax": "MinMax", "mixed": "by column"}
    return names.get(f.name, str(f.name))


def size_text(name: str, shape: tuple[int, int], share: float = 1.0) -> str:
    """Return the name and the size of data, and the share that is known if that is not all.

    >>> size_text("ratings", (671, 9066), 0.0163)
    'ratings 671 × 9066, 1.6 % known'
    """
    more = f", {as_text(100 * share, 2)} % known" if share < 1 else ""
    return f"{name} {shape[0]} × {shape[1]}{more}"
