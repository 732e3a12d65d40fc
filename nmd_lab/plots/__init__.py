"""Plots of a fit with matplotlib.

Every function takes a `Decomposition`, or a `Posterior`, and returns the Axes. Without `ax=` it
makes a new figure. Colours follow the current matplotlib style, also a dark one.
``fit.plot.convergence()`` is the same as ``plots.convergence(fit)``.

>>> import nmd_lab as nmd
>>> fit = nmd.decompose(nmd.datasets.digits(100), 5, "relu", random_state=0)
>>> nmd.plots.convergence(fit).get_xlabel()
'iteration'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from . import curves, factors
from . import posterior as posteriors
from ._canvas import gray_with_holes
from .curves import convergence, nonlinearity, residuals, selection
from .factors import components, reconstruction, scatter, uncertainty
from .posterior import calibration, predictions, reliability, trace

if TYPE_CHECKING:
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


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class _Plot(Generic[R, P, T]):
    """A plot of a result as a method of its accessor, with the same arguments and docstring."""

    def __init__(self, function: Callable[Concatenate[R, P], T]) -> None:
        self.function = function

    def __get__(self, accessor: Any, owner: Any = None) -> Callable[P, T]:
        result = owner if accessor is None else next(iter(vars(accessor).values()))
        return MethodType(self.function, result)


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

    convergence = _Plot(curves.convergence)
    components = _Plot(factors.components)
    reconstruction = _Plot(factors.reconstruction)
    nonlinearity = _Plot(curves.nonlinearity)
    residuals = _Plot(curves.residuals)
    scatter = _Plot(factors.scatter)
    selection = _Plot(curves.selection)


@dataclass(frozen=True)
class PosteriorPlotAccessor:
    """The plots of one posterior; see `nmd_lab.plots`.

    Parameters
    ----------
    posterior : Posterior
        The posterior.
    """

    posterior: Posterior

    trace = _Plot(posteriors.trace)
    predictions = _Plot(posteriors.predictions)
    uncertainty = _Plot(factors.uncertainty)
    nonlinearity = _Plot(curves.nonlinearity)
    calibration = _Plot(posteriors.calibration)
    reliability = _Plot(posteriors.reliability)
