"""Seeded matrices that a model generates, and seeded noise."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._checks import check_number, check_rank, check_share
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
    """Return X = f(WH) with standard Gaussian factors, as in the paper's synthetic tests.

    Parameters
    ----------
    m, n : int
        Number of rows and columns.
    rank : int
        Number of components, from 1 to min(m, n).
    nonlinearity : str or Nonlinearity, default "relu"
        f.
    noise : float, default 0
        Norm of the Gaussian noise that is added to f(WH), as a fraction of the norm of f(WH).
    missing : float, default 0
        Fraction of the entries that are NaN in X, drawn independently; from 0 to below 1.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    Dataset
        `X` (row, column), the data; `clean` (row, column), f(WH) without noise and holes; the
        factors `W` (row, component) and `H` (component, column).

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range.

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
    rng = np.random.default_rng(random_state)
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
    """Add Gaussian noise, which the Frobenius loss fits.

    Parameters
    ----------
    X : ndarray or DataArray
        Clean values; NaN stays NaN.
    scale : float
        Standard deviation, in the units of X.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    ndarray or DataArray
        What X was, with its labels.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab import datasets
    >>> noisy = datasets.gaussian(np.zeros(10_000), 0.5, random_state=0)
    >>> round(float(noisy.std()), 2)
    0.5
    """
    check_number("scale", scale, 0)
    error = np.random.default_rng(random_state).standard_normal(np.shape(X))
    return _like(X, np.asarray(X) + scale * error)


def salt_and_pepper(
    X: Array, fraction: float, *, low: float = 0.0, high: float = 1.0, random_state: Any = None
) -> Array:
    """Set some entries to one of two extremes, outliers which the L1 loss ignores.

    Parameters
    ----------
    X : ndarray or DataArray
        Clean values; NaN stays NaN.
    fraction : float
        How many entries are hit, from 0 to 1; half of them on each side.
    low, high : float, default 0 and 1
        Pepper and salt, in the units of X.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    ndarray or DataArray
        What X was, with its labels.

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
    chance = np.random.default_rng(random_state).random(values.shape)
    hit = (chance < fraction) & ~np.isnan(values)
    return _like(X, np.where(hit, np.where(chance < fraction / 2, low, high), values))


def poisson(X: Array, peak: float = 1.0, *, random_state: Any = None) -> Array:
    """Replace each value by a Poisson count with that mean, noise which the KL loss fits.

    Parameters
    ----------
    X : ndarray or DataArray
        Clean values >= 0; NaN stays NaN.
    peak : float, default 1
        Counts per unit of X: the counts have the mean ``peak * X`` and are divided by `peak`
        again, so a larger peak means less noise.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    ndarray or DataArray
        What X was, with its labels.

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
    counts = np.random.default_rng(random_state).poisson(np.nan_to_num(mean))
    return _like(X, np.where(np.isnan(mean), np.nan, counts / peak))


def _like(X: Array, values: NDArray[Any]) -> Array:
    """Return the values with the labels of X."""
    return X.copy(data=values) if isinstance(X, xr.DataArray) else values
