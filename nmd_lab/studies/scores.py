"""What a study says of a fit: errors of numbers and classes, and scores of intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from nmd_lab import metrics
from nmd_lab.data.entries import FloatArray
from nmd_lab.result.compare import CLASS_ERRORS, class_errors, error_of, interval_scores
from nmd_lab.result.posterior import Posterior

from .known_entries import BoolArray, KnownEntries
from .methods import Result, accepted, named_function

Metric = Callable[..., float]

# Errors that have a name; "relative_error" is that of the Frobenius norm
METRICS: dict[str, Metric] = {n: getattr(metrics, n) for n in ("rmse", "mae", "relative_error")}
METRICS |= {f"relative_error_{n}": partial(metrics.relative_error, loss=n) for n in ("l1", "kl")}

# Numbers that only a posterior has, with their long names
POSTERIOR_SCORES = {
    "held_out_coverage_90": "share of held-out entries in their 90 % interval",
    "held_out_log_density": "mean log-density of held-out entries",
}


def make_metrics(metrics: Any) -> dict[str, Metric]:
    """Return errors by name, from keys of `METRICS` and functions of (X, Y)."""
    listed = metrics if metrics and isinstance(metrics, list | tuple) else [metrics]
    return dict(named_function("metrics", metric, METRICS) for metric in listed)


def titles(data: KnownEntries, metrics: Mapping[str, Metric]) -> dict[str, str]:
    """Return the errors that suit the data, with their names for people."""
    unit = " in standard deviations" if np.ndim(data.units.deviation) else ""
    short = {"rmse": f"RMSE{unit}", "mae": f"MAE{unit}"}
    found = {name: short.get(name, name.replace("_", " ")) for name in metrics}
    classes = {error_of(column) for column in data.classes}
    of_classes = {name: title for name, title in CLASS_ERRORS.items() if name in classes}
    return ({} if of_classes and not data.numbers.any() else found) | of_classes


def scores_of(
    fit: Result,
    model: FloatArray,
    data: KnownEntries,
    metrics: Mapping[str, Metric],
    sets: Mapping[str, tuple[FloatArray, BoolArray]],
) -> dict[str, float]:
    """Return the errors of a fit, by their names in the results.

    `model` has its values at the entries, and `sets` the right ones and a mask of the entries.
    """
    weights, unit = data.observations.weights, data.units.deviation
    scores: dict[str, float] = {}
    of_entries = class_errors(fit, data.observations, model)
    if isinstance(fit, Posterior):
        values, hidden = sets["held_out"]
        at = hidden & data.numbers
        of_entries |= interval_scores(fit, data.observations, values, at, unit)
    for entry_set, (values, mask) in sets.items():
        at = data.numbers & mask
        pair = (values / unit)[at], (model / unit)[at]
        for name, metric in metrics.items():
            weighted = {} if weights is None else accepted(metric, {"weights": weights[at]})
            error = float(metric(*pair, **weighted)) if at.any() else math.nan
            scores[f"{entry_set}_{name}"] = error
        for name, each in of_entries.items():
            at_each = data.exact & mask & ~np.isnan(each)
            w = None if weights is None else weights[at_each]
            mean = float(np.average(each[at_each], weights=w)) if at_each.any() else math.nan
            scores[f"{entry_set}_{name}"] = mean
    return scores
