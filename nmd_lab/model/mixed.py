"""The nonlinearities, or the losses, of a mixed table, as a result shows them, and their branches.

The compiled code of a table of several kinds has a branch for each of their structures.  Code is
compiled, and kept on disk, for a set of structures, whatever the columns and their order. Tables of
numbers, yes and no, classes and ordered levels share one set, whichever of these they have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .binary import Logistic
from .curve_search import curve_of
from .kind import Branch, Kind, make_kind
from .losses import Frobenius
from .ordinal import Ordinal


class Mixed(Sequence[Any]):
    """The nonlinearity, or the loss, of each column, in order; it can be given to a new fit.

    Attributes
    ----------
    different : tuple
        The different ones.
    which : ndarray of int (n,) or (m, n)
        Position of that of each column, or of each entry, among them.

    Examples
    --------
    >>> import pandas as pd, nmd_lab as nmd
    >>> X = pd.DataFrame({"size": [1.0, 2.0, 4.0], "ripe": [True, False, True]})
    >>> fit = nmd.complete(X, 1, alpha=0.1, random_state=0)
    >>> fit.loss, fit.loss[1]
    (Mixed(Frobenius(), Logistic(0)), Logistic(0))
    """

    name = label = "mixed"
    noise, residual_name = "", "residual"
    degree, even = None, False
    squares, classes = False, ""

    def __init__(self, each: Sequence[Any], which: NDArray[np.integer]) -> None:
        self.different = tuple(dict.fromkeys(each))
        position = {one: k for k, one in enumerate(self.different)}
        self.which = np.array([position[one] for one in each], dtype=np.intp)[which]

    @property
    def linear(self) -> bool:
        """Whether every nonlinearity is linear."""
        return all(one.linear for one in self.different)

    def __len__(self) -> int:
        return int(self.which.shape[-1])

    def __getitem__(self, column: Any) -> Any:
        """Return that of a column, or of an entry (row, column) if each entry has one."""
        position = self.which[column]
        if np.ndim(position):
            raise IndexError(f"[{column!r}] is not one entry: give (row, column).")
        return self.different[position]

    def __repr__(self) -> str:
        return f"Mixed({', '.join(map(repr, self.different))})"

    def __str__(self) -> str:
        return f"Mixed({', '.join(dict.fromkeys(map(str, self.different)))})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixed):
            return False
        return self.different == other.different and np.array_equal(self.which, other.which)

    def __hash__(self) -> int:
        return hash((self.different, self.which.tobytes()))

    def __call__(self, *values: Any) -> NoReturn:
        """Refuse values without their columns."""
        raise ValueError(
            f"{self!r} has one for each column, which values alone do not tell: use predict() or "
            "reconstruct() of the fit, or give the loss of a single column, such as 'frobenius'."
        )

    residuals = __call__


def groups(which: Any, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the entries sorted by group, and where each group begins and the last one ends."""
    small = np.asarray(which).astype(np.int16 if count < 1 << 15 else np.intp)
    order = np.argsort(small, kind="stable")
    return order, np.searchsorted(small[order], np.arange(count + 1))


def each_group(which: Any, count: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each group that has entries, and the positions of these."""
    order, ends = groups(which, count)
    for k in np.flatnonzero(np.diff(ends)):
        yield int(k), order[ends[k] : ends[k + 1]]


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
