"""Nonlinear matrix decomposition X ≈ f(WH) and matrix completion, by one masked ADMM.

Decompose a matrix in which every entry counts:

>>> import numpy as np, nmd_lab as nmd
>>> rng = np.random.default_rng(0)
>>> X = np.maximum(rng.normal(size=(60, 4)) @ rng.normal(size=(4, 50)), 0)
>>> fit = nmd.decompose(X, rank=4, nonlinearity="relu", loss="frobenius")
>>> fit.relative_error < 1e-3
True

or complete one with holes, NaN or ``mask=`` (True = observed):

>>> X[rng.random(X.shape) < 0.3] = np.nan
>>> filled = nmd.complete(X, rank=4, nonlinearity="relu").reconstruct()
>>> bool(np.isnan(filled).any())
False

`nonlinearity` is one of "relu", "square", "minmax", "modulus" and "identity", `loss` one of
"frobenius", "l1" and "kl"; every pair works, dense or masked.  W, H and `fit.history` are
xarray objects that carry the labels of X.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import metrics
from .admm import State
from .comparison import compare
from .decomposition import Decomposition, load
from .fit import complete, decompose
from .losses import KL, L1, Frobenius, Loss
from .nonlinearities import Identity, MinMax, Modulus, Nonlinearity, Piece, ReLU, Square
from .penalty import PenaltyRule
from .proximal import prox
from .sparse_observations import SparseObservations
from .splits import split_observed
from .tables import observations_from_table
from .warnings import NMDWarning, NotConvergedWarning

if TYPE_CHECKING:
    from . import baselines, datasets, plots, studies, widgets
    from .estimators import NMD, MatrixCompletion
    from .studies import Study

__version__ = "0.1.0"

__all__ = [
    "KL",
    "L1",
    "NMD",
    "Decomposition",
    "Frobenius",
    "Identity",
    "Loss",
    "MatrixCompletion",
    "MinMax",
    "Modulus",
    "NMDWarning",
    "Nonlinearity",
    "NotConvergedWarning",
    "PenaltyRule",
    "Piece",
    "ReLU",
    "SparseObservations",
    "Square",
    "State",
    "Study",
    "baselines",
    "compare",
    "complete",
    "datasets",
    "decompose",
    "load",
    "metrics",
    "observations_from_table",
    "plots",
    "prox",
    "split_observed",
    "studies",
    "widgets",
]

_MODULES = {"Study": ".studies", "NMD": ".estimators", "MatrixCompletion": ".estimators"}
_SUBPACKAGES = ("baselines", "datasets", "plots", "studies", "widgets")


def __getattr__(name: str) -> Any:
    """Import on first use what a plain fit does not need: ``import nmd_lab`` stays light."""
    if name in _SUBPACKAGES:
        return import_module(f".{name}", __name__)
    if name in _MODULES:
        return getattr(import_module(_MODULES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what is imported later, too."""
    return sorted({*globals(), *__all__})
