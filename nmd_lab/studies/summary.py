"""The models of a study and their scores: the best one, a table, a comparison, plots and HTML.

A plot shows some dimensions of the results only.  It takes the mean over the other conditions
(missing entries, noise) and the seeds, and the best of the other models.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats

from nmd_lab._runtime.checks import check_share, check_word, check_words, many
from nmd_lab._runtime.html import Interval, Summary, intervals
from nmd_lab.data.labels import RESULT_ATTRIBUTE
from nmd_lab.plots._canvas import axes, finished, hide_frame, quantity
from nmd_lab.result.selection import as_text
from nmd_lab.result.summary import headline
from nmd_lab.warnings import NotConvergedWarning

from .cell import ALGORITHM, CONDITIONS, POSTERIOR_SCORES, Result, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes


CONFIDENCE = 0.95
"""Confidence of the intervals of the models that are drawn."""

IGNORED = "–"  # label of an argument that a method ignores


class BestModel(NamedTuple):
    """The best model of a study.

    Attributes
    ----------
    parameters : dict
        Arguments of the model, and "algorithm" with the name of its method if that varies.  What is
        "auto" is chosen anew for all data, and ``fit.parameters`` has the numbers.
    fit : Decomposition, Posterior or array (m, n)
        Fit of the model to all data, or its prediction, as its method returns them.
    """

    parameters: dict[str, Any]
    fit: Result

    def __repr__(self) -> str:
        """Return the parameters, and the fit below them."""
        named = ", ".join(f"{name}: {value!r}" for name, value in self.parameters.items())
        return f"<nmd_lab.BestModel>  {named}\n{self.fit!r}"


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


def scores(results: xr.Dataset, name: str) -> pd.DataFrame:
    """Return a variable with a row for each model and a column for each condition and seed.

    Cells that differ only in arguments that their method ignores are one model.
    """
    dims, columns = choices(results), [*trials(results), "seed"]
    ignored = about(results)["ignored"]
    models = []
    for labels in itertools.product(*(results[dim].values.tolist() for dim in dims)):
        model = dict(zip(dims, labels, strict=True))
        without = ignored[model.get(ALGORITHM, next(iter(ignored)))]
        models.append(tuple(IGNORED if dim in without else label for dim, label in model.items()))
    values = results[name].transpose(*dims, *columns).values.reshape(len(models), -1)
    index = pd.MultiIndex.from_tuples(models, names=dims) if dims else pd.Index(["model"])
    levels: list[Any] = [[name], *(results[dim].values for dim in columns)]
    frame = pd.DataFrame(values, index, pd.MultiIndex.from_product(levels, names=["", *columns]))
    return frame[~index.duplicated()]


def ranked(results: xr.Dataset, name: str) -> pd.DataFrame:
    """Return the `scores` of the models that have all, best first."""
    frame = scores(results, name).replace([np.inf, -np.inf], np.nan).dropna()
    return frame.iloc[np.argsort(frame.mean(axis=1), kind="stable")]


def labels_of(results: xr.Dataset, model: Any) -> dict[str, Any]:
    """Return the coordinates of a row of `scores`, the first one of what its method ignores."""
    pairs = zip(choices(results), model, strict=False)
    labels = {d: results[d].values[0] if v == IGNORED else v for d, v in pairs}
    return {d: v.item() if isinstance(v, np.generic) else v for d, v in labels.items()}


def _compared(results: xr.Dataset, metric: str | None) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    """Return the variable, the ranked models, and their differences to the best by seed."""
    name = variable(results, metric)
    if name in POSTERIOR_SCORES:
        raise ValueError(f"metric={name!r} is no error whose lowest value is the best: give one.")
    models = ranked(results, name)
    if models.empty:
        raise ValueError(f"metric={name!r} is NaN somewhere for every model: see stop_reason.")
    return name, models, (models - models.iloc[0]).T.groupby("seed").mean().T


def choose(
    results: xr.Dataset, metric: str | None, simplest: bool, conditions: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the labels of the best model, or of the simplest within one standard error of it."""
    results = select(results, conditions)
    _, models, differences = _compared(results, metric)
    candidates = models.index
    if simplest:
        near = differences.mean(axis=1) <= differences.sem(axis=1).fillna(0)
        candidates = _by_simplicity(results, candidates[near])
    return labels_of(results, candidates[0])


