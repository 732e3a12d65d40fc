"""Plots of a fit with matplotlib.

Every function takes a `Decomposition`, or a `Posterior`, and returns the Axes. Without `ax=` it
makes a new figure. Colours follow the current matplotlib style, also a dark one.
``fit.plot.convergence()`` is the same as ``plots.convergence(fit)``.

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
from .nonlinearities import nonlinearity
from .pictures import reconstruction
from .posterior import calibration, predictions, reliability, trace
from .posterior_accessor import PosteriorPlotAccessor
from .posterior_map import uncertainty
from .trials import selection

__all__ = [
    "PlotAccessor",
    "PosteriorPlotAccessor",
    "calibration",
    "components",
    "convergence",
    "gray_with_holes",
    "nonlinearity",
    "predictions",
    "reconstruction",
    "reliability",
    "residuals",
    "scatter",
    "selection",
    "trace",
    "uncertainty",
]
