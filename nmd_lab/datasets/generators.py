"""Data without a download: pictures of scikit-learn, penguins, seeded matrices and noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.checks import as_generator, check_number, check_rank, check_share, check_word
from nmd_lab.data.labels import plain_array
from nmd_lab.model.nonlinearities import Nonlinearity, as_nonlinearity

PHOTOGRAPHS = {"china": "the Summer Palace in Beijing", "flower": "a dahlia"}
"""Names of the photographs, with what they show."""


def photograph(
    name: str = "china", *, gray: bool = True, size: tuple[int, int] | None = None
) -> xr.DataArray:
    """Return one of the two photographs of scikit-learn, with brightness from 0 to 1.

    Parameters
    ----------
    name : {"china", "flower"}, default "china"
        Name of the photograph.
    gray : bool, default True
        Whether to return grey levels instead of red, green and blue (a third dimension).
    size : (int, int), optional
        Height and width in pixels of a smaller copy, made by averaging. Default: the original
        427 x 640.

    Returns
    -------
    DataArray (y, x) or (y, x, channel)
        Brightness, float64. `y` counts pixels from the top, `x` from the left.

    Raises
    ------
    ValueError
        If the name is unknown, or if the size is not positive or larger than the original.
    ImportError
        If Pillow, which reads the file, is missing.

    Examples
    --------
    >>> from nmd_lab import datasets
    >>> datasets.photograph("flower").shape
    (427, 640)
    """
    from sklearn.datasets import load_sample_image  # takes a second to import

    check_word("name", name, PHOTOGRAPHS)
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("Photographs need Pillow: pip install pillow.") from error
    picture = Image.fromarray(load_sample_image(f"{name}.jpg"))
    if size is not None:
        if len(size) != 2 or min(size) < 1 or size[0] > picture.height or size[1] > picture.width:
            raise ValueError(
                f"size={size} makes no sense: give (height, width), at most {picture.size[::-1]}."
            )
        picture = picture.resize((int(size[1]), int(size[0])), Image.Resampling.BOX)
    values = np.asarray(picture) / 255
    dims: tuple[str, ...] = ("y", "x", "channel")
    coords: dict[str, Any] = {"channel": ["red", "green", "blue"]}
    if gray:
        grey = values @ np.array([0.299, 0.587, 0.114])  # luma of ITU-R BT.601
        values, dims, coords = grey, dims[:2], {}
    coords |= {"y": np.arange(values.shape[0]), "x": np.arange(values.shape[1])}
    photo = xr.DataArray(values, dims=dims, coords=coords, name="brightness")
    for axis in ("y", "x"):
        photo[axis].attrs["units"] = "pixel"
    return photo.assign_attrs(
        long_name="brightness",
        description=f"{PHOTOGRAPHS[name]}, {name}.jpg of scikit-learn's sample images",
    )


def digits(n: int | None = None) -> xr.DataArray:
    """Return the handwritten digits of scikit-learn, 8 x 8 pixels from 0 to 1.

    Parameters
    ----------
    n : int, optional
        Number of images, from the first one on. Default: all 1797.

    Returns
    -------
    DataArray (image, pixel)
        Amount of ink, float64 in steps of 1/16, with the coordinates `digit` of each image and
        `y`, `x` of each pixel.

    Raises
    ------
    ValueError
        If n is not between 1 and 1797.

    Examples
    --------
    >>> from nmd_lab import datasets
    >>> datasets.digits(10).digit.values
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    from sklearn.datasets import load_digits  # takes a second to import

    bunch = load_digits()
    total = len(bunch.target)
    if n is not None and not 1 <= n <= total:
        raise ValueError(f"n={n} is out of range: there are {total} images.")
    images = bunch.images[:n] / 16
    y, x = np.divmod(np.arange(64), 8)
    return xr.DataArray(
        images.reshape(-1, 64),
        dims=("image", "pixel"),
        coords={
            "image": np.arange(len(images)),
            "digit": ("image", bunch.target[:n]),
            "y": ("pixel", y),
            "x": ("pixel", x),
        },
        name="ink",
        attrs={
            "long_name": "ink",
            "description": "handwritten digits of scikit-learn (test set of the UCI collection)",
        },
    )


def penguins() -> pd.DataFrame:
    """Return 344 penguins of three species, measured at Palmer Station (K. Gorman; CC0).

    Returns
    -------
    DataFrame
        The categories species, island and sex, four measurements, and the year.  Ten penguins have
        no sex, and two no measurements.

    Examples
    --------
    >>> from nmd_lab import datasets
    >>> datasets.penguins().shape
    (344, 8)
    """
    categories = dict.fromkeys(["species", "island", "sex"], "category")
    return pd.read_csv(Path(__file__).with_name("penguins.csv")).astype(categories)


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
    return _like(X, plain_array(X) + scale * error)


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
    values = plain_array(X).astype(float)
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
    mean = peak * plain_array(X).astype(float)
    if np.any(mean < 0):
        raise ValueError(f"X holds the negative value {np.nanmin(X):g}: counts need a mean >= 0.")
    counts = as_generator(random_state).poisson(np.nan_to_num(mean))
    return _like(X, np.where(np.isnan(mean), np.nan, counts / peak))


