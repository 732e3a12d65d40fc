"""The choice of the explorer that suits some data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab.data.dense import observe_dense
from nmd_lab.data.readers import read_file
from nmd_lab.data.sparse import is_sparse
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.studies import Study

from ._completion_data import DEFAULT_COLUMNS, table_columns
from ._file_data import file_code, kind_of_dataset, kind_of_result
from .completion_view import CompletionExplorer
from .decomposition_view import DecompositionExplorer
from .fit_view import FitExplorer
from .study_view import StudyExplorer

AnyExplorer = DecompositionExplorer | CompletionExplorer | StudyExplorer | FitExplorer

FILE_OPTIONS = ("variable", "row", "column", "value", "header", "index", "max_bytes")
"""Options that say what to read of a file."""


def explore(X: Any = None, **options: Any) -> AnyExplorer:
    """Return the explorer that suits the data.

    Parameters
    ----------
    X : Decomposition, Study, Dataset, path-like, DataFrame, matrix or None
        What to explore: a fit, a study, the results of either or the path of their file, data, the
        path of a file with data as `nmd-lab fit` reads it, or None for data sets of the library,
        which the explorer offers.
    **options
        Arguments of the explorer, for example starting values of its settings.  For a file of data
        also `variable`, `row`, `column`, `value`, `header`, `index` and `max_bytes`, which say how
        to read it; see `nmd_lab.data.readers.read_matrix`.

    Returns
    -------
    FitExplorer, StudyExplorer, CompletionExplorer or DecompositionExplorer
        The first for a fit, the second for a study.  The third for a long table, a scipy.sparse
        matrix, and a matrix with less than a third of its entries observed.  The last for any other
        matrix and for None.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no file at the path, or it can not be read.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> type(nmd.widgets.explore(nmd.datasets.digits(20))).__name__
    'DecompositionExplorer'
    """
    if isinstance(X, str | os.PathLike):
        return _explore_file(Path(X), options)
    if isinstance(X, Decomposition):
        return FitExplorer(X, **options)
    if isinstance(X, xr.Dataset) and kind_of_dataset(X) == "fit":
        return FitExplorer(Decomposition.from_dataset(X), **options)
    if isinstance(X, Study) or (isinstance(X, xr.Dataset) and kind_of_dataset(X) == "study"):
        return StudyExplorer(X, **options)
    asked = {name: options.get(name, default) for name, default in DEFAULT_COLUMNS.items()}
    if table_columns(X, asked) is not None or _is_mostly_missing(X):
        return CompletionExplorer(X, **options)
    return DecompositionExplorer(X, **options)


def _explore_file(path: Path, options: dict[str, Any]) -> AnyExplorer:
    """Return the explorer of a file of results or of data."""
    kind = kind_of_result(path)
    if kind is not None:
        return (FitExplorer if kind == "fit" else StudyExplorer)(path, **options)
    reading = {name: value for name, value in options.items() if name in FILE_OPTIONS}
    settings = {name: value for name, value in options.items() if name not in FILE_OPTIONS}
    file = read_file(path, **reading)
    explorer = explore(file.X, **settings)
    explorer.take_file(file.what, file_code(path, reading))
    return explorer


def _is_mostly_missing(X: Any, smallest_share: float = 1 / 3) -> bool:
    """Return whether data are sparse, or dense with less than this share of entries observed."""
    if X is None:
        return False
    if is_sparse(X):
        return True
    observations = observe_dense(X)
    return bool(observations.n_observed < smallest_share * np.prod(observations.shape))