def _by_simplicity(results: xr.Dataset, models: pd.Index[Any]) -> pd.Index[Any]:
    """Return models by rank, and by alpha from the largest; a word or none counts as 0."""
    labels = models.to_frame().reindex(columns=["rank", "alpha"])
    sizes = labels.apply(pd.to_numeric, errors="coerce")
    for dim in sizes.columns:
        if f"{dim}_chosen" in results:  # its mean, where all fits of a model have chosen
            chosen = scores(results, f"{dim}_chosen").mean(axis=1, skipna=False)
            sizes[dim] = chosen.fillna(sizes[dim])
    sizes = sizes.fillna(0)
    return models[np.lexsort((-sizes["alpha"], sizes["rank"]))]


def rank_test(
    results: xr.Dataset, metric: str | None, confidence: float, conditions: Mapping[str, Any]
) -> pd.DataFrame:
    """Return the paired differences of all models to the best; see `Study.rank_test`."""
    check_share("confidence", confidence, zero=False)
    results = select(results, conditions)
    name, models, differences = _compared(results, metric)
    n_seeds, mean = results.sizes["seed"], differences.mean(axis=1)
    constant = about(results)["constants"].get("missing")
    shares = np.asarray(results.get("missing_level", results.get("missing", constant)), float)
    ratio = float(np.mean(shares / (1 - shares))) if "held_out" in name else 0.0
    error = differences.sem(axis=1) * math.sqrt(1 + n_seeds * ratio)  # of hidden to observed
    half_width = error * stats.t.ppf((1 + confidence) / 2, n_seeds - 1)
    best = models.iloc[0]
    columns = {
        "mean": models.mean(axis=1),
        "mean_rank": models.rank().mean(axis=1),
        "difference": mean,
        "low": mean - half_width,
        "high": mean + half_width,
        "beaten": ((models > best) + 0.5 * (models == best)).mean(axis=1),
    }
    frame = pd.DataFrame(columns)
    frame.loc[frame.index[0], ["low", "high", "beaten"]] = math.nan
    frame.attrs = {"metric": name, "confidence": confidence}
    return frame


def table(results: xr.Dataset, metrics: Sequence[str], conditions: Mapping[str, Any]) -> StudyTable:
    """Return a table of means and standard deviations over the seeds; see `Study.table`."""
    selected = select(results, conditions)
    columns = {}
    for name in [variable(selected, metric) for metric in metrics or (None, "seconds")]:
        frame, n_seeds = scores(selected, name), selected.sizes["seed"]
        for first in range(0, frame.shape[1], n_seeds):
            by_seed = frame.iloc[:, first : first + n_seeds]
            pair = {"mean": by_seed.mean(axis=1), "sd": by_seed.std(axis=1)}
            columns[frame.columns[first][:-1]] = pd.DataFrame(pair)
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


def study_html(text: str, results: xr.Dataset | None) -> str:
    """Return the results of a study as HTML, with a text on what it varies."""
    line = " · ".join(each.strip() for each in text.split("\n"))
    if results is None:
        return Summary({"text": "no results before all fits are done: call run()"}, [line]).html()
    flags = _flags(results)
    try:
        ranking = rank_test(results, None, CONFIDENCE, {})
    except ValueError as error:
        return Summary({"text": str(error)}, [line], flags=flags).html()
    rows = [
        Interval(_label(results, model), *numbers)
        for model, *numbers in ranking[["difference", "low", "high"]].itertuples()
    ]
    name = ranking.attrs["metric"]
    means = dict(zip((row.label for row in rows), ranking["mean"], strict=True))
    (best, lowest), *others = means.items()
    spread = as_text(ranked(results, name).iloc[0].groupby("seed").mean().std(), 2)
    over = ", ".join([*trials(results), "seed"])
    measure = f"{results[name].attrs.get('long_name', 'error')} (mean over {over}): {best}"
    drawn = intervals(rows[:8], f"difference to the best, {CONFIDENCE:.0%} intervals")
    return Summary(
        headline(lowest, f"± {spread} {measure}" if spread else measure, dict(others[:1])),
        [_comparison(rows), line],
        [drawn] if others else [],
        flags,
    ).html()


