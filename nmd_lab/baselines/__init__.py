"""Other methods to compare a fit with: simple, linear and nonlinear ones.

Each is called like `complete`, as ``method(X, rank, observed=None, ...)``, and returns a
`Decomposition`. So everything that works on a fit (scores, plots, files) works on a baseline too.

>>> import numpy as np
>>> from nmd_lab import baselines
>>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
>>> baselines.mean_fill(X).reconstruct().values
array([[2., 2.],
       [2., 2.]])
"""

from .adam import adam, adam_sweep
from .anmd import anmd
from .bmf import bmf
from .coordinate_descent import coordinate_descent
from .csf import csf
from .ebcd import ebcd
from .em_nmd import em_nmd
from .lmafit import lmafit
from .mean_fill import mean_fill
from .nmd_3b import nmd_3b
from .nmf import nmf
from .rtrmc import rtrmc
from .soft_impute import soft_impute
from .truncated_svd import truncated_svd
from .wlra import wlra

__all__ = [
    "adam",
    "adam_sweep",
    "anmd",
    "bmf",
    "coordinate_descent",
    "csf",
    "ebcd",
    "em_nmd",
    "lmafit",
    "mean_fill",
    "nmd_3b",
    "nmf",
    "rtrmc",
    "soft_impute",
    "truncated_svd",
    "wlra",
]
