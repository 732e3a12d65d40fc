"""Errors of a model, on the observed entries of the data.

Entries that are NaN in X, that a sparse X does not store, that are False in `observed` or have
weight 0 are left out.  X and Y are matched by label where both have labels, and X may have some of
the rows and columns of Y only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist

from nmd_lab._runtime.checks import check_no_fit
from nmd_lab.data.entries import FloatArray, check_shape
from nmd_lab.data.inputs import observe
from nmd_lab.data.labels import is_frame, labels_of
from nmd_lab.data.matching import match_data
from nmd_lab.data.sparse import is_sparse
from nmd_lab.model.losses import Loss, as_loss

from .data.labels import plain_array

Compared = tuple[FloatArray, FloatArray, FloatArray]
"""Observed entries of X, the same entries of Y, and their weights, flat."""


def _compared(X: Any, Y: Any, observed: Any, weights: Any) -> Compared:
    """Return the observed entries of X and those of Y, by label where both have labels."""
    check_no_fit("X", X)
    check_no_fit("Y", Y)
    has_labels = any(is_sparse(one) or is_frame(one) or _dims(one) for one in (X, Y))
    n_dims = {2 if is_sparse(one) else np.ndim(one) for one in (X, Y)}
    if not (has_labels and (n_dims == {2} or (_dims(X) and _dims(Y) and min(n_dims) > 1))):
        X, Y = _floats(X), _floats(Y)
        named, shape = {"X": X, "Y": Y, "observed": observed, "weights": weights}, X.shape
        X, Y, observed, weights = (_as_matrix(name, one, shape) for name, one in named.items())
    model = observe(Y) if is_sparse(Y) else None
    rows = _dims(Y)[0] if np.ndim(Y) > 2 else None
    labels = labels_of(Y, sample_dims=rows) if model is None else model.labels
    data = match_data(labels, X, observed=observed, weights=weights, owner="Y")
    i, j, _ = data.observations.entries()
    x, entry_weights = data.observations.observed()
    i, j = data.rows[i], data.columns[j]
    y = labels.flatten(_floats(Y))[i, j] if model is None else _stored_at(model, i, j)
    return x, y.astype(float), entry_weights


def _stored_at(model: Any, i: Any, j: Any) -> FloatArray:
    """Return the stored values of sparse observations at some positions."""
    entries, n = model.entries(), model.shape[1]
    wanted = i.astype(np.int64) * n + j
    found: FloatArray = pd.Series(entries.values, entries.flat(n)).reindex(wanted).to_numpy()
    if absent := int(np.isnan(found).sum()):
        raise ValueError(
            f"Y has no value at {absent} of the {wanted.size} observed entries of X: give one for "
            "each, for example fit.predict(X)."
        )
    return found


def _dims(one: Any) -> tuple[Any, ...]:
    """Return the dimensions of a DataArray, () for other input."""
    return tuple(one.dims) if isinstance(one, xr.DataArray) else ()


def _floats(one: Any) -> FloatArray:
    """Return dense input as an array of float64, NaN where it is masked."""
    if np.iscomplexobj(one):
        raise TypeError("X and Y hold complex numbers: give real ones, such as their abs().")
    return plain_array(one).astype(float)


def _as_matrix(name: str, array: Any, shape: tuple[int, ...]) -> NDArray[Any] | None:
    """Return an array of the shape of X as a matrix, as a column if it is none; None as it is."""
    if array is None:
        return None
    result = plain_array(array)
    check_shape(name, result.shape, shape)
    return result if result.ndim == 2 else result.reshape(-1, 1)


def rmse(
    X: Any, Y: Any, *, observed: ArrayLike | None = None, weights: ArrayLike | None = None
) -> float:
    """Return the root mean squared error of Y.

    Parameters
    ----------
    X, Y : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
        Data and model, of equal shape or with labels, such as held-out entries and
        ``fit.predict(X)`` or ``fit.reconstruct()``.
    observed : array_like of bool, optional
        True where an entry is compared. Default: all entries.
    weights : array_like, optional
        Weights of the entries of X, >= 0. Default: all are 1.

    Returns
    -------
    float
        Error in the units of X.

    Raises
    ------
    ValueError
        If shapes or labels differ, if Y lacks a compared entry, or if no entry is observed.

    Examples
    --------
    >>> from nmd_lab.metrics import rmse
    >>> rmse([1.0, 2.0, np.nan], [1.0, 4.0, 0.0])
    1.4142135623730951
    """
    x, y, w = _compared(X, Y, observed, weights)
    return float(np.sqrt(np.average((x - y) ** 2, weights=w)))


def mae(
    X: Any, Y: Any, *, observed: ArrayLike | None = None, weights: ArrayLike | None = None
) -> float:
    """Return the mean absolute error of Y.

    Parameters
    ----------
    X, Y, observed, weights
        As for `rmse`.

    Returns
    -------
    float
        Error in the units of X.

    Raises
    ------
    ValueError
        If shapes or labels differ, if Y lacks a compared entry, or if no entry is observed.

    Examples
    --------
    >>> from nmd_lab.metrics import mae
    >>> mae([1.0, 2.0, np.nan], [1.0, 4.0, 0.0])
    1.0
    """
    x, y, w = _compared(X, Y, observed, weights)
    return float(np.average(np.abs(x - y), weights=w))


def relative_error(
    X: Any,
    Y: Any,
    *,
    loss: str | Loss = "frobenius",
    observed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> float:
    """Return the relative error of Y in the sense of a loss.

    For "frobenius" and "l1" it is ‖X - Y‖ / ‖X‖ in the Frobenius norm and the entrywise l1 norm.
    For "kl" it is the divergence of Y divided by that of the constant matrix with the mean of X.

    Parameters
    ----------
    X, Y, observed, weights
        As for `rmse`.
    loss : str or Loss, default "frobenius"
        Loss that defines the error.

    Returns
    -------
    float
        Relative error, without unit.

    Raises
    ------
    ValueError
        If shapes or labels differ, if Y lacks a compared entry, if no entry is observed, or if the
        loss is unknown.

    Notes
    -----
    The definitions are those of the paper "ADMM for Nonlinear Matrix Decompositions", section on
    synthetic data.

    Examples
    --------
    >>> from nmd_lab.metrics import relative_error
    >>> relative_error([3.0, 4.0], [3.0, 3.0])
    0.2
    """
    x, y, w = _compared(X, Y, observed, weights)
    d = as_loss(loss)
    return d.relative_error(float(np.sum(w * d(x, y))), d.reference(x, w))


def energy_score(X: Any, draws: ArrayLike) -> float:
    """Return the mean energy score of the rows of X, over the root of their entries.

    A row x has [1]_ E‖T - x‖ - E‖T - T'‖ / 2 for independent draws T, T'.  The second mean is
    over pairs of different draws, so that few draws cost nothing on average.  It is the CRPS of a
    single entry, and in the units of X: standardise the columns.

    Parameters
    ----------
    X : array_like (m, n)
        Observed entries, and NaN elsewhere.
    draws : array_like (n_draws, m, n)
        Completed copies of X, at least two.

    Returns
    -------
    float
        Score; smaller is better.

    Raises
    ------
    ValueError
        If shapes differ, or no entry is observed.

    References
    ----------
    .. [1] T. Gneiting and A. E. Raftery, "Strictly proper scoring rules, prediction, and
       estimation", Journal of the American Statistical Association 102, 359-378, 2007.

    Examples
    --------
    >>> from nmd_lab.metrics import energy_score
    >>> energy_score([[1.0, np.nan]], [[[0.0, 9.0]], [[2.0, 9.0]]])
    0.0
    """
    x, drawn, found = _floats(X), _floats(draws), []
    if drawn.ndim != 3 or drawn.shape[1:] != x.shape or len(drawn) < 2:
        raise ValueError(f"draws has shape {drawn.shape}: give two or more of the shape {x.shape}.")
    for i in np.flatnonzero(~np.isnan(x).all(axis=1)):
        seen = ~np.isnan(x[i])
        row, of_row = x[i, seen], drawn[:, i, seen]
        apart = pdist(of_row).mean()
        away = np.linalg.norm(of_row - row, axis=1).mean()
        found.append((away - apart / 2) / np.sqrt(row.size))
    if not found:
        raise ValueError("X has no observed entry to compare: check the NaN in X.")
    return float(np.mean(found))
