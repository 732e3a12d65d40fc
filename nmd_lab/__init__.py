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
    from . import (
        baselines,
        datasets,
        losses,
        metrics,
        nonlinearities,
        plots,
        studies,
        warnings,
        widgets,
    )
    from ._runtime.machine import show_versions
    from .api.fits import complete, decompose
    from .api.posteriors import impute, sample
    from .api.resuming import resume
    from .data.censored import censored
    from .data.folds import split_observed
    from .data.long_table import (
        observations_from_files,
        observations_from_sparse,
        observations_from_table,
    )
    from .data.patches import from_patches, patches
    from .data.sparse import SparseObservations
    from .estimators import NMD, MatrixCompletion
    from .inpainting.inpaint import inpaint
    from .model.losses import KL, L1, Frobenius
    from .model.nonlinearities import Identity, MinMax, Modulus, ReLU, Square
    from .model.proximal import prox
    from .pooling import pool, pool_covariance, pool_test
    from .problem.state import State
    from .request.constraints import (
        FactorConstraint,
        NonNegative,
        Orthonormal,
        Simplex,
        SparseFactor,
    )
    from .request.penalty import PenaltyRule
    from .request.settings import ADMM, Choice, Compute
    from .result.compare import compare
    from .result.decomposition import Decomposition
    from .result.files import load
    from .result.posterior import Posterior
    from .studies import Study
    from .studies.imputer_check import check_imputer

__all__ = [
    "ADMM",
    "KL",
    "L1",
    "NMD",
    "Choice",
    "Compute",
    "Decomposition",
    "FactorConstraint",
    "Frobenius",
    "Identity",
    "MatrixCompletion",
    "MinMax",
    "Modulus",
    "NonNegative",
    "Orthonormal",
    "PenaltyRule",
    "Posterior",
    "ReLU",
    "Simplex",
    "SparseFactor",
    "SparseObservations",
    "Square",
    "State",
    "Study",
    "baselines",
    "censored",
    "check_imputer",
    "compare",
    "complete",
    "datasets",
    "decompose",
    "from_patches",
    "impute",
    "inpaint",
    "load",
    "losses",
    "metrics",
    "nonlinearities",
    "observations_from_files",
    "observations_from_sparse",
    "observations_from_table",
    "patches",
    "plots",
    "pool",
    "pool_covariance",
    "pool_test",
    "prox",
    "resume",
    "sample",
    "show_versions",
    "split_observed",
    "studies",
    "warnings",
    "widgets",
]

_WHERE = {
    "_runtime.machine": ["show_versions"],
    "data.censored": ["censored"],
    "data.long_table": [
        *("observations_from_files", "observations_from_sparse", "observations_from_table"),
    ],
    "data.patches": ["from_patches", "patches"],
    "data.sparse": ["SparseObservations"],
    "data.folds": ["split_observed"],
    "estimators": ["NMD", "MatrixCompletion"],
    "api.fits": ["complete", "decompose"],
    "inpainting.inpaint": ["inpaint"],
    "studies.imputer_check": ["check_imputer"],
    "model.losses": ["KL", "L1", "Frobenius"],
    "model.nonlinearities": ["Identity", "MinMax", "Modulus", "ReLU", "Square"],
    "model.proximal": ["prox"],
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
"""The module of each public name; the other names are modules themselves."""

_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``import nmd_lab`` stays light."""
    if name in _MODULE_OF:
        value = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    elif name in __all__:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, and those that every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
