"""What is shown of a model: that of an iterate or of a result, with or without some components."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.state import State

Array = NDArray[Any]


class Iterate(NamedTuple):
    """Factors of a result, with the names that those of a `State` have.

    Attributes
    ----------
    W, H : ndarray (m, rank) and (rank, n)
        Factors.
    W_aug, H_aug : ndarray (m, rank + 2) and (rank + 2, n)
        Factors extended by the offsets; f is applied to ``W_aug @ H_aug``.
    """

    W: Array
    H: Array
    W_aug: Array
    H_aug: Array


AnyIterate = State | Iterate


def iterate_of(fit: Decomposition) -> Iterate:
    """Return the factors of a result."""
    (W, H), offsets, (m, n) = fit.factors, fit.offsets, fit.shape
    rows, columns = offsets.of_rows(m, W.dtype), offsets.of_columns(n, W.dtype) + offsets.mean
    W_aug = np.column_stack([W, rows, np.ones(m, dtype=W.dtype)])
    H_aug = np.vstack([H, np.ones(n, dtype=W.dtype), columns])
    return Iterate(W, H, W_aug, H_aug)


def product(
    iterate: AnyIterate, f: Nonlinearity, rows: Any, columns: Any, off: Collection[int] = ()
) -> Array:
    """Return f(WH) at the crossings of rows and columns, without some components."""
    inner = iterate.W_aug[rows] @ iterate.H_aug[:, columns]
    if off:
        without = list(off)
        inner -= iterate.W[rows][:, without] @ iterate.H[without][:, columns]
    model: Array = f(inner)
    return model
