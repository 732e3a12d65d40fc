"""Factor analysis by a posterior: loadings, scores of rows, and the main columns of a factor."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import xarray as xr

from nmd_lab._runtime.checks import check_integer, check_share, check_word
from nmd_lab.data.labels import COMPONENT, Labels

from .imputation import PosteriorImputation
from .loadings import FactorDraws, FactorRotation, factor_draws, scores_of_rows
from .rankings import main_columns

OTHER = f"{COMPONENT}_"
"""Dimension of the second of two factors."""

NAMES = {
    *("loading", "low", "high", "communality", "communality_low", "communality_high"),
    *("share", "factor_correlation", OTHER, "mean", "sd"),
}
"""Names that dimensions and coordinates of X do not have in the results."""


class PosteriorFactorAnalysis(PosteriorImputation):
    """What columns have in common, and where rows stand in it."""

    def loadings(
        self, factors: int | None = None, rotation: FactorRotation = "varimax", level: float = 0.9
    ) -> xr.Dataset:
        """Return standardised loadings of factors, with intervals, as factor analysis has them.

        A loading is the growth of a column of T (behind its levels, limits and missing cells), in
        its standard deviations, with one standard deviation of a factor; for uncorrelated
        factors it is their correlation.  In each draw the factors are the common factors of the
        correlations of its columns, turned to those of the mean correlations, so that they are the
        same ones in all draws.  What only one column has is no factor.

        Parameters
        ----------
        factors : int, optional
            Number of factors.  By default the smallest one that leaves of the mean correlations
            less than these are unsure: the root mean square of what is left, over all pairs of
            columns, is at most that of the posterior standard deviation.  More rows show more
            factors, down to minor ones.
        rotation : {"none", "varimax", "oblimin", "promax"}, default "varimax"
            "none": principal axes.  "varimax": uncorrelated factors, each with few large loadings.
            "oblimin": factors that may correlate, so that columns load on few of them (direct
            oblimin with γ = 0, also called quartimin).  "promax": likewise, from varimax.
        level : float, default 0.9
            Probability of the intervals, in (0, 1).

        Returns
        -------
        xarray.Dataset
            `loading`, the posterior mean, with its interval `low` and `high`, along the columns of
            X and `component`: the factors, largest first.  The loading of largest size of each is
            positive.  `communality`, the fraction of the variance of a column that all factors
            explain, with `communality_low` and `communality_high`.  `share` of each factor in the
            variance of all columns.  `factor_correlation`, along `component` and `component_`.

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid, X has one column only, or the draws lack `row_precision`.

        See Also
        --------
        factor_scores : Where rows stand on these factors.
        top_of_components : The main columns of each factor.
        correlations : What loadings L and correlations P of the factors explain by L P L'.

        Notes
        -----
        A category has a column for each indicator.  One rotation, that of the mean loadings, holds
        for all draws; how unsure the rotation is, is not in the intervals.

        The common factors have the smallest residual correlations: H. H. Harman and W. H. Jones,
        "Factor analysis by minimizing residuals (minres)", Psychometrika, 1966.  Varimax, without
        weights of the columns: H. F. Kaiser, "The varimax criterion for analytic rotation in factor
        analysis", Psychometrika, 1958.  Oblimin: R. I. Jennrich and P. F. Sampson, "Rotation for
        simple loadings", Psychometrika, 1966.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> loading = posterior.loadings(2)["loading"]
        >>> loading.sel(component=0).idxmax().item()
        'flavanoids'
        """
        level = check_share("level", level, zero=False)
        return _labelled_loadings(self._labels, self._factors(factors, rotation), rotation, level)

    def factor_scores(
        self, X: Any = None, factors: int | None = None, rotation: FactorRotation = "varimax"
    ) -> xr.Dataset:
        """Return where rows stand on the factors of `loadings`, and how sure this is.

        Parameters
        ----------
        X : array_like, masked array, DataFrame or DataArray, optional
            Rows, by the rule of `impute`: of the fitted data by label, or new ones.  By default all
            rows of the fitted data.
        factors, rotation
            As for `loadings`.

        Returns
        -------
        xarray.Dataset
            `mean` and `sd` of the scores over the draws, along the rows and `component`.  In the
            population of rows, of all groups together, scores have mean 0 and standard deviation 1.
            `sd` is large where little of a row is observed.

        Raises
        ------
        ValueError, TypeError
            As for `loadings` and `impute`.

        See Also
        --------
        loadings : What the factors are.

        Notes
        -----
        The mean is the regression score: nearer to 0 than the true one, the more so the less is
        known of a row.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> scores = posterior.factor_scores(factors=2)
        >>> scores["mean"].sizes
        Frozen({'row': 178, 'component': 2})
        >>> new = posterior.factor_scores(
        ...     wine[:1].assign(flavanoids=float("nan")).set_axis([999]), factors=2
        ... )
        >>> bool((new["sd"] > scores["sd"][0]).any())  # less of the row is observed
        True
        """
        found = self._factors(factors, rotation)
        if X is None:
            posterior, labels, rows = self, self._labels, np.arange(self._shape[0])
        else:
            posterior, data = self._matched(X, enough=self._n_draws)
            labels, rows = data.observations.labels, data.rows
        labels = labels.rename(labels.clashes(NAMES))
        moments = scores_of_rows(posterior, posterior._row_vectors[:, rows], found)
        names = zip(("mean", "sd"), moments, strict=True)
        return xr.Dataset({name: labels.label_rows(values) for name, values in names})

    def top_of_components(
        self, k: int = 10, factors: int | None = None, rotation: FactorRotation = "varimax"
    ) -> xr.DataArray:
        """Return the k columns with the loadings of largest size on each factor of `loadings`.

        Parameters
        ----------
        k : int, default 10
            Number of columns.
        factors, rotation
            As for `loadings`.

        Returns
        -------
        xarray.DataArray (factors, k)
            Loadings, as `Decomposition.top_of_components` has the numbers of H.

        Raises
        ------
        ValueError, TypeError
            As for `loadings`; also if `k` is invalid.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> posterior.top_of_components(2, factors=1).column.values.tolist()
        [['flavanoids', 'total_phenols']]
        """
        k = check_integer("k", k, 1)
        found = self._factors(factors, rotation)
        loadings = self._labels.label_columns(found.loadings.mean(axis=0).T)
        return main_columns(self._labels, loadings.rename("loading"), k)

    def _factors(self, factors: int | None, rotation: str) -> FactorDraws:
        """Return the factors of each draw."""
        check_word("rotation", rotation, get_args(FactorRotation))
        count = None if factors is None else check_integer("factors", factors, 1)
        return factor_draws(self, count, rotation)


def _labelled_loadings(
    labels: Labels, found: FactorDraws, rotation: str, level: float
) -> xr.Dataset:
    """Return means and intervals of loadings and communalities along the columns of X."""
    labels = labels.rename(labels.clashes(NAMES))
    along = labels.label_columns(np.empty((found.shares.size, labels.matrix_shape[1])))
    loading = along.transpose(..., COMPONENT)
    communality = along.isel({COMPONENT: 0}, drop=True)
    tails = (1 - level) / 2, (1 + level) / 2
    variables = {}
    draws = (
        (("loading", "low", "high"), loading, found.loadings),
        (("communality", "communality_low", "communality_high"), communality, found.communalities),
    )
    for names, template, values in draws:
        moments = [values.mean(axis=0), *np.quantile(values, tails, axis=0)]
        for name, moment in zip(names, moments, strict=True):
            variables[name] = template.copy(data=moment.reshape(template.shape))
    factors = along[COMPONENT].values
    return xr.Dataset(
        {
            **variables,
            "share": (COMPONENT, found.shares),
            "factor_correlation": ((COMPONENT, OTHER), found.correlation),
        },
        {OTHER: factors},
        {"rotation": rotation, "level": level},
    )
