"""A plot of f with the data: observed values against WH, and f as a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_integer
from nmd_lab.data.matching import match_data, plain_label
from nmd_lab.model.kind import Kind
from nmd_lab.model.model import make_model
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import positions_of
from nmd_lab.result.posterior import Posterior

from ._canvas import Palette, finished, panels_of, text_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 12
"""Largest number of columns that are drawn without being asked for."""

ACROSS = 4
"""Largest number of panels side by side."""

GRID = 400
"""Number of values of WH at which f is drawn."""


class _Panel(NamedTuple):
    """What a panel shows.

    Attributes
    ----------
    title : str
        Name of the column; that of f if all entries share the panel.
    kind : Kind
        f, with the units of WH.
    column : int or None
        Position of the column; None for all.
    """

    title: str
    kind: Kind
    column: int | None


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
        The fit, or the posterior, of which the mean of WH over the draws is taken.
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
    >>> import numpy as np, nmd_lab as nmd
    >>> rng = np.random.default_rng(0)
    >>> income = np.exp(rng.normal(size=(60, 2)) @ rng.normal(size=(2, 20)) / 3)
    >>> fit = nmd.decompose(income, 2, "monotone", random_state=0, max_iter=40)
    >>> (ax,) = nmd.plots.nonlinearity(fit, income)
    >>> ax.get_title()
    'Monotone(20 knots)'
    """
    most = check_integer("max_points", max_points, 1)
    owner = "the posterior" if isinstance(result, Posterior) else "the fit"
    data = match_data(result._labels, X, owner=owner)
    i, j, x = data.observations.entries()
    i, j = data.rows[i], data.columns[j]
    panels = _panels(result, columns)
    across = min(len(panels), ACROSS)
    down = -(-len(panels) // across)
    size = (4.6, 3.6) if len(panels) == 1 else (3 * across, 2.6 * down)
    drawn = panels_of(ax, down, across, size, len(panels))
    for panel, here in zip(panels, drawn, strict=True):
        at = np.arange(x.size) if panel.column is None else np.flatnonzero(j == panel.column)
        at = at[np.unique(np.linspace(0, at.size - 1, min(most, at.size)).astype(int))]
        t = panel.kind.centre + panel.kind.size * _linear(result, i[at], j[at])
        here.plot(t, x[at], ".", color=Palette.negative, alpha=0.35, markersize=4)
        if at.size:
            grid = np.linspace(t.min(), t.max(), GRID)
            here.plot(grid, panel.kind.nonlinearity(grid), color=text_color(), linewidth=1.8)
        here.set_title(panel.title, fontsize="large" if len(panels) == 1 else "small")
        finished(here).set(xlabel="WH", ylabel="X")
    return drawn


def _panels(result: Decomposition | Posterior, columns: Any) -> list[_Panel]:
    """Return what each panel shows."""
    f, loss = result.nonlinearity, result.loss
    model = result._kinds or make_model(cast(Any, f), cast(Any, loss))
    names = list(result._labels.flat(result._labels.columns))
    if model.which is None:
        if columns is None:
            return [_Panel(str(f), model.only, None)]
        kinds = [model.only] * len(names)
    elif model.which.ndim == 1:
        kinds = [model.kinds[k] for k in model.which]
    else:
        raise ValueError(
            "result has an f for each entry: fit with one f for each column, or for all entries."
        )
    if columns is None:
        chosen = [k for k, kind in enumerate(kinds) if not kind.nonlinearity.linear]
        chosen = chosen[:MOST_PANELS]
    else:
        chosen = np.atleast_1d(positions_of(result._labels, "columns", columns)).tolist()
    if not chosen:
        raise ValueError("Every column has the identity, a straight line: give columns= to see it.")
    return [_Panel(str(plain_label(names[k])), kinds[k], k) for k in chosen]


def _linear(
    result: Decomposition | Posterior, i: NDArray[np.intp], j: NDArray[np.intp]
) -> NDArray[Any]:
    """Return WH plus offsets at entries."""
    if isinstance(result, Posterior):
        return np.asarray(result._linear_at(i, j).mean(axis=0))
    return result._fitted.linear_at(i, j)
