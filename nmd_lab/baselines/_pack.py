"""From an iterate to the result of a baseline, a labelled `Decomposition`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmd_lab._runtime.progress import StopReason
from nmd_lab.result.decomposition import Decomposition

from ._objective import Iterate, Objective, Record


def pack(
    objective: Objective,
    iterate: Iterate,
    history: Sequence[Record] | None = None,
    *,
    method: str,
    stop_reason: StopReason,
    **parameters: Any,
) -> Decomposition:
    """Return the result of a baseline, with the labels of X."""
    observations = objective.observations
    records = [iterate.record] if history is None else history
    columns = zip(Record._fields, zip(*records, strict=True), strict=True)
    return Decomposition.from_matrices(
        observations.labels,
        iterate.W,
        iterate.H,
        dict(columns),
        nonlinearity=objective.nonlinearity,
        loss=objective.loss,
        stop_reason=stop_reason,
        parameters={
            "rank": iterate.W.shape[1],
            "n_observed": observations.n_observed,
            "method": method,
            "iteration": iterate.iteration,
            **{name: storable(value) for name, value in parameters.items()},
        },
    )


def storable(value: Any) -> Any:
    """Return a number, text or None for a file; of any other object only its type is kept."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | float | int | None) else f"given {type(value).__name__}"
