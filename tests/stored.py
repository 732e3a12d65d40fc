"""Sparse matrices of what is seen, for tests that compare them with arrays with NaN."""

from typing import Any

import numpy as np
from scipy import sparse


def stored(X: np.ndarray, seen: np.ndarray | None = None, layout: str = "csr") -> Any:
    """Return a sparse matrix with the seen entries of X, by default those that are not NaN."""
    seen = ~np.isnan(X) if seen is None else seen
    return sparse.coo_array((X[seen], np.nonzero(seen)), shape=X.shape).asformat(layout)


def mask_of(observations: Any) -> np.ndarray:
    """Return where there are observations."""
    mask = np.zeros(observations.shape, bool)
    rows, columns, _ = observations.entries()
    mask[rows, columns] = True
    return mask
