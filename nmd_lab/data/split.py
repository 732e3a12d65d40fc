"""Hold out some of the observed entries, leaving every row and column something to learn from."""

from __future__ import annotations

from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np
import xarray as xr
from scipy import sparse

from nmd_lab._checks import as_generator
from nmd_lab._numba import compile_kernel

from .base import Observations
from .labels import is_frame
from .observations import observe
from .sparse import SparseObservations


def split_observed(X: Any, test_size: float = 0.1, random_state: Any = None) -> tuple[Any, Any]:
    """Split the observed entries of X into a training and a test set.

    Parameters
    ----------
    X : scipy.sparse matrix, SparseObservations, ndarray, pandas.DataFrame or xarray.DataArray
        The stored entries of a sparse matrix are observed; in dense data, all but NaN.
    test_size : float or int, default 0.1
        Share (between 0 and 1) or number of the observed entries to hold out.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    train, test
        Of the kind of X (CSR for any sparse format); together they hold each observed entry once.
        Each row and column of `train` keeps at least one entry, so that fewer than `test_size`
        are held out where that is not possible otherwise.

    Raises
    ------
    ValueError, TypeError
        If `test_size` or X makes no sense.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> from scipy import sparse
    >>> X = sparse.random_array((30, 20), density=0.4, rng=np.random.default_rng(0))
    >>> train, test = nmd.split_observed(X, test_size=0.25, random_state=0)
    >>> train.nnz, test.nnz
    (180, 60)
    """
    train, test = split(observe(X), test_size, as_generator(random_state))
    return _like(X, train), _like(X, test)


def split(
    observations: Observations, test_size: Any, rng: np.random.Generator
) -> tuple[Observations, Observations]:
    """Split observations; see `split_observed`."""
    rows, columns, _ = observations.entries()
    wanted = _number_held_out(test_size, rows.size)
    counts = np.bincount(rows), np.bincount(columns)
    test = _choose_kernel(str(rows.dtype))(
        rng.permutation(rows.size), rows, columns, *counts, wanted
    )
    return observations.select(~test), observations.select(test)


def _number_held_out(test_size: Any, n_observed: int) -> int:
    if not isinstance(test_size, bool):
        if isinstance(test_size, Integral) and 0 < int(test_size) < n_observed:
            return int(test_size)
        if isinstance(test_size, Real) and 0 < float(test_size) < 1:
            return max(1, round(float(test_size) * n_observed))
    raise ValueError(
        f"test_size={test_size!r} is out of range: give a share between 0 and 1, or a number "
        f"below the {n_observed} observed entries."
    )


@cache
def _choose_kernel(types: str) -> Any:
    return compile_kernel(_choose, f"choose_{types}", cached=True)


def _choose(order, rows, columns, row_counts, column_counts, wanted):  # type: ignore[no-untyped-def]
    """Take entries in random order as long as their row and column keep another one."""
    test = np.zeros(order.size, dtype=np.bool_)
    taken = 0
    for k in order:
        i, j = rows[k], columns[k]
        if taken < wanted and row_counts[i] > 1 and column_counts[j] > 1:
            row_counts[i] -= 1
            column_counts[j] -= 1
            test[k] = True
            taken += 1
    return test


def _like(X: Any, observations: Observations) -> Any:
    """Return observations as what they were made from."""
    if isinstance(X, SparseObservations):
        return observations
    if sparse.issparse(X):
        matrix = observations.as_sparse().to_csr()
        return sparse.csr_matrix(matrix) if isinstance(X, sparse.spmatrix) else matrix
    values = observations.to_array()
    if isinstance(X, xr.DataArray):
        return X.copy(data=values)
    if is_frame(X):
        return X.astype(values.dtype).where(~np.isnan(values))
    return values
