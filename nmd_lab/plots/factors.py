"""Plots of the factors, and pictures of data with their reconstruction or uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab._runtime.checks import check_word, many
from nmd_lab.data.labels import COMPONENT, Picture, picture_of
from nmd_lab.data.matching import match_data
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import entries_at, positions_of
from nmd_lab.result.posterior import Posterior

from ._canvas import (
    Mosaic,
    Palette,
    axes,
    color_limit,
    diverging,
    gray_with_holes,
    hide_frame,
    pyplot,
    quantity,
    text_color,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Kind = Literal["images", "layers", "bars", "lines"]


MAX_BARS = 30
"""Columns of which all are shown as bars."""

AMPLITUDE = 0.45
"""Largest height of a bar or curve, as a fraction of the distance between two components."""


def components(
    fit: Decomposition,
    shape: tuple[int, int] | None = None,
    *,
    kind: Kind | None = None,
    top: int = 4,
    ax: Axes | None = None,
) -> Axes:
    """Draw each component, scaled to its largest absolute value.

    Positive values are red, negative values blue, and zero has the colour of the background. The
    labels of X choose the kind of plot, unless `kind` is given:

    - "images": each row of H as an image, if the columns of X are pixels;
    - "layers": each product of a column of W and a row of H, if X itself is one image
      (dimensions `y` and `x`);
    - "bars": the entries of each row of H as bars, with the labels of the columns;
    - "lines": each row of H as a curve, if there are many columns without text labels.

    Parameters
    ----------
    fit : Decomposition
        The fit.
    shape : (int, int), optional
        Height and width of the images. Default: from the coordinates of the columns.
    kind : {"images", "layers", "bars", "lines"}, optional
        Kind of plot. Default: from the labels of X.
    top : int, default 4
        Number of columns shown as bars for each component, those of largest absolute value.
        Without effect for 30 columns or fewer, which are all shown.
    ax : Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    Axes
        All components side by side, or one below the other as curves.

    Raises
    ------
    ValueError
        If `shape` does not hold the columns, if `kind` is unknown, or if it is "images" without
        a shape from the argument or the labels.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from nmd_lab import datasets, plots
    >>> fit = nmd.decompose(datasets.digits(100), 6, max_iter=20)
    >>> len(plots.components(fit).images)
    6
    """
    row = fit.H.isel({COMPONENT: 0}, drop=True)
    picture = picture_of(row, shape)
    kind = kind or _kind(fit, row, picture)
    check_word("kind", kind, get_args(Kind))
    if kind == "layers":
        W, H = fit._factors
        layers = (W[:, k, None] * H[None, k] for k in range(fit.rank))
        return _tiles(fit, layers, fit._shape, ax)
    if kind == "images":
        if picture is None:
            raise ValueError("shape=None leaves open what the images are: give (height, width).")
        return _tiles(fit, map(picture, fit._factors[1]), picture.shape, ax)
    if kind == "bars":
        return _bars(fit, row, top, ax)
    return _lines(fit, row, ax)


def _kind(fit: Decomposition, row: xr.DataArray, picture: Picture | None) -> Kind:
    """Return the kind of plot that suits the labels of a row of H."""
    if picture is not None:
        return "images"
    if fit.W.dims[:-1] == ("y",) and row.dims == ("x",):
        return "layers"
    index = row.coords.get(row.dims[0]) if row.ndim == 1 else None
    has_text_labels = index is not None and index.dtype.kind not in "iufmM"
    return "bars" if has_text_labels or row.size <= MAX_BARS else "lines"


def _tiles(fit: Decomposition, pictures: Any, shape: tuple[int, int], ax: Axes | None) -> Axes:
    """Draw pictures in a grid about twice as wide as high, with few empty cells."""
    rank, mosaic = fit.rank, Mosaic(shape[0] / shape[1])
    ideal = math.sqrt(2 * rank * mosaic.height)
    columns = min(range(1, rank + 1), key=lambda c: -rank % c / c + abs(math.log(c / ideal)))
    rows = math.ceil(rank / columns)
    unit = min(1.5, 9 / columns)
    width, height = mosaic.size(rows, columns)
    ax = axes(ax, unit * width, unit * height + 0.35)
    colors = diverging(ax)
    for k, picture in enumerate(pictures):
        row, column = divmod(k, columns)
        limit = float(np.nanmax(np.abs(picture))) or 1.0
        image = mosaic.draw(ax, row, column, picture, cmap=colors, vmin=-limit, vmax=limit)
        style: dict[str, Any] = {"va": "top", "fontsize": 8, "alpha": 0.7}  # in its upper corner
        ax.annotate(str(k), (0, 1), (3, -3), image, textcoords="offset points", **style)
    mosaic.finish(ax, rows, columns)
    kind = "layers W H" if shape == fit._shape else "components H"
    ax.set_title(f"{rank} {kind}, {fit.nonlinearity}")
    return ax


def _bars(fit: Decomposition, row: xr.DataArray, top: int, ax: Axes | None) -> Axes:
    """Draw the rows of H as bars side by side, with the labels of the columns at the left."""
    H = fit._factors[1]
    limits = np.abs(H).max(axis=1)
    scaled = H / np.where(limits > 0, limits, 1)[:, None]
    shown = np.arange(H.shape[1])
    if len(shown) > MAX_BARS:
        ranking = np.argsort(-np.abs(scaled), axis=1)[:, :top]
        shown = np.array(list(dict.fromkeys(ranking.ravel().tolist())))
    ax = axes(ax, min(11.0, 2.5 + 1.1 * fit.rank), 0.8 + 0.22 * len(shown))
    for k in range(fit.rank):
        values = AMPLITUDE * scaled[k, shown]
        ax.axvline(k, color=text_color(), linewidth=0.6, alpha=0.6)
        colors = [Palette.positive if value > 0 else Palette.negative for value in values]
        ax.barh(np.arange(len(shown)), values, left=k, height=0.75, color=colors)
    ax.set(
        xticks=range(fit.rank),
        xlabel=COMPONENT,
        xlim=(-0.55, fit.rank - 0.45),
        yticks=range(len(shown)),
        yticklabels=_column_labels(fit)[shown],
        ylim=(len(shown) - 0.4, -0.6),
        ylabel=", ".join(map(str, row.dims)),
        title=f"{many(fit.rank, 'component')} H, {fit.nonlinearity}",
    )
    hide_frame(ax)
    ax.grid(axis="y", alpha=0.2)
    ax.set_axisbelow(True)
    return ax


def _lines(fit: Decomposition, row: xr.DataArray, ax: Axes | None) -> Axes:
    """Draw the rows of H as curves, the first one at the top."""
    H = fit._factors[1]
    ax = axes(ax, 7.5, 1.0 + 0.6 * fit.rank)
    index = row.coords.get(row.dims[0]) if row.ndim == 1 else None
    x = np.arange(H.shape[1]) if index is None else index.values
    for k, values in enumerate(H):
        limit = float(np.abs(values).max()) or 1.0
        ax.axhline(k, color=text_color(), linewidth=0.5, alpha=0.4)
        ax.plot(x, k - AMPLITUDE * values / limit, linewidth=1.2)
    units = "" if index is None else index.attrs.get("units", "")
    ax.set(
        yticks=range(fit.rank),
        ylabel=COMPONENT,
        ylim=(fit.rank - 0.4, -0.6),
        xlabel=f"{', '.join(map(str, row.dims))}{f' [{units}]' if units else ''}",
        title=f"{many(fit.rank, 'component')} H, {fit.nonlinearity}",
    )
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _column_labels(fit: Decomposition) -> NDArray[Any]:
    """Return the label of each column as text, or its position if it has none."""
    each = fit._labels.flat(fit._labels.columns)
    labels = (", ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in each)
    # At most 34 letters fit beside the bars.
    short = [x if len(x) <= 34 else f"{x[:32]} …" for x in labels]
    return np.array(short, dtype=object)


def scatter(
    fit: Decomposition,
    x: int = 0,
    y: int = 1,
    *,
    labels: str | ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each row of X as a point: its weights W on two components.

    Parameters
    ----------
    fit : Decomposition
        The fit.
    x, y : int, default 0 and 1
        Components on the horizontal and the vertical axis, counted from 0.
    labels : str or array_like (m,), optional
        Values that colour the points: the name of a coordinate of the rows, or one value for each
        row. Text and up to ten distinct integers get a legend, other numbers a colour bar.
    ax : Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    Axes
        The points, in one collection for each entry of the legend.

    Raises
    ------
    ValueError
        If a component or a coordinate does not exist, or if `labels` has the wrong length.

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
    W = fit._factors[0]
    ax = axes(ax, 6.4, 5.2)
    for draw_zero_line in (ax.axhline, ax.axvline):
        draw_zero_line(0, color=text_color(), linewidth=0.6, alpha=0.4, zorder=0)
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
    ax.set_title(f"{', '.join(map(str, fit.W.dims[:-1]))}: weights W, {fit.nonlinearity}")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _row_values(fit: Decomposition, labels: str | ArrayLike) -> tuple[str, NDArray[Any]]:
    """Return the name of the row labels and the label of each row."""
    if isinstance(labels, str):
        weights = fit.W.isel({COMPONENT: 0}, drop=True)
        if labels not in weights.coords:
            names = [str(name) for name in weights.coords]
            raise ValueError(f"labels={labels!r} is no coordinate of the rows: there are {names}.")
        coordinate = weights.coords[labels]
        by_row = coordinate.broadcast_like(weights).transpose(*weights.dims)
        return quantity(coordinate, labels), np.ravel(by_row.values)
    values = np.ravel(np.asarray(labels))
    if len(values) != fit._shape[0]:
        raise ValueError(
            f"labels has {many(len(values), 'value')}: give one for each of {fit._shape[0]} rows."
        )
    return str(getattr(labels, "name", "") or ""), values


def reconstruction(
    fit: Decomposition,
    X: Any,
    rows: Any = None,
    *,
    shape: tuple[int, int] | None = None,
    observed: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the original data, the observed entries, the reconstruction and the residual.

    Parameters
    ----------
    fit : Decomposition
        The fit.
    X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
        The data, if possible with the true values of the missing entries.
    rows : label, int or array_like, optional
        Labels or positions of the rows to draw, as for `predict`. Default: all as one image.
    shape : (int, int), optional
        Height and width of the image of one row. Default: from the coordinates of the columns.
    observed : array_like of bool, optional
        True where the fit used X. Default: all entries that are not NaN.
    ax : Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    Axes
        For each row the images "original" (left out if equal to "observed"), "observed",
        "reconstruction" and "residual". The first three have the same grey levels, and missing
        entries are blue. The residual is original minus reconstruction, red if positive. Rows
        without a shape make one image together.

    Raises
    ------
    ValueError
        If X has another shape or other labels than the data of the fit, or if `shape` does not
        hold the columns.
    KeyError, IndexError
        If a row does not exist.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from nmd_lab import datasets, plots
    >>> X = datasets.digits(100)
    >>> ax = plots.reconstruction(nmd.decompose(X, 6, max_iter=20), X, rows=[0, 1])
    >>> len(ax.images)  # observed, reconstruction and residual of two digits
    6
    """
    (m, n), positions = fit._shape, np.arange(fit._shape[0])
    if rows is not None:
        positions = positions_of(fit._labels, "rows", rows).ravel()
    data = match_data(fit._labels, X)
    if rows is None and data.observations.pattern is not None and m * n > 25_000_000:
        raise ValueError(
            f"X is sparse and has {m} x {n} entries, too many for one image: choose rows=."
        )
    original = seen = data.to_rows(positions, (m, n))
    if observed is not None:
        data = match_data(fit._labels, X, observed=observed)
        seen = data.to_rows(positions, (m, n))
    model, values = fit._fitted.block(positions), data.observations.observed()[0]
    panels = {"observed": seen, "reconstruction": model, "residual": original - model}
    if np.any(np.isnan(seen) & ~np.isnan(original)):
        panels = {"original": original, **panels}

    picture = None if rows is None else picture_of(fit.H.isel({COMPONENT: 0}, drop=True), shape)
    limit, most = color_limit(panels["residual"]), color_limit(values)
    low, high = float(values.min()), float(values.max())
    of_data = _grey_style(low, high) if low >= 0 else {"vmin": -most, "vmax": most}
    styles = dict.fromkeys(panels, of_data) | {"residual": {"vmin": -limit, "vmax": limit}}
    names = [] if rows is None else [_row_label(fit, row) for row in positions.tolist()]
    return _draw(ax, panels, picture, styles, {"residual": f"residual, ±{limit:.2g}"}, names)


