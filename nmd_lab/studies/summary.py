"""The best model of a study, a table of its errors, and a test of its ranking."""

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
from nmd_lab.data.labels import RESULT_ATTRIBUTE

from .grid import CONDITIONS, SOLVER, dimension
from .methods import Result
from .table import StudyTable
from .uncertainty import OF_A_POSTERIOR
from .values import position_of

CHOSEN = "_chosen"
"""End of the name of a variable that holds what each fit has chosen for an argument."""

CHOSEN_TEXTS = ("nonlinearity", "loss", "offsets")
"""Arguments whose choice is text."""

TEXT_VARIABLES = (
    "status", "stop_reason", "warnings", "fit", *(f"{name}{CHOSEN}" for name in CHOSEN_TEXTS)
)  # fmt: skip
"""Variables of the results that hold text."""

IGNORED = "–"
"""Label of an argument that a method ignores."""


class ModelCandidate(NamedTuple):
    """One model of a study, and its scores.

    Attributes
    ----------
    labels : dict
        Coordinates of the model.
    ignored : set of str
        Dimensions that its method ignores.
    scores : ndarray of float (conditions, seeds)
        Values of one variable of the results; NaN where there is none.
    chosen : dict of str to float
        Mean rank and ridge that its fits have chosen, where they did.
    """

    labels: dict[str, Any]
    ignored: set[str]
    scores: NDArray[np.floating]
    chosen: dict[str, float]

    @property
    def mean(self) -> float:
        """Mean over all conditions and seeds."""
        return float(self.scores.mean())

    @property
    def simplicity(self) -> tuple[float, float, float]:
        """Sort key that is lowest for the simplest model: rank, minus alpha, mean score."""
        used = {name: v for name, v in self.labels.items() if name not in self.ignored}
        rank, alpha = (self.chosen.get(n, _number(used.get(n, 0))) for n in ("rank", "alpha"))
        return rank, -alpha, self.mean


def _number(label: Any) -> float:
    """Return the number of a label, which is text beside a word such as "auto"; 0 for a word."""
    try:
        return float(label)
    except ValueError:
        return 0.0


class BestModel(NamedTuple):
    """The best model of a study.

    Attributes
    ----------
    parameters : dict
        Arguments of the model, and "solver" with the name of its method if that varies.  What is
        "auto" is chosen anew for all data, and ``fit.parameters`` has the numbers.
    fit : Decomposition or Posterior
        Fit of the model to all data.
    """

    parameters: dict[str, Any]
    fit: Result


def about(results: xr.Dataset) -> dict[str, Any]:
    """Return the description of a study, which its results carry as an attribute.

    Raises
    ------
    ValueError
        If the Dataset does not come from a study.
    """
    attribute = json.loads(results.attrs.get(RESULT_ATTRIBUTE, "{}"))
    if "study" not in attribute:
        raise ValueError("results holds no study: give the Dataset that Study.run returned.")
    study: dict[str, Any] = attribute["study"]
    return study


def variable(results: xr.Dataset, metric: str | None) -> str:
    """Return the name of the variable for a metric.

    Parameters
    ----------
    results : Dataset
        Results of a study.
    metric : str or None
        Name of a variable, or of a metric, which stands for its error on held-out entries.  None
        is the first metric; where nothing was held out, its error on observed entries.

    Raises
    ------
    ValueError
        If there is no such variable.
    """
    first = about(results)["metrics"][0]
    name = first if metric is None else metric
    numbers = [str(each) for each in results.data_vars if each not in TEXT_VARIABLES]
    for candidate in (name, f"held_out_{name}"):
        if candidate in numbers:
            has_values = metric is not None or bool(np.isfinite(results[candidate]).any())
            return candidate if has_values else f"observed_{first}"
    check_words("metric", [name], numbers)
    raise AssertionError("check_words raises an error here")


def choices(results: xr.Dataset) -> list[str]:
    """Return the dimensions that describe models."""
    return [str(dim) for dim in results.dims if dim not in CONDITIONS]


