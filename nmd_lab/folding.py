"""New rows for a fit: W for rows of X that it has not seen, with H as it is."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from .observations import FloatArray
from .penalty import BALANCED
from .problems import all_threads
from .proximal import make_pair
from .row_solver import row_solver
from .sparse_observations import AnyObservations, SparseObservations, observations_of

if TYPE_CHECKING:
    from .decomposition import Decomposition

N_STARTS = 8
"""Random starts of a row, beside the least-squares one, where f makes the problem non-convex."""

ENTRIES_AT_ONCE = 1 << 16

Rows = tuple[Any, Any, FloatArray, FloatArray]


def fold_in(
    fit: Decomposition,
    X: Any,
    *,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int = 2000,
) -> xr.DataArray:
    """Return the rows of W for new rows of X; see `Predictions.fold_in`."""
    sample_dims = None
    if isinstance(X, xr.DataArray) and X.ndim > 2:
        sample_dims = [str(dim) for dim in X.dims if dim not in fit.labels.columns]
    observations = observations_of(X, mask=mask, weights=weights, sample_dims=sample_dims)
    W, offsets = fold_rows(fit, observations, tol=tol, max_iter=max_iter)
    labelled = observations.labels.label_rows(W)
    if offsets is None:
        return labelled
    offset = observations.labels.label_rows(offsets[:, None]).isel(component=0, drop=True)
    return labelled.assign_coords(offset=offset)


def fold_rows(
    fit: Decomposition,
    observations: AnyObservations,
    *,
    tol: float = 1e-8,
    max_iter: int = 2000,
    threads: int | None = None,
) -> tuple[FloatArray, FloatArray | None]:
    """Return W (m, rank) of new rows, and their offsets if the fit has row offsets.

    Parameters
    ----------
    fit : Decomposition
        Gives H, the offsets, f, d and alpha.
    observations : Observations or SparseObservations
        The rows, with the columns of the fit.
    tol : float
        A row ends when ‖t - wH‖ and ‖t - t_previous‖, relative to its starting t, are at most
        this; or when its objective has long stood still.
    max_iter : int
        Most iterations of a row.
    threads : int, optional
        Blocks of rows that are worked on at a time.
    """
    if observations.shape[1] != fit.shape[1]:
        raise ValueError(
            f"X has {observations.shape[1]} columns: give the {fit.shape[1]} of the fit."
        )
    order = observations.labels.order_of_columns(fit.labels)
    pair = make_pair(fit.nonlinearity, fit.loss)
    values, _ = observations.observed()
    pair.loss.check_data(float(values.min()), float(values.max()))
    _, H = fit.factors
    right = np.ascontiguousarray(H.T, dtype=np.float64)
    own_offset = fit.offsets.rows is not None
    if own_offset:
        right = np.hstack([np.ones((right.shape[0], 1)), right])
    base = fit.offsets.mean + np.zeros(right.shape[0])
    base += 0.0 if fit.offsets.columns is None else fit.offsets.columns
    right, base = right[order], base[order]
    alpha, epsilon = (float(fit.parameters.get(name, 0.0)) for name in ("alpha", "epsilon"))
    ridge = max(epsilon, np.finfo(float).eps) * float(np.sum(right * right))
    rule = (ridge, alpha, BALANCED.initial, BALANCED.factor, BALANCED.step)
    n_starts = 0 if fit.nonlinearity.name == "identity" else N_STARTS
    starts = np.random.default_rng(0).standard_normal((n_starts, right.shape[1]))
    model = (*pair.arguments, pair.loss.floor)
    W = np.empty((observations.shape[0], right.shape[1]))

    def solve(block: slice) -> None:
        indptr, indices, x, weights = _rows(observations, block)
        t = np.asarray(pair.nonlinearity.preimage(x), dtype=np.float64)
        entries = (indptr, indices, x, weights, t)
        row_solver(pair)(*entries, right, base, starts, rule, tol, max_iter, model, W[block])

    with ThreadPoolExecutor(threads or all_threads()) as pool:
        list(pool.map(solve, _blocks(observations)))
    W = W.astype(H.dtype)
    return (W[:, 1:], W[:, 0]) if own_offset else (W, None)


def _blocks(observations: AnyObservations) -> Iterator[slice]:
    """Cut the rows into blocks that hold about as many entries as a block may."""
    m = observations.shape[0]
    each = max(1, min(m, ENTRIES_AT_ONCE * m // max(observations.n_observed, 1)))
    for start in range(0, m, each):
        yield slice(start, min(start + each, m))


def _rows(observations: AnyObservations, block: slice) -> Rows:
    """Return the entries of some rows that count: pointers, columns, values and weights."""
    if isinstance(observations, SparseObservations) and not observations.absent_are_zeros:
        indptr = observations.indptr[block.start : block.stop + 1]
        entries = slice(indptr[0], indptr[-1])
        values, indices = observations.values[entries], observations.indices[entries]
        weights = None if observations.weights is None else observations.weights[entries]
        indptr = indptr - indptr[0]
    else:
        if isinstance(observations, SparseObservations):
            dense, given = observations.to_csr()[block].toarray(), None
        else:
            dense = observations.values[block]
            given = None if observations.weights is None else observations.weights[block]
        seen = np.ones(dense.shape, dtype=bool) if given is None else given > 0
        indices = np.nonzero(seen)[1]
        indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(seen, axis=1))])
        values, weights = dense[seen], None if given is None else given[seen]
    weights = np.ones(values.size) if weights is None else weights
    indptr, indices = (np.asarray(array, dtype=np.int64) for array in (indptr, indices))
    values, weights = (np.asarray(array, dtype=np.float64) for array in (values, weights))
    return indptr, indices, values, weights
