"""Warm starts of chains from a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from .result.decomposition import Decomposition
from .solver.sampler.problem import SampledProblem
from .solver.sampler.state import ChainState
from .solver.scaling import Scaling


def check_init(init: Any, problem: SampledProblem) -> None:
    """Raise an error if a given start does not go with the model."""
    if isinstance(init, str):
        return
    if not isinstance(init, Decomposition):
        raise TypeError(f"init is a {type(init).__name__}: give a name or a fit.")
    if init._shape != problem.shape or init.rank != problem.rank:
        raise ValueError(
            f"init has shape {init._shape} and rank {init.rank}: give one of shape {problem.shape} "
            f"and rank {problem.rank}."
        )


def begin_at(fit: Decomposition, state: ChainState, mean: float, scaling: Scaling) -> None:
    """Put factors and offsets of a fit into the state of a chain with a global offset."""
    W, H = fit._factors
    rows, columns = fit.offsets.rows, fit.offsets.columns
    rest = fit.offsets.mean - np.ldexp(mean, 2 * scaling.exponent)
    if rows is not None:
        rows = rows + rest
    elif columns is not None:
        columns = columns + rest
    rank = W.shape[1]
    sides = ((state.rows, W, rows), (state.columns, H.T, columns))
    for vectors, factor, offsets in sides:
        vectors[:, :rank] = np.ldexp(factor, -scaling.exponent)
        if vectors.shape[1] > rank:
            vectors[:, rank] = 0 if offsets is None else np.ldexp(offsets, -2 * scaling.exponent)
