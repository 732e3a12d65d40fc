"""Seeded ratings that look like real ones: a few items are rated by many, most by a few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import as_generator, check_number, check_rank

if TYPE_CHECKING:
    import pandas as pd

MEAN = 3.5
OFFSET = 0.45
"""Standard deviation of what a user, or an item, is above or below the mean."""
TASTE = 0.45
"""Standard deviation of the low-rank part."""
ACTIVITY, POPULARITY = 1.0, 1.3
"""Spread of the logarithm of how much users rate, and items are rated (MovieLens 1M has such)."""
PAIRS_AT_ONCE = 1 << 20


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
    """Return a table of ratings by popularity, offsets, low-rank taste and noise.

    Activity of users and popularity of items are lognormal, and what is popular is liked a little
    better.  Time and memory grow with the number of ratings, not with users times items.

    Parameters
    ----------
    n_users, n_items : int
        Number of users and of items; each gets at least one rating.
    n_ratings : int
        Number of ratings, at least max(n_users, n_items) and at most a third of all pairs.
    rank : int, default 5
        Number of components of the low-rank part.
    step : {1, 0.5}, default 1
        1 makes whole stars from 1 to 5, 0.5 half stars from 0.5 to 5.
    noise : float, default 0.75
        Standard deviation of the noise, in stars: about what the best prediction misses by.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    DataFrame
        Columns user and item (from 0), rating, and expected, the rating before noise and rounding;
        sorted by user and item.  `nmd_lab.observations_from_table` takes it.

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
    rng = as_generator(random_state)
    active, popular = rng.standard_normal(n_users), rng.standard_normal(n_items)
    chances = np.exp(ACTIVITY * active), np.exp(POPULARITY * popular)
    user, item = _pairs(chances, n_ratings, rng)

    users = OFFSET * rng.standard_normal(n_users)
    items = OFFSET * (0.3 * popular + np.sqrt(1 - 0.3**2) * rng.standard_normal(n_items))
    W, H = rng.standard_normal((n_users, rank)), rng.standard_normal((n_items, rank))
    expected = MEAN + users[user] + items[item]
    for start in range(0, n_ratings, PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        products = np.einsum("pk,pk->p", W[user[part]], H[item[part]])
        expected[part] += TASTE / np.sqrt(rank) * products
    noisy = expected + noise * rng.standard_normal(n_ratings)
    rating = np.clip(np.round(noisy / step) * step, step, 5)
    return pd.DataFrame({"user": user, "item": item, "rating": rating, "expected": expected})


def _pairs(
    chances: tuple[NDArray[np.float64], NDArray[np.float64]], count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw different pairs of a user and an item, sorted; everyone and everything has one."""
    n_users, n_items = (chance.size for chance in chances)
    covering = np.arange(max(n_users, n_items))
    found = rng.permutation(n_users)[covering % n_users] * n_items
    found = np.sort(found + rng.permutation(n_items)[covering % n_items])
    likely = True
    while found.size < count:
        missing = count - found.size
        users, items = (_draw(c, missing + missing // 4 + 10, likely, rng) for c in chances)
        pairs = np.sort(rng.permuted(users) * n_items + items)
        known = found[np.searchsorted(found, pairs) % found.size] == pairs
        new = pairs[~known & (np.diff(pairs, prepend=-1) > 0)]
        likely = new.size > 0.05 * missing  # once the popular pairs are used up, take any
        if new.size > missing:
            new = new[rng.choice(new.size, missing, replace=False, shuffle=False)]
        found = np.sort(np.concatenate([found, new]))
    return found // n_items, found % n_items


def _draw(
    chance: NDArray[np.float64], count: int, likely: bool, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw positions, sorted, with probabilities proportional to the chances or all the same."""
    share = chance / chance.sum() if likely else np.full(chance.size, 1 / chance.size)
    drawn: NDArray[np.int64] = np.repeat(np.arange(chance.size), rng.multinomial(count, share))
    return drawn