def _draw(
    ax: Axes | None,
    panels: dict[str, NDArray[Any]],
    picture: Picture | None,
    styles: dict[str, dict[str, Any]],
    titles: dict[str, str],
    names: Sequence[str] = (),
) -> Axes:
    """Draw matrices side by side, or each of their rows as a picture, below titles or else names.

    A style without a colour map has that of two signs.  The rows may have names, too.
    """
    columns = [
        [panel] if picture is None else [picture(row) for row in panel] for panel in panels.values()
    ]
    down, across, (height, width) = len(columns[0]), len(columns), columns[0][0].shape
    ratio = height / width
    if names and picture is None:
        ratio = max(ratio, 0.06 * height)  # room for the name of each row
    mosaic = Mosaic(min(max(ratio, 0.3), 1.6))  # neither too flat nor too high
    size = mosaic.size(down, across)
    unit = min(3.0, 11 / across) if down == 1 else min(1.5, 9 / size[1])  # in inches
    margin = 0.9 if down > 1 else 0.1
    ax = axes(ax, unit * size[0] + margin, unit * size[1] + 0.4)
    for column, (name, images) in enumerate(zip(panels, columns, strict=True)):
        style = {"cmap": diverging(ax)} | styles[name]
        for row, image in enumerate(images):
            mosaic.draw(ax, row, column, image, **style)
    mosaic.finish(ax, down, across)
    centres = [mosaic.centre(0, column)[0] for column in range(across)]
    ax.set_xticks(centres, [titles.get(name, name) for name in panels])
    ax.xaxis.tick_top()
    if names:
        places = (np.arange(len(names)) + 0.5) * (mosaic.height / len(names))
        heights = [mosaic.centre(row, 0)[1] for row in range(down)]
        ax.set_yticks(places if picture is None else heights, names)
    return ax


