"""Data to try things on: pictures that scikit-learn brings, seeded generators, readers.

>>> from nmd_lab import datasets
>>> datasets.digits().sizes
Frozen({'image': 1797, 'pixel': 64})
>>> datasets.synthetic(100, 80, rank=5, nonlinearity="relu", random_state=0).X.shape
(100, 80)
"""

from .bundled import PHOTOGRAPHS, digits, photograph
from .generators import gaussian, poisson, salt_and_pepper, synthetic
from .readers import cbcl, mit_logo, mnist, movielens_1m, movielens_100k

__all__ = [
    "PHOTOGRAPHS",
    "cbcl",
    "digits",
    "gaussian",
    "mit_logo",
    "mnist",
    "movielens_1m",
    "movielens_100k",
    "photograph",
    "poisson",
    "salt_and_pepper",
    "synthetic",
]
