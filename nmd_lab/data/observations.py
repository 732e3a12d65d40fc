"""`observe`: observations of any accepted input.

This module and the two for dense and sparse input (`nmd_lab.data.dense`, `nmd_lab.data.sparse`)
alone decide what NaN, a mask, weights and the absent entries of a sparse matrix mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from nmd_lab._files import Scratch

from .base import Observations
from .dense import observe_dense
from .limits import NO_LIMITS, GivenLimits, with_limits
from .sparse import is_sparse, observe_sparse
from .store import SparseStore
from .stored import observe_stored
from .tensors import without_tensors
from .typed_table import TypedTable


def observe(
    X: Any,
    *,
    observed: Any = None,
    weights: Any = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    absent_are_zeros: bool = False,
    limits: GivenLimits = NO_LIMITS,
    table: TypedTable | None = None,
    scratch: Scratch | None = None,
    may_be_empty: bool = False,
) -> Observations:
    """Return the observations of any accepted input, sparse ones of sparse input."""
    X, observed, weights = (without_tensors(each) for each in (X, observed, weights))
    if isinstance(X, SparseStore):
        return _observe_store(X, observed, weights, dtype, absent_are_zeros, limits, scratch)
    if scratch is not None:
        return observe_stored(
            X, scratch, observed=observed, weights=weights, dtype=dtype, sample_dims=sample_dims
        )
    if is_sparse(X):
        observations: Observations = observe_sparse(
            X,
            observed=observed,
            weights=weights,
            dtype=dtype,
            absent_are_zeros=absent_are_zeros,
            may_be_empty=may_be_empty,
        )
    else:
        observations = observe_dense(
            X,
            observed=observed,
            weights=weights,
            dtype=dtype,
            sample_dims=sample_dims,
            table=table,
            may_be_empty=may_be_empty,
        )
    return with_limits(observations, X, limits)


def _observe_store(
    store: SparseStore,
    observed: Any,
    weights: Any,
    dtype: DTypeLike | None,
    absent_are_zeros: bool,
    limits: GivenLimits,
    scratch: Scratch | None,
) -> Observations:
    """Return the observations of a store."""
    refused = {
        "observed": observed is not None,
        "weights": weights is not None,
        "limits": bool(limits),
    }
    for name, is_set in refused.items():
        if is_set:
            raise ValueError(f"{name}= does not go with a SparseStore: store what is observed.")
    if dtype is not None and np.dtype(dtype) != store.dtype:
        raise ValueError(
            f"dtype={dtype!r} does not go with a SparseStore of {store.dtype}: make one of that "
            "type, or leave it out."
        )
    observations = store.observations(scratch)
    return replace(observations, absent_are_zeros=True) if absent_are_zeros else observations
