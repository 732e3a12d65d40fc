"""Plots of the history of a fit, of its trials and residuals, and of f with the data."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nmd_lab._runtime.checks import check_integer, evenly, many
from nmd_lab.data.matching import match_data
from nmd_lab.data.typed_table import plain_label
from nmd_lab.model.column_model import ColumnModel
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import compared_entries, entries_in, positions_of
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.selection import TIED, as_text

from ._canvas import Palette, axes, finished, is_dark, panels_of, pyplot, quantity, text_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes


QUANTITY_NAMES = {
    "primal_residual": "primal residual ‖T − WH‖",
    "penalty": "penalty ρ",
    "validation_rmse": "validation error",
}
"""Names of variables of a history in a legend; others have their own."""


def convergence(
    fit: Decomposition, *, quantities: Sequence[str] = ("relative_error",), ax: Axes | None = None
) -> Axes:
    """Draw the error, or other recorded quantities, by iteration.

    Parameters
    ----------
    fit : Decomposition
        The fit.
    quantities : sequence of str, default ("relative_error",)
        Variables of `fit.history`, such as "primal_residual", "dual_residual" and "penalty".
        Variables that the fit did not record are left out.
    ax : Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    Axes
        One line for each quantity. The scale is logarithmic if the values span more than a
        factor of 5.

    Raises
    ------
    ValueError
        If the history has none of the quantities.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from nmd_lab import datasets, plots
    >>> fit = nmd.decompose(datasets.digits(100), 5, max_iter=20)
    >>> ax = plots.convergence(fit)
    >>> len(ax.lines[0].get_xdata())
    20
    """
    recorded = [name for name in quantities if name in fit.history]
    if not recorded:
        raise ValueError(
            f"quantities={list(quantities)} are not in the history: choose from "
            f"{list(fit.history.data_vars)}."
        )
    ax = axes(ax, 6.4, 3.8)

    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    iteration = fit.history["iteration"].values
    series = {
        QUANTITY_NAMES.get(name, name.replace("_", " ")): fit.history[name].values
        for name in recorded
    }
    positive = np.concatenate([values[values > 0] for values in series.values()])
    logarithmic = positive.size > 0 and positive.max() > 5 * positive.min()
    for index, (name, values) in enumerate(series.items()):
        ax.plot(
            iteration,
            np.where(values > 0, values, np.nan) if logarithmic else values,
            label=name,
            linewidth=2.2 if index == 0 else 1.2,
            marker="o" if len(iteration) == 1 else "",
            zorder=3 - index * 0.1,
        )
    ax.set(xlabel="iteration", xlim=(0, iteration[-1] * 1.02))
    if logarithmic:
        ax.set_yscale("log")
        if positive.max() < 300 * positive.min():  # powers of ten alone would give too few ticks
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            ax.yaxis.set_minor_formatter(NullFormatter())
    error = f"relative error {fit.relative_error:.3g}"
    ax.set_title(f"{fit.nonlinearity}, {fit.loss.name}, rank {fit.rank}: {error}")
    if len(recorded) == 1:
        ax.set_ylabel(name)
    else:
        ax.legend(frameon=False)
    return finished(ax)


def residuals(
    fit: Decomposition,
    X: Any,
    *,
    observed: ArrayLike | None = None,
    bins: int = 60,
    ax: Sequence[Axes] | None = None,
) -> NDArray[Any]:
    """Compare the residuals of a fit with the noise model of its loss.

    The noise model is Gaussian for Frobenius, Laplace for L1 and Poisson for KL. Residuals of
    Poisson counts are divided by the square root of the model (Pearson residuals) and compared
    with Gaussian noise.

    Parameters
    ----------
    fit : Decomposition
        The fit.
    X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
        The data of the fit, or held-out entries. NaN, masked entries and entries that a sparse X
        does not store are left out.
    observed : array_like of bool, optional
        True where an entry is compared. Default: all entries.
    bins : int, default 60
        Number of bins of the histogram.
    ax : two Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    ndarray of two Axes
        A histogram with the density of the noise model, and a quantile plot. The points of the
        quantile plot lie on the line if the residuals follow the noise model.

    Raises
    ------
    ValueError
        If X has another shape or other labels than the data of the fit.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from nmd_lab import datasets, plots
    >>> X = datasets.synthetic(60, 40, 3, "relu", noise=0.1, random_state=0).X
    >>> left, right = plots.residuals(nmd.decompose(X, 3), X)
    >>> right.get_xlabel()
    'Gaussian quantile'
    """
    from scipy import stats

    x, fitted, _ = compared_entries(fit, X, observed)
    values, name = fit.loss.residuals(x, fitted), fit.loss.residual_name
    if name == "residual" and hasattr(X, "attrs") and hasattr(X, "dims"):
        name = f"residual of {quantity(X, 'X')}"
    model = "Laplace" if fit.loss.noise == "Laplace" else "Gaussian"
    noise = stats.laplace if model == "Laplace" else stats.norm
    # maximum-likelihood scale of a distribution centred at zero
    scale = np.mean(np.abs(values)) if noise is stats.laplace else np.sqrt(np.mean(values**2))
    scale = float(scale) or 1.0

    left, right = drawn = panels_of(ax, 1, 2, (9, 3.8))
    reach = float(np.percentile(np.abs(values), 99.8)) or scale
    left.hist(np.clip(values, -reach, reach), bins=bins, range=(-reach, reach), density=True,
              alpha=0.55, label="residuals")  # fmt: skip
    grid = np.linspace(-reach, reach, 400)
    left.plot(grid, noise.pdf(grid, scale=scale), color=text_color(), linewidth=1.8,
              label=f"{model} noise")  # fmt: skip
    left.set(xlabel=name, ylabel="density", xlim=(-reach, reach))
    left.legend(frameon=False)

    n_points = min(values.size, 400)
    levels = (np.arange(n_points) + 0.5) / n_points
    expected = noise.ppf(levels, scale=scale)
    right.plot(expected, np.quantile(values, levels), "o", markersize=3.5)
    ends = expected[[0, -1]]
    right.plot(ends, ends, color=text_color(), linewidth=1.2, zorder=1)
    right.set(xlabel=f"{model} quantile", ylabel=f"quantile of the {name}")
    for panel in drawn:
        finished(panel)
    return drawn


def nonlinearity(
    result: Decomposition | Posterior,
    X: Any,
    *,
    columns: Any = None,
    max_points: int = 1000,
    ax: Sequence[Axes] | None = None,
) -> NDArray[Any]:
    """Draw f with the data: each observed value against the fitted WH, and f as a line.

    Parameters
    ----------
    result : Decomposition or Posterior
        The fit, or the posterior, whose mean of WH over the draws is taken.
    X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
        The data of the fit, or held-out entries. Entries that are not observed are left out.
    columns : int, label, or sequence of these, optional
        Columns by position or label, a panel for each. Default: one panel for all entries if they
        share one f; else the columns, at most twelve, whose f is not the identity.
    max_points : int, default 1000
        Largest number of entries that are drawn in a panel, taken evenly.
    ax : sequence of Axes, optional
        Axes to draw on, one for each panel. Default: those of a new figure.

    Returns
    -------
    ndarray of Axes
        One for each panel. WH has its offsets, and in a table the units of its column.

    Raises
    ------
    ValueError
        If X has another shape or other labels than the data of the fit, if every column has the
        identity, if each entry has an f of its own, or if `ax` has another number of Axes.

    See Also
    --------
    nmd_lab.nonlinearities.Monotone : An f that is learned.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_breast_cancer
    >>> areas = load_breast_cancer(as_frame=True).data.filter(like="area").to_numpy()
    >>> fit = nmd.decompose(areas, 2, "monotone", random_state=0)
    >>> (ax,) = nmd.plots.nonlinearity(fit, areas)
    >>> ax.get_title()
    'Monotone(20 knots)'
    """
    most = check_integer("max_points", max_points, 1)
    entries = entries_in(match_data(result._labels, X, owner=result._owner))
    i, j, x = entries.i, entries.j, entries.values
    panels = _panels(result, columns)
    across = min(len(panels), 4)  # side by side
    down = -(-len(panels) // across)
    size = (4.6, 3.6) if len(panels) == 1 else (3 * across, 2.6 * down)
    drawn = panels_of(ax, down, across, size, len(panels))
    for (title, kind, column), here in zip(panels, drawn, strict=True):
        at = np.arange(x.size) if column is None else np.flatnonzero(j == column)
        at = at[evenly(at.size, most)]
        linear = np.atleast_2d(result._values.linear_at(i[at], j[at]))  # one for each draw
        t = kind.centre + kind.size * linear.mean(axis=0)
        here.plot(t, x[at], ".", color=Palette.negative, alpha=0.35, markersize=4)
        if at.size:
            grid = np.linspace(t.min(), t.max(), 400)
            here.plot(grid, kind.nonlinearity(grid), color=text_color(), linewidth=1.8)
        here.set_title(title, fontsize="large" if len(panels) == 1 else "small")
        finished(here).set(xlabel="WH", ylabel="X")
    return drawn


def _panels(
    result: Decomposition | Posterior, columns: Any
) -> list[tuple[str, ColumnModel, int | None]]:
    """Return the title of each panel, its model, and its column; None for all entries."""
    model, names = result._model, list(result._labels.flat(result._labels.columns))
    if columns is None and not model.is_mixed:
        return [(str(result.nonlinearity), model.only, None)]
    kinds = model.of_columns if model.is_mixed else [model.only] * len(names)
    if not kinds:
        raise ValueError(
            "result has an f for each entry: fit with one f for each column, or for all entries."
        )
    if columns is None:
        chosen = [k for k, kind in enumerate(kinds) if not kind.nonlinearity.linear]
        chosen = chosen[:12]  # as many as are drawn without being asked for
    else:
        chosen = np.atleast_1d(positions_of(result._labels, "columns", columns)).tolist()
    if not chosen:
        raise ValueError("Every column has the identity, a straight line: give columns= to see it.")
    return [(str(plain_label(names[k])), kinds[k], k) for k in chosen]


COLORS = "viridis"
"""Sequential colour map of the ranks."""

ON_LIGHT, ON_DARK = (0.0, 0.88), (0.3, 1.0)
"""Part of the colour map that is seen on a light and on a dark background."""

LINES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"))
"""Line and marker of each model, that of the fit first."""


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
        If no option of the fit was chosen by cross-validation.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from nmd_lab import plots
    >>> plots.selection(nmd.decompose(nmd.datasets.digits(50), 2, max_iter=5, tol=0))
    Traceback (most recent call last):
    ValueError: fit has no trials to draw, since all its options were given: ...
    """
    selected = fit.selection
    trials = selected.to_dataframe()
    done = trials[np.isfinite(trials["error"])]
    if done.empty:
        raise ValueError(
            "fit has no trials to draw, since all its options were given: "
            "let complete() choose some, as in nmd.complete(X)."
        )
    plt = pyplot()
    if ax is None:
        figure, ax = plt.subplots(1, 2, figsize=(9.6, 4.4), layout="constrained",
                                  width_ratios=(1.25, 1))  # fmt: skip
        figure.suptitle(fill(selected.attrs["sentence"], width=110), fontsize="medium")
    left, right = np.ravel(np.asarray(ax, dtype=object))
    chosen = trials.iloc[selected.attrs["chosen"]]
    ranks = np.unique(done["rank"])
    shades = plt.get_cmap(COLORS)(
        np.linspace(*(ON_DARK if is_dark(left) else ON_LIGHT), ranks.size)
    )
    colors = dict(zip(ranks.tolist(), shades, strict=True))
    models = _models(done, chosen)
    for index, (label, model) in enumerate(models.items()):
        line, marker = LINES[index % len(LINES)]
        style = {"linestyle": line, "marker": marker, "alpha": 0.5 if index else 1.0}
        _draw_alphas(left, model, colors, style)
        _draw_ranks(right, model, colors, style | {"label": label})
    for panel, x in ((left, "alpha"), (right, "rank")):
        ring = {"facecolors": "none", "edgecolors": text_color(), "linewidths": 1.8, "zorder": 4}
        panel.scatter(chosen[x], chosen["error"], s=140, **ring)
        panel.set(xlabel=x, ylabel=f"held-out {selected.attrs.get('measure', 'error')}")
        finished(panel)
    _finish_alphas(left, trials, chosen, colors)
    _finish_ranks(right, done, chosen, len(models) > 1)
    return np.array([left, right], dtype=object)


