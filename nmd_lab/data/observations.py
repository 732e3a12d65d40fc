"""From any accepted input to observations: the only door.

What NaN, a mask, weights and the absent entries of a sparse matrix mean is decided here and in the
two modules below (`nmd_lab.data.dense`, `nmd_lab.data.sparse`), and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import DTypeLike

from .base import Observations
from .dense import observe_dense
from .sparse import is_sparse, observe_sparse


def observe(
    X: Any,
    *,
    mask: Any = None,
    weights: Any = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    absent_are_zeros: bool = False,
) -> Observations:
    """Turn any accepted input into observations, sparse input into sparse ones.

    Parameters
    ----------
    X, mask, weights, dtype, sample_dims
        As for `observe`, or for `observe_sparse`.
    absent_are_zeros : bool
        What the absent entries of a sparse matrix are.
    """
    if is_sparse(X):
        return observe_sparse(
            X, mask=mask, weights=weights, dtype=dtype, absent_are_zeros=absent_are_zeros
        )
    return observe_dense(X, mask=mask, weights=weights, dtype=dtype, sample_dims=sample_dims)
