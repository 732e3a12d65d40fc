"""The accessor ``fit.plot``: the plots as methods of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from .curves import convergence, residuals
from .factors import Kind, components, scatter
from .nonlinearities import nonlinearity
from .pictures import reconstruction
from .trials import selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nmd_lab.result.decomposition import Decomposition


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
