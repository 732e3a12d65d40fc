"""A seeded generator of ratings with the statistics of real ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import as_generator, check_number, check_rank

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RatingsModel:
    """Statistics of the ratings, similar to those of MovieLens 1M.

    Attributes
    ----------
    mean : float
        Mean rating, in stars.
    offset : float
        Standard deviation of the offsets of users and of items, in stars.
    taste : float
        Standard deviation of the low-rank term, in stars.
    activity, popularity : float
        Standard deviation of the logarithm of the number of ratings of a user, and of an item.
    appeal : float
        Correlation of the offset of an item with the logarithm of its popularity.
    """

    mean: float = 3.5
    offset: float = 0.45
    taste: float = 0.45
    activity: float = 1.0
    popularity: float = 1.3
    appeal: float = 0.3


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
    import pandas as pd

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
    model, rng = RatingsModel(), as_generator(random_state)
    active, popular = rng.standard_normal(n_users), rng.standard_normal(n_items)
    chances = np.exp(model.activity * active), np.exp(model.popularity * popular)
    user, item = _pairs(chances, n_ratings, rng)

    users = model.offset * rng.standard_normal(n_users)
    independent = np.sqrt(1 - model.appeal**2) * rng.standard_normal(n_items)
    items = model.offset * (model.appeal * popular + independent)
    W, H = rng.standard_normal((n_users, rank)), rng.standard_normal((n_items, rank))
    expected = model.mean + users[user] + items[item]
    _add_products(expected, W, H, user, item, model.taste / np.sqrt(rank))
    noisy = expected + noise * rng.standard_normal(n_ratings)
    rating = np.clip(np.round(noisy / step) * step, step, 5)
    return pd.DataFrame({"user": user, "item": item, "rating": rating, "expected": expected})


def _add_products(
    expected: NDArray[np.float64],
    W: NDArray[np.float64],
    H: NDArray[np.float64],
    user: NDArray[np.int64],
    item: NDArray[np.int64],
    scale: float,
    *,
    chunk: int = 1 << 20,
) -> None:
    """Add scaled products of the factors to the ratings, in chunks to save memory."""
    for start in range(0, len(expected), chunk):
        pairs = slice(start, start + chunk)
        products = np.einsum("pk,pk->p", W[user[pairs]], H[item[pairs]])
        expected[pairs] += scale * products


def _pairs(
    chances: tuple[NDArray[np.float64], NDArray[np.float64]], count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw distinct pairs of a user and an item, sorted, with at least one for each of them."""
    n_users, n_items = (chance.size for chance in chances)
    covering = np.arange(max(n_users, n_items))
    pairs = rng.permutation(n_users)[covering % n_users] * n_items  # coded as one number
    pairs = np.sort(pairs + rng.permutation(n_items)[covering % n_items])
    by_chance = True
    while pairs.size < count:
        n_missing = count - pairs.size
        n_drawn = n_missing + n_missing // 4 + 10
        users, items = (_draw(chance, n_drawn, by_chance, rng) for chance in chances)
        drawn = np.sort(rng.permuted(users) * n_items + items)
        is_old = pairs[np.searchsorted(pairs, drawn) % pairs.size] == drawn
        new = drawn[~is_old & (np.diff(drawn, prepend=-1) > 0)]
        by_chance = new.size > 0.05 * n_missing  # few new pairs: the popular ones are used up
        if new.size > n_missing:
            new = new[rng.choice(new.size, n_missing, replace=False, shuffle=False)]
        pairs = np.sort(np.concatenate([pairs, new]))
    return pairs // n_items, pairs % n_items


def _draw(
    chance: NDArray[np.float64], count: int, by_chance: bool, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw sorted positions, with probabilities proportional to `chance` or all equal."""
    uniform = np.full(chance.size, 1 / chance.size)
    probability = chance / chance.sum() if by_chance else uniform
    counts = rng.multinomial(count, probability)
    drawn: NDArray[np.int64] = np.repeat(np.arange(chance.size), counts)
    return drawn
