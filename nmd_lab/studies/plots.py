"""Plots of the results of a study.

A plot shows some dimensions of the results only.  It takes the mean over the other conditions
(missing entries, noise) and the seeds, and the best of the other models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._checks import check_words
from nmd_lab.plots._canvas import axes, quantity, text_color

from .grid import CONDITIONS, SOLVER, dimension
from .summary import ModelCandidate, candidates, choices, select, trials, variable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def error(
    results: xr.Dataset,
    x: str,
    *,
    metric: str | None = None,
    color: str | None = None,
    ax: Axes | None = None,
    **conditions: Any,
) -> Axes:
    """Draw an error against a dimension, with its spread over the seeds.

    Parameters
    ----------
    results : Dataset
        Results of a study.
    x : str
        Dimension of the horizontal axis: "rank", "missing", "noise" and so on.
    metric : str, optional
        Name of a variable or a metric; by default the first metric on held-out entries.
    color : str, optional
        Dimension of the colours; by default "solver" or else the first other dimension of the
        models that has several labels.
    ax : Axes, optional
        Axes to draw on; by default those of a new figure.
    **conditions
        Labels to which the plot is restricted, for example ``missing=0.5``.

    Returns
    -------
    Axes
        Axes with a line of means and a band of one standard deviation for each colour.

    Raises
    ------
    ValueError
        If a dimension or label is not in the study.
    """
    results, name = select(results, conditions), variable(results, metric)
    x = dimension(x)
    color = _color(results, color, {x})
    ax = axes(ax, 6.4, 4.0)
    labels = results[x].values
    is_numeric = labels.dtype.kind in "iuf"
    positions = labels.astype(float) if is_numeric else np.arange(len(labels), dtype=float)
    groups = _groups(results, color)
    for k, (label, group) in enumerate(groups):
        scores = [_best_scores(group.isel({x: [i]}), name) for i in range(len(labels))]
        mean = np.array([s.mean() for s in scores])
        sd = np.array([s.mean(axis=0).std(ddof=1) if s.shape[1] > 1 else 0.0 for s in scores])
        if is_numeric:
            (line,) = ax.plot(positions, mean, marker="o", markersize=4.5, label=label)
            low, high, color_of_line = mean - sd, mean + sd, line.get_color()
            ax.fill_between(positions, low, high, color=color_of_line, alpha=0.18, lw=0)
        else:
            shifted = positions + 0.12 * (k - (len(groups) - 1) / 2) * min(1, 6 / len(groups))
            ax.errorbar(shifted, mean, sd, marker="o", linestyle="", capsize=3, label=label)
    if is_numeric and len(positions) <= 12:
        ax.set_xticks(positions, [f"{label:g}" for label in labels])
        ax.minorticks_off()
    elif not is_numeric:
        slanted: dict[str, Any] = {"rotation": 20, "ha": "right"} if len(positions) > 4 else {}
        ax.set_xticks(positions, [_as_text(label) for label in labels], **slanted)
    ax.set(xlabel=_dimension_name(x), ylabel=quantity(results[name], name))
    ax.set_title(_subtitle(results, {x, color}))
    _finish(ax, color)
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
    """Draw an error over two dimensions, with its mean in each cell and a frame around the lowest.

    Parameters
    ----------
    results : Dataset
        Results of a study.
    x, y : str
        Dimensions of the horizontal and the vertical axis.
    metric, ax, **conditions
        Arguments of `error`.

    Returns
    -------
    Axes
        Axes with a cell for each pair of labels, which is grey where there is no number.

    Raises
    ------
    ValueError
        If a dimension or label is not in the study.
    """
    results, name = select(results, conditions), variable(results, metric)
    x, y = dimension(x), dimension(y)
    check_words("dimension", [x, y], [str(dim) for dim in results.dims])
    if x == y:
        raise ValueError(f"y={y!r} equals x: give two different dimensions.")
    shape = results.sizes[y], results.sizes[x]
    means = np.full(shape, np.nan)
    for i, j in np.ndindex(shape):
        means[i, j] = _best_scores(results.isel({y: [i], x: [j]}), name).mean()
    ax = axes(ax, 1.6 + 0.95 * shape[1], 1.3 + 0.55 * shape[0])
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    colors = colormaps["viridis_r"].with_extremes(bad="#8888")
    image = ax.imshow(means, cmap=colors, aspect="auto")
    for i, j in np.ndindex(shape):
        if np.isfinite(means[i, j]):
            red, green, blue, _ = image.cmap(image.norm(means[i, j]))
            dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
            text = f"{means[i, j]:.3g}"
            ax.text(j, i, text, ha="center", va="center", color="w" if dark else "k", fontsize=9)
    if np.isfinite(means).any():
        i, j = np.unravel_index(np.nanargmin(means), shape)
        frame = Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, lw=2.5, ec=text_color())
        frame.set_clip_on(False)
        ax.add_patch(frame)
    ax.set_xticks(range(shape[1]), [_as_text(label) for label in results[x].values])
    ax.set_yticks(range(shape[0]), [_as_text(label) for label in results[y].values])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel=_dimension_name(x), ylabel=_dimension_name(y))
    ax.set_title(_subtitle(results, {x, y}))
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
    """Draw the error of each model against the seconds that its fit takes.

    Parameters
    ----------
    results : Dataset
        Results of a study.
    metric, color, ax, **conditions
        Arguments of `error`.

    Returns
    -------
    Axes
        Axes with a point for each model, at its median time and its mean error, with a bar of one
        standard deviation over the seeds.

    Raises
    ------
    ValueError
        If a dimension or label is not in the study.
    """
    from matplotlib.ticker import LogLocator

    results, name = select(results, conditions), variable(results, metric)
    color = _color(results, color, set())
    ax = axes(ax, 6.4, 4.0)
    for label, group in _groups(results, color):
        pairs = zip(candidates(group, "seconds"), candidates(group, name), strict=True)
        complete = [(s, e) for s, e in pairs if np.isfinite(s.scores + e.scores).all()]
        if complete:
            seconds = [np.median(s.scores) for s, _ in complete]
            mean, sd = _means_and_deviations([e for _, e in complete])
            ax.errorbar(seconds, mean, sd, marker="o", linestyle="", elinewidth=0.8, label=label)
    ax.set(xscale="log", xlabel="seconds for a fit", ylabel=quantity(results[name], name))
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_title(_subtitle(results, {color, *choices(results)}))
    _finish(ax, color)
    return ax


def _means_and_deviations(models: list[ModelCandidate]) -> NDArray[np.floating]:
    """Return means and standard deviations over the seeds, shape (2, models)."""
    by_seed = np.array([model.scores.mean(axis=0) for model in models])
    sd = by_seed.std(axis=1, ddof=1) if by_seed.shape[1] > 1 else np.zeros(len(by_seed))
    return np.stack([by_seed.mean(axis=1), sd])


def _best_scores(results: xr.Dataset, name: str) -> NDArray[np.floating]:
    """Return the scores of the best model, shape (conditions, seeds); NaN if there is none."""
    models = [c for c in candidates(results, name) if np.isfinite(c.scores).all()]
    if not models:
        return np.full((1, results.sizes["seed"]), np.nan)
    return min(models, key=lambda model: model.mean).scores


def _color(results: xr.Dataset, color: str | None, shown: set[str]) -> str | None:
    """Return the dimension of the colours; by default one that is not shown yet."""
    dims = [str(dim) for dim in results.dims]
    color = dimension(color) if color else None
    check_words("dimension", [*shown, *([color] if color else [])], dims)
    if color is not None:
        return color
    free = [dim for dim in choices(results) if dim not in shown and results.sizes[dim] > 1]
    return SOLVER if SOLVER in free else next(iter(free), None)


def _groups(results: xr.Dataset, color: str | None) -> list[tuple[str, xr.Dataset]]:
    """Return the results of each colour, with its label."""
    if color is None:
        return [("", results)]
    labels = results[color].values
    return [(_as_text(label), results.isel({color: [i]})) for i, label in enumerate(labels)]


def _as_text(label: Any) -> str:
    """Return a label of the results as a reader expects it."""
    return f"{label:g}" if isinstance(label, float) else str(label).replace("_", " ")


def _dimension_name(dim: str) -> str:
    """Return the name of a dimension for an axis, a legend or a title."""
    return {"missing": "hidden share"}.get(dim, dim.replace("_", " "))


def _subtitle(results: xr.Dataset, shown: set[str | None]) -> str:
    """Return a text that tells how the dimensions that are not shown were reduced."""
    best = [d for d in choices(results) if d not in shown and results.sizes[d] > 1]
    mean = [d for d in trials(results) if d not in shown and results.sizes[d] > 1]
    fixed = [
        f"{_dimension_name(str(d))} {_as_text(results[d].values[0])}"
        for d in results.dims
        if results.sizes[d] == 1 and d not in shown and d in CONDITIONS and d != "seed"
    ]
    reduced = [f"best {_enumeration(best)}"] if best else []
    reduced += [f"mean over {_enumeration(mean)}"] if mean else []
    return ", ".join(fixed + reduced)


def _enumeration(dims: list[str]) -> str:
    """Return the names of dimensions, joined by commas and "and"."""
    names = [_dimension_name(dim) for dim in dims]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _finish(ax: Axes, color: str | None) -> None:
    """Add the legend and the grid."""
    if color is not None:
        ax.legend(title=_dimension_name(color), frameon=False)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
