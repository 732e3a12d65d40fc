"""Plots of the results of a study.

A plot shows some dimensions of the results only.  It takes the mean over the other conditions
(missing entries, noise) and the seeds, and the best of the other models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from nmd_lab._runtime.checks import check_words
from nmd_lab.plots._canvas import axes, finished, hide_frame, quantity

from .grid import ALGORITHM, select
from .summary import choices, trials, variable

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
        color = _color(results, color, x)
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


def _color(results: xr.Dataset, color: str | None, *shown: str) -> str | None:
    """Return the dimension of the colours; by default one that is not shown yet."""
    check_words("dimension", [*shown, color] if color else shown, map(str, results.dims))
    free = [dim for dim in choices(results) if dim not in shown and results.sizes[dim] > 1]
    return color or (ALGORITHM if ALGORITHM in free else next(iter(free), None))


def label_text(label: Any) -> str:
    """Return a label of the results for a reader: short numbers, and spaces for underscores."""
    return f"{label:g}" if isinstance(label, float) else str(label).replace("_", " ")


def _dimension_name(dim: str) -> str:
    """Return the name of a dimension for an axis, a legend or a title."""
    return {"missing": "hidden fraction"}.get(dim, dim.replace("_", " "))


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
