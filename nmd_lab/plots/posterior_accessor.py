"""The accessor ``posterior.plot``: the plots as methods of a posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from .nonlinearities import nonlinearity
from .posterior import calibration, predictions, reliability, trace
from .posterior_map import uncertainty

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nmd_lab.result.posterior import Posterior


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
