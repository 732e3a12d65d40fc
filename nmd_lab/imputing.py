"""`impute`: a table with its missing cells filled, in one call."""

from __future__ import annotations

from typing import Any

from .sampling import sample


def impute(
    frame: Any, n: int | None = None, *, return_posterior: bool = False, **options: Any
) -> Any:
    """Fill the missing cells of a table: once by best guesses, or n times by draws.

    Each column is modelled as what it is: numbers, booleans, ordered levels, categories, or text
    with few values.  The model is that of `sample`, which is called first.

    Parameters
    ----------
    frame : DataFrame, array_like, masked array or DataArray
        Data (m, n_columns) whose missing cells are NaN, None or masked.
    n : int, optional
        Number of completed copies for multiple imputation.  By default there is one result, which
        has the best guess of each cell: the mean of a number, the median of ordered levels, the
        most probable class.
    return_posterior : bool, default False
        Whether the posterior is returned, too: it has the intervals, probabilities and report.
    **options
        Options of `sample`, such as `draws`, `chains` and `random_state`.  Cells whose limits are
        given by `at_most`, `at_least` and `upper` are filled, too, within their limits.

    Returns
    -------
    filled : same type as `frame`, or a list of n of them
        Observed cells are kept.  A DataFrame has its columns, index, dtypes and categories.
    posterior : Posterior
        Only if `return_posterior` is True.

    Raises
    ------
    TypeError, ValueError
        As `sample` and `Posterior.impute`: if a column is no number or class, or X is sparse.

    See Also
    --------
    sample : The posterior alone, with all options.
    Posterior.intervals, Posterior.probabilities, Posterior.report : Uncertainty of filled cells.
    MatrixCompletion : An imputer for pipelines of scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).frame.astype({"target": "category"})
    >>> holed = wine.mask(np.random.default_rng(0).random(wine.shape) < 0.2)
    >>> filled, posterior = nmd.impute(holed, return_posterior=True, draws=50, random_state=0)
    >>> bool(filled.notna().all(axis=None)), filled["target"].dtype == holed["target"].dtype
    (True, True)
    >>> posterior.intervals(holed, level=0.9)["alcohol"].columns.to_list()
    ['low', 'high']
    >>> copies = nmd.impute(holed, n=5, draws=50, random_state=0)  # for Rubin's rules
    >>> len(copies)
    5
    """
    posterior = sample(frame, **options)
    names = ("at_most", "at_least", "upper", "random_state")
    limits_and_seed: dict[str, Any] = {name: options[name] for name in names if name in options}
    filled = posterior.impute(frame, n, **limits_and_seed)
    return (filled, posterior) if return_posterior else filled
