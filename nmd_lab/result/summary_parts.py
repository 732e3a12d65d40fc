"""Parts of a summary: a headline, the kinds of the columns in words, entries as a small picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.data.labels import Labels, Picture, picture_of
from nmd_lab.data.matching import plain_label
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearity import Nonlinearity

STOPPED = {
    "time_limit": "Stopped by the time limit before it was done.",
    "interrupted": "Interrupted before it was done.",
    "not finite": "Stopped at numbers that are not finite.",
}
"""Sentences by the code of a stop reason."""


WORSE = 1.02
"""Ratio to the error of a rival from which a model is called worse."""


def headline(error: float, where: str, rivals: Mapping[str, float]) -> dict[str, Any]:
    """Return an error in the unit of the data, where it was measured, and those of rivals.

    >>> headline(0.15, "off where hidden", {"linear": 0.16})["rivals"]
    '· linear 0.16'
    """
    return {
        "value": two_digits(error),
        "text": where,
        "rivals": " ".join(f"· {name} {two_digits(each)}" for name, each in rivals.items()),
        "worse": any(error > WORSE * each for each in rivals.values()),
    }


def two_digits(error: float) -> str:
    """Return an error with two digits, from 1 on behind the point.

    >>> two_digits(0.2), two_digits(1.234), two_digits(45.0), two_digits(float("nan"))
    ('0.20', '1.23', '45.0', '–')
    """
    return "–" if math.isnan(error) else f"{error:#.{2 + (error >= 1)}g}".rstrip(".")


def sizes_in_words(sizes: Mapping[Any, int], besides: tuple[str, ...] = ()) -> str:
    """Return dimensions and their sizes, as text."""
    return ", ".join(f"{dim}: {size}" for dim, size in sizes.items() if dim not in besides)


SHOWN = 4  # columns of a kind that a line names

ONE = {
    "number": "number",
    "values": "number",
    "ordered": "ordered levels",
    "boolean": "yes or no",
    "categories": "classes",
}
"""Kinds of a column in words."""

OF_LOSS = {"": "number", "two": "boolean", "ordered": "ordered"}
"""Kinds of a column by the classes of its loss."""

SEVERAL = {kind: f"columns of {words}" for kind, words in ONE.items()}
SEVERAL |= {"number": "numbers", "values": "numbers"}
"""Kinds of several columns in words."""


class ColumnWords(NamedTuple):
    """What a column of a table was taken for.

    Attributes
    ----------
    name : object
        Label.
    kind : str
        Kind, by its word in `ONE`.
    ends : str
        Ends of its predictions, such as "from 0"; empty without any.
    first : int
        Position of its first column of the matrix.
    """

    name: Any
    kind: str
    ends: str
    first: int


def kinds_of_columns(labels: Labels, model: Model | None) -> list[ColumnWords]:
    """Return what each column of a table was taken for."""
    kinds, table = model.of_columns if model else [], labels.table
    if table is not None:
        places = zip(table.columns, table.first_columns.tolist(), strict=True)
        named = [(column.name, column.kind, j) for column, j in places]
    else:
        names = labels.flat(labels.columns).tolist()
        words: list[Any] = [OF_LOSS[kind.loss.classes] for kind in kinds] or ["number"] * len(names)
        named = list(zip(names, words, range(len(names)), strict=True))
    return [
        ColumnWords(name, word, _ends(kinds[j].nonlinearity) if kinds else "", j)
        for name, word, j in named
    ]


def columns_in_words(labels: Labels, kinds: Model | None) -> str:
    """Return the columns of each kind in one line; empty if all entries are of one kind.

    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).frame.astype({"target": "category"})
    >>> fit = nmd.complete(wine[["ash", "hue", "target"]], 1, alpha=0.1, random_state=0)
    >>> columns_in_words(fit._labels, fit._kinds)
    "2 numbers ('ash', 'hue'), 1 column of classes ('target')"
    """
    if kinds is None or not kinds.of_columns:
        return ""
    found: dict[str, list[str]] = {}
    for name, kind, ends, _ in kinds_of_columns(labels, kinds):
        words = SEVERAL[kind] if not ends else "numbers with an end"
        found.setdefault(words, []).append(f"{plain_label(name)!r} {ends}".strip())
    said = []
    for words, names in found.items():
        shown = ", ".join(names[:SHOWN]) + (", ..." if names[SHOWN:] else "")
        if len(names) == 1:
            words = words.replace("numbers", "number").replace("columns", "column")
        said.append(f"{len(names)} {words} ({shown})")
    return ", ".join(said)


def _ends(f: Nonlinearity) -> str:
    """Return the ends of the predictions of a column in words; empty if it has none."""
    pieces = f.pieces() if f.name == "monotone" else None
    if pieces and pieces[0].slope > 0 and f.settings[1][:1] == (0.0,):
        return "above 0"
    if f.name != "minmax":
        return ""
    low, high = f.parameters
    if low == high:
        return f"always {low:g}"
    ends = [f"from {low:g}"] if math.isfinite(low) else []
    return " ".join([*ends, f"to {high:g}"] if math.isfinite(high) else ends)


HEIGHT, WIDTH = 80, 120  # largest size of the picture, in pixels
SMALL, MANY, FEW = 16, (8, 24), (3, 3)  # width of small pictures; how many across, and in all

Array = NDArray[Any]
Positions = NDArray[np.intp]
Block = Callable[[Positions, Positions], Array]
"""Function of rows and columns that returns entries of the model at their crossings."""


def small_picture(m: int, columns: xr.DataArray, block: Block, *, by_column: bool = False) -> Array:
    """Return some rows as pictures, side by side, or else some entries of the matrix.

    `columns` is an array with the labels of the columns, and m the number of rows.  If `by_column`,
    each column has grey levels of its own.
    """
    n, dims = columns.size, columns.dims
    channels = columns.shape[1] if len(dims) == 2 and "channel" in str(dims[1]) else 1  # of colour
    picture = picture_of(columns, None) if channels == 1 else None
    if picture is not None:
        return _of_rows(m, picture, block)
    rows, pixels = _spread(m, 2 * HEIGHT), _spread(n // channels, 2 * WIDTH)
    at = (pixels[:, None] * channels + np.arange(channels)).ravel()
    values = block(rows, at).reshape(rows.size, pixels.size, channels).mean(axis=2)
    if by_column:
        low = values.min(axis=0)
        values = (values - low) / np.maximum(values.max(axis=0) - low, np.finfo(float).tiny)
    return _means(values, -(-rows.size // HEIGHT), -(-pixels.size // WIDTH))


def _of_rows(m: int, picture: Picture, block: Block) -> Array:
    """Return some rows as pictures, side by side, with gaps of NaN."""
    across, most = MANY if picture.shape[1] <= SMALL else FEW
    rows = _spread(m, most)
    across = min(across, rows.size)
    sizes = zip(picture.shape, (-(-rows.size // across), across), (HEIGHT, WIDTH), strict=True)
    picture, columns = _coarse(picture, max(1, *(a * b // (2 * c) for a, b, c in sizes)))
    tiles = [
        np.pad(picture(row).astype(float), ((0, 1), (0, 1)), constant_values=np.nan)
        for row in block(rows, columns)
    ]
    tiles += [np.full_like(tiles[0], np.nan)] * (-len(tiles) % across)
    lines = [np.hstack(tiles[k : k + across]) for k in range(0, len(tiles), across)]
    canvas = np.vstack(lines)[:-1, :-1]
    step = math.ceil(max(canvas.shape[0] / HEIGHT, canvas.shape[1] / WIDTH))
    return _means(canvas, step, step)


def _coarse(picture: Picture, step: int) -> tuple[Picture, Positions]:
    """Return every so many pixels of a picture along both sides, and the columns that they are."""
    height, width = picture.shape
    assert picture.positions is not None
    y, x = np.divmod(picture.positions, width)
    columns = np.flatnonzero((y % step == 0) & (x % step == 0))
    size = -(-height // step), -(-width // step)
    return Picture(size, y[columns] // step * size[1] + x[columns] // step), columns


def _spread(size: int, most: int) -> Positions:
    """Return at most so many positions, evenly spaced."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).astype(np.intp))


def _means(values: Array, down: int, across: int) -> Array:
    """Return means of blocks, without those at the end that are not whole."""
    height, width = values.shape[0] // down, values.shape[1] // across
    blocks = values[: height * down, : width * across].reshape(height, down, width, across)
    finite = np.isfinite(blocks)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sum(blocks, axis=(1, 3), where=finite) / finite.sum(axis=(1, 3)))
