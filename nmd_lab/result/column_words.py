"""What each column of a table was taken for, in words.

>>> import nmd_lab as nmd
>>> from sklearn.datasets import load_wine
>>> wine = load_wine(as_frame=True).frame.astype({"target": "category"})
>>> fit = nmd.complete(wine[["ash", "hue", "target"]], 1, alpha=0.1, random_state=0)
>>> columns_in_words(fit._labels, fit._kinds)
"2 numbers ('ash', 'hue'), 1 classes ('target')"
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from nmd_lab.data.labels import Labels
from nmd_lab.data.matching import plain_label
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearities import MinMax

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

SEVERAL = ONE | {"number": "numbers", "values": "numbers"}
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


def kinds_of_columns(labels: Labels, kinds: Model | None) -> list[ColumnWords]:
    """Return what each column of a table was taken for."""
    if labels.table is not None:
        places = zip(labels.table.columns, labels.table.first_columns.tolist(), strict=True)
        return [ColumnWords(c.name, c.kind, _ends(kinds, j), j) for c, j in places]
    names = enumerate(labels.flat(labels.columns).tolist())
    return [ColumnWords(name, _kind(kinds, j), _ends(kinds, j), j) for j, name in names]


def columns_in_words(labels: Labels, kinds: Model | None) -> str:
    """Return the columns of each kind in one line; empty if all entries are of one kind."""
    if kinds is None or kinds.which is None or kinds.which.ndim == 2:
        return ""
    found: dict[str, list[str]] = {}
    for name, kind, ends, _ in kinds_of_columns(labels, kinds):
        words = SEVERAL[kind] if not ends else "numbers with an end"
        found.setdefault(words, []).append(f"{plain_label(name)!r} {ends}".strip())
    said = []
    for words, names in found.items():
        shown = ", ".join(names[:SHOWN]) + (", ..." if names[SHOWN:] else "")
        words = words.replace("numbers", "number") if len(names) == 1 else words
        said.append(f"{len(names)} {words} ({shown})")
    return ", ".join(said)


def _kind(kinds: Model | None, column: int) -> str:
    """Return the kind of a column of a matrix, which follows from its loss."""
    loss = _of_column(kinds, column, "loss")
    return OF_LOSS["" if loss is None else loss.classes]


def _ends(kinds: Model | None, column: int) -> str:
    """Return the ends of the predictions of a column in words; empty if it has none."""
    f = _of_column(kinds, column, "nonlinearity")
    if not isinstance(f, MinMax):
        return ""
    if f.a == f.b:
        return f"always {f.a:g}"
    ends = [f"from {f.a:g}"] if math.isfinite(f.a) else []
    return " ".join([*ends, f"to {f.b:g}"] if math.isfinite(f.b) else ends)


def _of_column(kinds: Model | None, column: int, name: str) -> Any:
    """Return the loss or the nonlinearity of a column; None without any kinds."""
    if kinds is None or kinds.which is None or kinds.which.ndim == 2:
        return None
    return getattr(kinds.kinds[kinds.which[column]], name)
