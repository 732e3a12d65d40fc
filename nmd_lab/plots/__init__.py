"""Pictures of a fit: a `Decomposition` in, matplotlib Axes out.

Every function takes `ax=` and returns what it drew on; without it a new figure is made.  Colours
follow the style in force, so that the pictures are as readable on black as on white.  The same
functions are at hand as ``fit.plot.convergence()`` and so on.

>>> import numpy as np, nmd_lab as nmd
>>> from nmd_lab import plots
>>> fit = nmd.decompose(np.outer([1.0, 2, 3], [1.0, 0, 1]), 1, max_iter=5, tol=0)
>>> plots.convergence(fit).get_xlabel()
'iteration'
"""

from ._canvas import gray_with_holes
from .accessor import PlotAccessor
from .curves import convergence, residuals
from .factors import components, scatter
from .pictures import reconstruction

__all__ = [
    "PlotAccessor",
    "components",
    "convergence",
    "gray_with_holes",
    "reconstruction",
    "residuals",
    "scatter",
]
