"""The branches of compiled code for a table of several kinds: one for each of their structures.

Code is compiled, and kept on disk, for a set of structures, whatever the columns and their order.
Tables of numbers, yes and no, classes and ordered levels share one set, whichever of these they
have.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ._curve import curve_of
from .kind import Branch, Kind, make_kind
from .likelihoods.binary import Logistic
from .losses import Frobenius
from .ordinal import Ordinal


@cache
def _usual_kinds() -> dict[Branch, Kind]:
    """Return kinds of numbers, of yes, no and classes, and of ordered levels, by their branch."""
    losses = Frobenius(), Logistic(0), Ordinal([0, 1])
    return {kind.branch: kind for kind in (make_kind("identity", loss) for loss in losses)}


def _by_branch(kinds: Sequence[Kind]) -> dict[Branch, Kind]:
    """Return a kind for each branch of the code, in the order of the branches."""
    found = {kind.branch: kind for kind in kinds}
    if found.keys() <= _usual_kinds().keys():
        found = _usual_kinds()
    return dict(sorted(found.items(), key=lambda item: item[1].name))


def branches_of(kinds: Sequence[Kind]) -> tuple[Branch, ...]:
    """Return the branches of the code for some kinds."""
    return tuple(_by_branch(kinds))


def name_of(kinds: Sequence[Kind]) -> str:
    """Return the name of the code for some kinds."""
    return "_".join(["mixed", *dict.fromkeys(kind.name for kind in _by_branch(kinds).values())])


def tables_of(kinds: Sequence[Kind]) -> tuple[Any, ...]:
    """Return the numbers of some kinds: tables by branch, and where each kind is in them."""
    by_branch = _by_branch(kinds)
    branches = list(by_branch)
    tables: list[list[list[float]]] = [[] for _ in branches]
    position, row = [], []
    for kind in kinds:
        at = branches.index(kind.branch)
        position.append(at)
        row.append(len(tables[at]))
        tables[at].append(kind.row)
    widths = [len(kind.row) for kind in by_branch.values()]
    curves = tuple(() if f is None else curve_of(f).numbers for _, _, f in branches)
    numbers = tuple(np.reshape(np.array(t), (-1, w)) for t, w in zip(tables, widths, strict=True))
    return np.array(position), np.array(row), numbers, curves
