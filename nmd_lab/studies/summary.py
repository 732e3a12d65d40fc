"""The models of a study and their scores: the best one, a table, and a paired comparison."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
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
    numbers = [str(name) for name, v in results.data_vars.items() if v.dtype.kind in "iuf"]
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


def scores(results: xr.Dataset, name: str) -> pd.DataFrame:
    """Return a variable with a row for each model and a column for each condition and seed.

    Cells that differ only in arguments that their method ignores are one model.
    """
    dims, columns = choices(results), [*trials(results), "seed"]
    ignored = about(results)["ignored"]
    rows = []
    for labels in itertools.product(*(results[dim].values.tolist() for dim in dims)):
        model = dict(zip(dims, labels, strict=True))
        without = ignored[model.get(SOLVER, next(iter(ignored)))]
        rows.append(tuple(IGNORED if dim in without else model[dim] for dim in dims))
    values = results[name].transpose(*dims, *columns).values.reshape(len(rows), -1)
    names: list[Any] = [[name], *(results[dim].values for dim in columns)]
    index = pd.MultiIndex.from_tuples(rows, names=dims) if dims else pd.Index(["model"])
    frame = pd.DataFrame(values, index, pd.MultiIndex.from_product(names, names=["", *columns]))
    return frame[~index.duplicated()]


def ranked(results: xr.Dataset, name: str) -> tuple[pd.Index[Any], NDArray[np.floating]]:
    """Return the models with all their scores (models, conditions, seeds), best first."""
    frame = scores(results, name)
    shape = len(frame), -1, results.sizes["seed"]
    values = np.ascontiguousarray(frame).reshape(shape)
    complete = np.flatnonzero(np.isfinite(values).all(axis=(1, 2)))
    order = complete[np.argsort(values[complete].mean(axis=(1, 2)), kind="stable")]
    return frame.index[order], values[order]


def labels_of(results: xr.Dataset, model: Any) -> dict[str, Any]:
    """Return the coordinates of a row of `scores`, the first one of what its method ignores."""
    pairs = zip(choices(results), model, strict=False)
    return {d: results[d].values.tolist()[0] if v == IGNORED else v for d, v in pairs}


def _compared(
    results: xr.Dataset, metric: str | None, conditions: Mapping[str, Any]
) -> tuple[xr.Dataset, str, pd.Index[Any], NDArray[np.floating]]:
    """Return the selected results, the variable, and the ranked models, at least one."""
    selected = select(results, conditions)
    name = variable(selected, metric)
    if name in POSTERIOR_SCORES:
        raise ValueError(
            f"metric={name!r} is no error of which the lowest is the best: give an error, or look "
            "at the table of this one."
        )
    models, values = ranked(selected, name)
    if models.empty:
        raise ValueError(
            f"metric={name!r} is NaN somewhere for every model: see stop_reason in the results."
        )
    return selected, name, models, values


def choose(
    results: xr.Dataset, metric: str | None, *, simplest: bool, conditions: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the labels of the best model, or of the simplest within one standard error of it."""
    selected, _, models, values = _compared(results, metric, conditions)
    if simplest:
        differences = (values - values[0]).mean(axis=1)
        n_seeds = differences.shape[1]
        error = differences.std(axis=1, ddof=1) / math.sqrt(n_seeds) if n_seeds > 1 else 0
        models = _by_simplicity(selected, models[differences.mean(axis=1) <= error])
    return labels_of(selected, models[0])


def _by_simplicity(results: xr.Dataset, models: pd.Index[Any]) -> pd.Index[Any]:
    """Return models by rank, and by alpha from the largest; a word or none counts as 0."""
    sizes = pd.DataFrame(0.0, models, ["rank", "alpha"])
    for dim in ("rank", "alpha"):
        if dim in models.names:
            labels: Any = models.get_level_values(dim)
            sizes[dim] = pd.to_numeric(labels, errors="coerce")
        if f"{dim}_chosen" in results:  # its mean, where all fits of a model have chosen
            chosen = scores(results, f"{dim}_chosen").mean(axis=1, skipna=False)
            sizes[dim] = chosen.fillna(sizes[dim])
    sizes = sizes.fillna(0)
    return models[np.lexsort((-sizes["alpha"], sizes["rank"]))]


