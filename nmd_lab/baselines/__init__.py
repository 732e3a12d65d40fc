"""Other methods to compare a fit with: the mean, the SVD, NMF and soft-impute.

Each is called like `complete`, as ``method(X, rank, observed=None, ...)``, and returns a
`Decomposition`. So everything that works on a fit (scores, plots, files) works on a baseline too.

>>> import numpy as np
>>> from nmd_lab import baselines
>>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
>>> baselines.mean_fill(X).reconstruct().values
array([[2., 2.],
       [2., 2.]])
"""

from .methods import mean_fill, nmf, soft_impute, truncated_svd

__all__ = ["mean_fill", "nmf", "soft_impute", "truncated_svd"]