def _like(X: Array, values: NDArray[Any]) -> Array:
    """Return the values with the labels of X."""
    return X.copy(data=values) if isinstance(X, xr.DataArray) else values


def make_ratings(
    n_users: int,
    n_items: int,
    n_ratings: int,
    rank: int = 5,
    *,
    step: float = 1.0,
    noise: float = 0.75,
    random_state: Any = None,
) -> pd.DataFrame:
    """Return a table of random ratings with offsets, a low-rank term and noise.

    The activity of users and the popularity of items have lognormal distributions: a few items
    have many ratings, and most have few. Popular items get slightly better ratings. Time and
    memory are proportional to the number of ratings, not to users times items.

    Parameters
    ----------
    n_users, n_items : int
        Number of users and of items. Each gets at least one rating.
    n_ratings : int
        Number of ratings, at least max(n_users, n_items) and at most a third of all pairs.
    rank : int, default 5
        Rank of the low-rank term.
    step : {1, 0.5}, default 1
        Step of the ratings, in stars. 1 gives ratings from 1 to 5, 0.5 ratings from 0.5 to 5.
    noise : float, default 0.75
        Standard deviation of the noise, in stars. This is about the error of the best prediction.
    random_state : int, Generator or None, default None
        Seed of the random numbers.

    Returns
    -------
    DataFrame
        Columns user and item (from 0), rating, and expected (the rating before noise and
        rounding), sorted by user and item. `nmd_lab.observations_from_table` accepts it.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from nmd_lab import datasets
    >>> ratings = datasets.make_ratings(1000, 500, 20_000, random_state=0)
    >>> len(ratings), sorted(ratings["rating"].unique().tolist())
    (20000, [1.0, 2.0, 3.0, 4.0, 5.0])
    """
    rank = check_rank(rank, (n_users, n_items))
    fewest, most = max(n_users, n_items), n_users * n_items // 3
    if not fewest <= n_ratings <= most:
        raise ValueError(
            f"n_ratings={n_ratings} is out of range: give from {fewest}, one for each user and "
            f"item, to {most}, a third of all pairs."
        )
    if step not in (0.5, 1):
        raise ValueError(f"step={step} is unknown: give 1 for whole or 0.5 for half stars.")
    check_number("noise", noise, 0)
    # Statistics similar to those of MovieLens 1M: standard deviations of the offsets of users and
    # of items and of the low-rank term, in stars, and of the logarithms of numbers of ratings; and
    # the correlation of the offset of an item with its popularity.
    offset, taste, activity, popularity, appeal = 0.45, 0.45, 1.0, 1.3, 0.3
    rng = as_generator(random_state)
    active, popular = rng.standard_normal(n_users), rng.standard_normal(n_items)
    user, item = _pairs((np.exp(activity * active), np.exp(popularity * popular)), n_ratings, rng)

    users = offset * rng.standard_normal(n_users)
    independent = np.sqrt(1 - appeal**2) * rng.standard_normal(n_items)
    items = offset * (appeal * popular + independent)
    W, H = rng.standard_normal((n_users, rank)), rng.standard_normal((n_items, rank))
    expected = 3.5 + users[user] + items[item]
    for of_users, of_items in zip(W.T, H.T, strict=True):
        expected += taste / np.sqrt(rank) * of_users[user] * of_items[item]
    noisy = expected + noise * rng.standard_normal(n_ratings)
    rating = np.clip(np.round(noisy / step) * step, step, 5)
    return pd.DataFrame({"user": user, "item": item, "rating": rating, "expected": expected})


def _pairs(
    chances: tuple[NDArray[np.float64], NDArray[np.float64]], count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw distinct pairs of a user and an item, sorted, with at least one for each of them."""
    n_users, n_items = (chance.size for chance in chances)
    covering = np.arange(max(n_users, n_items))
    pairs = rng.permutation(n_users)[covering % n_users] * n_items  # coded as one number
    pairs = np.sort(pairs + rng.permutation(n_items)[covering % n_items])
    popular = [chance / chance.sum() for chance in chances]
    alike = [np.full(size, 1 / size) for size in (n_users, n_items)]
    probabilities = popular
    while pairs.size < count:
        n_missing = count - pairs.size
        n_drawn = n_missing + n_missing // 4 + 10
        users, items = (
            np.repeat(np.arange(p.size), rng.multinomial(n_drawn, p)) for p in probabilities
        )
        new = np.setdiff1d(rng.permuted(users) * n_items + items, pairs)
        few = new.size <= 0.05 * n_missing  # the popular ones are used up
        probabilities = alike if few else popular
        if new.size > n_missing:
            new = new[rng.choice(new.size, n_missing, replace=False, shuffle=False)]
        pairs = np.union1d(pairs, new)
    return pairs // n_items, pairs % n_items
