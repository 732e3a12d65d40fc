"""Plot of the trials from which the options of a fit were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.selection import TIED, TRIAL, as_text

from ._canvas import finished, is_dark, pyplot, text_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class TrialStyle:
    """What keeps a plot of many trials readable.

    Attributes
    ----------
    colors : str
        Sequential colour map of the ranks.
    on_light, on_dark : (float, float)
        Part of the colour map that is seen on a light and on a dark background.
    lines : tuple
        Line and marker of each model, that of the fit first.
    max_ranks : int
        Largest number of ranks in the legend.
    apart : float
        Smallest distance of two ticks, as a fraction of the axis.
    letters : int
        Letters in a line of the title.
    reach : float
        Height of the frame above the lowest error, as a multiple of the median of the errors
        above the lowest, if some are more than twice as high.
    """

    colors: str = "viridis"
    on_light: tuple[float, float] = (0.0, 0.88)
    on_dark: tuple[float, float] = (0.3, 1.0)
    lines: tuple[tuple[str, str], ...] = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"))
    max_ranks: int = 6
    apart: float = 0.06
    letters: int = 110
    reach: float = 4.0


def selection(fit: Decomposition, *, ax: Sequence[Axes] | None = None) -> NDArray[Any]:
    """Draw the held-out errors of the trials from which the options of a fit were chosen.

    Parameters
    ----------
    fit : Decomposition
        The fit.
    ax : two Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    ndarray of two Axes
        The error against alpha, with a line for each rank; and the lowest error of each rank, with
        a band of its spread: where the band reaches the line of the lowest error, the difference
        is not certain. Ranks that are as good, as far as that tells, have filled marks, others
        hollow ones. A ring marks the trial that was chosen. Each pair of a nonlinearity and a
        loss has its own kind of line. A new figure has the sentence of `Decomposition.selection`
        as its title.

    Raises
    ------
    ValueError
        If no option of the fit was chosen by held-out entries.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from nmd_lab import plots
    >>> plots.selection(nmd.decompose(nmd.datasets.digits(50), 2, max_iter=5, tol=0))
    Traceback (most recent call last):
    ValueError: fit has no trials to draw, since all its options were given: ...
    """
    trials = fit.selection
    done = trials.isel({TRIAL: np.flatnonzero(np.isfinite(trials["error"].values))})
    if not done.sizes[TRIAL]:
        raise ValueError(
            "fit has no trials to draw, since all its options were given: "
            "let complete() choose some, as in nmd.complete(X)."
        )
    plt = pyplot()
    if ax is None:
        figure, ax = plt.subplots(1, 2, figsize=(9.6, 4.4), layout="constrained",
                                  width_ratios=(1.25, 1))  # fmt: skip
        figure.suptitle(fill(trials.attrs["sentence"], TrialStyle.letters), fontsize="medium")
    left, right = np.ravel(np.asarray(ax, dtype=object))
    chosen = trials.isel({TRIAL: trials.attrs["chosen"]})
    ranks = np.unique(done["rank"].values).tolist()
    seen = TrialStyle.on_dark if is_dark(left) else TrialStyle.on_light
    shades = plt.get_cmap(TrialStyle.colors)(np.linspace(*seen, len(ranks)))
    colors = dict(zip(ranks, shades, strict=True))
    models = _models(done, chosen)
    for index, (label, model) in enumerate(models.items()):
        line, marker = TrialStyle.lines[index % len(TrialStyle.lines)]
        style = {"linestyle": line, "marker": marker, "alpha": 0.5 if index else 1.0}
        _draw_alphas(left, model, colors, style)
        _draw_ranks(right, model, colors, style | {"label": label})
    _finish_alphas(left, trials, chosen, _few(colors, int(chosen["rank"])))
    _finish_ranks(right, done, chosen, len(models) > 1)
    return np.array([left, right], dtype=object)


def _models(trials: xr.Dataset, chosen: xr.Dataset) -> dict[str, xr.Dataset]:
    """Return the trials of each pair of nonlinearity and loss by its label, those chosen first."""
    names = [name for name in ("nonlinearity", "loss") if len(np.unique(trials[name])) > 1]
    columns = [trials[name].values.tolist() for name in names]
    rows = zip(*columns, strict=True) if names else [()] * trials.sizes[TRIAL]
    labels = np.array([", ".join(row) for row in rows])
    first = ", ".join(str(chosen[name].values) for name in names)
    order = labels[np.argsort(trials["error"].values, kind="stable")].tolist()
    order.sort(key=lambda label: label != first)
    return {
        label: trials.isel({TRIAL: np.flatnonzero(labels == label)})
        for label in dict.fromkeys(order)
    }


def _draw_alphas(ax: Axes, trials: xr.Dataset, colors: dict[int, Any], style: Any) -> None:
    """Draw each trial of a model against alpha, and a line through the lowest of each rank."""
    for rank in np.unique(trials["rank"].values).tolist():
        color = colors[rank]
        of_rank = trials.isel({TRIAL: np.flatnonzero(trials["rank"].values == rank)})
        alphas, errors = of_rank["alpha"].values, of_rank["error"].values
        dots = style | {"linestyle": "", "markersize": 3, "alpha": 0.4 * style["alpha"]}
        ax.plot(alphas, errors, color=color, **dots)
        tried = np.unique(alphas)
        lowest = [errors[alphas == alpha].min() for alpha in tried]
        ax.plot(tried, lowest, color=color, linewidth=1.5, markersize=4.5, **style)


def _draw_ranks(ax: Axes, trials: xr.Dataset, colors: dict[int, Any], style: Any) -> None:
    """Draw the lowest error of each rank of a model, with its spread as a band."""
    best = trials.isel({TRIAL: np.argsort(trials["error"].values, kind="stable")})
    best = best.isel({TRIAL: np.unique(best["rank"].values, return_index=True)[1]})
    ranks, errors = best["rank"].values, best["error"].values
    spread = np.nan_to_num(best["spread"].values)
    gray: dict[str, Any] = {"color": text_color(), "linewidth": 0}
    if len(ranks) > 1:
        gray["alpha"] = 0.15 * style["alpha"]
        ax.fill_between(ranks, errors - spread, errors + spread, **gray)
    else:
        ax.errorbar(ranks, errors, spread, color=text_color(), alpha=0.5, capsize=3)
    ax.plot(ranks, errors, color=text_color(), linewidth=1.2, markersize=4.5, **style)
    marker = {"marker": style["marker"], "markersize": 6, "linestyle": "", "zorder": 3}
    tied = np.isin(ranks, trials["rank"].values[trials[TIED].values])
    for rank, error, is_tied in zip(ranks.tolist(), errors, tied.tolist(), strict=True):
        inside = colors[rank] if is_tied else ax.get_facecolor()
        ax.plot(rank, error, color=colors[rank], markerfacecolor=inside, **marker)


def _finish_alphas(ax: Axes, trials: xr.Dataset, chosen: xr.Dataset, colors: Any) -> None:
    """Add the axes of the panel by alpha, the chosen trial and the legend of the ranks."""
    from matplotlib.lines import Line2D

    errors = trials["error"].values
    _alpha_axis(ax, trials["alpha"].values)
    above = _finish(ax, errors[np.isfinite(errors)], trials, chosen, "alpha")
    counts = {"unfinished": int(np.isnan(errors).sum()), "above the frame": above}
    notes = ", ".join(f"{count} {note}" for note, count in counts.items() if count)
    ax.set_title(f"{len(errors)} trials{notes and f' ({notes})'}", fontsize="medium")
    handles = [Line2D([], [], color=color, marker="o", markersize=4.5, label=str(rank))
               for rank, color in colors.items()]  # fmt: skip
    ax.legend(handles=handles, title="rank", fontsize="small", title_fontsize="small",
              ncols=1 + (len(handles) > 3), framealpha=0.7, edgecolor="none")  # fmt: skip


def _finish_ranks(ax: Axes, trials: xr.Dataset, chosen: xr.Dataset, several: bool) -> None:
    """Add the axes of the panel by rank, the chosen trial and the legend of the models."""
    errors = trials["error"].values
    dots: Any = {"linewidth": 0.8, "linestyle": (0, (1, 2)), "zorder": 1}
    ax.axhline(float(errors.min()), color=text_color(), **dots)
    ranks = np.unique(trials["rank"].values)
    if ranks[-1] > 8 * ranks[0]:
        ax.set_xscale("log")
    ax.set_xticks(_ticks(ranks, logarithmic=ax.get_xscale() == "log"))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    best = [np.min(errors[trials["rank"].values == rank]) for rank in ranks]
    _finish(ax, np.array(best), trials, chosen, "rank")
    model = f"{chosen['nonlinearity'].values}, " if several else ""
    title = f"chosen: {model}rank {int(chosen['rank'])}, alpha {as_text(chosen['alpha'].values)}"
    ax.set_title(title, fontsize="medium")
    if several:
        ax.legend(fontsize="small", framealpha=0.7, edgecolor="none")


def _finish(
    ax: Axes, errors: NDArray[np.floating], trials: xr.Dataset, chosen: xr.Dataset, x: str
) -> int:
    """Mark the chosen trial, name the axes, and return how many errors are above the frame."""
    ring = {"facecolors": "none", "edgecolors": text_color(), "linewidths": 1.8, "zorder": 4}
    ax.scatter(chosen[x].values, chosen["error"].values, s=140, **ring)
    ax.set(xlabel=x, ylabel=f"held-out {trials.attrs.get('measure', 'error')}")
    finished(ax)
    lowest = float(errors.min())
    height = TrialStyle.reach * (float(np.median(errors)) - lowest)
    height = max(height, 1.1 * float(np.nan_to_num(chosen["error"]) - lowest))
    if not 0 < 2 * height < errors.max() - lowest:  # nothing is far above the others
        return 0
    ax.set_ylim(lowest - 0.08 * height, lowest + height)
    return int(np.sum(errors > lowest + height))


def _alpha_axis(ax: Axes, alphas: NDArray[np.floating]) -> None:
    """Make the axis of alpha logarithmic, also if some alpha are 0."""
    from matplotlib.ticker import LogLocator

    tried = np.unique(alphas[np.isfinite(alphas)])
    positive = tried[tried > 0]
    if not positive.size:
        ax.set_xticks([0.0])
        return
    low, high = float(positive[0]), float(positive[-1])
    ticks = positive
    if low < high:
        steps = (1, 2, 5) if high < 300 * low else (1,)
        ticks = np.array(LogLocator(subs=steps).tick_values(low, high))
        ticks = ticks[(ticks > 0.9 * low) & (ticks < 1.1 * high)]
    if tried[0] > 0:
        ax.set_xscale("log")
    else:
        ax.set_xscale("symlog", linthresh=low, linscale=0.4)
        ticks = np.array([0.0, *ticks])
    ax.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
    ax.minorticks_off()


def _ticks(ranks: NDArray[np.integer], *, logarithmic: bool) -> list[int]:
    """Return those ranks that are far enough apart for ticks of an axis."""
    places = np.log(ranks) if logarithmic else ranks.astype(float)
    ticks = [0]
    for index in range(1, len(ranks)):
        if places[index] - places[ticks[-1]] >= TrialStyle.apart * np.ptp(places):
            ticks.append(index)
    return [int(ranks[index]) for index in ticks]


def _few(colors: dict[int, Any], chosen: int) -> dict[int, Any]:
    """Return the colours of so many ranks that a legend stays small, the chosen one among them."""
    ranks = list(colors)
    if len(ranks) > TrialStyle.max_ranks:
        spaced = np.linspace(0, len(ranks) - 1, TrialStyle.max_ranks - 1).round().astype(int)
        ranks = sorted({chosen, *(ranks[index] for index in spaced)})
    return {rank: colors[rank] for rank in ranks if rank in colors}
