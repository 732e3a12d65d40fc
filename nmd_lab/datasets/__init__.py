"""Data sets: bundled pictures and ratings, seeded generators, and readers of well-known sets.

>>> from nmd_lab import datasets
>>> datasets.digits().sizes
Frozen({'image': 1797, 'pixel': 64})
>>> datasets.synthetic(100, 80, rank=5, nonlinearity="relu", random_state=0).X.shape
(100, 80)
"""

from .bundled import PHOTOGRAPHS, digits, photograph
from .generators import gaussian, poisson, salt_and_pepper, synthetic
from .jester import jester
from .movielens import movielens, movielens_1m, movielens_100k, movielens_small
from .pictures import cbcl, mit_logo, mnist
from .synthetic_ratings import make_ratings

__all__ = [
    "PHOTOGRAPHS",
    "cbcl",
    "digits",
    "gaussian",
    "jester",
    "make_ratings",
    "mit_logo",
    "mnist",
    "movielens",
    "movielens_1m",
    "movielens_100k",
    "movielens_small",
    "photograph",
    "poisson",
    "salt_and_pepper",
    "synthetic",
]