def trials(results: xr.Dataset) -> list[str]:
    """Return the dimensions that describe conditions, without the seed."""
    return [str(dim) for dim in results.dims if dim in CONDITIONS and dim != "seed"]


def select(results: xr.Dataset, conditions: Mapping[str, Any]) -> xr.Dataset:
    """Return the cells with the given labels, with all dimensions.

    Parameters
    ----------
    results : Dataset
        Results of a study.
    conditions : dict
        One label, or a list of labels, for each dimension that is restricted.

    Raises
    ------
    ValueError
        If there is no such dimension or label.
    """
    conditions = {dimension(name): label for name, label in conditions.items()}
    check_words("dimension", conditions, [str(dim) for dim in results.dims])
    for name, condition in conditions.items():
        labels = condition if isinstance(condition, list | tuple) else [condition]
        available = results[name].values.tolist()
        results = results.isel({name: [position_of(label, available, name) for label in labels]})
    return results


def candidates(results: xr.Dataset, metric: str) -> Iterator[ModelCandidate]:
    """Yield each model with its scores; cells that share all their fits are one model.

    Parameters
    ----------
    results : Dataset
        Results of a study.
    metric : str
        Name of a variable of the results.
    """
    ignored = about(results)["ignored"]
    model_dims, trial_dims = choices(results), [*trials(results), "seed"]
    values = results[metric].transpose(*model_dims, *trial_dims).values
    fits = results["fit"].transpose(*model_dims, *trial_dims).values
    chosen = {
        name: results[f"{name}{CHOSEN}"].transpose(*model_dims, *trial_dims).values
        for name in ("rank", "alpha")
        if f"{name}{CHOSEN}" in results
    }
    only_method = next(iter(ignored)) if SOLVER not in model_dims else None
    seen = set()
    for index in np.ndindex(*(results.sizes[name] for name in model_dims)):
        keys = tuple(fits[index].ravel())
        if keys in seen:
            continue
        seen.add(keys)
        labels = {n: results[n].values[i] for n, i in zip(model_dims, index, strict=True)}
        labels = {n: v.item() if isinstance(v, np.generic) else v for n, v in labels.items()}
        method = labels.get(SOLVER, only_method)
        scores = values[index].reshape(-1, results.sizes["seed"])
        means = {name: float(each[index].mean()) for name, each in chosen.items()}
        means = {name: mean for name, mean in means.items() if math.isfinite(mean)}
        yield ModelCandidate(labels, set(ignored[method]), scores, means)


def ranked(results: xr.Dataset, metric: str) -> list[ModelCandidate]:
    """Return the models that have a score under all conditions and seeds, best first.

    Raises
    ------
    ValueError
        If there is no such model.
    """
    if metric in OF_A_POSTERIOR:
        raise ValueError(
            f"metric={metric!r} is no error of which the lowest is the best: give an error, or "
            "look at the table of this one."
        )
    complete = [c for c in candidates(results, metric) if np.isfinite(c.scores).all()]
    if not complete:
        raise ValueError(
            f"metric={metric!r} is NaN somewhere for every model: see stop_reason in the results."
        )
    return sorted(complete, key=lambda candidate: candidate.mean)


