"""The models of a study and their scores: the best one, a table, and a paired comparison."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from nmd_lab._checks import check_word, check_words
from nmd_lab.data.labels import RESULT_ATTRIBUTE

from .cell import POSTERIOR_SCORES
from .grid import CONDITIONS, SOLVER, position_of
from .methods import Result

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
        used = {
            name: v for name, v in self.labels.items() if name not in self.ignored
        } | self.chosen
        rank, alpha = (pd.to_numeric(used.get(n, 0), errors="coerce") for n in ("rank", "alpha"))
        return np.nan_to_num(rank), -np.nan_to_num(alpha), self.mean  # 0 for a word


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
    """Return the description of a study, which its results carry as an attribute."""
    attribute = json.loads(results.attrs.get(RESULT_ATTRIBUTE, "{}"))
    if "study" not in attribute:
        raise ValueError("results holds no study: give the Dataset that Study.run returned.")
    return dict(attribute["study"])


def variable(results: xr.Dataset, metric: str | None) -> str:
    """Return the variable for its name, or for a metric: its error on held-out entries.

    None is the first metric; where nothing was held out, its error on observed entries.
    """
    first = about(results)["metrics"][0]
    if metric is None:
        held_out = np.isfinite(results[f"held_out_{first}"]).any()
        return f"held_out_{first}" if held_out else f"observed_{first}"
    numbers = [
        str(name) for name, values in results.data_vars.items() if values.dtype.kind in "iuf"
    ]
    if f"held_out_{metric}" in numbers:
        return f"held_out_{metric}"
    check_word("metric", metric, numbers)
    return metric


def choices(results: xr.Dataset) -> list[str]:
    """Return the dimensions that describe models."""
    return [str(dim) for dim in results.dims if dim not in CONDITIONS]


def trials(results: xr.Dataset) -> list[str]:
    """Return the dimensions that describe conditions, without the seed."""
    return [str(dim) for dim in results.dims if dim in CONDITIONS and dim != "seed"]


def select(results: xr.Dataset, conditions: Mapping[str, Any]) -> xr.Dataset:
    """Return the cells with the given label, or list of labels, of dimensions, which all stay."""
    check_words("dimension", conditions, [str(dim) for dim in results.dims])
    for name, condition in conditions.items():
        labels = condition if isinstance(condition, list | tuple) else [condition]
        available = results[name].values.tolist()
        results = results.isel({name: [position_of(label, available, name) for label in labels]})
    return results


def candidates(results: xr.Dataset, metric: str) -> Iterator[ModelCandidate]:
    """Yield each model with its scores; cells that share all their fits are one model."""
    ignored, dims = about(results)["ignored"], choices(results)
    coordinates = [results[dim].values.tolist() for dim in dims]
    names = [name for name in ("rank", "alpha") if f"{name}_chosen" in results]
    columns = results[[metric, "fit", *(f"{name}_chosen" for name in names)]]
    scores, fits, *chosen = (
        columns[name].transpose(*dims, *trials(results), "seed").values for name in columns
    )
    seen = set()
    for index in np.ndindex(*(results.sizes[dim] for dim in dims)):
        keys = tuple(fits[index].ravel())
        if keys in seen:
            continue
        seen.add(keys)
        labels = {d: c[i] for d, c, i in zip(dims, coordinates, index, strict=True)}
        means = {name: float(v[index].mean()) for name, v in zip(names, chosen, strict=True)}
        yield ModelCandidate(
            labels,
            set(ignored[labels.get(SOLVER, next(iter(ignored)))]),
            scores[index].reshape(-1, results.sizes["seed"]),
            {name: mean for name, mean in means.items() if math.isfinite(mean)},
        )


def ranked(results: xr.Dataset, metric: str) -> list[ModelCandidate]:
    """Return the models that have a score under all conditions and seeds, best first."""
    models = [model for model in candidates(results, metric) if np.isfinite(model.scores).all()]
    return sorted(models, key=lambda model: model.mean)


def _compared(
    results: xr.Dataset, metric: str | None, conditions: Mapping[str, Any]
) -> tuple[xr.Dataset, str, list[ModelCandidate]]:
    """Return the selected results, the variable, and the ranked models, at least one."""
    selected = select(results, conditions)
    name = variable(selected, metric)
    if name in POSTERIOR_SCORES:
        raise ValueError(
            f"metric={name!r} is no error of which the lowest is the best: give an error, or look "
            "at the table of this one."
        )
    if models := ranked(selected, name):
        return selected, name, models
    raise ValueError(
        f"metric={name!r} is NaN somewhere for every model: see stop_reason in the results."
    )


def choose(
    results: xr.Dataset, metric: str | None, *, simplest: bool, conditions: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the labels of the best model, or of the simplest within one standard error of it."""
    *_, models = _compared(results, metric, conditions)
    if simplest:
        models = [model for model in models if _within_one_standard_error(model, models[0])]
        models.sort(key=lambda model: model.simplicity)
    return models[0].labels