def _models(trials: pd.DataFrame, chosen: pd.Series[Any]) -> dict[str, pd.DataFrame]:
    """Return the trials of each pair of nonlinearity and loss by its label, those chosen first."""
    names = [name for name in ("nonlinearity", "loss") if trials[name].nunique() > 1]
    labels = np.array([", ".join(pair) for pair in trials[names].to_numpy()])
    ordered = labels[np.argsort(trials["error"], kind="stable")].tolist()
    ordered.sort(key=lambda label: label != ", ".join(chosen[names]))
    return {label: trials[labels == label] for label in dict.fromkeys(ordered)}


def _draw_alphas(ax: Axes, trials: pd.DataFrame, colors: dict[int, Any], style: Any) -> None:
    """Draw each trial of a model against alpha, and a line through the lowest of each rank."""
    dots = style | {"linestyle": "", "markersize": 3, "alpha": 0.4 * style["alpha"]}
    for rank in np.unique(trials["rank"]).tolist():
        of_rank = trials[trials["rank"] == rank]
        color, lowest = colors[rank], of_rank.groupby("alpha")["error"].min()
        ax.plot(of_rank["alpha"], of_rank["error"], color=color, **dots)
        ax.plot(lowest.index, lowest, color=color, linewidth=1.5, markersize=4.5, **style)