def choose(
    results: xr.Dataset, metric: str | None, *, simplest: bool, conditions: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the labels of the best model, or of the simplest within one standard error of it.

    Parameters
    ----------
    results : Dataset
        Results of a study.
    metric, conditions
        Arguments of `variable` and `select`.
    simplest : bool
        Whether to apply the one-standard-error rule.
    """
    selected = select(results, conditions)
    models = ranked(selected, variable(selected, metric))
    if not simplest:
        return models[0].labels
    good = [model for model in models if _within_one_standard_error(model, models[0])]
    return min(good, key=lambda model: model.simplicity).labels


def _within_one_standard_error(model: ModelCandidate, best: ModelCandidate) -> bool:
    """Return whether the paired difference to the best is at most its standard error."""
    differences = (model.scores - best.scores).mean(axis=0)
    error = np.std(differences, ddof=1) / math.sqrt(differences.size) if differences.size > 1 else 0
    return bool(differences.mean() <= error)


def table(results: xr.Dataset, *metrics: str, conditions: Mapping[str, Any]) -> StudyTable:
    """Return a table of means and standard deviations over the seeds; see `Study.table`.

    Parameters
    ----------
    results : Dataset
        Results of a study.
    *metrics : str
        Metrics or variables; by default the first metric and the seconds.
    conditions : dict
        Labels to which the table is restricted.
    """
    selected = select(results, conditions)
    names = [variable(selected, m) for m in metrics] or [variable(selected, None), "seconds"]
    dims = trials(selected)
    columns: dict[tuple[Any, ...], list[float]] = {}
    models: list[ModelCandidate] = []
    for name in names:
        models = list(candidates(selected, name))
        for k, index in enumerate(np.ndindex(*(selected.sizes[dim] for dim in dims))):
            labels = tuple(selected[dim].values[i] for dim, i in zip(dims, index, strict=True))
            scores = [model.scores[k] for model in models]
            columns[name, *labels, "mean"] = [float(s.mean()) for s in scores]
            columns[name, *labels, "sd"] = [
                float(s.std(ddof=1)) if s.size > 1 else math.nan for s in scores
            ]
    header = pd.MultiIndex.from_tuples(list(columns), names=["", *dims, "over seeds"])
    return StudyTable(np.array(list(columns.values())).T, columns=header, index=_index(models))


def _index(models: list[ModelCandidate]) -> pd.Index[Any]:
    """Return the labels of models, with a dash for arguments that their method ignores."""
    names = list(models[0].labels)
    if not names:
        return pd.Index(["model"])
    rows = [tuple(IGNORED if n in m.ignored else m.labels[n] for n in names) for m in models]
    return pd.MultiIndex.from_tuples(rows, names=names)


def rank_test(
    results: xr.Dataset, metric: str | None, *, confidence: float, conditions: Mapping[str, Any]
) -> pd.DataFrame:
    """Return the paired differences of all models to the best; see `Study.rank_test`.

    Parameters
    ----------
    results : Dataset
        Results of a study.
    metric, conditions
        Arguments of `variable` and `select`.
    confidence : float
        Confidence of the intervals, between 0 and 1.
    """
    from scipy import stats

    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence} is out of range: give a number between 0 and 1.")
    selected = select(results, conditions)
    name = variable(selected, metric)
    models = ranked(selected, name)
    best, n_seeds = models[0], selected.sizes["seed"]
    scores = np.stack([model.scores for model in models])
    differences = (scores - best.scores).mean(axis=1)
    factor = 1 / n_seeds + (_hidden_to_kept(selected) if "held_out" in name else 0.0)
    if n_seeds > 1:
        error = differences.std(axis=1, ddof=1) * math.sqrt(factor)
        half_width = error * stats.t.ppf((1 + confidence) / 2, n_seeds - 1)
    else:
        half_width = np.full(len(models), math.nan)
    mean = differences.mean(axis=1)
    beaten = (scores > best.scores) + 0.5 * (scores == best.scores)
    frame = pd.DataFrame(
        {
            "mean": scores.mean(axis=(1, 2)),
            "mean_rank": stats.rankdata(scores, axis=0).mean(axis=(1, 2)),
            "difference": mean,
            "low": mean - half_width,
            "high": mean + half_width,
            "beaten": beaten.mean(axis=(1, 2)),
        },
        index=_index(models),
    )
    frame.loc[frame.index[0], ["low", "high", "beaten"]] = math.nan
    frame.attrs = {"metric": name, "confidence": confidence}
    return frame


def _hidden_to_kept(results: xr.Dataset) -> float:
    """Return the ratio of hidden to kept entries, as a mean over the conditions."""
    coordinate = results.get("missing_level", results.get("missing"))
    levels = about(results)["missing"] if coordinate is None else coordinate.values
    shares = np.asarray(levels, dtype=float)
    return float(np.mean(shares / (1 - shares)))