def winner(results: xr.Dataset) -> str:
    """Return the best model and the second with their mean errors, and the time of all fits."""
    name = variable(results, None)
    means = ranked(results, name).mean(axis=1).head(2)
    texts = [f"{_label(results, model)} {as_text(error, 3)}" for model, error in means.items()]
    seconds = float(results["seconds"].sum())
    return f"lowest {name}: {', then '.join(texts)}; fitted in {seconds:.3g} s"


def _label(results: xr.Dataset, model: Any) -> str:
    """Return the labels of a model on one line; words need no name."""
    labels = [pair for pair in zip(choices(results), model, strict=False) if pair[1] != IGNORED]
    texts = [label if isinstance(label, str) else f"{dim} {label}" for dim, label in labels]
    return ", ".join(texts) if choices(results) else "one model"


def _comparison(rows: list[Interval]) -> str:
    """Return whether the second best model differs from the best, in a sentence."""
    if len(rows) < 2:
        return ""
    label, difference, low, high = rows[1]
    if np.isnan(low):
        return f"The second is {label}: one seed cannot tell whether it differs."
    verdict = "differs from the best" if low > 0 else "does not differ significantly from the best"
    between = f"{as_text(low, 2)} to {as_text(high, 2)}, paired by seed"
    return f"The second, {label}, {verdict}: {as_text(difference, 2)} more ({between})."


def _flags(results: xr.Dataset) -> list[str]:
    """Return a sentence for each kind of fits that have no score, or have not converged."""
    names = ["fit", "status", "warnings"]
    fits = pd.DataFrame({n: results[n].values.ravel() for n in names}).drop_duplicates("fit")
    status = fits["status"].value_counts()
    counts = {word: status.get(word, 0) for word in ("failed", "timed out", "left out")}
    counts["not converged"] = fits["warnings"].str.contains(NotConvergedWarning.__name__).sum()
    of = many(len(fits), "fit")
    return [f"{count} of {of}: {word}." for word, count in counts.items() if count]


Name = str | None


