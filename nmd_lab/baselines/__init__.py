"""What a nonlinear model has to beat: simple and linear methods in the calling form of `complete`.

Each takes (X, rank, *, mask=None, ...) and gives a `Decomposition` with the nonlinearity Identity,
so that whatever works on a fit (scores, plots, saving) works on a baseline too.

>>> import numpy as np
>>> from nmd_lab import baselines
>>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
>>> baselines.mean_fill(X).reconstruct().values
array([[2., 2.],
       [2., 2.]])
"""

from .mean_fill import mean_fill
from .nmf import nmf
from .truncated_svd import truncated_svd

__all__ = ["mean_fill", "nmf", "truncated_svd"]
