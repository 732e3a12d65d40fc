"""How far a model is from data, over the entries that count.

NaN in X, and entries with ``mask == False``, are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmd_lab.model.losses import Loss, as_loss


def _observed(
    X: ArrayLike, Y: ArrayLike, mask: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the entries of both that are to be compared, flat."""
    x, y = np.asarray(X, dtype=float), np.asarray(Y, dtype=float)
    if x.shape != y.shape:
        raise ValueError(f"Y has shape {y.shape}: give it the shape of X, {x.shape}.")
    seen = ~np.isnan(x)
    if mask is not None:
        seen &= np.asarray(mask, dtype=bool)
    if not seen.any():
        raise ValueError("X has no observed entry to compare: check mask= and the NaN in X.")
    return x[seen], y[seen]


def rmse(X: ArrayLike, Y: ArrayLike, *, mask: ArrayLike | None = None) -> float:
    """Return the root mean squared error of Y, in the units of X.

    Parameters
    ----------
    X, Y : array_like of equal shape
        Data and model.
    mask : array_like of bool, optional
        True where an entry is compared.

    Examples
    --------
    >>> from nmd_lab.metrics import rmse
    >>> rmse([1.0, 2.0, np.nan], [1.0, 4.0, 0.0])
    1.4142135623730951
    """
    x, y = _observed(X, Y, mask)
    return float(np.sqrt(np.mean((x - y) ** 2)))


def mae(X: ArrayLike, Y: ArrayLike, *, mask: ArrayLike | None = None) -> float:
    """Return the mean absolute error of Y, in the units of X.

    Parameters
    ----------
    X, Y, mask
        As for `rmse`.
    """
    x, y = _observed(X, Y, mask)
    return float(np.mean(np.abs(x - y)))


def relative_error(
    X: ArrayLike, Y: ArrayLike, *, loss: str | Loss = "frobenius", mask: ArrayLike | None = None
) -> float:
    """Return the relative error of Y as the paper defines it for each loss.

    ‖X - Y‖ / ‖X‖ in the Frobenius or the entrywise l1 norm; for KL the divergence of Y over
    that of the constant matrix that holds X's mean (paper, section on synthetic data).

    Parameters
    ----------
    X, Y, mask
        As for `rmse`.
    loss : str or Loss, default "frobenius"
        The loss whose error is meant.

    Examples
    --------
    >>> from nmd_lab.metrics import relative_error
    >>> relative_error([3.0, 4.0], [3.0, 3.0])
    0.2
    """
    x, y = _observed(X, Y, mask)
    d = as_loss(loss)
    return d.relative_error(float(np.sum(d(x, y))), d.reference(x, np.ones(x.size)))
