"""Data sets: bundled images, a table and ratings, seeded generators, and a reader of MovieLens.

>>> from nmd_lab import datasets
>>> datasets.digits().sizes
Frozen({'image': 1797, 'pixel': 64})
>>> datasets.synthetic(100, 80, rank=5, nonlinearity="relu", random_state=0).X.shape
(100, 80)
"""

from .film_ratings import movielens as movielens
from .film_ratings import movielens_1m as movielens_1m
from .film_ratings import movielens_100k as movielens_100k
from .film_ratings import movielens_small as movielens_small
from .generators import PHOTOGRAPHS as PHOTOGRAPHS
from .generators import digits as digits
from .generators import gaussian as gaussian
from .generators import make_ratings as make_ratings
from .generators import penguins as penguins
from .generators import photograph as photograph
from .generators import poisson as poisson
from .generators import salt_and_pepper as salt_and_pepper
from .generators import synthetic as synthetic

__all__ = ["PHOTOGRAPHS", *sorted(name for name, each in globals().items() if callable(each))]
