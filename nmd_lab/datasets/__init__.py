"""Data sets: bundled images, a table and ratings, seeded generators, and a reader of MovieLens.

>>> from nmd_lab import datasets
>>> datasets.digits().sizes
Frozen({'image': 1797, 'pixel': 64})
>>> datasets.synthetic(100, 80, rank=5, nonlinearity="relu", random_state=0).X.shape
(100, 80)
"""

from .film_ratings import movielens, movielens_1m, movielens_100k, movielens_small
from .generators import (
    PHOTOGRAPHS,
    digits,
    gaussian,
    make_ratings,
    penguins,
    photograph,
    poisson,
    salt_and_pepper,
    synthetic,
)

__all__ = [
    "PHOTOGRAPHS",
    "digits",
    "gaussian",
    "make_ratings",
    "movielens",
    "movielens_1m",
    "movielens_100k",
    "movielens_small",
    "penguins",
    "photograph",
    "poisson",
    "salt_and_pepper",
    "synthetic",
]