def _within_one_standard_error(model: ModelCandidate, best: ModelCandidate) -> bool:
    """Return whether the paired difference to the best is at most its standard error."""
    differences = (model.scores - best.scores).mean(axis=0)
    error = differences.std(ddof=1) / math.sqrt(differences.size) if differences.size > 1 else 0
    return bool(differences.mean() <= error)


def rank_test(
    results: xr.Dataset, metric: str | None, *, confidence: float, conditions: Mapping[str, Any]
) -> pd.DataFrame:
    """Return the paired differences of all models to the best; see `Study.rank_test`."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence} is out of range: give a number between 0 and 1.")
    selected, name, models = _compared(results, metric, conditions)
    scores, n_seeds = np.stack([model.scores for model in models]), selected.sizes["seed"]
    differences = (scores - scores[0]).mean(axis=1)
    mean, half_width = differences.mean(axis=1), math.nan
    if n_seeds > 1:
        factor = 1 / n_seeds + (_hidden_to_observed(selected) if "held_out" in name else 0.0)
        error = differences.std(axis=1, ddof=1) * math.sqrt(factor)
        half_width = error * stats.t.ppf((1 + confidence) / 2, n_seeds - 1)
    beaten = (scores > scores[0]) + 0.5 * (scores == scores[0])
    columns = {
        "mean": scores.mean(axis=(1, 2)),
        "mean_rank": stats.rankdata(scores, axis=0).mean(axis=(1, 2)),
        "difference": mean,
        "low": mean - half_width,
        "high": mean + half_width,
        "beaten": beaten.mean(axis=(1, 2)),
    }
    frame = pd.DataFrame(columns, index=_index(models))
    frame.loc[frame.index[0], ["low", "high", "beaten"]] = math.nan
    frame.attrs = {"metric": name, "confidence": confidence}
    return frame


def _hidden_to_observed(results: xr.Dataset) -> float:
    """Return the ratio of hidden to observed entries, as a mean over the conditions."""
    coordinate = results.get("missing_level", results.get("missing"))
    shares = np.asarray(about(results)["missing"] if coordinate is None else coordinate, float)
    return float(np.mean(shares / (1 - shares)))


def _index(models: list[ModelCandidate]) -> pd.Index[Any]:
    """Return the labels of models, with a dash for arguments that their method ignores."""
    if not (names := list(models[0].labels)):
        return pd.Index(["model"])
    rows = [tuple(IGNORED if n in m.ignored else m.labels[n] for n in names) for m in models]
    return pd.MultiIndex.from_tuples(rows, names=names)


def table(results: xr.Dataset, *metrics: str, conditions: Mapping[str, Any]) -> StudyTable:
    """Return a table of means and standard deviations over the seeds; see `Study.table`."""
    selected = select(results, conditions)
    names = [variable(selected, m) for m in metrics] or [variable(selected, None), "seconds"]
    models = {name: list(candidates(selected, name)) for name in names}
    dims = trials(selected)
    columns = {}
    for name, k in itertools.product(names, range(math.prod(selected.sizes[d] for d in dims))):
        index = np.unravel_index(k, [selected.sizes[d] for d in dims])
        label = (selected[d].values[i] for d, i in zip(dims, index, strict=True))
        scores = pd.DataFrame([model.scores[k] for model in models[name]])
        columns[name, *label] = pd.DataFrame(
            {"mean": scores.mean(axis=1), "sd": scores.std(axis=1)}
        )
    frame = pd.concat(columns, axis=1, names=["", *dims, "over seeds"])
    return StudyTable(frame.set_axis(_index(models[names[0]]), axis=0))


class StudyTable(pd.DataFrame):
    """A DataFrame with pairs of columns "mean" and "sd", the last level of its columns.

    As HTML, a pair is one column "mean ± sd", and the smallest mean is in bold if it is the best.
    """

    @property
    def _constructor(self) -> type[StudyTable]:
        return StudyTable

    def joined(self, best: str = "{}") -> pd.DataFrame:
        """Return the table with one column of text "mean ± sd" for each pair of columns."""
        means, sds = (pd.DataFrame(self.xs(name, axis=1, level=-1)) for name in ("mean", "sd"))
        texts = means.map("{:.4g}".format) + sds.map(" ± {:.2g}".format)
        texts = texts.replace({"nan ± nan": IGNORED, " ± nan": ""}, regex=True)
        is_error = ~means.columns.get_level_values(0).isin([*POSTERIOR_SCORES])
        return texts.mask((means == means.min()) & is_error, texts.map(best.format))

    def _repr_html_(self) -> str:
        if set(self.columns.get_level_values(-1)) != {"mean", "sd"} or self.columns.nlevels < 2:
            return self.to_html()
        html = self.joined("<b>{}</b>").to_html()
        return html.replace("&lt;b&gt;", "<b>").replace("&lt;/b&gt;", "</b>")