def _draw_ranks(ax: Axes, trials: pd.DataFrame, colors: dict[int, Any], style: Any) -> None:
    """Draw the lowest error of each rank of a model, with its spread as a band."""
    best = trials.sort_values("error", kind="stable").drop_duplicates("rank").sort_values("rank")
    ranks, errors, spread = best["rank"], best["error"], best["spread"].fillna(0)
    if len(ranks) > 1:
        gray: Any = {"color": text_color(), "linewidth": 0, "alpha": 0.15 * style["alpha"]}
        ax.fill_between(ranks, errors - spread, errors + spread, **gray)
    else:
        ax.errorbar(ranks, errors, spread, color=text_color(), alpha=0.5, capsize=3)
    ax.plot(ranks, errors, color=text_color(), linewidth=1.2, markersize=4.5, **style)
    tied = ranks.isin(trials.loc[trials[TIED], "rank"])
    marker = {"marker": style["marker"], "markersize": 6, "linestyle": "", "zorder": 3}
    for rank, error, is_tied in zip(ranks, errors, tied, strict=True):
        inside = colors[rank] if is_tied else ax.get_facecolor()
        ax.plot(rank, error, color=colors[rank], markerfacecolor=inside, **marker)


def _finish_alphas(ax: Axes, trials: pd.DataFrame, chosen: pd.Series[Any], colors: Any) -> None:
    """Add the axis of alpha, the title and the legend of the ranks."""
    from matplotlib.lines import Line2D

    errors = trials["error"]
    _alpha_axis(ax, trials["alpha"].to_numpy())
    counts = {"unfinished": errors.isna().sum(), "above the frame": _limit(ax, errors, chosen)}
    notes = ", ".join(f"{count} {note}" for note, count in counts.items() if count)
    ax.set_title(f"{many(len(errors), 'trial')}{notes and f' ({notes})'}", fontsize="medium")
    shown = {chosen["rank"], *_few(list(colors))}
    handles = [Line2D([], [], color=color, marker="o", markersize=4.5, label=str(rank))
               for rank, color in colors.items() if rank in shown]  # fmt: skip
    ax.legend(handles=handles, title="rank", fontsize="small", title_fontsize="small",
              ncols=1 + (len(handles) > 3), framealpha=0.7, edgecolor="none")  # fmt: skip


