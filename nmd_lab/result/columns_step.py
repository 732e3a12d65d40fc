"""H for given rows of W: the problem of new rows, with the sides exchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nmd_lab.data.base import EntryLimits, FloatArray
from nmd_lab.data.labels import Labels
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.model.limits import with_limit_model
from nmd_lab.model.mixed import MixedPair
from nmd_lab.model.proximal import make_pair

from .fold_in import FittedModel


def solve_columns(
    model: FittedModel,
    W: FloatArray,
    row_offsets: FloatArray | None,
    observations: SparseObservations,
    row_weights: NDArray[np.float64],
    *,
    threads: int | None = None,
) -> FittedModel:
    """Return a model whose H, and offsets of columns, are the best for given rows of W.

    A column keeps what it has if that is better.

    Parameters
    ----------
    model : FittedModel
        Model with the present H, which a column without entries keeps.
    W : ndarray (k, rank)
        Rows of W.
    row_offsets : ndarray (k,) or None
        Their offsets; None if the model has none.
    observations : SparseObservations
        The rows of X, with all columns of the model in its order.
    row_weights : ndarray (k,)
        Factor of the loss of each row.
    threads : int, optional
        Number of threads; by default all.
    """
    from nmd_lab.solver.constraints.text import constraint_from
    from nmd_lab.solver.new_rows import RowProblem, solve_new_rows

    pair = with_limit_model(make_pair(model.nonlinearity, model.loss), model.limits)
    k, of_columns = W.shape[0], model.offsets.columns
    problem = RowProblem(
        pair,
        np.ascontiguousarray(W),
        model.offsets.mean + (np.zeros(k) if row_offsets is None else row_offsets),
        np.arange(k),
        of_columns is not None,
        model.alpha_of_H,
        model.offset_alpha,
        model.epsilon,
        constraint_from(model.h_constraint),
        model.absent_are_zeros,
    )
    weighted = _weighted(observations, row_weights)
    columns = transposed(weighted)
    Ht, offsets = solve_new_rows(problem, columns, threads=threads)
    if model.nonlinearity.even:  # it does not know the sign of a column: that of before
        Ht = Ht * np.where(np.sum((Ht @ (W.T @ W)) * model.H.T, axis=1) < 0, -1, 1)[:, None]
    taken = columns.counts(1) > 0
    found = _with_columns(model, Ht.T, offsets, taken)
    before, after = (objectives(m, W, row_offsets, weighted, 0) for m in (model, found))
    if before is None or after is None:
        return found
    return _with_columns(model, Ht.T, offsets, taken & (after <= before))


def _with_columns(
    model: FittedModel, H: FloatArray, offsets: FloatArray | None, taken: NDArray[np.bool_]
) -> FittedModel:
    """Return a model with other columns of H, and their offsets, where they are taken."""
    own = np.ascontiguousarray(np.where(taken, H, model.H), dtype=model.H.dtype)
    of_columns = model.offsets.columns
    if of_columns is not None and offsets is not None:
        of_columns = np.where(taken, offsets, of_columns).astype(of_columns.dtype)
    return model._replace(H=own, offsets=model.offsets._replace(columns=of_columns))


def _weighted(own: SparseObservations, row_weights: NDArray[np.float64]) -> SparseObservations:
    """Return observations whose rows have further weights."""
    if np.all(row_weights == 1):
        return own
    weights = np.repeat(row_weights, np.diff(own.indptr))
    return replace(own, weights=weights if own.weights is None else weights * own.weights)


def transposed(own: SparseObservations) -> SparseObservations:
    """Return the observations with rows and columns exchanged."""
    k, n = own.shape
    numbers = np.arange(own.values.size)
    order = sparse.csr_array((numbers, own.indices, own.indptr), shape=(k, n)).tocsc()
    limits: EntryLimits | None = None if own.limits is None else own.limits.at(order.data)
    return SparseObservations(
        own.values[order.data],
        None if own.weights is None else own.weights[order.data],
        order.indptr,
        order.indices,
        Labels.plain((n, k)),
        own.absent_are_zeros,
        limits,
    )


def objectives(
    model: FittedModel,
    W: FloatArray,
    row_offsets: FloatArray | None,
    observations: SparseObservations,
    axis: int,
) -> NDArray[np.float64] | None:
    """Return the part of the objective of each row (axis 1) or of each column (axis 0).

    None where it is not a plain sum of losses and ridges: for limits, for zeros that are not
    stored, and for penalties.
    """
    penalties = [str(each).startswith("sparse") for each in (model.constraint, model.h_constraint)]
    if observations.limits is not None or observations.absent_are_zeros or any(penalties):
        return None
    i, j = observations.rows, observations.indices
    columns = model.offsets.columns
    t = np.einsum("ik,ik->i", W[i], model.H.T[j], dtype=np.float64) + model.offsets.mean
    t += 0.0 if row_offsets is None else row_offsets[i]
    t += 0.0 if columns is None else columns[j]
    losses = model.loss(observations.values.astype(np.float64), model.nonlinearity(t))
    if observations.weights is not None:
        losses = losses * observations.weights
    lines, factor, alpha = (i, W, model.alpha) if axis else (j, model.H.T, model.alpha_of_H)
    own: NDArray[np.float64] = np.bincount(lines, losses, minlength=len(factor)).astype(float)
    own += 0.5 * alpha * np.sum(np.square(factor, dtype=np.float64), axis=1)
    offsets = row_offsets if axis else columns
    if offsets is not None:
        own += 0.5 * model.offset_alpha * np.square(offsets, dtype=np.float64)
    return own


def refuse_mixed(model: FittedModel) -> None:
    """Raise ValueError for a model whose columns have losses of their own."""
    if isinstance(model.loss.pair, MixedPair):
        raise ValueError(
            "the columns of this fit have losses of their own, so that H cannot be updated: use "
            "append(), or fit again."
        )
