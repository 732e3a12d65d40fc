"""Nonlinear matrix decompositions X ≈ f(WH), matrix completion and imputation with intervals.

Decompose a matrix:

>>> import nmd_lab as nmd
>>> digits = nmd.datasets.digits(300)
>>> fit = nmd.decompose(digits, 16, "relu", random_state=0)
>>> round(fit.relative_error, 2)
0.12

Complete a matrix; rank, ridge, offsets and f are chosen by cross-validation:

>>> train, test = nmd.split_observed(digits, 0.3, random_state=0)
>>> completed = nmd.complete(train, random_state=0).impute(train)

Impute the missing cells of a table, with intervals:

>>> from sklearn.datasets import load_wine
>>> wine = load_wine(as_frame=True).data
>>> seen, held_out = nmd.split_observed(wine, 0.2, random_state=0)
>>> filled, posterior = nmd.impute(seen, return_posterior=True, draws=50, random_state=0)
>>> intervals = posterior.intervals(seen, level=0.9)

`nonlinearity` is "relu", "square", "minmax", "modulus", "identity", another of
`nmd_lab.nonlinearities` or your own; `loss` is "frobenius", "l1", "kl", "logistic", "ordinal",
another of `nmd_lab.losses` or your own.  Every pair works for dense, masked and sparse data, and
each column of a table may have its own.  Results have the labels of X.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from . import baselines as baselines
    from . import datasets as datasets
    from . import losses as losses
    from . import metrics as metrics
    from . import nonlinearities as nonlinearities
    from . import plots as plots
    from . import studies as studies
    from . import warnings as warnings
    from . import widgets as widgets
    from ._runtime.machine import show_versions as show_versions
    from .api.fits import complete as complete
    from .api.fits import decompose as decompose
    from .api.posteriors import impute as impute
    from .api.posteriors import sample as sample
    from .api.resuming import resume as resume
    from .data.folds import split_observed as split_observed
    from .data.long_table import observations_from_files as observations_from_files
    from .data.long_table import observations_from_sparse as observations_from_sparse
    from .data.long_table import observations_from_table as observations_from_table
    from .data.patches import from_patches as from_patches
    from .data.patches import patches as patches
    from .data.readers import censored as censored
    from .data.sparse import SparseObservations as SparseObservations
    from .estimators import NMD as NMD
    from .estimators import MatrixCompletion as MatrixCompletion
    from .inpainting.inpaint import inpaint as inpaint
    from .model.entry import prox as prox
    from .model.losses import KL as KL
    from .model.losses import L1 as L1
    from .model.losses import Frobenius as Frobenius
    from .model.nonlinearities import Identity as Identity
    from .model.nonlinearities import MinMax as MinMax
    from .model.nonlinearities import Modulus as Modulus
    from .model.nonlinearities import ReLU as ReLU
    from .model.nonlinearities import Square as Square
    from .pooling import pool as pool
    from .pooling import pool_covariance as pool_covariance
    from .pooling import pool_test as pool_test
    from .problem.state import State as State
    from .request.constraints import FactorConstraint as FactorConstraint
    from .request.constraints import NonNegative as NonNegative
    from .request.constraints import Orthonormal as Orthonormal
    from .request.constraints import Simplex as Simplex
    from .request.constraints import SparseFactor as SparseFactor
    from .request.penalty import PenaltyRule as PenaltyRule
    from .request.settings import ADMM as ADMM
    from .request.settings import Choice as Choice
    from .request.settings import Compute as Compute
    from .result.compare import compare as compare
    from .result.decomposition import Decomposition as Decomposition
    from .result.files import load as load
    from .result.posterior import Posterior as Posterior
    from .studies import Study as Study
    from .studies.imputer_check import check_imputer as check_imputer

_WHERE = {
    "": [
        *("baselines", "datasets", "losses", "metrics", "nonlinearities", "plots", "studies"),
        *("warnings", "widgets"),
    ],
    "_runtime.machine": ["show_versions"],
    "data.long_table": [
        *("observations_from_files", "observations_from_sparse", "observations_from_table"),
    ],
    "data.patches": ["from_patches", "patches"],
    "data.readers": ["censored"],
    "data.sparse": ["SparseObservations"],
    "data.folds": ["split_observed"],
    "estimators": ["NMD", "MatrixCompletion"],
    "api.fits": ["complete", "decompose"],
    "inpainting.inpaint": ["inpaint"],
    "studies.imputer_check": ["check_imputer"],
    "model.losses": ["KL", "L1", "Frobenius"],
    "model.nonlinearities": ["Identity", "MinMax", "Modulus", "ReLU", "Square"],
    "model.entry": ["prox"],
    "result.compare": ["compare"],
    "result.decomposition": ["Decomposition"],
    "result.files": ["load"],
    "result.posterior": ["Posterior"],
    "pooling": ["pool", "pool_covariance", "pool_test"],
    "api.resuming": ["resume"],
    "api.posteriors": ["impute", "sample"],
    "problem.state": ["State"],
    "request.constraints": [
        *("FactorConstraint", "NonNegative", "Orthonormal", "Simplex", "SparseFactor"),
    ],
    "request.penalty": ["PenaltyRule"],
    "request.settings": ["ADMM", "Choice", "Compute"],
    "studies": ["Study"],
}
"""The public names by their module; the first ones are modules themselves."""

_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``import nmd_lab`` stays light."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    where = _MODULE_OF[name]
    value: Any = import_module(f".{where or name}", __name__)
    value = getattr(value, name) if where else value
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, and those that every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
