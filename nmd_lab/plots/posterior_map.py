"""A plot of the map of uncertainty beside the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.labels import COMPONENT, Picture, picture_of
from nmd_lab.data.matching import match_data
from nmd_lab.result.entries import entries_at, positions_of
from nmd_lab.result.posterior import Posterior

from ._canvas import axes, gray_with_holes, hide_frame
from ._mosaic import Mosaic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    """Draw the reconstruction beside its standard deviation.

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
    >>> import numpy as np
    >>> from nmd_lab import plots
    >>> from nmd_lab.data.labels import labels_of
    >>> from nmd_lab.result.posterior import Posterior
    >>> W, H, rho = np.ones((1, 4, 5, 1)), np.ones((1, 4, 6, 1)), np.ones((1, 4))
    >>> posterior = Posterior.from_arrays(labels_of(np.ones((5, 6))), W, H, rho)
    >>> len(plots.uncertainty(posterior, [0, 1, 2], shape=(2, 3)).images)
    6
    """
    m, n = posterior.shape
    apart = rows is not None or shape is not None
    positions = np.arange(min(FEW_ROWS, m) if apart else m)
    if rows is not None:
        positions = positions_of(posterior.labels, "rows", rows).ravel()
    template = posterior.draws["H"].isel({"chain": 0, "draw": 0, COMPONENT: 0}, drop=True)
    picture = picture_of(template, shape) if apart else None
    panels = _panels(posterior, positions, noise)
    if X is not None:
        data = match_data(posterior.labels, X, owner="the posterior")
        panels = {"observed": data.to_rows(positions, (m, n)), **panels}

    pictures = {name: _pictures(panel, picture) for name, panel in panels.items()}
    height, width = pictures["mean"][0].shape
    mosaic = Mosaic(min(max(height / width, 0.3), 1.6))
    n_rows, n_columns = len(pictures["mean"]), len(pictures)
    across, down = mosaic.size(n_rows, n_columns)
    unit = 3.0 if n_rows == 1 else min(1.5, 9 / down)
    ax = axes(ax, unit * across + 0.2, unit * down + 0.4)
    styles = _styles(panels)
    for column, (name, images) in enumerate(pictures.items()):
        for row, image in enumerate(images):
            mosaic.draw(ax, row, column, image, **styles[name])
    mosaic.finish(ax, n_rows, n_columns)
    largest = float(np.nanmax(panels["standard deviation"]))
    titles = [name if name[0] != "s" else f"{name}, to {largest:.2g}" for name in panels]
    ax.set_xticks([mosaic.centre(0, column)[0] for column in range(n_columns)], titles)
    ax.xaxis.tick_top()
    hide_frame(ax)
    return ax


def _panels(
    posterior: Posterior, positions: NDArray[np.intp], noise: bool
) -> dict[str, NDArray[Any]]:
    """Return mean and standard deviation of some rows, as matrices."""
    n = posterior.shape[1]
    entries = entries_at(positions[:, None], np.arange(n))
    return {
        "mean": posterior.predict(entries).reshape(-1, n),
        "standard deviation": posterior.predict_std(entries, noise=noise).reshape(-1, n),
    }


def _pictures(panel: NDArray[Any], picture: Picture | None) -> list[NDArray[Any]]:
    """Return the pictures of a panel: one of each row, or one of all."""
    return [panel] if picture is None else [picture(row) for row in panel]


def _styles(panels: dict[str, NDArray[Any]]) -> dict[str, dict[str, Any]]:
    """Return colours: the same grey levels for data and mean, and another map for the spread."""
    shown = np.concatenate([panels[name].ravel() for name in panels if name[0] != "s"])
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    values = {"cmap": gray_with_holes(), "vmin": low, "vmax": high if high > low else low + 1}
    largest = float(np.nanmax(panels["standard deviation"])) or 1.0
    spread = {"cmap": "magma", "vmin": 0.0, "vmax": largest}
    return {"observed": values, "mean": values, "standard deviation": spread}
