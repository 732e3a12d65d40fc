"""`pool`: one estimate from the analyses of imputed copies, by Rubin's rules."""

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


def pool(results: Iterable[Any], *, df: float | None = None, level: float = 0.95) -> pd.DataFrame:
    """Pool the estimates of an analysis of each imputed copy, by Rubin's rules.

    The pooled estimate is the mean of the m estimates.  Its variance is [1]_ ::

        T = U + (1 + 1/m) B

    with the mean U of the m variances and the variance B between the estimates.

    Parameters
    ----------
    results : iterable
        One result for each copy: a fit with `params`, and with `bse` or `cov_params()`, as
        statsmodels has them, or a pair of estimates and their variances.  Each of a pair is a
        number, an array or a Series; the variances may be a covariance matrix.
    df : float, optional
        Degrees of freedom of the analysis of complete data.  By default the smallest `df_resid` of
        the results; infinite for pairs.
    level : float, default 0.95
        Probability of the intervals, in (0, 1).

    Returns
    -------
    pandas.DataFrame
        One line for each term, with the columns `estimate`, `std_error` (the root of T),
        `statistic` (their ratio), `df` (degrees of freedom of Barnard and Rubin [2]_), `p_value`
        (of an estimate of 0, two-sided), `low` and `high` (the interval), `missing_information`
        (the fraction of missing information) and `variance_increase` (relative: (1 + 1/m) B / U).

    Raises
    ------
    TypeError, ValueError
        If a result is neither a fit nor a pair, if there are fewer than two, if their terms
        differ, or if an estimate is not finite or a variance is not positive.

    See Also
    --------
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
    """
    level = check_share("level", level, zero=False)
    results = list(results)
    m = len(results)
    if m < 2:
        raise ValueError(f"results has {m} of them: analyse two completed copies at least.")
    pairs = [_pair(result, f"results[{k}]") for k, result in enumerate(results)]
    terms = pairs[0][0].index
    for k, (estimates, _) in enumerate(pairs):
        if set(estimates.index) != set(terms):
            other = next(iter(set(estimates.index) ^ set(terms)))
            raise ValueError(
                f"results[{k}] and results[0] differ in the term {other!r}: run the same analysis "
                "on each copy."
            )
    b, v = (np.stack([each[k][terms] for each in pairs], axis=1) for k in range(2))
    usable = np.all(np.isfinite(b + v) & (v > 0), axis=1)
    if not usable.all():
        wrong = terms[~usable][0]
        raise ValueError(
            f"results has an estimate of {wrong!r} that is not finite, or a variance that is not "
            "positive: leave this term out."
        )
    if df is None:
        df = min(float(getattr(result, "df_resid", np.inf)) for result in results)
    else:
        df = check_number("df", df, above=0.0)
    within, between = v.mean(axis=1), (1 + 1 / m) * b.var(axis=1, ddof=1)
    estimate, std_error = b.mean(axis=1), np.sqrt(within + between)
    share = np.maximum(between / (within + between), MIN_SHARE)
    degrees = (m - 1) / share**2
    if df < np.inf:
        of_data = (df + 1) / (df + 3) * df * (1 - share)
        degrees = degrees * of_data / (degrees + of_data)
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
    return pd.DataFrame(table, index=terms.rename("term"))


def _pair(result: Any, name: str) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """Return the estimates of a fit or a pair, and their variances, by term."""
    terms = None
    if hasattr(result, "params"):
        estimates = result.params
        variances = np.square(result.bse) if hasattr(result, "bse") else result.cov_params()
        terms = getattr(getattr(result, "model", None), "exog_names", None)
    else:
        try:
            estimates, variances = result
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{name} is a {type(result).__name__}: give a fit with params and bse, or a pair "
                "of estimates and variances."
            ) from error
    b, v = (np.atleast_1d(plain_array(each).astype(float)) for each in (estimates, variances))
    v = np.diag(v) if v.ndim == 2 else v
    if b.ndim != 1 or b.shape != v.shape:
        raise ValueError(
            f"{name} has estimates of shape {b.shape} and variances of shape {v.shape}: give a "
            "variance for each of the estimates, in one dimension."
        )
    terms = estimates.index if isinstance(estimates, pd.Series) else terms
    labels = pd.RangeIndex(b.size) if terms is None or len(terms) != b.size else pd.Index(terms)
    return pd.Series(b, labels), pd.Series(v, labels)
