"""Pictures of a study's results: a Dataset in, matplotlib Axes out.

Dimensions that a picture does not show are summed up: conditions (holes, noise) and seeds by their
mean, models by the best of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._checks import check_words
from nmd_lab.plots._canvas import axes, quantity, text_color

from .grid import CONDITIONS
from .summary import Candidate, candidates, choices, select, trials, variable

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
        Of a study.
    x : str
        The dimension: "rank", "missing", "noise" and so on.
    metric : str, optional
        A variable or a metric; by default the first metric on held-out entries.
    color : str, optional
        The dimension that the lines stand for; by default "method" or else the first other
        dimension of the models, if there is one.
    ax : Axes, optional
        Where to draw.
    **conditions
        Labels to which the picture is confined, for example ``missing=0.5``.

    Returns
    -------
    Axes
        A line of means with a band of one standard deviation for each colour.

    Raises
    ------
    ValueError
        If a dimension or label is not in the study.
    """
    results, name = select(results, conditions), variable(results, metric)
    color = _color(results, color, {x})
    ax = axes(ax, 6.4, 4.0)
    labels = results[x].values
    numeric = labels.dtype.kind in "iuf"
    places = labels.astype(float) if numeric else np.arange(len(labels), dtype=float)
    groups = _labels(results, color)
    for k, (label, part) in enumerate(groups):
        scores = [_best(part.isel({x: [i]}), name) for i in range(len(labels))]
        mean = np.array([s.mean() for s in scores])
        sd = np.array([s.mean(axis=0).std(ddof=1) if s.shape[1] > 1 else 0.0 for s in scores])
        if numeric:
            (line,) = ax.plot(places, mean, marker="o", markersize=4.5, label=label)
            ax.fill_between(places, mean - sd, mean + sd, color=line.get_color(), alpha=0.18, lw=0)
        else:
            shift = 0.12 * (k - (len(groups) - 1) / 2) * min(1, 6 / len(groups))
            ax.errorbar(places + shift, mean, sd, marker="o", linestyle="", capsize=3, label=label)
    if numeric and len(places) <= 12:
        ax.set_xticks(places, [f"{label:g}" for label in labels])
        ax.minorticks_off()
    elif not numeric:
        slanted: dict[str, Any] = {"rotation": 20, "ha": "right"} if len(places) > 4 else {}
        ax.set_xticks(places, [_words(label) for label in labels], **slanted)
    ax.set(xlabel=_axis(x), ylabel=quantity(results[name], name))
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
    """Draw an error over two dimensions, its mean in each cell and a frame around the least.

    Parameters
    ----------
    results : Dataset
        Of a study.
    x, y : str
        The dimensions.
    metric, ax, **conditions
        As for `error`.

    Returns
    -------
    Axes
        With a cell for each pair of labels; grey where there is no number.

    Raises
    ------
    ValueError
        If a dimension or label is not in the study.
    """
    results, name = select(results, conditions), variable(results, metric)
    check_words("dimension", [x, y], [str(dim) for dim in results.dims])
    if x == y:
        raise ValueError(f"y={y!r} is x too: give two different dimensions.")
    shape = results.sizes[y], results.sizes[x]
    means = np.full(shape, np.nan)
    for i, j in np.ndindex(shape):
        means[i, j] = _best(results.isel({y: [i], x: [j]}), name).mean()
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
    ax.set_xticks(range(shape[1]), [_words(label) for label in results[x].values])
    ax.set_yticks(range(shape[0]), [_words(label) for label in results[y].values])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel=_axis(x), ylabel=_axis(y))
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
        Of a study.
    metric, color, ax, **conditions
        As for `error`.

    Returns
    -------
    Axes
        A point for each model: its median time, and its error with the standard deviation over
        the seeds.

    Raises
    ------
    ValueError
        If a dimension or label is not in the study.
    """
    from matplotlib.ticker import LogLocator

    results, name = select(results, conditions), variable(results, metric)
    color = _color(results, color, set())
    ax = axes(ax, 6.4, 4.0)
    for label, part in _labels(results, color):
        pairs = zip(candidates(part, "seconds"), candidates(part, name), strict=True)
        whole = [(s, e) for s, e in pairs if np.isfinite(s.scores + e.scores).all()]
        if whole:
            seconds = [np.median(s.scores) for s, _ in whole]
            mean, sd = _moments([e for _, e in whole])
            ax.errorbar(seconds, mean, sd, marker="o", linestyle="", elinewidth=0.8, label=label)
    ax.set(xscale="log", xlabel="seconds for a fit", ylabel=quantity(results[name], name))
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_title(_subtitle(results, {color, *choices(results)}))
    _finish(ax, color)
    return ax


def _moments(models: list[Candidate]) -> NDArray[np.floating]:
    """Return means and standard deviations over the seeds."""
    by_seed = np.array([model.scores.mean(axis=0) for model in models])
    spread = by_seed.std(axis=1, ddof=1) if by_seed.shape[1] > 1 else np.zeros(len(by_seed))
    return np.stack([by_seed.mean(axis=1), spread])


def _best(results: xr.Dataset, name: str) -> NDArray[np.floating]:
    """Return the scores (conditions, seeds) of the best model, NaN if there is none."""
    models = [c for c in candidates(results, name) if np.isfinite(c.scores).all()]
    if not models:
        return np.full((1, results.sizes["seed"]), np.nan)
    return min(models, key=lambda model: model.mean).scores


def _color(results: xr.Dataset, color: str | None, taken: set[str]) -> str | None:
    """Check what the colours stand for, or choose it."""
    dims = [str(dim) for dim in results.dims]
    check_words("dimension", [*taken, *([color] if color else [])], dims)
    if color is not None:
        return color
    free = [dim for dim in choices(results) if dim not in taken and results.sizes[dim] > 1]
    return "method" if "method" in free else next(iter(free), None)


def _labels(results: xr.Dataset, color: str | None) -> list[tuple[str, xr.Dataset]]:
    """Return the parts that differ in colour, with their names."""

    def parts() -> Iterator[tuple[str, xr.Dataset]]:
        if color is None:
            yield "", results
            return
        for i, label in enumerate(results[color].values):
            yield _words(label), results.isel({color: [i]})

    return list(parts())


def _words(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label).replace("_", " ")


def _axis(dim: str) -> str:
    """Return what an axis is called."""
    return {"missing": "hidden share"}.get(dim, dim.replace("_", " "))


def _subtitle(results: xr.Dataset, shown: set[str | None]) -> str:
    """Say what was done to the dimensions that are not shown."""
    best = [d for d in choices(results) if d not in shown and results.sizes[d] > 1]
    mean = [d for d in trials(results) if d not in shown and results.sizes[d] > 1]
    fixed = [
        f"{_axis(str(d))} {_words(results[d].values[0])}"
        for d in results.dims
        if results.sizes[d] == 1 and d not in shown and d in CONDITIONS and d != "seed"
    ]
    parts = [f"best {_and(best)}"] if best else []
    parts += [f"mean over {_and(mean)}"] if mean else []
    return ", ".join(fixed + parts)


def _and(dims: list[str]) -> str:
    """Join dimensions as a sentence does."""
    words = [_axis(dim) for dim in dims]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _finish(ax: Axes, color: str | None) -> None:
    if color is not None:
        ax.legend(title=_axis(color), frameon=False)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
