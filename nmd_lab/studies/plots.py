"""Plots of the results of a study.

A plot shows some dimensions of the results only.  It takes the mean over the other conditions
(missing entries, noise) and the seeds, and the best of the other models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._checks import check_words
from nmd_lab.plots._canvas import axes, quantity, text_color

from .grid import SOLVER
from .summary import candidates, choices, ranked, select, trials, variable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    >>> study.plot.error("rank", color="solver").get_xlabel()
    'rank'
    """  # fmt: skip

    results: xr.Dataset

    def error(self, x: str, **options: Any) -> Axes:
        """Draw an error against a dimension; see `nmd_lab.studies.plots.error`."""
        return error(self.results, x, **options)

    def heatmap(self, x: str, y: str, **options: Any) -> Axes:
        """Draw an error over two dimensions; see `nmd_lab.studies.plots.heatmap`."""
        return heatmap(self.results, x, y, **options)

    def cost(self, **options: Any) -> Axes:
        """Draw an error against seconds; see `nmd_lab.studies.plots.cost`."""
        return cost(self.results, **options)


def error(
    results: xr.Dataset,
    x: str,
    *,
    metric: str | None = None,
    color: str | None = None,
    ax: Axes | None = None,
    **conditions: Any,
) -> Axes:
    """Draw an error against a dimension, with its spread over the seeds."""
    results, name = select(results, conditions), variable(results, metric)
    color = _color(results, color, x)
    means, sds = _best(results, name, *filter(None, (color, x)))
    ax = axes(ax, 6.4, 4.0)
    labels = results[x].values
    is_numeric = labels.dtype.kind in "iuf"
    positions = labels.astype(float) if is_numeric else np.arange(labels.size, dtype=float)
    colors = [""] if color is None else results[color].values
    for k, label in enumerate(colors):
        shift = 0 if is_numeric else 0.12 * (k - (len(colors) - 1) / 2) * min(1, 6 / len(colors))
        mean, sd = means.reshape(-1, labels.size)[k], sds.reshape(-1, labels.size)[k]
        style: Any = {"linestyle": "-" if is_numeric else "", "label": _as_text(label)}
        ax.errorbar(positions + shift, mean, sd, marker="o", elinewidth=0.8, **style)
    if labels.size <= 12 or not is_numeric:
        slanted: Any = {} if is_numeric or labels.size <= 4 else {"rotation": 20, "ha": "right"}
        ax.set_xticks(positions, list(map(_as_text, labels)), **slanted)
        ax.minorticks_off()
    ax.set(xlabel=_dimension_name(x), ylabel=quantity(results[name], name))
    _finish(ax, results, color, {x, color})
    return ax


def heatmap(
    results: xr.Dataset,
    x: str,
    y: str,
    *,
    metric: str | None = None,
    ax: Axes | None = None,
    **conditions: Any,
) -> Axes:
    """Draw an error over two dimensions: its mean in each cell, a frame around the lowest."""
    results, name = select(results, conditions), variable(results, metric)
    check_words("dimension", [x, y], [str(dim) for dim in results.dims])
    if x == y:
        raise ValueError(f"y={y!r} equals x: give two different dimensions.")
    means, _ = _best(results, name, y, x)
    ax = axes(ax, 1.6 + 0.95 * means.shape[1], 1.3 + 0.55 * means.shape[0])
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    colors = colormaps["viridis_r"].with_extremes(bad="#8888")
    image = ax.imshow(means, cmap=colors, aspect="auto")
    for i, j in np.argwhere(np.isfinite(means)):
        red, green, blue, _ = image.cmap(image.norm(means[i, j]))
        ink = "w" if 0.3 * red + 0.6 * green + 0.1 * blue < 0.5 else "k"
        ax.text(j, i, f"{means[i, j]:.3g}", ha="center", va="center", color=ink, fontsize=9)
        if means[i, j] == np.nanmin(means):
            edge = {"fill": False, "lw": 2.5, "ec": text_color(), "clip_on": False}
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **edge))
    ax.set_xticks(range(means.shape[1]), list(map(_as_text, results[x].values)))
    ax.set_yticks(range(means.shape[0]), list(map(_as_text, results[y].values)))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel=_dimension_name(x), ylabel=_dimension_name(y), title=_subtitle(results, {x, y}))
    ax.figure.colorbar(image, ax=ax, label=quantity(results[name], name))
    return ax


