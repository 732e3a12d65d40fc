"""The choice of the explorer that suits some data."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab.data.dense import observe_dense
from nmd_lab.data.labels import RESULT_ATTRIBUTE
from nmd_lab.data.sparse import is_sparse
from nmd_lab.studies import Study

from ._completion_data import DEFAULT_COLUMNS, is_table
from .completion_view import CompletionExplorer
from .decomposition_view import DecompositionExplorer
from .study_view import StudyExplorer


def explore(
    X: Any = None, **options: Any
) -> DecompositionExplorer | CompletionExplorer | StudyExplorer:
    """Return the explorer that suits the data.

    Parameters
    ----------
    X : Study, Dataset, path-like, DataFrame, matrix or None
        Data to explore; None: data sets of the library, which the explorer offers.
    **options
        Arguments of the explorer, for example starting values of its settings.

    Returns
    -------
    StudyExplorer, CompletionExplorer or DecompositionExplorer
        The first for a study, its results or the path of their file.  The second for a long table,
        a scipy.sparse matrix, and a matrix with less than a third of its entries observed.  The
        third for any other matrix and for None.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> type(nmd.widgets.explore(nmd.datasets.digits(20))).__name__
    'DecompositionExplorer'
    """
    if isinstance(X, Study | str | os.PathLike):
        return StudyExplorer(X, **options)
    if isinstance(X, xr.Dataset) and RESULT_ATTRIBUTE in X.attrs:
        return StudyExplorer(X, **options)
    columns = {name: options.get(name, default) for name, default in DEFAULT_COLUMNS.items()}
    if is_table(X, columns) or _is_mostly_missing(X):
        return CompletionExplorer(X, **options)
    return DecompositionExplorer(X, **options)


def _is_mostly_missing(X: Any, smallest_share: float = 1 / 3) -> bool:
    """Return whether data are sparse, or dense with less than this share of entries observed."""
    if X is None:
        return False
    if is_sparse(X):
        return True
    observations = observe_dense(X)
    return bool(observations.n_observed < smallest_share * np.prod(observations.shape))
