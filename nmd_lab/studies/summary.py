"""What a study's Dataset says: the best model, a table, and how sure the ranking is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._checks import check_words
from nmd_lab.result.netcdf import ATTRIBUTE

from .grid import CONDITIONS
from .table import StudyTable

WORDS = ("status", "stop_reason", "warnings", "fit")
"""Variables that are no numbers."""

IRRELEVANT = "–"
"""Stands for the value of an argument that a method ignores."""


class Candidate(NamedTuple):
    """One model and its scores.

    Attributes
    ----------
    labels : dict
        The coordinates of its cells.
    ignored : set of str
        The dimensions that its method ignores.
    scores : ndarray (conditions, seeds)
        A number for each trial; NaN where there is none.
    """

    labels: dict[str, Any]
    ignored: set[str]
    scores: NDArray[np.floating]

    @property
    def mean(self) -> float:
        """Mean over all trials."""
        return float(self.scores.mean())

    @property
    def simplicity(self) -> tuple[float, float, float]:
        """What the simplest model has least of."""
        used = {name: v for name, v in self.labels.items() if name not in self.ignored}
        rank, alpha = used.get("rank", 0), used.get("alpha", 0)
        return rank, -alpha if isinstance(alpha, int | float) else 0, self.mean


def about(results: xr.Dataset) -> dict[str, Any]:
    """Return the description of a study's results.

    Raises
    ------
    ValueError
        If a Dataset is no study's.
    """
    words = json.loads(results.attrs.get(ATTRIBUTE, "{}"))
    if "study" not in words:
        raise ValueError("results holds no study: give the Dataset that Study.run returned.")
    study: dict[str, Any] = words["study"]
    return study


def variable(results: xr.Dataset, metric: str | None) -> str:
    """Return the variable that a metric means: itself, or its held-out part.

    Raises
    ------
    ValueError
        If there is none.
    """
    first = about(results)["metrics"][0]
    name = first if metric is None else metric
    for candidate in (name, f"held_out_{name}"):
        if candidate in results and candidate not in WORDS:
            hidden = metric is not None or bool(np.isfinite(results[candidate]).any())
            return candidate if hidden else f"observed_{first}"
    known = [str(name) for name in results.data_vars if name not in WORDS]
    check_words("metric", [name], known)
    raise AssertionError("check_words refuses")


def choices(results: xr.Dataset) -> list[str]:
    """Return the dimensions that describe models."""
    return [str(dim) for dim in results.dims if dim not in CONDITIONS]


def trials(results: xr.Dataset) -> list[str]:
    """Return the dimensions that describe conditions, the seed apart."""
    return [str(dim) for dim in results.dims if dim in CONDITIONS and dim != "seed"]


def select(results: xr.Dataset, conditions: Mapping[str, Any]) -> xr.Dataset:
    """Return the part of the results with the given labels, all dimensions kept.

    Raises
    ------
    ValueError
        If a dimension or label is not there.
    """
    check_words("dimension", conditions, [str(dim) for dim in results.dims])
    for name, wanted in conditions.items():
        labels = wanted if isinstance(wanted, list | tuple) else [wanted]
        there = results[name].values.tolist()
        for label in labels:
            if label not in there:
                raise ValueError(f"{name}={label!r} is not in the study: choose from {there}.")
        results = results.isel({name: [there.index(label) for label in labels]})
    return results


def candidates(results: xr.Dataset, metric: str) -> Iterator[Candidate]:
    """Yield each model once: cells that share their fits are one model."""
    ignored = about(results)["ignored"]
    models, rest = choices(results), [*trials(results), "seed"]
    values = results[metric].transpose(*models, *rest).values
    fits = results["fit"].transpose(*models, *rest).values
    constant = next(iter(ignored)) if "method" not in models else None
    seen = set()
    for index in np.ndindex(*(results.sizes[name] for name in models)):
        names = tuple(fits[index].ravel())
        if names in seen:
            continue
        seen.add(names)
        labels = {n: results[n].values[i] for n, i in zip(models, index, strict=True)}
        labels = {n: v.item() if isinstance(v, np.generic) else v for n, v in labels.items()}
        method = labels.get("method", constant)
        scores = values[index].reshape(-1, results.sizes["seed"])
        yield Candidate(labels, set(ignored[method]), scores)


def ranked(results: xr.Dataset, metric: str) -> list[Candidate]:
    """Return the models that have a score in every trial, best first.

    Raises
    ------
    ValueError
        If there is none.
    """
    whole = [c for c in candidates(results, metric) if np.isfinite(c.scores).all()]
    if not whole:
        raise ValueError(
            f"metric={metric!r} is NaN somewhere for every model: see stop_reason in the results."
        )
    return sorted(whole, key=lambda candidate: candidate.mean)


def choose(
    results: xr.Dataset, metric: str | None, *, simplest: bool, conditions: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the labels of the best model, or of the simplest that is nearly as good."""
    part = select(results, conditions)
    models = ranked(part, variable(part, metric))
    if not simplest:
        return models[0].labels
    good = [model for model in models if _nearly_as_good(model, models[0])]
    return min(good, key=lambda model: model.simplicity).labels