@dataclass(frozen=True)
class StudyPlots:
    """The plots of one study as methods.

    Parameters
    ----------
    results : Dataset
        Results of `Study.run`, or of a file that it wrote.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> study = nmd.Study(nmd.datasets.digits(50), rank=[1, 2], method=["admm", "svd"],
    ...                   max_iter=20)
    >>> results = study.run(progress=False)
    >>> study.plot.error("rank", color="algorithm").get_xlabel()
    'rank'
    """  # fmt: skip

    results: xr.Dataset

    def error(
        self,
        x: str,
        *,
        metric: Name = None,
        color: Name = None,
        ax: Axes | None = None,
        **conditions: Any,
    ) -> Axes:
        """Draw an error against a dimension, with its spread over the seeds.

        The further arguments restrict the results to labels, for example ``missing=0.5``.
        """
        name = variable(results := select(self.results, conditions), metric)
        check_words("dimension", filter(None, [x, color]), map(str, results.dims))
        free = [dim for dim in choices(results) if dim != x and results.sizes[dim] > 1]
        color = color or (ALGORITHM if ALGORITHM in free else next(iter(free), None))
        dims = [*dict.fromkeys([x, *filter(None, [color])])]
        is_numeric = results[x].dtype.kind in "iuf"
        texts = {d: [*map(label_text, results[d].values)] for d in dims if d != x or not is_numeric}
        means, sds = _best(results.assign_coords(texts), name, *dims)
        style: Any = (
            {"marker": "o", "elinewidth": 0.8} if is_numeric else {"kind": "bar", "rot": 20}
        )
        ax = means.plot(ax=axes(ax, 6.4, 4.0), yerr=sds, backend="matplotlib", **style)
        if color is not None:
            ax.legend(title=_dimension_name(color))
        ax.set(xlabel=_dimension_name(x), ylabel=quantity(results[name], name))
        ax.set_title(_subtitle(results, {x, color}))
        return finished(ax)

    def heatmap(
        self, x: str, y: str, *, metric: Name = None, ax: Axes | None = None, **conditions: Any
    ) -> Axes:
        """Draw an error over two dimensions: its mean in each cell, a frame around the lowest."""
        name = variable(results := select(self.results, conditions), metric)
        check_words("dimension", [x, y], map(str, results.dims))
        if x == y:
            raise ValueError(f"y={y!r} equals x: give two different dimensions.")
        means = _best(results, name, y, x)[0].to_numpy()
        ax = axes(ax, 1.6 + 0.95 * means.shape[1], 1.3 + 0.55 * means.shape[0])
        lowest = np.nanmin(means)
        image = ax.imshow(means, cmap="viridis_r", aspect="auto")
        for i, j in np.argwhere(np.isfinite(means)):
            ink = "w" if means[i, j] > (lowest + np.nanmax(means)) / 2 else "k"
            frame = {"fill": False, "ec": ink} if means[i, j] == lowest else None
            text = f"{means[i, j]:.3g}"
            ax.text(j, i, text, ha="center", va="center", color=ink, fontsize=9, bbox=frame)
        ax.set_xticks(range(means.shape[1]), [*map(label_text, results[x].values)])
        ax.set_yticks(range(means.shape[0]), [*map(label_text, results[y].values)])
        ax.set(xlabel=_dimension_name(x), ylabel=_dimension_name(y))
        ax.set_title(_subtitle(results, {x, y}))
        hide_frame(ax)
        ax.figure.colorbar(image, ax=ax, label=quantity(results[name], name))
        return ax


def _best(results: xr.Dataset, name: str, *dims: str) -> tuple[Any, Any]:
    """Return tables of mean and deviation of the best model at each label, NaN without one."""
    others, conditions, seeds = (
        [dim for dim in group if dim not in dims]
        for group in (choices(results), trials(results), ["seed"])
    )
    by_seed = results[name].mean(conditions, skipna=False)
    means = by_seed.mean(seeds, skipna=False)
    sds = by_seed.std(seeds, ddof=int(bool(seeds) and results.sizes["seed"] > 1), skipna=False)
    lowest = means.min(others)
    spread = sds.where(means == lowest).min(others)
    return lowest.transpose(*dims).to_pandas(), spread.transpose(*dims).to_pandas()


def label_text(label: Any) -> str:
    """Return a label of the results for a reader: short numbers, and spaces for underscores."""
    return f"{label:g}" if isinstance(label, float) else str(label).replace("_", " ")


def _dimension_name(dim: str) -> str:
    """Return the name of a dimension for an axis, a legend or a title."""
    return {"missing": "held-out fraction"}.get(dim, dim.replace("_", " "))


def _subtitle(results: xr.Dataset, shown: set[Any]) -> str:
    """Return a text that tells how the dimensions that are not shown were reduced."""
    texts = [
        f"{_dimension_name(dim)} {label_text(results[dim].values[0])}"
        for dim in trials(results)
        if results.sizes[dim] == 1 and dim not in shown
    ]
    for word, dims in (("best", choices(results)), ("mean over", trials(results))):
        names = [_dimension_name(d) for d in dims if d not in shown and results.sizes[d] > 1]
        if names:
            texts.append(f"{word} {', '.join(names)}")
    return ", ".join(texts)
