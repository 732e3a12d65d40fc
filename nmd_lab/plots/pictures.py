"""Data beside their model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmd_lab.data.labels import COMPONENT
from nmd_lab.result.decomposition import Decomposition

from ._canvas import axes, bare, diverging, gray_with_holes, matrix_of, spread
from ._layout import GAP, Mosaic, picture_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def reconstruction(
    fit: Decomposition,
    X: Any,
    rows: Sequence[int] | None = None,
    *,
    shape: tuple[int, int] | None = None,
    mask: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the original, what was observed of it, the reconstruction and the residual.

    Parameters
    ----------
    fit : Decomposition
        The fit.
    X : array_like (m, n)
        The data, with the values under the holes where they are known.
    rows : sequence of int, optional
        Rows of X to draw, counted from 0; by default all of X as one picture.
    shape : (int, int), optional
        Height and width of the picture that a row makes; by default from the coordinates of the
        columns.
    mask : array_like of bool (m, n), optional
        True where the fit saw X; by default it saw all that is not NaN.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        One line of pictures for each row: "original" (left out if it is the observed),
        "observed" with holes in blue, "reconstruction", all three in the same grey levels, and
        "residual", original minus reconstruction, red where the original is larger.

    Raises
    ------
    ValueError
        If X has another shape than the fit, or the shape does not hold the columns.
    IndexError
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
    original = matrix_of(fit, X)
    observed = original if mask is None else matrix_of(fit, X, mask)
    model = fit.labels.flatten(fit.reconstruct().values)
    panels = {"observed": observed, "reconstruction": model, "residual": original - model}
    if np.any(np.isnan(observed) & ~np.isnan(original)):
        panels = {"original": original, **panels}

    one = fit.H.isel({COMPONENT: 0}, drop=True)
    picture = picture_of(one, shape) if rows is not None else None
    if rows is None:
        lines: list[Any] = [slice(None)]
    elif picture is not None:
        lines = [slice(row, row + 1) for row in _checked_rows(rows, fit.shape[0])]
    else:  # rows that make no picture are lines of one
        lines = [_checked_rows(rows, fit.shape[0])]

    size = picture.shape if picture is not None else panels["observed"][lines[0]].shape
    ratio = size[0] / size[1]
    if rows is not None and picture is None:
        ratio = max(ratio, 0.06 * size[0])  # room for a label beside each row
    height = min(max(ratio, 0.3), 1.6)
    ax = axes(ax, *_figure_size(len(panels), len(lines), height))
    mosaic = Mosaic(ax, size if height == size[0] / size[1] else (round(100 * height), 100))
    limit = spread(np.concatenate([panels["residual"][line].ravel() for line in lines]))
    data = _data_style(ax, observed)
    for column, (name, values) in enumerate(panels.items()):
        style = data if name != "residual" else _signed(ax, limit)
        for row, line in enumerate(lines):
            image = values[line] if picture is None else picture(values[line])
            mosaic.draw(row, column, image, **style)
    mosaic.finish(len(lines), len(panels))

    titles = [name if name != "residual" else f"residual, ±{limit:.2g}" for name in panels]
    ax.set_xticks([mosaic.centre(0, column)[0] for column in range(len(panels))], titles)
    ax.xaxis.tick_top()
    if rows is not None:
        shown = _checked_rows(rows, fit.shape[0])
        if picture is not None:
            places = [mosaic.centre(row, 0)[1] for row in range(len(lines))]
        else:
            places = ((np.arange(len(shown)) + 0.5) / len(shown) * (mosaic.step[0] - GAP)).tolist()
        ax.set_yticks(places, [row_label(fit, row) for row in shown])
    bare(ax)
    return ax


def _checked_rows(rows: Sequence[int], m: int) -> list[int]:
    for row in rows:
        if not -m <= row < m:
            raise IndexError(f"rows holds {row}: there are {m} rows.")
    return [int(row) % m for row in rows]


def _figure_size(columns: int, lines: int, height: float) -> tuple[float, float]:
    """Return a size in inches that suits a mosaic of pictures of width one."""
    unit = min(3.0, 11 / columns) if lines == 1 else min(1.5, 9 / (lines * (height + GAP)))
    labels = 0.9 if lines > 1 else 0.1
    return unit * columns * (1 + GAP) + labels, unit * lines * (height + GAP) + 0.4


def _data_style(ax: Axes, observed: NDArray[np.floating]) -> dict[str, Any]:
    """Return grey levels for data that are not negative, else colours about zero."""
    low, high = float(np.nanmin(observed)), float(np.nanmax(observed))
    if low < 0:
        return _signed(ax, spread(observed))
    return {"cmap": gray_with_holes(), "vmin": low, "vmax": high if high > low else low + 1}


def _signed(ax: Axes, limit: float) -> dict[str, Any]:
    return {"cmap": diverging(ax), "vmin": -limit, "vmax": limit}


def row_label(fit: Decomposition, row: int) -> str:
    """Return words for a row: a coordinate that describes it, or else its position."""
    one = fit.W.isel({COMPONENT: 0}, drop=True)
    at = dict(zip(one.dims, np.unravel_index(row, one.shape), strict=True))
    point = one.isel({dim: int(position) for dim, position in at.items()})
    described = [name for name in point.coords if name not in one.dims]
    named = described or [name for name in one.dims if name in point.coords]
    if named:
        return ", ".join(f"{name} {point.coords[name].item()}" for name in named[:2])
    return ", ".join(f"{dim} {position}" for dim, position in at.items())
