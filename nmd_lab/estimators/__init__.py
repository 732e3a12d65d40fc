"""The scikit-learn estimators, which call `decompose` and `complete`.

>>> import numpy as np
>>> from nmd_lab import NMD, MatrixCompletion
>>> X = np.maximum(np.random.default_rng(0).normal(size=(50, 20)), 0)
>>> NMD(n_components=4, random_state=0).fit_transform(X).shape
(50, 4)
>>> X[::7, 3] = np.nan
>>> model = MatrixCompletion(random_state=0).fit(X)  # all settings are chosen
>>> bool(np.isnan(model.transform(X)).any()), model.n_components_ <= 20
(False, True)
"""

from .factor_model import NMD
from .matrix_completion import MatrixCompletion

__all__ = ["NMD", "MatrixCompletion"]
