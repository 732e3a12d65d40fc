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

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from ._canvas import gray_with_holes
from .curves import convergence, residuals
from .factors import Kind, components, scatter
from .nonlinearities import nonlinearity
from .pictures import reconstruction, uncertainty
from .posterior import calibration, predictions, reliability, trace
from .trials import selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nmd_lab.result.decomposition import Decomposition
    from nmd_lab.result.posterior import Posterior

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


@dataclass(frozen=True)
class PlotAccessor:
    """The plots of one fit; see `nmd_lab.plots`.

    Parameters
    ----------
    fit : Decomposition
        The fit.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from nmd_lab import datasets
    >>> from nmd_lab.plots import PlotAccessor
    >>> plot = PlotAccessor(nmd.decompose(datasets.digits(100), 5, max_iter=20))
    >>> plot.scatter(0, 1, labels="digit").get_ylabel()
    'component 1'
    """

    fit: Decomposition

    def convergence(self, **options: Any) -> Axes:
        """Draw the error by iteration; see `nmd_lab.plots.convergence`."""
        return convergence(self.fit, **options)

    def components(
        self, shape: tuple[int, int] | None = None, *, kind: Kind | None = None, **options: Any
    ) -> Axes:
        """Draw each component; see `nmd_lab.plots.components`."""
        return components(self.fit, shape, kind=kind, **options)

    def reconstruction(self, X: Any, rows: Any = None, **options: Any) -> Axes:
        """Draw data beside their reconstruction; see `nmd_lab.plots.reconstruction`."""
        return reconstruction(self.fit, X, rows, **options)

    def nonlinearity(self, X: Any, *, columns: Any = None, **options: Any) -> NDArray[Any]:
        """Draw f with the data; see `nmd_lab.plots.nonlinearity`."""
        return nonlinearity(self.fit, X, columns=columns, **options)

    def residuals(self, X: Any, **options: Any) -> NDArray[Any]:
        """Compare the residuals with the noise model of the loss; see `nmd_lab.plots.residuals`."""
        return residuals(self.fit, X, **options)

    def scatter(
        self, x: int = 0, y: int = 1, *, labels: str | ArrayLike | None = None, **options: Any
    ) -> Axes:
        """Draw the rows as points by two components; see `nmd_lab.plots.scatter`."""
        return scatter(self.fit, x, y, labels=labels, **options)

    def selection(self, **options: Any) -> NDArray[Any]:
        """Draw the trials that chose the options of a fit; see `nmd_lab.plots.selection`."""
        return selection(self.fit, **options)


@dataclass(frozen=True)
class PosteriorPlotAccessor:
    """The plots of one posterior; see `nmd_lab.plots`.

    Parameters
    ----------
    posterior : Posterior
        The posterior.
    """

    posterior: Posterior

    def trace(self, **options: Any) -> Axes:
        """Draw the log-likelihood by sweep; see `nmd_lab.plots.trace`."""
        return trace(self.posterior, **options)

    def predictions(self, X: Any, **options: Any) -> Axes:
        """Draw predicted against observed values; see `nmd_lab.plots.predictions`."""
        return predictions(self.posterior, X, **options)

    def uncertainty(self, rows: Any = None, **options: Any) -> Axes:
        """Draw the mean beside its standard deviation; see `nmd_lab.plots.uncertainty`."""
        return uncertainty(self.posterior, rows, **options)

    def nonlinearity(self, X: Any, *, columns: Any = None, **options: Any) -> NDArray[Any]:
        """Draw f with the data; see `nmd_lab.plots.nonlinearity`."""
        return nonlinearity(self.posterior, X, columns=columns, **options)

    def calibration(self, X: Any, **options: Any) -> Axes:
        """Draw the share of intervals that hold the value; see `nmd_lab.plots.calibration`."""
        return calibration(self.posterior, X, **options)

    def reliability(self, X: Any, **options: Any) -> Axes:
        """Draw the error against the share of the surest cells; see `nmd_lab.plots.reliability`."""
        return reliability(self.posterior, X, **options)