def rank_test(
    results: xr.Dataset, metric: str | None, *, confidence: float, conditions: Mapping[str, Any]
) -> pd.DataFrame:
    """Return the paired differences of all models to the best; see `Study.rank_test`."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence} is out of range: give a number between 0 and 1.")
    selected, name, models, values = _compared(results, metric, conditions)
    differences, n_seeds = (values - values[0]).mean(axis=1), values.shape[2]
    mean, half_width = differences.mean(axis=1), math.nan
    if n_seeds > 1:
        factor = 1 / n_seeds + (_hidden_to_observed(selected) if "held_out" in name else 0.0)
        error = differences.std(axis=1, ddof=1) * math.sqrt(factor)
        half_width = error * stats.t.ppf((1 + confidence) / 2, n_seeds - 1)
    beaten = (values > values[0]) + 0.5 * (values == values[0])
    columns = {
        "mean": values.mean(axis=(1, 2)),
        "mean_rank": stats.rankdata(values, axis=0).mean(axis=(1, 2)),
        "difference": mean,
        "low": mean - half_width,
        "high": mean + half_width,
        "beaten": beaten.mean(axis=(1, 2)),
    }
    frame = pd.DataFrame(columns, models)
    frame.loc[frame.index[0], ["low", "high", "beaten"]] = math.nan
    frame.attrs = {"metric": name, "confidence": confidence}
    return frame


def _hidden_to_observed(results: xr.Dataset) -> float:
    """Return the ratio of hidden to observed entries, as a mean over the conditions."""
    coordinate = results.get("missing_level", results.get("missing"))
    shares = np.asarray(about(results)["missing"] if coordinate is None else coordinate, float)
    return float(np.mean(shares / (1 - shares)))


def table(results: xr.Dataset, *metrics: str, conditions: Mapping[str, Any]) -> StudyTable:
    """Return a table of means and standard deviations over the seeds; see `Study.table`."""
    selected = select(results, conditions)
    names = [variable(selected, m) for m in metrics] or [variable(selected, None), "seconds"]
    columns, n_seeds = {}, selected.sizes["seed"]
    for name in names:
        frame = scores(selected, name)
        for k in range(0, frame.shape[1], n_seeds):
            values = np.array(frame.iloc[:, k : k + n_seeds], order="C")
            by_seed = pd.DataFrame(values, frame.index)
            pair = {"mean": by_seed.mean(axis=1), "sd": by_seed.std(axis=1)}
            columns[frame.columns[k][:-1]] = pd.DataFrame(pair)
    return StudyTable(pd.concat(columns, axis=1, names=[*frame.columns.names[:-1], "over seeds"]))


class StudyTable(pd.DataFrame):
    """A DataFrame with pairs of columns "mean" and "sd", the last level of its columns.

    As HTML, a pair is one column "mean ± sd", and the smallest mean is in bold if it is the best.
    """

    def joined(self, best: str = "{}") -> pd.DataFrame:
        """Return the table with one column of text "mean ± sd" for each pair of columns."""
        means, sds = (pd.DataFrame(self.xs(name, axis=1, level=-1)) for name in ("mean", "sd"))
        texts = means.map("{:.4g}".format) + sds.map(" ± {:.2g}".format)
        texts = texts.replace({"nan ± nan": IGNORED, " ± nan": ""}, regex=True)
        is_error = ~means.columns.get_level_values(0).isin([*POSTERIOR_SCORES])
        return texts.mask((means == means.min()) & is_error, texts.map(best.format))

    def _repr_html_(self) -> str:
        html = self.joined("<b>{}</b>").to_html()
        return html.replace("&lt;b&gt;", "<b>").replace("&lt;/b&gt;", "</b>")
