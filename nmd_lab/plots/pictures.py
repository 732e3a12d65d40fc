"""Pictures of data with their reconstruction, or with the uncertainty of a posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmd_lab.data.labels import COMPONENT, Picture, picture_of
from nmd_lab.data.matching import match_data
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import entries_at, positions_of
from nmd_lab.result.posterior import Posterior

from ._canvas import Mosaic, axes, color_limit, diverging, gray_with_holes, hide_frame, rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        Labels or positions of the rows to draw, as for `predict`. Default: all as one picture.
    shape : (int, int), optional
        Height and width of the picture of one row. Default: from the coordinates of the columns.
    observed : array_like of bool, optional
        True where the fit used X. Default: all entries that are not NaN.
    ax : Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    Axes
        For each row the pictures "original" (left out if equal to "observed"), "observed",
        "reconstruction" and "residual". The first three have the same grey levels, and missing
        entries are blue. The residual is original minus reconstruction, red if positive. Rows
        without a shape make one picture together.

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
    positions = None if rows is None else positions_of(fit._labels, "rows", rows).ravel().tolist()
    original, values = rows_of(fit, X, positions)
    seen = original
    if observed is not None:
        seen, values = rows_of(fit, X, positions, observed)
    model = fit._fitted.block(slice(None) if positions is None else positions)
    panels = {"observed": seen, "reconstruction": model, "residual": original - model}
    if np.any(np.isnan(seen) & ~np.isnan(original)):
        panels = {"original": original, **panels}

    picture = None if rows is None else picture_of(fit.H.isel({COMPONENT: 0}, drop=True), shape)
    pictures = {name: _pictures(panel, picture) for name, panel in panels.items()}
    n_rows = len(pictures["residual"])
    size = pictures["residual"][0].shape
    mosaic = _mosaic(size, rows_are_labelled=rows is not None and picture is None)
    ax = axes(ax, *_figure_size(mosaic, n_rows, len(panels)))
    limit = color_limit(panels["residual"])
    styles = dict.fromkeys(panels, _data_style(ax, values)) | {"residual": _signed_style(ax, limit)}
    _draw(ax, mosaic, pictures, styles, {"residual": f"residual, ±{limit:.2g}"})
    if positions is not None:
        if picture is not None:
            heights = [mosaic.centre(row, 0)[1] for row in range(n_rows)]
        else:
            places = (np.arange(len(positions)) + 0.5) / len(positions)
            heights = (places * mosaic.height).tolist()
        ax.set_yticks(heights, [_row_label(fit, position) for position in positions])
    return ax


def _pictures(panel: NDArray[Any], picture: Picture | None) -> list[NDArray[Any]]:
    """Return the pictures of a panel: one of each row, or one of all."""
    return [panel] if picture is None else [picture(row) for row in panel]


def _draw(
    ax: Axes,
    mosaic: Mosaic,
    pictures: dict[str, list[NDArray[Any]]],
    styles: dict[str, dict[str, Any]],
    titles: dict[str, str],
) -> None:
    """Draw columns of pictures, each with its style, below titles, or else their names."""
    for column, (name, images) in enumerate(pictures.items()):
        for row, image in enumerate(images):
            mosaic.draw(ax, row, column, image, **styles[name])
    mosaic.finish(ax, len(images), len(pictures))
    centres = [mosaic.centre(0, column)[0] for column in range(len(pictures))]
    ax.set_xticks(centres, [titles.get(name, name) for name in pictures])
    ax.xaxis.tick_top()
    hide_frame(ax)


def _mosaic(shape: tuple[int, ...], rows_are_labelled: bool = False) -> Mosaic:
    """Return a mosaic for pictures of this shape that is neither too flat nor too high."""
    ratio = shape[0] / shape[1]
    if rows_are_labelled:
        ratio = max(ratio, 0.06 * shape[0])  # room for a label beside each row of the picture
    return Mosaic(min(max(ratio, 0.3), 1.6))


def _figure_size(mosaic: Mosaic, rows: int, columns: int) -> tuple[float, float]:
    """Return width and height in inches of a figure for a mosaic."""
    width, height = mosaic.size(rows, columns)
    unit = min(3.0, 11 / columns) if rows == 1 else min(1.5, 9 / height)
    margin = 0.9 if rows > 1 else 0.1
    return unit * width + margin, unit * height + 0.4


def _data_style(ax: Axes, values: NDArray[np.floating]) -> dict[str, Any]:
    """Return grey levels for nonnegative data, and else colours around zero."""
    low, high = float(values.min()), float(values.max())
    if low < 0:
        return _signed_style(ax, color_limit(values))
    return _grey_style(low, high)


def _grey_style(low: float, high: float) -> dict[str, Any]:
    """Return grey levels between two values."""
    return {"cmap": gray_with_holes(), "vmin": low, "vmax": high if high > low else low + 1}


def _signed_style(ax: Axes, limit: float) -> dict[str, Any]:
    """Return blue and red on both sides of zero."""
    return {"cmap": diverging(ax), "vmin": -limit, "vmax": limit}


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


FEW_ROWS = 4
"""Number of rows that are drawn if each is a picture and none is chosen."""


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
        Labels or positions of the rows to draw, as for `predict`. Default: all as one picture; the
        first four with `shape`.
    X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations, optional
        Data that are drawn too, on the left; missing entries are blue.
    shape : (int, int), optional
        Height and width of the picture of one row. Default: from the coordinates of the columns.
    noise : bool, default False
        Whether the noise of an observation counts.
    ax : Axes, optional
        Axes to draw on. Default: those of a new figure.

    Returns
    -------
    Axes
        For each row the pictures "observed" (with X), "mean" and "standard deviation". The last one
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
    positions = np.arange(min(FEW_ROWS, m) if apart else m)
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

    pictures = {name: _pictures(panel, picture) for name, panel in panels.items()}
    mosaic = _mosaic(pictures["mean"][0].shape)
    ax = axes(ax, *_figure_size(mosaic, len(pictures["mean"]), len(pictures)))
    # the same grey levels for data and mean, and another map for the spread
    values = np.stack([panels.get("observed", mean), mean])
    low, high, largest = map(float, (np.nanmin(values), np.nanmax(values), np.nanmax(spread)))
    of_spread = {"cmap": "magma", "vmin": 0.0, "vmax": largest or 1.0}
    styles = dict.fromkeys(panels, _grey_style(low, high)) | {"standard deviation": of_spread}
    title = f"standard deviation, to {largest:.2g}"
    _draw(ax, mosaic, pictures, styles, {"standard deviation": title})
    return ax
