"""What the client knows of a matrix whose rows lie on workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.labels import Labels


@dataclass(frozen=True)
class Summary:
    """What the client knows of a matrix on the workers.

    Attributes
    ----------
    dtype : dtype
        Type of the values.
    n_stored, n_observed : int
        Numbers of stored and of observed entries.
    sparse : bool
        Whether entries that are not stored are missing.
    absent_are_zeros : bool
        Whether entries that are not stored are zeros.
    weights : dtype or None
        Type of the weights, bool for a mask; None if every weight is one.
    ends : (float, float)
        Smallest and largest observed value.
    column_counts : ndarray of int (n,)
        Number of observed entries of each column.
    """

    dtype: np.dtype[Any]
    n_stored: int
    n_observed: int
    sparse: bool
    absent_are_zeros: bool
    weights: np.dtype[Any] | None
    ends: tuple[float, float]
    column_counts: NDArray[np.integer]


def summary_of(answers: list[Any], labels: Labels) -> Summary:
    """Return the summary of all partitions."""
    kinds, ends = [kind for kind, _, _ in answers], [each for _, each, _ in answers]
    stored, observed = np.sum([kind[1:3] for kind in kinds], axis=0).tolist()
    weights = [kind[5] for kind in kinds if kind[5] is not None]
    return Summary(
        np.dtype(kinds[0][0]),
        stored,
        observed,
        kinds[0][3],
        kinds[0][4],
        max(weights, key=lambda dtype: dtype.itemsize) if weights else None,
        (min(low for low, _ in ends), max(high for _, high in ends)),
        sum((counts for _, _, counts in answers), np.zeros(labels.matrix_shape[1], np.intp)),
    )
