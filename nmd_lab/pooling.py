"""`pool`, `pool_test`, `pool_covariance`: analyses of imputed copies, by Rubin's rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ._runtime.checks import check_number, check_share
from .data.labels import plain_array

MIN_SHARE = 1e-4
"""Smallest fraction of the variance between copies: degrees of freedom stay finite, as in mice."""
SINGULAR = 1e-12
"""Smallest eigenvalue of a matrix of correlations, below which estimates depend on each other."""


def pool(
    results: Iterable[Any], contrasts: Any = None, *, df: float | None = None, level: float = 0.95
) -> pd.DataFrame:
    """Pool the estimates of an analysis of each imputed copy, by Rubin's rules.

    The pooled estimate is the mean of the m estimates.  Its variance is [1]_ ::

        T = U + (1 + 1/m) B

    with the mean U of the m variances and the variance B between the estimates.

    Parameters
    ----------
    results : iterable
        One result for each copy: a fit of statsmodels (`params`, and `cov_params()` or `bse`) or
        lifelines (`params_` and `variance_matrix_`), or a pair of estimates and their variances.
        Each of a pair is a number, an array or a Series; the variances may be a covariance matrix,
        which contrasts need.
    contrasts : mapping, DataFrame or list, optional
        Linear combinations to pool in place of the terms: for each name the weights of terms, such
        as ``{"treated - placebo": {"treated": 1, "placebo": -1}}``; of a DataFrame each column.  A
        list of terms selects these terms.
    df : float, optional
        Degrees of freedom of the analysis of complete data.  By default the smallest `df_resid` of
        the results; infinite for pairs and fits of lifelines.
    level : float, default 0.95
        Probability of the intervals, in (0, 1).

    Returns
    -------
    pandas.DataFrame
        One line for each term or contrast, with the columns `estimate`, `std_error` (the root of
        T), `statistic` (their ratio), `df` (degrees of freedom of Barnard and Rubin [2]_),
        `p_value` (of an estimate of 0, two-sided), `low` and `high` (the interval),
        `missing_information` (the fraction of missing information) and `variance_increase`
        (relative: (1 + 1/m) B / U).

    Raises
    ------
    TypeError, ValueError
        If a result is neither a fit nor a pair, if there are fewer than two, if their terms
        differ, if an estimate is not finite or a variance is not positive, or if a contrast has
        an unknown term or no covariances.

    See Also
    --------
    pool_test : Joint test of several terms or contrasts.
    pool_covariance : The pooled covariance matrix.
    impute : Completed copies of a table.

    Notes
    -----
    The numbers are those of ``summary(pool(fit), type = "all")`` of mice in R.

    References
    ----------
    .. [1] D. B. Rubin, "Multiple Imputation for Nonresponse in Surveys", Wiley, 1987.
    .. [2] J. Barnard and D. B. Rubin, "Small-sample degrees of freedom with multiple imputation",
       Biometrika 86, 948-955, 1999.

    Examples
    --------
    The slope of a regression on twenty imputed copies:

    >>> import numpy as np
    >>> import nmd_lab as nmd
    >>> from scipy.stats import linregress
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> holed = wine.mask(np.random.default_rng(0).random(wine.shape) < 0.2)
    >>> copies = nmd.impute(holed, n=20, draws=50, random_state=0)
    >>> fits = [linregress(copy["flavanoids"], copy["alcohol"]) for copy in copies]
    >>> pooled = nmd.pool([(fit.slope, fit.stderr**2) for fit in fits], df=len(wine) - 2)
    >>> bool(pooled["std_error"][0] > np.mean([fit.stderr for fit in fits]))
    True

    A difference of two terms, from their covariance in each copy:

    >>> pairs = [(copy.mean()[:2], copy.cov().iloc[:2, :2] / len(wine)) for copy in copies]
    >>> difference = {"alcohol - malic acid": {"alcohol": 1, "malic_acid": -1}}
    >>> nmd.pool(pairs, difference)["estimate"].round(1).tolist()
    [10.7]
    """
    level = check_share("level", level, zero=False)
    lines, m, estimate, within, between, df = _read(results, contrasts, df)
    std_error = np.sqrt(within + between)
    degrees = _degrees(m, between / (within + between), df)
    reach = stats.t.ppf((1 + level) / 2, degrees) * std_error
    increase = between / within
    table = {
        "estimate": estimate,
        "std_error": std_error,
        "statistic": estimate / std_error,
        "df": degrees,
        "p_value": 2 * stats.t.sf(np.abs(estimate) / std_error, degrees),
        "low": estimate - reach,
        "high": estimate + reach,
        "missing_information": (increase + 2 / (degrees + 3)) / (increase + 1),
        "variance_increase": increase,
    }
    return pd.DataFrame(table, index=lines)


def pool_covariance(results: Iterable[Any], contrasts: Any = None) -> pd.DataFrame:
    """Return the covariance matrix of the pooled estimates of an analysis of each imputed copy.

    It is T = U + (1 + 1/m) B as in `pool`, with the mean U of the m covariance matrices and the
    covariance matrix B of the m estimates.

    Parameters
    ----------
    results, contrasts
        As in `pool`, with a covariance matrix in each result.

    Returns
    -------
    pandas.DataFrame
        A line and a column for each term or contrast; the roots of the diagonal are the
        `std_error` of `pool`.

    See Also
    --------
    pool : Estimates, intervals and tests of each term or contrast.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> covariance = [[0.2, 0.1], [0.1, 0.3]]
    >>> pooled = nmd.pool_covariance([([1.0, 2.0], covariance), ([1.2, 2.2], covariance)])
    >>> pooled.round(2).to_numpy().tolist()
    [[0.23, 0.13], [0.13, 0.33]]
    """
    lines, _, _, within, between, _ = _read(results, contrasts, joint=True)
    return pd.DataFrame(within + between, lines, lines)


def pool_test(results: Iterable[Any], contrasts: Any, *, df: float | None = None) -> pd.Series[Any]:
    """Test that several terms or contrasts are all zero, over an analysis of each imputed copy.

    This is the Wald test D1 [1]_, in the notation of `pool`: for k pooled estimates Q, ::

        r = (1 + 1/m) trace(B U^-1) / k,        F = Q' U^-1 Q / (k (1 + r))

    It tests a categorical predictor, which has a term for each class but one.

    Parameters
    ----------
    results, contrasts, df
        As in `pool`, with a covariance matrix in each result: ``["age", "sex"]`` tests both terms.

    Returns
    -------
    pandas.Series
        `statistic` (F), `df1` (k) and `df2`, its degrees of freedom, `p_value`, and
        `variance_increase` (r).

    Raises
    ------
    TypeError, ValueError
        As in `pool`, and if the contrasts or their estimates depend on each other linearly.

    See Also
    --------
    pool : Each term or contrast alone.

    Notes
    -----
    The numbers are those of ``D1`` of mice in R.  The degrees of freedom `df2` are those of
    Reiter [2]_, and for an infinite `df` those of [1]_.  Where they are not defined, for k (m - 1)
    of 4 or less or a small `df`, `df2` is (k + 1) / 2 times the degrees of freedom that `pool` has
    at an increase of r.  For an infinite `df` this is the rule of [1]_, too.

    The test assumes that all terms have the same fraction of missing information.

    References
    ----------
    .. [1] K. H. Li, T. E. Raghunathan and D. B. Rubin, Journal of the American Statistical
       Association 86, 1065-1073, 1991.
    .. [2] J. P. Reiter, "Small-sample degrees of freedom for multi-component significance tests
       with multiple imputation for missing data", Biometrika 94, 502-508, 2007.

    Examples
    --------
    Two classes of a predictor, against the first class and against each other:

    >>> import pandas as pd
    >>> import nmd_lab as nmd
    >>> covariance = pd.DataFrame([[0.2, 0.1], [0.1, 0.3]], ["B", "C"], ["B", "C"])
    >>> copies = [(1.0, 2.0), (1.2, 1.9), (0.9, 2.2), (1.1, 2.1)]
    >>> pairs = [(pd.Series(estimates, ["B", "C"]), covariance) for estimates in copies]
    >>> nmd.pool_test(pairs, ["B", "C"], df=60).round(3)["p_value"].item()
    0.004
    >>> nmd.pool_test(pairs, {"C - B": {"C": 1, "B": -1}}, df=60).round(3)["p_value"].item()
    0.113
    """
    lines, m, estimate, within, between, df = _read(results, contrasts, df, joint=True)
    scale = np.sqrt(within.diagonal())
    if np.linalg.eigvalsh(within / np.outer(scale, scale))[0] < SINGULAR:
        raise ValueError("contrasts or their estimates depend on each other: leave out one.")
    k = len(lines)
    increase = np.linalg.solve(within, between).trace() / k
    statistic = estimate @ np.linalg.solve(within, estimate) / (k * (1 + increase))
    df2 = _joint_degrees(m, k, increase, df)
    values = [statistic, k, df2, stats.f.sf(statistic, k, df2), increase]
    names = ["statistic", "df1", "df2", "p_value", "variance_increase"]
    return pd.Series(values, names, dtype=float)


def _degrees(m: int, share: Any, df: float) -> Any:
    """Return the degrees of freedom of Barnard and Rubin, for shares of variance between copies."""
    share = np.maximum(share, MIN_SHARE)
    of_data = df * (1 - 2 / (df + 3)) * (1 - share)  # infinite where df is
    return 1 / (share**2 / (m - 1) + 1 / of_data)


def _joint_degrees(m: int, k: int, increase: float, df: float) -> float:
    """Return the degrees of freedom of Reiter, or those of Li et al. where his are undefined."""
    share = max(increase / (1 + increase), MIN_SHARE)
    t = k * (m - 1)
    if t > 4:
        a = share / (1 - share) * t / (t - 2)
        rest = df * (1 - 2 / (df + 3)) - 4 * (1 + a)
        if rest > 0:
            s = (1 + a) / rest
            c = 1 + 2 * s
            terms = c * (1 + 4 * s) ** 2 + 4 * s * c + 4 * s**2 / c  # his six, collected
            return 4 + 1 / (1 / rest + (a / (1 + a)) ** 2 * terms / (t - 4))
    return float((k + 1) / 2 * _degrees(m, share, df))


def _read(results: Any, contrasts: Any, df: Any = None, joint: bool = False) -> tuple[Any, ...]:
    """Return lines, m, estimates, U, (1 + 1/m) B, and the degrees of freedom of complete data.

    U and B are covariance matrices if `joint` is True, and variances otherwise.
    """
    results = list(results)
    m = len(results)
    if m < 2:
        raise ValueError(f"results has {m} of them: analyse two completed copies at least.")
    whole = joint or contrasts is not None
    pairs = [_pair(result, f"results[{k}]", whole) for k, result in enumerate(results)]
    lines = pairs[0][0].index
    for k, labels in [(k, each.index) for k, pair in enumerate(pairs) for each in pair]:
        wrong = [*set(labels) ^ set(lines), *labels[labels.duplicated()]]
        if wrong:
            raise ValueError(
                f"results[{k}] and the estimates of results[0] differ in the term {wrong[0]!r}, or "
                "have it twice: run the same analysis on each copy."
            )
    b = np.stack([estimates.reindex(lines) for estimates, _ in pairs])
    v = np.stack([variances.reindex(lines).T.reindex(lines) for _, variances in pairs])
    if contrasts is not None:
        lines, weights = _weights(contrasts, lines)
        b, v = b @ weights, weights.T @ v @ weights
    variances = v.diagonal(axis1=1, axis2=2) if whole else v
    usable = np.all(np.isfinite(b + variances) & (variances > 0), axis=0)
    if not usable.all():
        raise ValueError(
            f"results has an estimate of {lines[~usable][0]!r} that is not finite, or a variance "
            "that is not positive: leave this term out."
        )
    if df is None:
        df = min(float(getattr(result, "df_resid", np.inf)) for result in results)
    elif df != np.inf:
        df = check_number("df", df, above=0.0)
    lines = lines if lines.nlevels > 1 else lines.rename("term")
    between = np.atleast_2d(np.cov(b, rowvar=False)) if joint else b.var(axis=0, ddof=1)
    within = (v if joint else variances).mean(axis=0)
    return lines, m, b.mean(axis=0), within, (1 + 1 / m) * between, df


def _pair(result: Any, name: str, whole: bool) -> tuple[Any, Any]:
    """Return the estimates of a fit or a pair, and their variances or covariances, with labels."""
    try:
        if hasattr(result, "params_"):  # of lifelines
            estimates, variances = result.params_, result.variance_matrix_
        elif hasattr(result, "cov_params"):
            estimates, variances = result.params, result.cov_params()
        elif hasattr(result, "params"):
            estimates, variances = result.params, np.square(result.bse)
        else:
            estimates, variances = result
    except (AttributeError, TypeError, ValueError) as error:
        raise TypeError(
            f"{name} is a {type(result).__name__}: give a fit with params and cov_params(), or a "
            "pair of estimates and variances."
        ) from error
    b, v = (np.atleast_1d(plain_array(each).astype(float)) for each in (estimates, variances))
    shapes = [2 * b.shape] if whole and b.size > 1 else [b.shape, 2 * b.shape]
    if b.ndim != 1 or v.shape not in shapes:
        raise ValueError(
            f"{name} has estimates of shape {b.shape} and variances of shape {v.shape}: give a "
            "variance for each of the estimates, or the covariance matrix, which contrasts need."
        )
    names = getattr(getattr(result, "model", None), "exog_names", None) or []
    labels = pd.Index(names if len(names) == b.size else range(b.size))
    tables = [each for each in (estimates, variances) if isinstance(each, pd.Series | pd.DataFrame)]
    labels, others = (tables[k].index if tables else labels for k in (0, -1))
    v = v.reshape(b.size, -1) if whole else v if v.ndim == 1 else v.diagonal()
    return pd.Series(b, labels), pd.DataFrame(v, others, others) if whole else pd.Series(v, others)


def _weights(contrasts: Any, terms: Any) -> tuple[Any, Any]:
    """Return the names of contrasts, and their weights of the terms, in columns."""
    if not hasattr(contrasts, "items"):
        contrasts = {term: {term: 1} for term in contrasts}
    if not len(contrasts) or not all(hasattr(column, "items") for _, column in contrasts.items()):
        raise ValueError(f"contrasts={contrasts!r} has no weights: give some, by name and by term.")
    weights = pd.DataFrame(contrasts).fillna(0)
    for term in set(weights.index) - set(terms):
        raise ValueError(f"contrasts has the term {term!r}, which results do not: leave it out.")
    return weights.columns, weights.reindex(terms, fill_value=0).to_numpy(dtype=float)