def _finish_ranks(ax: Axes, trials: pd.DataFrame, chosen: pd.Series[Any], several: bool) -> None:
    """Add the axis of the ranks, the title and the legend of the models."""
    best = trials.groupby("rank")["error"].min()
    dots: Any = {"linewidth": 0.8, "linestyle": (0, (1, 2)), "zorder": 1}
    ax.axhline(best.min(), color=text_color(), **dots)
    ranks = best.index.tolist()
    if ranks[-1] > 8 * ranks[0]:
        ax.set_xscale("log")
    ax.set_xticks(_few(ranks))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    _limit(ax, best, chosen)
    model = f"{chosen['nonlinearity']}, " if several else ""
    title = f"chosen: {model}rank {chosen['rank']}, alpha {as_text(chosen['alpha'])}"
    ax.set_title(title, fontsize="medium")
    if several:
        ax.legend(fontsize="small", framealpha=0.7, edgecolor="none")


def _few(ranks: list[int]) -> list[int]:
    """Return as many of the ranks, evenly, as there is room for: six."""
    return ranks[:: 1 + (len(ranks) - 1) // 6]


def _limit(ax: Axes, errors: pd.Series[Any], chosen: pd.Series[Any]) -> int:
    """Leave out errors that are far above the others, and return how many these are."""
    lowest = errors.min()
    # Four times the median distance from the lowest error, or a little more than the chosen one
    height = max(4.0 * (errors.median() - lowest), 1.1 * np.nan_to_num(chosen["error"] - lowest))
    if not 0 < 2 * height < errors.max() - lowest:
        return 0
    ax.set_ylim(lowest - 0.08 * height, lowest + height)
    return int(np.sum(errors > lowest + height))


def _alpha_axis(ax: Axes, alphas: NDArray[np.floating]) -> None:
    """Make the axis of alpha logarithmic, also if some alpha are 0."""
    from matplotlib.ticker import LogLocator

    positive = alphas[np.isfinite(alphas) & (alphas > 0)]
    if not positive.size:
        ax.set_xticks([0.0])
        return
    low, high = float(positive.min()), float(positive.max())
    steps = (1, 2, 5) if high < 300 * low else (1,)
    ticks = np.array(LogLocator(subs=steps).tick_values(low, high))
    ticks = ticks[(ticks > 0.9 * low) & (ticks < 1.1 * high)] if low < high else positive[:1]
    if np.any(alphas == 0):
        ax.set_xscale("symlog", linthresh=low, linscale=0.4)
        ticks = np.array([0.0, *ticks])
    else:
        ax.set_xscale("log")
    ax.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
    ax.minorticks_off()
