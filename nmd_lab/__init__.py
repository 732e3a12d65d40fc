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

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

from ._version import __version__ as __version__

_MODULE_OF = {
    alias.name: node.module
    for node in ast.parse(__loader__.get_data(str(Path(__file__).with_suffix(".pyi")))).body
    if isinstance(node, ast.ImportFrom) and node.module != "_version"
    for alias in node.names
}
"""The public names by their module, which the stub has; None for those that are modules."""

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``import nmd_lab`` stays light."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    where = _MODULE_OF[name]
    module = import_module(f".{where or name}", __name__)
    globals()[name] = getattr(module, name) if where else module
    return globals()[name]


def __dir__() -> list[str]:
    """Return the public names, and those that every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
