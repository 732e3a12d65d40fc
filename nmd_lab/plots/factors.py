"""What the components are, and where the rows lie among them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab.data.labels import COMPONENT
from nmd_lab.result.decomposition import Decomposition

from ._canvas import NEGATIVE, POSITIVE, axes, bare, diverging, pyplot, text_color
from ._layout import GAP, Mosaic, Picture, picture_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["images", "layers", "bars", "lines"]

MOST_BARS = 30
"""Columns that are still readable as bars side by side."""


def components(
    fit: Decomposition,
    shape: tuple[int, int] | None = None,
    *,
    kind: Kind | None = None,
    top: int = 4,
    ax: Axes | None = None,
) -> Axes:
    """Draw each component, scaled to its own largest absolute value.

    Red is positive, blue negative and the background zero.  What a component looks like follows
    from the labels, unless `kind` says it:

    - "images": the rows of H as pictures, where the columns of X are pixels;
    - "layers": the products of a column of W and its row of H, where X itself is one picture
      (dimensions `y` and `x`);
    - "bars": the entries of the rows of H beside the labels of the columns;
    - "lines": the rows of H as curves, where many columns have no labels or numbers.

    Parameters
    ----------
    fit : Decomposition
        The fit.
    shape : (int, int), optional
        Height and width of the images; by default from the coordinates of the columns.
    kind : {"images", "layers", "bars", "lines"}, optional
        See above.
    top : int, default 4
        Of more than 30 columns, the bars show those that are among the `top` largest of some
        component.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        All components side by side, or below one another as curves.

    Raises
    ------
    ValueError
        If the shape does not hold the columns, or images are wanted and no shape is known.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from nmd_lab import datasets, plots
    >>> fit = nmd.decompose(datasets.digits(100), 6, max_iter=20)
    >>> len(plots.components(fit).images)
    6
    """
    one = fit.H.isel({COMPONENT: 0}, drop=True)
    picture = picture_of(one, shape)
    kind = kind or _kind(fit, one, picture)
    if kind == "layers":
        W, H = fit.factors
        layers = (W[:, k, None] * H[None, k] for k in range(fit.rank))
        return _tiles(fit, layers, fit.shape, ax)
    if kind == "images":
        if picture is None:
            raise ValueError("shape=None leaves open what the images are: give (height, width).")
        return _tiles(fit, map(picture, fit.factors[1]), picture.shape, ax)
    if kind == "bars":
        return _bars(fit, one, top, ax)
    if kind == "lines":
        return _lines(fit, one, ax)
    raise ValueError(f"kind={kind!r} is unknown: choose 'images', 'layers', 'bars' or 'lines'.")


def _kind(fit: Decomposition, one: xr.DataArray, picture: Picture | None) -> Kind:
    """Return how components are drawn when only the labels say it."""
    if picture is not None:
        return "images"
    if fit.W.dims[:-1] == ("y",) and one.dims == ("x",):
        return "layers"
    index = one.coords.get(one.dims[0]) if one.ndim == 1 else None
    words = index is not None and index.dtype.kind not in "iufmM"
    return "bars" if words or one.size <= MOST_BARS else "lines"


def _tiles(fit: Decomposition, pictures: Any, shape: tuple[int, int], ax: Axes | None) -> Axes:
    """Draw pictures in a grid that is about twice as wide as high and has few empty places."""
    rank, ratio = fit.rank, shape[0] / shape[1]
    wanted = math.sqrt(2 * rank * ratio)
    columns = min(range(1, rank + 1), key=lambda c: -rank % c / c + abs(math.log(c / wanted)))
    rows = math.ceil(rank / columns)
    unit = min(1.5, 9 / columns)
    ax = axes(ax, unit * columns * (1 + GAP), unit * rows * (ratio + GAP) + 0.35)
    mosaic = Mosaic(ax, shape)
    colors = diverging(ax)
    for k, picture in enumerate(pictures):
        row, column = divmod(k, columns)
        limit = float(np.nanmax(np.abs(picture))) or 1.0
        mosaic.draw(row, column, picture, cmap=colors, vmin=-limit, vmax=limit)
        x, y = mosaic.centre(row, column)
        corner = (x - 0.5, y - ratio / 2)
        ax.annotate(str(k), corner, (3, -3), textcoords="offset points", va="top", fontsize=8,
                    alpha=0.7)  # fmt: skip
    mosaic.finish(rows, columns)
    bare(ax)
    kind = "layers W H" if shape == fit.shape else "components H"
    ax.set_title(f"{rank} {kind}, {fit.nonlinearity!r}")
    return ax


def _bars(fit: Decomposition, one: xr.DataArray, top: int, ax: Axes | None) -> Axes:
    """Draw the rows of H as bars side by side, with one list of labels."""
    H = fit.factors[1]
    limits = np.abs(H).max(axis=1)
    scaled = H / np.where(limits > 0, limits, 1)[:, None]
    shown = np.arange(H.shape[1])
    if len(shown) > MOST_BARS:
        ranking = np.argsort(-np.abs(scaled), axis=1)[:, :top]
        shown = np.array(list(dict.fromkeys(ranking.ravel().tolist())))
    ax = axes(ax, min(11.0, 2.5 + 1.1 * fit.rank), 0.8 + 0.22 * len(shown))
    for k in range(fit.rank):
        values = 0.45 * scaled[k, shown]
        ax.axvline(k, color=text_color(), linewidth=0.6, alpha=0.6)
        colors = [POSITIVE if value > 0 else NEGATIVE for value in values]
        ax.barh(np.arange(len(shown)), values, left=k, height=0.75, color=colors)
    ax.set(
        xticks=range(fit.rank),
        xlabel=COMPONENT,
        xlim=(-0.55, fit.rank - 0.45),
        yticks=range(len(shown)),
        yticklabels=column_labels(one)[shown],
        ylim=(len(shown) - 0.4, -0.6),
        ylabel=", ".join(map(str, one.dims)),
        title=f"{fit.rank} components H, {fit.nonlinearity!r}",
    )
    ax.grid(axis="y", alpha=0.2)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def _lines(fit: Decomposition, one: xr.DataArray, ax: Axes | None) -> Axes:
    """Draw the rows of H as curves, the first at the top."""
    H = fit.factors[1]
    ax = axes(ax, 7.5, 1.0 + 0.6 * fit.rank)
    index = one.coords.get(one.dims[0]) if one.ndim == 1 else None
    place = np.arange(H.shape[1]) if index is None else index.values
    for k, row in enumerate(H):
        limit = float(np.abs(row).max()) or 1.0
        ax.axhline(k, color=text_color(), linewidth=0.5, alpha=0.4)
        ax.plot(place, k - 0.45 * row / limit, linewidth=1.2)
    units = "" if index is None else index.attrs.get("units", "")
    ax.set(
        yticks=range(fit.rank),
        ylabel=COMPONENT,
        ylim=(fit.rank - 0.4, -0.6),
        xlabel=f"{', '.join(map(str, one.dims))}{f' [{units}]' if units else ''}",
        title=f"{fit.rank} components H, {fit.nonlinearity!r}",
    )
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def column_labels(one: xr.DataArray) -> NDArray[Any]:
    """Return a word for each column, by its label or else its position."""
    flat = one.stack(_all=one.dims) if one.ndim > 1 else one
    index = flat.coords.get(flat.dims[0])
    if index is None:
        return np.array([str(i) for i in range(flat.size)], dtype=object)
    words = (", ".join(map(str, w)) if isinstance(w, tuple) else str(w) for w in index.values)
    return np.array([w if len(w) <= 34 else f"{w[:32]} …" for w in words], dtype=object)


def scatter(
    fit: Decomposition,
    x: int = 0,
    y: int = 1,
    *,
    labels: str | ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the rows of X as points, by their weights on two components.

    Parameters
    ----------
    fit : Decomposition
        The fit.
    x, y : int, default 0 and 1
        The components across and up, counted from 0.
    labels : str or array_like (m,), optional
        What colours the points: a coordinate of the rows by name, or one value for each row.
        Words and up to ten whole numbers get a legend, other numbers a colour bar.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        With one set of points for each group.

    Raises
    ------
    ValueError
        If a component or a coordinate does not exist, or labels have the wrong length.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from nmd_lab import datasets, plots
    >>> fit = nmd.decompose(datasets.digits(100), 5, max_iter=20)
    >>> plots.scatter(fit, 0, 1, labels="digit").get_xlabel()
    'component 0'
    """
    for name, component in (("x", x), ("y", y)):
        if not -fit.rank <= component < fit.rank:
            raise ValueError(f"{name}={component} is no component: there are {fit.rank}.")
    W = fit.factors[0]
    ax = axes(ax, 6.4, 5.2)
    for line in (ax.axhline, ax.axvline):
        line(0, color=text_color(), linewidth=0.6, alpha=0.4, zorder=0)
    style: dict[str, Any] = {"s": 16, "alpha": 0.85, "linewidths": 0}
    if labels is None:
        ax.scatter(W[:, x], W[:, y], **style)
    else:
        name, values = _row_values(fit, labels)
        groups = np.unique(values)
        if (values.dtype.kind in "iub" and len(groups) <= 10) or values.dtype.kind in "OUST":
            colors = pyplot().get_cmap("tab10" if len(groups) <= 10 else "tab20")
            for index, group in enumerate(groups):
                member = values == group
                color = colors(index % colors.N)
                ax.scatter(W[member, x], W[member, y], color=color, label=str(group), **style)
            ax.legend(title=name, frameon=False, markerscale=1.6, loc="upper left",
                      bbox_to_anchor=(1.0, 1.0))  # fmt: skip
        else:
            points = ax.scatter(W[:, x], W[:, y], c=values, cmap="viridis", **style)
            ax.figure.colorbar(points, ax=ax, label=name)
    ax.set(xlabel=f"component {x}", ylabel=f"component {y}")
    ax.set_title(f"{', '.join(map(str, fit.W.dims[:-1]))}: weights W, {fit.nonlinearity!r}")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _row_values(fit: Decomposition, labels: str | ArrayLike) -> tuple[str, NDArray[Any]]:
    """Return what the points are coloured by, and its name."""
    if isinstance(labels, str):
        one = fit.W.isel({COMPONENT: 0}, drop=True)
        if labels not in one.coords:
            known = [str(name) for name in one.coords]
            raise ValueError(f"labels={labels!r} is no coordinate of the rows: there are {known}.")
        coordinate = one.coords[labels]
        units = coordinate.attrs.get("units")
        name = f"{labels} [{units}]" if units else labels
        return name, np.ravel(coordinate.broadcast_like(one).transpose(*one.dims).values)
    values = np.ravel(np.asarray(labels))
    if len(values) != fit.shape[0]:
        raise ValueError(
            f"labels has {len(values)} values: give one for each of {fit.shape[0]} rows."
        )
    return str(getattr(labels, "name", "") or ""), values
