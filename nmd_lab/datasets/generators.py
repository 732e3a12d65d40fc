"""Seeded generators of matrices and of noise."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.checks import as_generator, check_number, check_rank, check_share
from nmd_lab.model.nonlinearities import Nonlinearity, as_nonlinearity

Array = TypeVar("Array", NDArray[Any], xr.DataArray)


def synthetic(
    m: int,
    n: int,
    rank: int,
    nonlinearity: str | Nonlinearity = "relu",
    *,
    noise: float = 0.0,
    missing: float = 0.0,
    random_state: Any = None,
) -> xr.Dataset:
    """Return X = f(WH) with standard Gaussian factors W and H.

    Parameters
    ----------
    m, n : int
        Number of rows and columns.
    rank : int
        Number of components, from 1 to min(m, n).
    nonlinearity : str or Nonlinearity, default "relu"
        Nonlinearity f.
    noise : float, default 0
        Norm of the Gaussian noise added to f(WH), as a fraction of the norm of f(WH).
    missing : float, default 0
        Probability of each entry of X to be NaN, from 0 to below 1.
    random_state : int, Generator or None, default None
        Seed of the random numbers.

    Returns
    -------
    Dataset
        Data `X` (row, column), complete f(WH) without noise `clean` (row, column), and factors `W`
        (row, component) and `H` (component, column).

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range.

    Notes
    -----
    The data of the synthetic tests in the paper "ADMM for Nonlinear Matrix Decompositions".

    Examples
    --------
    >>> from nmd_lab import datasets
    >>> data = datasets.synthetic(50, 40, 3, "minmax", missing=0.4, random_state=0)
    >>> float(data.X.min()), float(data.X.max())
    (0.0, 1.0)
    """
    f = as_nonlinearity(nonlinearity)
    rank = check_rank(rank, (m, n))
    check_number("noise", noise, 0)
    check_share("missing", missing)
    rng = as_generator(random_state)
    W, H = rng.standard_normal((m, rank)), rng.standard_normal((rank, n))
    clean = f(W @ H)
    X = clean
    if noise > 0:
        error = rng.standard_normal((m, n))
        X = clean + error * (noise * np.linalg.norm(clean) / np.linalg.norm(error))
    if missing > 0:
        X = np.where(rng.random((m, n)) < missing, np.nan, X)
    return xr.Dataset(
        {
            "X": (("row", "column"), X),
            "clean": (("row", "column"), clean),
            "W": (("row", "component"), W),
            "H": (("component", "column"), H),
        },
        attrs={"nonlinearity": repr(f), "noise": noise, "missing": missing},
    )


def gaussian(X: Array, scale: float, *, random_state: Any = None) -> Array:
    """Add Gaussian noise, the noise model of the Frobenius loss.

    Parameters
    ----------
    X : ndarray or DataArray
        Values without noise. NaN stays NaN.
    scale : float
        Standard deviation, in the units of X.
    random_state : int, Generator or None, default None
        Seed of the random numbers.

    Returns
    -------
    ndarray or DataArray
        Noisy values, of the type of X and with its labels.

    Raises
    ------
    ValueError, TypeError
        If `scale` is not a number >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab import datasets
    >>> noisy = datasets.gaussian(np.zeros(10_000), 0.5, random_state=0)
    >>> round(float(noisy.std()), 2)
    0.5
    """
    check_number("scale", scale, 0)
    error = as_generator(random_state).standard_normal(np.shape(X))
    return _like(X, np.asarray(X) + scale * error)


def salt_and_pepper(
    X: Array, fraction: float, *, low: float = 0.0, high: float = 1.0, random_state: Any = None
) -> Array:
    """Replace some entries by one of two extreme values, outliers for the L1 loss.

    Parameters
    ----------
    X : ndarray or DataArray
        Values without noise. NaN stays NaN.
    fraction : float
        Probability of each entry to be replaced, from 0 to 1. Both values are equally likely.
    low, high : float, default 0 and 1
        The two extreme values (pepper and salt), in the units of X.
    random_state : int, Generator or None, default None
        Seed of the random numbers.

    Returns
    -------
    ndarray or DataArray
        Noisy values, of the type of X and with its labels.

    Raises
    ------
    ValueError, TypeError
        If `fraction` is not a number from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab import datasets
    >>> noisy = datasets.salt_and_pepper(np.full(10_000, 0.5), 0.2, random_state=0)
    >>> round(float((noisy != 0.5).mean()), 2)
    0.2
    """
    check_share("fraction", fraction, one=True)
    values = np.asarray(X, dtype=float)
    chance = as_generator(random_state).random(values.shape)
    replaced = (chance < fraction) & ~np.isnan(values)
    return _like(X, np.where(replaced, np.where(chance < fraction / 2, low, high), values))


def poisson(X: Array, peak: float = 1.0, *, random_state: Any = None) -> Array:
    """Replace each value by a Poisson count with this mean, the noise model of the KL loss.

    Parameters
    ----------
    X : ndarray or DataArray
        Values without noise, >= 0. NaN stays NaN.
    peak : float, default 1
        Counts per unit of X. The counts have the mean ``peak * X`` and are divided by `peak`
        again, so a larger value gives less noise.
    random_state : int, Generator or None, default None
        Seed of the random numbers.

    Returns
    -------
    ndarray or DataArray
        Noisy values, of the type of X and with its labels.

    Raises
    ------
    ValueError, TypeError
        If `peak` is not a number > 0, or if X has a negative value.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab import datasets
    >>> datasets.poisson(np.array([0.0, 2.0, 50.0]), random_state=0)
    array([ 0.,  2., 62.])
    """
    check_number("peak", peak, above=0)
    mean = peak * np.asarray(X, dtype=float)
    if np.any(mean < 0):
        raise ValueError(f"X holds the negative value {np.nanmin(X):g}: counts need a mean >= 0.")
    counts = as_generator(random_state).poisson(np.nan_to_num(mean))
    return _like(X, np.where(np.isnan(mean), np.nan, counts / peak))


def _like(X: Array, values: NDArray[Any]) -> Array:
    """Return the values with the labels of X."""
    return X.copy(data=values) if isinstance(X, xr.DataArray) else values