def _nearly_as_good(model: Candidate, best: Candidate) -> bool:
    """Return whether the difference is within one standard error of itself."""
    differences = (model.scores - best.scores).mean(axis=0)
    error = np.std(differences, ddof=1) / math.sqrt(differences.size) if differences.size > 1 else 0
    return bool(differences.mean() <= error)


def table(results: xr.Dataset, *metrics: str, conditions: Mapping[str, Any]) -> StudyTable:
    """Return mean and standard deviation over seeds, a row for each model."""
    part = select(results, conditions)
    names = [variable(part, m) for m in metrics] or [variable(part, None), "seconds"]
    dims = trials(part)
    columns: dict[tuple[Any, ...], list[float]] = {}
    rows: list[Candidate] = []
    for name in names:
        rows = list(candidates(part, name))
        for k, index in enumerate(np.ndindex(*(part.sizes[dim] for dim in dims))):
            where = tuple(part[dim].values[i] for dim, i in zip(dims, index, strict=True))
            scores = [row.scores[k] for row in rows]
            columns[name, *where, "mean"] = [float(s.mean()) for s in scores]
            columns[name, *where, "sd"] = [
                float(s.std(ddof=1)) if s.size > 1 else math.nan for s in scores
            ]
    header = pd.MultiIndex.from_tuples(list(columns), names=["", *dims, "over seeds"])
    frame = StudyTable(np.array(list(columns.values())).T, columns=header, index=_index(rows))
    return frame


def _index(rows: list[Candidate]) -> pd.Index[Any]:
    """Return the names of models, with a dash for what their method ignores."""
    names = list(rows[0].labels)
    if not names:
        return pd.Index(["model"])
    words = [[IRRELEVANT if n in row.ignored else row.labels[n] for n in names] for row in rows]
    return pd.MultiIndex.from_tuples([tuple(word) for word in words], names=names)


def rank_test(
    results: xr.Dataset, metric: str | None, *, confidence: float, conditions: Mapping[str, Any]
) -> pd.DataFrame:
    """Return the paired differences of all models to the best; see `Study.rank_test`."""
    from scipy import stats

    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence} is out of range: give a number between 0 and 1.")
    part = select(results, conditions)
    name = variable(part, metric)
    models = ranked(part, name)
    best, seeds = models[0], part.sizes["seed"]
    scores = np.stack([model.scores for model in models])
    differences = (scores - best.scores).mean(axis=1)
    factor = 1 / seeds + (_overlap(part) if "held_out" in name else 0.0)
    if seeds > 1:
        error = differences.std(axis=1, ddof=1) * math.sqrt(factor)
        reach = error * stats.t.ppf((1 + confidence) / 2, seeds - 1)
    else:
        reach = np.full(len(models), math.nan)
    mean = differences.mean(axis=1)
    beaten = (scores > best.scores) + 0.5 * (scores == best.scores)
    frame = pd.DataFrame(
        {
            "mean": scores.mean(axis=(1, 2)),
            "mean_rank": stats.rankdata(scores, axis=0).mean(axis=(1, 2)),
            "difference": mean,
            "low": mean - reach,
            "high": mean + reach,
            "beaten": beaten.mean(axis=(1, 2)),
        },
        index=_index(models),
    )
    frame.loc[frame.index[0], ["low", "high", "beaten"]] = math.nan
    frame.attrs = {"metric": name, "confidence": confidence}
    return frame


def _overlap(results: xr.Dataset) -> float:
    """Return the mean ratio of hidden to kept entries."""
    coordinate = results.get("missing_level", results.get("missing"))
    levels = about(results)["missing"] if coordinate is None else coordinate.values
    shares = np.asarray(levels, dtype=float)
    return float(np.mean(shares / (1 - shares)))
