"""`Posterior`, the labelled result of a sampler: what its draws say of tables and factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from nmd_lab.data.folds import labels_of_new_rows
from nmd_lab.data.inputs import GivenLimits
from nmd_lab.data.labels import any_frame

from . import loadings, report
from .convergence import to_datatree
from .drawn import Drawn
from .draws import with_rows
from .entries import Unknown, check_unknown
from .fill import Point, check_fill, fill_by_posterior, intervals_of_table, with_skips
from .fold_in import draw_new_rows, observe_rows
from .loadings import FactorRotation
from .report import PosteriorReport

if TYPE_CHECKING:
    from nmd_lab.plots import PosteriorPlotAccessor


class Posterior(Drawn):
    """Draws of W, H and the noise levels from their posterior distribution, with the labels of X.

    Attributes
    ----------
    nonlinearity : Nonlinearity
        Nonlinearity f.
    loss : Loss
        Loss d, which defines the noise after f.
    noise : {"gaussian", "clipped", "before", "after", "ordinal"} or tuple of them
        Where the noise is, for v = WH plus offsets and T ~ N(v, 1/ρ).  "gaussian": x ~ N(v, 1/ρ).
        "clipped": this, or x = f(T) with a learned f; a new observation is f(T) between two ends.
        "before": x = f(T).  "after": x is f(T) plus noise of precision β, or a count of mean f(T).
        "ordinal": x is the k-th value if T lies between the cut points k - 1 and k.  A table of
        several kinds has one for each column.
    draws : xarray.Dataset
        Draws along `chain` and `draw`: W (rows, component), H (component, columns), rho, and
        where the model has them row_offsets, column_offsets, beta and cut_points, and the prior of
        the rows of W: row_mean and row_precision of each group (the offset is the last part), and
        if there are several, row_share and row_group, the group of each row, and in an ensemble the
        member that made the draw.  Rows in order have the autoregression phi of each component (0
        in members without an order), perhaps a season by phase and column, and the coordinates
        times, series and phases.  All are in the units of X; in a table of several kinds, T is in
        units of its column, which has rho, beta and cut points for itself.  Components of different
        draws are not the same components.
    trace : xarray.Dataset
        Numbers of each sweep after tuning, along `chain` and `sweep`: log_likelihood, and
        `prediction` at some entries, along `probe`.
    stop_reason : StopReason
        Why the sampler ended.
    mean : float
        Global offset.
    levels : tuple of float or None
        Values of ordinal data, from small to large.
    parameters : dict
        Options of the sampler, and the origin of data and software.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> import nmd_lab as nmd
    >>> wine = load_wine(as_frame=True).data
    >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
    >>> posterior.draws.H.dims, posterior.trace.sizes["sweep"]
    (('chain', 'draw', 'component', 'column'), 50)
    >>> posterior.noise[0], posterior.nonlinearity[0].name, posterior.loss[0], posterior.levels
    ('clipped', 'monotone', Frobenius(), None)
    >>> posterior.mean, posterior.stop_reason.code, posterior.parameters["draws"]
    (0.0, 'draws', 50)
    """

    @any_frame
    def impute(
        self,
        X: Any,
        n: int | None = None,
        *,
        point: Point = "auto",
        at_most: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        fill: ArrayLike | dict[Any, Any] | None = None,
        random_state: Any = None,
    ) -> Any:
        """Return data with their missing cells filled: once by a point, or n times by draws.

        Parameters
        ----------
        X : array_like, masked array, DataFrame or DataArray
            Data with missing entries, with the columns of the fitted data or, by label, some of
            them.  Their rows are those of the fitted data if all labels of rows occur there, each
            once, or if one of the two has no labels and they have as many; the default labels 0, 1,
            2, ... count as none.  Otherwise all are new rows, which are drawn as by `fold_in` (in
            order of time, later ones are forecasts), but from about 60 of the draws: the first rows
            of a table without labels are, too.  Use `fold_in` for all draws, and for as many new
            rows without labels.
        n : int, optional
            Number of completed copies, for multiple imputation.  By default there is one result,
            without randomness, with a prediction of each entry.
        point : {"auto", "mean", "median", "mode"}, default "auto"
            The prediction.  "auto": the mean of a numeric cell (where columns have noise of their
            own, within five standard deviations of the mean of its column), the median of an
            ordinal one (the first value at which the cumulative probability reaches one half), and
            the most probable class of a binary or categorical one.  "mean": of an ordinal cell the
            value nearest to its mean.  "median": also of a numeric cell.  "mode": also of an
            ordinal one.
        at_most, at_least, upper : array_like, optional
            Entries of which only limits are known, as for `nmd_lab.sample`; by default those of
            the fit whose values are still the limits.  They are filled, too, by values within
            their limits; a prediction is then the mean or the median of draws.
        fill : array_like of bool or dict, optional
            Missing cells to be filled, as for `nmd_lab.impute`; by default all.
        random_state : int, Generator, RandomState or None, default None
            Seed of the draws and of their noise.

        Returns
        -------
        same type as X, an ndarray for a masked array, or a list of n of them
            Observed entries are kept, and a DataFrame has its columns, index, dtypes and
            categories, as that of `Decomposition.impute`.  Whole numbers are filled by whole ones
            if the type is one of integers, such as "Int64"; ``X.convert_dtypes()`` makes integers
            of floats without fractions.  The missing entries of a completed copy are new
            observations, with noise, from one random draw; two completed copies have different
            draws as long as there are enough.  Where columns have noise of their own, a value that
            X has at least five times in a column without limits, such as 0, is drawn as such.

        Raises
        ------
        ValueError, TypeError
            If X is sparse, has another number of columns or other labels of them, an argument is
            invalid, or limits are those of new rows.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
        >>> posterior = nmd.sample(train, 3, draws=50, random_state=0)
        >>> filled = posterior.impute(train)
        >>> bool(filled.notna().all(axis=None))
        True
        >>> len(posterior.impute(train, n=20, random_state=0))
        20
        """
        limits = GivenLimits(at_most, at_least, upper)
        check_fill(X, fill)
        return with_skips(fill_by_posterior(self, X, n, point, limits, random_state), X, fill)

    @any_frame
    def intervals(self, X: Any, level: float = 0.9, *, noise: bool = True) -> Any:
        """Return an interval for each cell of a table, whether it is observed or missing.

        If the fit knows only limits of a cell, its interval is within them.

        Parameters
        ----------
        X : array_like, masked array, DataFrame or DataArray
            The fitted data, some of their rows and columns by label, or new rows, by the rule of
            `impute`.
        level : float, default 0.9
            Probability of an interval, in (0, 1).
        noise : bool, default True
            Whether the noise of an observation counts, as for `predict_interval`.

        Returns
        -------
        DataFrame or DataArray
            For a DataFrame, one with its index, and two columns for each of its columns:
            ``(column, "low")`` and ``(column, "high")``.  Ends have the type of the column;
            categories have no order, and are left out (`probabilities` has them).  Columns are
            named ``column_low`` and ``column_high`` in polars and Arrow.  For other data a
            DataArray with the dimension `bound` (low, high) after those of X.

        Raises
        ------
        ValueError, TypeError
            As for `impute`; also if `level` is not in (0, 1).

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> intervals = posterior.intervals(wine)
        >>> intervals["alcohol"].columns.tolist()
        ['low', 'high']
        >>> inside = wine["alcohol"].between(
        ...     intervals["alcohol", "low"], intervals["alcohol", "high"]
        ... )
        >>> bool(inside.mean() > 0.8)
        True
        """
        return intervals_of_table(self, X, level, noise)

    def fold_in(
        self,
        X: Any,
        *,
        observed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        unknown: Unknown = "error",
        random_state: Any = 0,
    ) -> Self:
        """Return the posterior of new rows, given the draws of H; these do not learn from them.

        The draws of a row depend on its entries, and not on its place or on the other rows: equal
        rows have equal draws.  In a posterior of rows in order they depend on all rows around it.
        Labels or columns say the places, later rows are forecasts, and none needs an entry.

        Parameters
        ----------
        X : array_like, DataFrame, DataArray, Series or scipy.sparse matrix
            New rows, with the columns of this posterior: all, or with labels some.
        observed, weights : array_like, optional
            Mask of the observed entries, and weights.
        unknown : {"error", "offsets"}, default "error"
            What is done with rows without entries and with columns that the fit does not have.
            "error": a sentence names them.  "offsets": the row is drawn from its prior, and
            unknown columns are left out.
        random_state : int, Generator or None, default 0
            Seed.

        Returns
        -------
        Posterior
            Draws of the new rows; a draw has the same H as that of this posterior.

        Raises
        ------
        ValueError, TypeError
            If X is invalid, or has rows without entries or other columns.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine[:150], 3, draws=50, random_state=0)
        >>> new = posterior.fold_in(wine[150:].assign(alcohol=float("nan")))
        >>> low, high = new.predict_interval(177, "alcohol")[0]
        >>> (
        ...     bool(low < 13.5 < high),
        ...     bool(new.predict_std(177, "alcohol") > new.predict_std(177, "ash")),
        ... )
        (True, True)
        """
        check_unknown(unknown)
        new = observe_rows(self._labels, X, observed=observed, weights=weights)
        draws = draw_new_rows(self._labels, self._draws, new, unknown, random_state)
        labels = labels_of_new_rows(self._labels, new.labels)
        return with_rows(self, draws, labels)  # type: ignore[no-any-return]

    def correlations(self, level: float = 0.9) -> xr.Dataset:
        """Return the correlations of the columns, behind ordinal values, limits and missing cells.

        They are those of T in a new row: those that f(T), cut points and limits only show in part.
        The covariance in a draw is H' Σ H plus the noise of each column, with the covariance Σ of
        the rows of W, within and between their groups; the offset of a row counts as a component.

        Parameters
        ----------
        level : float, default 0.9
            Probability of the intervals, in (0, 1).

        Returns
        -------
        xarray.Dataset
            Variables `mean`, `low` and `high`, along the dimensions of the columns of X and again
            along these with "_" after their names.  A category has a column for each indicator.

        Raises
        ------
        ValueError
            If `level` is not in (0, 1), or the draws lack `row_precision`.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> r = posterior.correlations()
        >>> bool(r["low"].sel(column="flavanoids", column_="total_phenols") > 0.7)
        True
        """
        return loadings.latent_correlations(self._draws, self._labels, level)

    def reliability(self, X: Any) -> pd.DataFrame:
        """Return held-out cells, most certain first, with the error of those up to each.

        Parameters
        ----------
        X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
            Test data, as for `predict`: what `sample` has not seen, and NaN elsewhere.

        Returns
        -------
        pandas.DataFrame
            One line for each cell.  `kind` is "number" (numeric or ordinal) or "class" (or binary).
            `uncertainty` is 0 for a certain cell, and 1 for one that is predicted without anything
            observed in the row: for a number the ratio of the standard deviations, for a class
            that of the probabilities to be wrong.  `wrong` is the error, of a number in units of
            its standard deviation without anything observed in the row, of a class 0 or 1.  `share`
            is the fraction of the cells of this kind up to the line, and `error` their error: root
            mean square, or fraction of wrong classes.

        Raises
        ------
        ValueError, TypeError
            As for `predict`; also if the draws lack `row_precision`.

        See Also
        --------
        nmd_lab.plots.reliability : `error` against `share`.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
        >>> posterior = nmd.sample(train, 3, draws=50, random_state=0)
        >>> cells = posterior.reliability(test)
        >>> (
        ...     bool(len(cells) == test.notna().sum().sum()),
        ...     bool(cells["uncertainty"].is_monotonic_increasing),
        ... )
        (True, True)
        >>> bool(cells["error"][115] < cells["error"].iloc[-1])  # the surer half
        True
        """
        return report.reliability(self, X)

    def loadings(
        self, factors: int | None = None, rotation: FactorRotation = "varimax", level: float = 0.9
    ) -> xr.Dataset:
        """Return standardised loadings of factors, with intervals, as factor analysis has them.

        A loading is the growth of a column of T (behind ordinal values, limits, missing cells), in
        its standard deviations, with one standard deviation of a factor; for uncorrelated
        factors it is their correlation.  In each draw the factors are the common factors of the
        correlations of its columns, turned to those of the mean correlations, so that they are the
        same ones in all draws.  What only one column has is no factor.

        Parameters
        ----------
        factors : int, optional
            Number of factors.  By default the smallest one that explains the mean correlations
            up to their uncertainty: the root mean square of what is left, over all pairs of
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
        for all draws; the intervals do not contain the uncertainty of the rotation.

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
        return loadings.labelled_loadings(self._draws, self._labels, factors, rotation, level)

    def factor_scores(
        self, X: Any = None, factors: int | None = None, rotation: FactorRotation = "varimax"
    ) -> xr.Dataset:
        """Return where rows stand on the factors of `loadings`, and the uncertainty of this.

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
        return loadings.labelled_scores(self, X, factors, rotation)

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
        return loadings.main_loadings(self, k, factors, rotation)

    def to_datatree(self, held_out: Any = None, *, factors: bool = False) -> xr.DataTree:
        """Return the draws as the groups of a tree, as ArviZ expects them.

        Parameters
        ----------
        held_out : array_like, masked array, DataFrame, DataArray or scipy.sparse, optional
            Cells that were held out of `sample`, with what was observed there, as for
            `reliability`.  ``az.loo`` needs the data that `sample` has seen in their place.
        factors : bool, default False
            Whether `posterior` has W and H, whose components are not identified.

        Returns
        -------
        xarray.DataTree
            Group `posterior`, along `chain` and `draw`: predictions of some cells, singular values
            and effective rank of WH, and where the model has them standard deviations of the noise
            before f (`noise`), precisions of that after f and cut points.  Group `sample_stats`:
            lp, the log-likelihood of each sweep.  With `held_out`, groups `observed_data` and
            `posterior_predictive`, with a variable for each column of a table, and
            `log_likelihood`, with the variable `cells`.  Categories have their positions.

        Raises
        ------
        ValueError, TypeError
            As for `predict`, of which `held_out` is the test data.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
        >>> posterior = nmd.sample(train, 3, draws=50, random_state=0)
        >>> tree = posterior.to_datatree(test)  # for az.plot_ppc_dist(tree, var_names="alcohol")
        >>> tree["posterior"].sizes["draw"], tree["log_likelihood"].sizes["cell"]
        (50, 231)
        """
        return to_datatree(self, held_out, factors=factors)

    @any_frame
    def report(
        self, X: Any, held_out: Any = None, *, level: float = 0.9, n: int | None = None
    ) -> PosteriorReport:
        """Return what was missing in X, what it is filled with, and how far to trust this.

        Parameters
        ----------
        X : array_like, masked array, DataFrame or DataArray
            Data with missing entries, by the rule of `impute`.
        held_out : array_like, masked array, DataFrame, DataArray or scipy.sparse, optional
            Cells that were held out of `sample`, with what was observed there, as for
            `reliability`.  The report then contains the errors of their predictions, and the
            fraction of them that the intervals cover.
        level : float, default 0.9
            Probability of the intervals, in (0, 1).
        n : int, optional
            Number of completed copies, as for `impute`; by default that of `nmd_lab.impute`.

        Returns
        -------
        PosteriorReport
            Markdown as text, HTML in a notebook; ``save("report.html")`` writes it.  It has the
            code for `fill` if cells seem to be empty on purpose: in all of at least ten rows where
            another column has some value, too many for chance.

        Raises
        ------
        ValueError, TypeError
            As for `impute` and `reliability`.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
        >>> posterior = nmd.sample(train, 3, draws=50, random_state=0)
        >>> report = posterior.report(train, held_out=test)
        >>> report.summary
        '178 rows and 13 columns; 231 of 2314 cells (10.0 %) are missing.'
        >>> report.columns[["column", "missing", "filled by"]].values.tolist()[0]
        ['alcohol', 20, 'mean']
        """
        return report.make_report(self, X, held_out, level, n)

    @property
    def plot(self) -> PosteriorPlotAccessor:
        """Plots of the posterior, such as ``posterior.plot.trace()``; they need matplotlib.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> posterior.plot.trace().get_xlabel()
        'sweep'
        """
        from nmd_lab.plots import PosteriorPlotAccessor

        return PosteriorPlotAccessor(self)
