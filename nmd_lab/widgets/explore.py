"""The choice of the explorer that suits some data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .explorer import Explorer
from .explorers import (
    CompletionExplorer,
    DecompositionExplorer,
    FitExplorer,
    StudyExplorer,
)
from .views.completion import CompletionView
from .views.decomposition import DecompositionView
from .views.fit import FitView
from .views.mending import MendingView
from .views.opening import view_of, view_of_file
from .views.posterior import PosteriorView
from .views.study import StudyView
from .views.view import View

AnyExplorer = DecompositionExplorer | CompletionExplorer | StudyExplorer | FitExplorer

EXPLORERS: dict[type[View], type[AnyExplorer]] = {
    DecompositionView: DecompositionExplorer,
    CompletionView: CompletionExplorer,
    StudyView: StudyExplorer,
    FitView: FitExplorer,
    PosteriorView: FitExplorer,
    MendingView: DecompositionExplorer,
}
"""The explorer of each view."""


def explore(X: Any = None, **options: Any) -> AnyExplorer:
    """Return the explorer that suits the data.

    Parameters
    ----------
    X : Decomposition, Posterior, Study, Dataset, path-like, DataFrame, matrix or None
        What to explore: a fit, a posterior, a study, the results of these or the path of their
        file, data, the path of a file with data as `nmd-lab fit` reads it, or None for data sets of
        the library, which the explorer offers.
    **options
        Arguments of the explorer, for example starting values of its settings.  For a file of data
        also `variable`, `row`, `column`, `value`, `header` and `index`, which say how to read it;
        see `nmd_lab.data.readers.read_matrix`.

    Returns
    -------
    FitExplorer, StudyExplorer, CompletionExplorer or DecompositionExplorer
        The first for a fit or a posterior, the second for a study.  The third for a long table and
        a scipy.sparse matrix.  The last for any other matrix, however many of its entries are
        missing, and for None.

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
        view = view_of_file(Path(X), **options)
    else:
        view = view_of(X, **options)
    kind = EXPLORERS[type(view)]
    explorer = kind.__new__(kind)
    Explorer.__init__(explorer, view)
    if view.said:
        explorer._tell(view.said)
    return explorer
