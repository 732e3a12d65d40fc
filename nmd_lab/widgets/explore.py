"""The explorer that suits some data."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import xarray as xr
from scipy import sparse

from nmd_lab.data.dense import observe_dense
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.result.netcdf import ATTRIBUTE
from nmd_lab.studies import Study

from .completion_data import TABLE, is_table
from .completion_view import CompletionExplorer
from .decomposition_view import DecompositionExplorer
from .study_view import StudyExplorer

FEW = 1 / 3
"""Below this share of observed entries a matrix is one to complete."""


def explore(
    X: Any = None, **options: Any
) -> DecompositionExplorer | CompletionExplorer | StudyExplorer:
    """Return the explorer that fits the data.

    Parameters
    ----------
    X : Study, Dataset, path-like, DataFrame, matrix or None
        A study, its results or their file; a long table, a scipy.sparse matrix or a matrix of
        which less than a third is observed; any other matrix; or nothing, to choose from the data
        that come with the library.
    **options
        Of the explorer, for example where its controls begin.

    Returns
    -------
    StudyExplorer, CompletionExplorer or DecompositionExplorer
        In this order of the kinds above.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> type(nmd.widgets.explore(nmd.datasets.digits(20))).__name__
    'DecompositionExplorer'
    """
    if isinstance(X, Study | str | os.PathLike):
        return StudyExplorer(X, **options)
    if isinstance(X, xr.Dataset) and ATTRIBUTE in X.attrs:
        return StudyExplorer(X, **options)
    columns = {name: options.get(name, default) for name, default in TABLE.items()}
    if sparse.issparse(X) or isinstance(X, SparseObservations) or is_table(X, columns):
        return CompletionExplorer(X, **options)
    if X is not None:
        observations = observe_dense(X)
        if observations.n_observed < FEW * np.prod(observations.shape):
            return CompletionExplorer(X, **options)
    return DecompositionExplorer(X, **options)
