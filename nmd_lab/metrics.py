"""Errors of a model, on the observed entries of the data.

Entries that are NaN in X or False in `mask` are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmd_lab.model.losses import Loss, as_loss


def _observed(
    X: ArrayLike, Y: ArrayLike, mask: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the observed entries of X and the same entries of Y, flat."""
    x, y = np.asarray(X, dtype=float), np.asarray(Y, dtype=float)
    if x.shape != y.shape:
        raise ValueError(f"Y has shape {y.shape}: give it the shape of X, {x.shape}.")
    observed = ~np.isnan(x)
    if mask is not None:
        observed &= np.asarray(mask, dtype=bool)
    if not observed.any():
        raise ValueError("X has no observed entry to compare: check mask= and the NaN in X.")
    return x[observed], y[observed]


def rmse(X: ArrayLike, Y: ArrayLike, *, mask: ArrayLike | None = None) -> float:
    """Return the root mean squared error of Y.

    Parameters
    ----------
    X, Y : array_like of equal shape
        Data and model.
    mask : array_like of bool, optional
        True where an entry is compared. Default: all entries.

    Returns
    -------
    float
        Error in the units of X.

    Raises
    ------
    ValueError
        If the shapes differ, or if no entry is observed.

    Examples
    --------
    >>> from nmd_lab.metrics import rmse
    >>> rmse([1.0, 2.0, np.nan], [1.0, 4.0, 0.0])
    1.4142135623730951
    """
    x, y = _observed(X, Y, mask)
    return float(np.sqrt(np.mean((x - y) ** 2)))


def mae(X: ArrayLike, Y: ArrayLike, *, mask: ArrayLike | None = None) -> float:
    """Return the mean absolute error of Y.

    Parameters
    ----------
    X, Y, mask
        As for `rmse`.

    Returns
    -------
    float
        Error in the units of X.

    Raises
    ------
    ValueError
        If the shapes differ, or if no entry is observed.

    Examples
    --------
    >>> from nmd_lab.metrics import mae
    >>> mae([1.0, 2.0, np.nan], [1.0, 4.0, 0.0])
    1.0
    """
    x, y = _observed(X, Y, mask)
    return float(np.mean(np.abs(x - y)))


def relative_error(
    X: ArrayLike, Y: ArrayLike, *, loss: str | Loss = "frobenius", mask: ArrayLike | None = None
) -> float:
    """Return the relative error of Y in the sense of a loss.

    For "frobenius" and "l1" it is ‖X - Y‖ / ‖X‖ in the Frobenius norm and the entrywise l1 norm.
    For "kl" it is the divergence of Y divided by that of the constant matrix with the mean of X.

    Parameters
    ----------
    X, Y, mask
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
        If the shapes differ, if no entry is observed, or if the loss is unknown.

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
    x, y = _observed(X, Y, mask)
    d = as_loss(loss)
    return d.relative_error(float(np.sum(d(x, y))), d.reference(x, np.ones(x.size)))