def cost(
    results: xr.Dataset,
    *,
    metric: str | None = None,
    color: str | None = None,
    ax: Axes | None = None,
    **conditions: Any,
) -> Axes:
    """Draw the error of each model against the seconds that its fit takes."""
    from matplotlib.ticker import LogLocator

    results, name = select(results, conditions), variable(results, metric)
    color = _color(results, color)
    ax = axes(ax, 6.4, 4.0)
    for k, label in enumerate([""] if color is None else results[color].values):
        group = results if color is None else results.isel({color: [k]})
        pairs = zip(candidates(group, "seconds"), candidates(group, name), strict=True)
        scores = [(s.scores, e.scores) for s, e in pairs if np.isfinite(s.scores + e.scores).all()]
        if scores:
            seconds = [np.median(s) for s, _ in scores]
            mean, sd = np.transpose([_mean_and_deviation(errors) for _, errors in scores])
            style: Any = {"linestyle": "", "label": _as_text(label)}
            ax.errorbar(seconds, mean, sd, marker="o", elinewidth=0.8, **style)
    ax.set(xscale="log", xlabel="seconds for a fit", ylabel=quantity(results[name], name))
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    _finish(ax, results, color, {color, *choices(results)})
    return ax


def _mean_and_deviation(scores: NDArray[np.floating]) -> tuple[float, float]:
    """Return the mean of the scores of a model, and its standard deviation over the seeds."""
    by_seed = scores.mean(axis=0)
    return by_seed.mean(), by_seed.std(ddof=1) if by_seed.size > 1 else 0.0


def _best(results: xr.Dataset, name: str, *dims: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return mean and deviation of the best model at each label of dimensions, NaN without one."""
    reduced = np.full((2, *(results.sizes[dim] for dim in dims)), np.nan)
    for index in np.ndindex(reduced.shape[1:]):
        here = results.isel({dim: [i] for dim, i in zip(dims, index, strict=True)})
        if models := ranked(here, name):
            reduced[:, *index] = _mean_and_deviation(models[0].scores)
    return reduced[0], reduced[1]


def _color(results: xr.Dataset, color: str | None, *shown: str) -> str | None:
    """Return the dimension of the colours; by default one that is not shown yet."""
    check_words("dimension", [*shown, color] if color else shown, map(str, results.dims))
    free = [dim for dim in choices(results) if dim not in shown and results.sizes[dim] > 1]
    return color or (SOLVER if SOLVER in free else next(iter(free), None))


def _as_text(label: Any) -> str:
    """Return a label of the results as a reader expects it."""
    return f"{label:g}" if isinstance(label, float) else str(label).replace("_", " ")


def _dimension_name(dim: str) -> str:
    """Return the name of a dimension for an axis, a legend or a title."""
    return {"missing": "hidden share"}.get(dim, dim.replace("_", " "))


def _subtitle(results: xr.Dataset, shown: set[Any]) -> str:
    """Return a text that tells how the dimensions that are not shown were reduced."""
    texts = [
        f"{_dimension_name(dim)} {_as_text(results[dim].values[0])}"
        for dim in trials(results)
        if results.sizes[dim] == 1 and dim not in shown
    ]
    for word, dims in (("best", choices(results)), ("mean over", trials(results))):
        names = [_dimension_name(d) for d in dims if d not in shown and results.sizes[d] > 1]
        if names:
            texts.append(f"{word} {' and '.join(filter(None, [', '.join(names[:-1]), names[-1]]))}")
    return ", ".join(texts)


def _finish(ax: Axes, results: xr.Dataset, color: str | None, shown: set[Any]) -> None:
    """Add the title, the legend and the grid."""
    ax.set_title(_subtitle(results, shown))
    if color is not None:
        ax.legend(title=_dimension_name(color), frameon=False)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
