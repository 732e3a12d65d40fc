"""What a fit has to beat: simple, linear and rival methods, in the calling form of `complete`.

Each takes (X, rank, *, mask=None, ...) and gives a `Decomposition`, so that whatever works on a fit
(scores, plots, saving) works on a baseline too.

>>> import numpy as np
>>> from nmd_lab import baselines
>>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
>>> baselines.mean_fill(X).reconstruct().values
array([[2., 2.],
       [2., 2.]])
"""

from .bmf import bmf
from .lmafit import lmafit
from .mean_fill import mean_fill
from .nmf import nmf
from .rtrmc import rtrmc
from .soft_impute import soft_impute
from .truncated_svd import truncated_svd
from .wlra import wlra

__all__ = [
    "bmf",
    "lmafit",
    "mean_fill",
    "nmf",
    "rtrmc",
    "soft_impute",
    "truncated_svd",
    "wlra",
]
