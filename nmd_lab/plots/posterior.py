"""Plots of a posterior: its chains, and predictions with intervals against data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_integer, evenly
from nmd_lab.data.matching import match_data
from nmd_lab.result.entries import Entries, entries_at, entries_in
from nmd_lab.result.posterior import Posterior

from ._canvas import Palette, axes, finished, text_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Levels of the intervals in the plot of calibration."""


def trace(posterior: Posterior, *, probe: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw the log-likelihood by sweep, one line for each chain.

    Parameters
    ----------
    posterior : Posterior
        The posterior.
    probe : int, optional
        Position of a recorded prediction, which is drawn instead.
    ax : Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    Axes
        The lines. The title has R-hat and the effective sample size.

    Raises
    ------
    IndexError
        If the trace has no such prediction.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> posterior = nmd.sample(wine, 3, chains=2, draws=50, random_state=0)
    >>> len(nmd.plots.trace(posterior).lines)
    2
    """
    tables, label = (posterior.trace, posterior.rhat, posterior.ess), "log-likelihood"
    recorded, rhat, ess = (table["log_likelihood"] for table in tables)
    if probe is not None:
        n_probes = posterior.trace.sizes.get("probe", 0)
        if check_integer("probe", probe, 0) >= n_probes:
            raise IndexError(f"probe={probe} is not recorded: the trace has {n_probes} of them.")
        recorded, rhat, ess = (table["prediction"].isel(probe=probe) for table in tables)
        row, column = (int(recorded[f"probe_{side}"]) for side in ("row", "column"))
        label = f"prediction at row {row}, column {column}"
    ax = axes(ax, 6.4, 3.4)
    for chain, values in enumerate(recorded.values):
        ax.plot(recorded["sweep"].values, values, linewidth=1, label=f"chain {chain}")
    ax.set(xlabel="sweep", ylabel=label)
    ax.set_title(f"split R-hat {float(rhat):.3f}, effective sample size {float(ess):.0f}")
    if recorded.sizes["chain"] > 1:
        ax.legend(frameon=False)
    return finished(ax)


def predictions(
    posterior: Posterior,
    X: Any,
    *,
    level: float = 0.9,
    noise: bool = True,
    max_points: int = 300,
    ax: Axes | None = None,
) -> Axes:
    """Draw predicted against observed values, with intervals.

    Parameters
    ----------
    posterior : Posterior
        The posterior.
    X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
        Data, best held-out entries. Entries that are not observed are left out.
    level : float, default 0.9
        Probability of the intervals.
    noise : bool, default True
        Whether the intervals are those of a new observation, or of E f(T) alone.
    max_points : int, default 300
        Largest number of entries that are drawn, taken evenly.
    ax : Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    Axes
        A point with an interval for each entry, red if the interval does not cover the observed
        value. The title has the fraction of intervals that do, among all drawn ones. Where the data
        have few values, as ratings have, those of one value stand side by side, sorted by their
        prediction.

    Raises
    ------
    ValueError
        If X has another shape or other labels than the data of the posterior.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
    >>> posterior = nmd.sample(train, 3, draws=50, random_state=0)
    >>> ax = nmd.plots.predictions(posterior, test)
    >>> ax.get_title().endswith("of the 90 % intervals cover the observed value")
    True
    """
    entries, x = _entries(posterior, X, max_points)
    mean = posterior.predict(entries)
    ends = posterior.predict_interval(entries, level=level, noise=noise)
    holds = (ends[:, 0] <= x) & (x <= ends[:, 1])
    ax, place = axes(ax, 5, 4.6), _side_by_side(x, mean)
    for inside, color in ((True, Palette.negative), (False, Palette.positive)):
        chosen = holds == inside
        ax.vlines(place[chosen], *ends[chosen].T, color=color, alpha=0.35, linewidth=1)
        ax.plot(place[chosen], mean[chosen], ".", color=color, markersize=4)
    span = float(x.min()), float(x.max())
    ax.plot(span, span, color=text_color(), linewidth=0.8)
    ax.set(xlabel="observed", ylabel="predicted")
    share = f"{100 * holds.mean():.0f} % of the {100 * level:g} % intervals"
    ax.set_title(f"{share} cover the observed value")
    return finished(ax)


def _side_by_side(x: NDArray[np.float64], order: NDArray[Any]) -> NDArray[np.float64]:
    """Return where values are drawn: near themselves, side by side if they are few."""
    values = np.unique(x)
    if values.size < 2 or values.size > 20 or x.size < 4 * values.size:
        return x
    width = 0.8 * float(np.diff(values).min())  # a gap is left between the values
    equal = pd.Series(order).groupby(x)
    share = (equal.rank(method="first") - 0.5) / equal.transform("size")
    return x + width * (share.to_numpy() - 0.5)


def calibration(
    posterior: Posterior,
    X: Any,
    *,
    levels: Sequence[float] = LEVELS,
    max_points: int = 5000,
    ax: Axes | None = None,
) -> Axes:
    """Draw how many intervals cover the observed value, against the level of the intervals.

    Parameters
    ----------
    posterior : Posterior
        The posterior.
    X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
        Held-out entries.
    levels : sequence of float
        Probabilities of the intervals, in (0, 1).
    max_points : int, default 5000
        Largest number of entries that are used, taken evenly.
    ax : Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    Axes
        The fraction of intervals that cover the observed value, with two standard errors, and the
        diagonal on which it should lie. Above it the intervals are too wide, which is natural for
        data with few values.

    Raises
    ------
    ValueError
        If X has another shape or other labels than the data of the posterior, or a level is not in
        (0, 1).

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
    >>> posterior = nmd.sample(train, 3, draws=50, random_state=0)
    >>> covered = nmd.plots.calibration(posterior, test, levels=[0.5, 0.9]).lines[-1].get_ydata()
    >>> bool(0.3 < covered[0] < 0.7 < covered[1])
    True
    """
    entries, x = _entries(posterior, X, max_points)
    shares = []
    for level in levels:
        low, high = posterior.predict_interval(entries, level=level).T
        shares.append(float(np.mean((low <= x) & (x <= high))))
    share = np.array(shares)
    error = 2 * np.sqrt(share * (1 - share) / x.size)
    ax = axes(ax, 4.6, 4.4)
    ax.plot([0, 1], [0, 1], color=text_color(), linewidth=0.8)
    ax.fill_between(levels, share - error, share + error, alpha=0.25, color=Palette.negative)
    ax.plot(levels, share, "o-", color=Palette.negative, markersize=4)
    ax.set(xlabel="level of the interval", ylabel="fraction that covers the observed value")
    ax.set(xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
    return finished(ax)


def reliability(posterior: Posterior, X: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the error of the most certain held-out cells against their fraction.

    Parameters
    ----------
    posterior : Posterior
        The posterior.
    X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
        Held-out entries.
    ax : Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    Axes
        A line for numeric and ordinal cells, and one for categorical ones; the table
        `Posterior.reliability` has the errors. Where a line rises, cells of larger uncertainty have
        larger errors.

    Raises
    ------
    ValueError
        If X has another shape or other labels than the data of the posterior.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
    >>> posterior = nmd.sample(train, 3, draws=50, random_state=0)
    >>> ax = nmd.plots.reliability(posterior, test)
    >>> ax.get_xlabel()
    'fraction of the cells, most certain first'
    """
    cells = posterior.reliability(X)
    ax = axes(ax, 5, 3.6)
    labels = {"number": "numbers and levels: RMSE / spread", "class": "classes: fraction wrong"}
    for kind, of_kind in cells.groupby("kind", sort=False):
        ax.plot(of_kind["share"], of_kind["error"], label=labels[str(kind)])
    ax.set(xlabel="fraction of the cells, most certain first", ylabel="error", xlim=(0, 1))
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return finished(ax)


def _entries(posterior: Posterior, X: Any, max_points: Any) -> tuple[Entries, NDArray[np.float64]]:
    """Return some observed entries of data, and their values."""
    most = check_integer("max_points", max_points, 1)
    entries = entries_in(match_data(posterior._labels, X, owner="the posterior"))
    at = evenly(entries.i.size, most)
    return entries_at(entries.i[at], entries.j[at]), entries.values[at]
