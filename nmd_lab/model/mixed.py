"""The nonlinearities, or the losses, of a mixed table, as a result shows them, and groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray


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
