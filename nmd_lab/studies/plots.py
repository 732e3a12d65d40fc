"""Plots of the results of a study.

A plot shows some dimensions of the results only.  It takes the mean over the other conditions
(missing entries, noise) and the seeds, and the best of the other models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from nmd_lab._checks import check_words
from nmd_lab.plots._canvas import axes, quantity, text_color

from .grid import SOLVER
from .summary import choices, select, trials, variable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    >>> study.plot.error("rank", color="solver").get_xlabel()
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
        color = _color(results, color, x)
        labels = results[x].values
        is_numeric = labels.dtype.kind in "iuf"
        positions = xr.DataArray(labels.astype(float) if is_numeric else range(labels.size), dims=x)
        places = positions
        if color not in (None, x) and not is_numeric:  # colours side by side
            n_colors = results.sizes[color]
            reach = 0.06 * (n_colors - 1) * min(1, 6 / n_colors)
            places = positions + xr.DataArray(np.linspace(-reach, reach, n_colors), dims=color)
        means = _best(results, name, *filter(None, dict.fromkeys((color, x))))
        ax = _points(ax, results, name, color, "-" if is_numeric else "", places, *means)
        if labels.size <= 12 or not is_numeric:
            slanted: Any = {} if is_numeric or labels.size <= 4 else {"rotation": 20, "ha": "right"}
            ax.set_xticks(positions, list(map(_as_text, labels)), **slanted)
            ax.minorticks_off()
        ax.set(xlabel=_dimension_name(x), title=_subtitle(results, {x, color}))
        return ax

    def heatmap(
        self, x: str, y: str, *, metric: Name = None, ax: Axes | None = None, **conditions: Any
    ) -> Axes:
        """Draw an error over two dimensions: its mean in each cell, a frame around the lowest."""
        name = variable(results := select(self.results, conditions), metric)
        check_words("dimension", [x, y], map(str, results.dims))
        if x == y:
            raise ValueError(f"y={y!r} equals x: give two different dimensions.")
        means = _best(results, name, y, x)[0].values
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
        for axis, dim in ((ax.xaxis, x), (ax.yaxis, y)):
            axis.set_ticks(range(results.sizes[dim]), list(map(_as_text, results[dim].values)))
            axis.set_label_text(_dimension_name(dim))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_title(_subtitle(results, {x, y}))
        ax.figure.colorbar(image, ax=ax, label=quantity(results[name], name))
        return ax

    def cost(
        self, *, metric: Name = None, color: Name = None, ax: Axes | None = None, **conditions: Any
    ) -> Axes:
        """Draw the error of each model against the seconds that its fit takes."""
        from matplotlib.ticker import LogLocator

        name = variable(results := select(self.results, conditions), metric)
        color = _color(results, color)
        shown = dict.fromkeys([*choices(results), *filter(None, [color])])
        means = _best(results, name, *shown)
        others = [dim for dim in results.dims if dim not in shown]
        seconds = results["seconds"].median(others, skipna=False).transpose(*shown)
        ax = _points(ax, results, name, color, "", seconds, *means)
        ax.set(xscale="log", xlabel="seconds for a fit", title=_subtitle(results, {*shown}))
        low, high = ax.get_xlim()
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        return ax


def error(results: xr.Dataset, x: str, **options: Any) -> Axes:
    """Draw an error against a dimension; see `StudyPlots.error`."""
    return StudyPlots(results).error(x, **options)


def _best(results: xr.Dataset, name: str, *dims: str) -> tuple[xr.DataArray, xr.DataArray]:
    """Return mean and deviation of the best model at each label of dimensions, NaN without one."""
    others, conditions, seeds = (
        [dim for dim in group if dim not in dims]
        for group in (choices(results), trials(results), ["seed"])
    )
    by_seed = results[name].mean(conditions, skipna=False)
    means = by_seed.mean(seeds, skipna=False)
    sds = by_seed.std(seeds, ddof=int(bool(seeds) and results.sizes["seed"] > 1), skipna=False)
    lowest = means.min(others)
    return lowest.transpose(*dims), sds.where(means == lowest).min(others).transpose(*dims)


def _points(
    ax: Axes | None, results: xr.Dataset, name: str, color: Name, line: str, *data: xr.DataArray
) -> Axes:
    """Draw places, means and deviations in the colours of a dimension; then legend and grid."""
    ax = axes(ax, 6.4, 4.0)
    for k, label in enumerate([""] if color is None else results[color].values):
        group: Any = [a.isel({color: k}, missing_dims="ignore").values.ravel() for a in data]
        ax.errorbar(*group, marker="o", elinewidth=0.8, linestyle=line, label=_as_text(label))
    if color is not None:
        ax.legend(title=_dimension_name(color), frameon=False)
    ax.set_ylabel(quantity(results[name], name))
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


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
