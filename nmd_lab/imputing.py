"""`impute`: a table with its missing cells filled, in one call."""

from __future__ import annotations

from typing import Any

from .sampling import sample


def impute(
    frame: Any, n: int | None = None, *, return_posterior: bool = False, **options: Any
) -> Any:
    """Impute the missing cells of a table: once with best guesses, or n times with draws.

    The missing cells are predicted by the posterior of X ≈ f(WH) that `sample` draws, with a model
    for the kind of each column: numbers, booleans, ordered levels, categories, or text with few
    values.  For multiple imputation, each copy has draws from the predictive distribution of the
    missing cells given the observed ones ::

        x_missing ~ p(x_missing | x_observed) = ∫ p(x_missing | W, H, noise) p(W, H, noise |
        x_observed)

    Parameters
    ----------
    frame : DataFrame, array_like, masked array or DataArray
        Data (m, n_columns) whose missing cells are NaN, None or masked.
    n : int, optional
        Number of completed copies for multiple imputation.  By default one result with the best
        guess of each cell: the mean of a number, the median of ordered levels, the most probable
        class.
    return_posterior : bool, default False
        Whether to return the posterior too, which has intervals, probabilities and a report.
    **options
        Options of `sample`, most often `draws`, `chains` and `random_state`.  Cells with limits
        (`at_most`, `at_least`, `upper`) are filled too, within their limits.

    Returns
    -------
    filled : same type as `frame`, or a list of n of them
        Observed cells are unchanged.  A DataFrame keeps its columns, index, dtypes and categories.
    posterior : Posterior
        Only if `return_posterior` is True.

    Raises
    ------
    TypeError, ValueError
        As `sample` and `Posterior.impute`: if a column has no number or class, or X is sparse.

    Warns
    -----
    NotConvergedWarning
        If the chains of the posterior differ; more `draws` and `tune` help.

    See Also
    --------
    sample : The posterior alone, with all options.
    Posterior.intervals, Posterior.probabilities, Posterior.report : Uncertainty of filled cells.
    MatrixCompletion : An imputer for pipelines of scikit-learn.

    Notes
    -----
    Best guesses are good for predictions of single cells.  A regression on a table that was filled
    once has standard errors that are too small: fit it to each of n copies, and pool the results by
    Rubin's rules [1]_.

    References
    ----------
    .. [1] D. B. Rubin, "Multiple Imputation for Nonresponse in Surveys", Wiley, 1987.

    Examples
    --------
    A table of measurements and a class, with 20 % of the cells missing:

    >>> import numpy as np
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).frame.astype({"target": "category"})
    >>> holed = wine.mask(np.random.default_rng(0).random(wine.shape) < 0.2)
    >>> filled, posterior = nmd.impute(holed, return_posterior=True, draws=50, random_state=0)
    >>> bool(filled.notna().all(axis=None)), filled["target"].dtype == holed["target"].dtype
    (True, True)

    Intervals of the filled numbers, and probabilities of the classes:

    >>> posterior.intervals(holed, level=0.9)["alcohol"].columns.to_list()
    ['low', 'high']
    >>> posterior.probabilities("target").columns.to_list()
    [0, 1, 2]

    Five copies, for standard errors that include the uncertainty of the missing cells:

    >>> copies = nmd.impute(holed, n=5, draws=50, random_state=0)
    >>> slopes = [np.polyfit(copy["flavanoids"], copy["alcohol"], 1)[0] for copy in copies]
    >>> len(slopes), bool(np.std(slopes) > 0)
    (5, True)
    """
    posterior = sample(frame, **options)
    names = ("at_most", "at_least", "upper", "random_state")
    limits_and_seed: dict[str, Any] = {name: options[name] for name in names if name in options}
    filled = posterior.impute(frame, n, **limits_and_seed)
    return (filled, posterior) if return_posterior else filled