def _grey_style(low: float, high: float) -> dict[str, Any]:
    """Return grey levels between two values."""
    return {"cmap": gray_with_holes(), "vmin": low, "vmax": high if high > low else low + 1}


def _row_label(fit: Decomposition, row: int) -> str:
    """Return the label of a row: up to two of its coordinates, or else its position."""
    weights = fit.W.isel({COMPONENT: 0}, drop=True)
    position = dict(zip(weights.dims, np.unravel_index(row, weights.shape), strict=True))
    one_row = weights.isel({dim: int(i) for dim, i in position.items()})
    others = [name for name in one_row.coords if name not in weights.dims]
    names = others or [name for name in weights.dims if name in one_row.coords]
    if names:
        return ", ".join(f"{name} {one_row.coords[name].item()}" for name in names[:2])
    return ", ".join(f"{dim} {i}" for dim, i in position.items())


def uncertainty(
    posterior: Posterior,
    rows: Any = None,
    *,
    X: Any = None,
    shape: tuple[int, int] | None = None,
    noise: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the reconstruction with its standard deviation.

    Parameters
    ----------
    posterior : Posterior
        The posterior.
    rows : label, int or array_like, optional
        Labels or positions of the rows to draw, as for `predict`. Default: all as one image; the
        first four with `shape`.
    X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations, optional
        Data that are drawn too, on the left; missing entries are blue.
    shape : (int, int), optional
        Height and width of the image of one row. Default: from the coordinates of the columns.
    noise : bool, default False
        Whether the noise of an observation counts.
    ax : Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    Axes
        For each row the images "observed" (with X), "mean" and "standard deviation". The last one
        is dark where the posterior is sure; its largest value is in its title.

    Raises
    ------
    ValueError
        If `shape` does not hold the columns, or X does not suit the posterior.
    KeyError, IndexError
        If a row does not exist.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(50)
    >>> train, test = nmd.split_observed(digits, 0.3, random_state=0)
    >>> posterior = nmd.sample(train, 8, "minmax", draws=50, random_state=0)
    >>> len(nmd.plots.uncertainty(posterior, [0, 1, 2], shape=(8, 8)).images)
    6
    """
    m, n = posterior._shape
    apart = rows is not None or shape is not None
    positions = np.arange(min(4, m) if apart else m)  # four rows if each is a picture
    if rows is not None:
        positions = positions_of(posterior._labels, "rows", rows).ravel()
    template = posterior.draws["H"].isel({"chain": 0, "draw": 0, COMPONENT: 0}, drop=True)
    picture = picture_of(template, shape) if apart else None
    entries = entries_at(positions[:, None], np.arange(n))
    mean = posterior.predict(entries).reshape(-1, n)
    spread = posterior.predict_std(entries, noise=noise).reshape(-1, n)
    panels = {"mean": mean, "standard deviation": spread}
    if X is not None:
        data = match_data(posterior._labels, X, owner="the posterior")
        panels = {"observed": data.to_rows(positions, (m, n)), **panels}

    # the same grey levels for data and mean, and another map for the spread
    values = np.stack([panels.get("observed", mean), mean])
    low, high, largest = map(float, (np.nanmin(values), np.nanmax(values), np.nanmax(spread)))
    of_spread = {"cmap": "magma", "vmin": 0.0, "vmax": largest or 1.0}
    styles = dict.fromkeys(panels, _grey_style(low, high)) | {"standard deviation": of_spread}
    title = f"standard deviation, to {largest:.2g}"
    return _draw(ax, panels, picture, styles, {"standard deviation": title})
