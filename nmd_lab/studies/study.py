"""`Study`: fits over a grid of arguments, with results in one labelled Dataset."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import xarray as xr
from joblib import effective_n_jobs
from numpy.typing import ArrayLike

from nmd_lab._runtime.checks import check_integer, many
from nmd_lab._runtime.machine import check_target
from nmd_lab._runtime.progress import progress_bar
from nmd_lab.data.inputs import GivenLimits
from nmd_lab.data.labels import any_frame
from nmd_lab.request.options import Options
from nmd_lab.result import netcdf

from .cell import (
    ALGORITHM,
    CONDITIONS,
    Cell,
    Record,
    check_names,
    make_grid,
    read_records,
    run_cells,
    select,
    to_dataset,
    write_record,
)
from .known_entries import NO_NOISE, NOTHING_HIDDEN, read_known_entries
from .summary import BestModel, StudyPlots, StudyTable, choose, rank_test, study_html, table, winner


class Study:
    """Compare models over a grid of arguments, by the error on held-out entries.

    Each cell of the grid fits X ≈ f(WH) to the training entries, and its error is that of the
    held-out entries; for the RMSE, with sums over these ::

        held_out_rmse = sqrt( Σ w_ij (x_ij - f((WH)_ij + b_ij))² / Σ w_ij )

    An argument with a list of values becomes a dimension of the results.  Each seed holds out
    other entries and draws other noise.  All models have the same held-out entries, so that
    comparisons are paired.

    Parameters
    ----------
    X : array_like, scipy.sparse matrix, SparseObservations, DataFrame or DataArray (m, n)
        Data, as for `complete`; a DataFrame may have booleans, ordered categories and categories.
    method : str, callable or list, default "admm"
        "admm" is `complete`, "sample" is `sample`; those of `nmd_lab.baselines` have their names.
        A function of (X, observed, rank, random_state), or of some of these, returns a prediction
        of every entry or a `Decomposition`.  `observed` is None for a sparse X.
    missing : float, list or dict, default 0.2
        Fraction of the known entries that is held out, from 0 to below 1.  A dict has fractions by
        kind, such as ``{"random": [0.2, 0.5], "blocks": 0.2}``: "random", "rows" and "columns"
        (whole ones), "blocks" (square patches of an image), "by_value" (large values more often;
        not for classes).  Entries of which only limits are known are never held out.
    noise : dict, optional
        Noise that is added to the known entries before some are held out, by kind:
        "gaussian" (standard deviation in the units of X), "salt_and_pepper" (fraction of entries
        that become the smallest or largest value of X), "poisson" (counts per unit of X),
        "outliers" (fraction of entries with an error of five standard deviations of X).  Not for
        classes.
    n_splits : int, default 3
        Number of seeds.
    random_state : int, default 0
        First seed; the others are the integers after it.
    metrics : str, callable or list, default ["rmse", "mae", "relative_error"]
        Errors of the fits: names, among them "relative_error_l1" and "relative_error_kl", or
        functions of (X, Y), and of `weights` if these count.
    **arguments
        Arguments of `complete`, with its defaults, such as `rank` or `max_iter`, and of other
        methods, such as `draws` and `tune` of "sample".  An "auto" is chosen in each fit by entries
        that the fit holds out itself, not by those of the study.

    Attributes
    ----------
    results : xarray.Dataset
        Results of the last `run` that did all fits.

    Other Parameters
    ----------------
    observed : array_like of bool (m, n), optional
        True where X is observed.
    weights : array_like (m, n), optional
        Weights of the entries, for the methods that take them, and for all errors.
    at_most, at_least, upper : array_like (m, n), optional
        Entries of which only limits are known, as for `complete`; values for other methods.
    shape : (int, int), optional
        Height and width of the image that each row is, for "blocks".  By default from the
        coordinates `y` and `x` of the columns; without these, X itself is one image.
    sample_dims : str or tuple of str, optional
        Dimensions of a DataArray that make the rows.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; this is checked before any fit.

    See Also
    --------
    complete : One fit, which chooses rank, ridge and nonlinearity itself.
    nmd_lab.baselines : Column means, SVD, NMF and SoftImpute.
    nmd_lab.widgets.explore : Figures of the results, with controls.

    Notes
    -----
    The held-out entries of a small fraction are among those of a larger one, and weak and strong
    noise are the same draw at another scale.  Curves over fractions and noise levels are therefore
    smooth.  Where entries are held out one by one, each row and column keeps at least one, if the
    fraction allows it.

    In a table of several kinds, or a DataFrame whose columns are in different units, errors of
    numbers are in standard deviations of their column, so that the column mean has an RMSE of about
    1.  Classes have the error ``misclassified`` (the fraction of wrong ones), and ordinal columns
    ``level_error`` (the mean number of categories between prediction and value); lower is better,
    as for all errors.  Baselines, and functions of `observed`, receive standardised numbers, with
    indicators.

    :meth:`rank_test` has confidence intervals of paired differences, corrected for the overlap of
    the splits [1]_.

    References
    ----------
    .. [1] C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52,
       239-281, 2003.

    Examples
    --------
    Ranks of a model of digits compared with a truncated SVD, at two fractions of held-out pixels:

    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(60)
    >>> study = nmd.Study(digits, rank=[2, 6], loss=["frobenius", "l1"], method=["admm", "svd"],
    ...                   missing=[0.2, 0.5], alpha=1)
    >>> results = study.run(progress=False)
    >>> results.held_out_rmse.dims
    ('algorithm', 'loss', 'rank', 'missing', 'seed')

    The best model, fitted to all data, and paired differences of the others to it:

    >>> parameters, fit = study.best("held_out_rmse", missing=0.2)
    >>> parameters["rank"], fit.W.shape
    (6, (60, 6))
    >>> study.rank_test("rmse").columns.to_list()[:3]
    ['mean', 'mean_rank', 'difference']

    An imputer of scikit-learn in the same comparison, on a table of measurements:

    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.impute import KNNImputer
    >>> def neighbours(X, observed):
    ...     return KNNImputer().fit_transform(np.where(observed, X, np.nan))
    >>> wine = load_wine(as_frame=True).data
    >>> methods = ["sample", "mean_fill", neighbours]
    >>> study = nmd.Study(wine, method=methods, draws=100, n_splits=2)
    >>> errors = study.run(progress=False).held_out_rmse.mean("seed").to_series()
    >>> errors.sort_values().index.to_list()
    ['sample', 'neighbours', 'mean_fill']
    """  # fmt: skip

    @any_frame
    def __init__(
        self,
        X: Any,
        *,
        method: Any = "admm",
        missing: Any = 0.2,
        noise: Mapping[str, Any] | None = None,
        n_splits: int = 3,
        random_state: int = 0,
        metrics: Any = ("rmse", "mae", "relative_error"),
        observed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        at_most: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        shape: tuple[int, int] | None = None,
        sample_dims: str | Sequence[str] | None = None,
        **arguments: Any,
    ) -> None:
        first = check_integer("random_state", random_state, 0)
        limits = GivenLimits(at_most, at_least, upper)
        others = {"observed": observed, "weights": weights, "sample_dims": sample_dims}
        data = read_known_entries(X, shape, limits, **others)
        check_names(method, arguments, inspect.signature(Study).parameters)
        arguments |= {ALGORITHM: method, "missing": missing, "noise": noise}
        arguments |= {"seed": range(first, first + check_integer("n_splits", n_splits, 1))}
        self.grid = make_grid(data, metrics, arguments)
        self._records: dict[str, Record] = {}
        self._results: xr.Dataset | None = None

    def run(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        n_jobs: int = 1,
        progress: bool = True,
        time_limit: float | None = None,
    ) -> xr.Dataset:
        """Do the fits that are not done yet, and return all results.

        Parameters
        ----------
        path : path-like, optional
            NetCDF file for the results, for example "study.nc".  Each fit goes into a file of the
            folder study.nc.fits next to it as soon as it is done.  A later run, also of another
            grid, takes finished fits from there.  It repeats those that failed or took too long.
        n_jobs : int, default 1
            Number of processes with one thread each; -1 is one for each processor.
        progress : bool, default True
            Whether to show a progress bar.
        time_limit : float, optional
            Largest duration in seconds of each fit whose method takes a time limit, as `complete`
            and `sample` do; the results of a longer one are NaN.

        Returns
        -------
        Dataset
            Results over every argument that varies and `seed`: ``held_out_rmse``,
            ``observed_rmse``, ``clean_rmse`` and so on for each error, `objective`, `n_iter`,
            `seconds`, `status` ("done", "left out", "timed out", "failed"), `stop_reason`,
            `warnings` and `fit`, the key of the fit.  What fits have chosen is in `rank_chosen`,
            `alpha_chosen` and so on; NaN or "" where it was given.  "sample" adds
            ``held_out_coverage_90`` and ``held_out_log_density``, those of numbers in a table.
            Cells that differ only in arguments that their method ignores share a fit.  Methods make
            `algorithm`.

        Raises
        ------
        ValueError
            If `path` holds another study, of which no fit is one of this study.

        Notes
        -----
        The errors on held-out and observed entries compare a fit with the values with noise, those
        on clean entries with all known values before it.  The seconds do not include compilation.
        """
        n_jobs = effective_n_jobs(n_jobs)
        Options.of({"time_limit": time_limit})
        path = None if path is None else check_target(path)
        folder = None if path is None else path.with_name(f"{path.name}.fits")
        cells = {cell.key: cell for cell in self.grid.values.flat}
        if folder:
            stored = read_records(folder)
            for key in self._records.keys() - stored.keys():
                write_record(folder, self._records[key])
            self._records |= stored
        if self._records and not cells.keys() & self._records.keys():
            raise ValueError(f"path={str(path)!r} holds another study: give another path.")
        done = {k for k, r in self._records.items() if r.get("status") in ("done", "left out")}
        # By key, which is as good as at random: so the rate predicts the remaining time
        todo = [cells[key] for key in sorted(cells.keys() - done)]
        with progress_bar(len(todo), progress, unit="fit") as show:
            for record in run_cells(todo, n_jobs, time_limit):
                show("")
                if folder:
                    write_record(folder, record)
                self._records[record["key"]] = record
        self._results = to_dataset(self.grid, self._records)
        if path:
            netcdf.write(self._results, path)
        return self._results

    @property
    def results(self) -> xr.Dataset:
        """Results of the last `run` that did all fits."""
        if self._results is None:
            raise ValueError(f"results need all fits, and {self._done} are done: call study.run().")
        return self._results

    def cell(self, **labels: Any) -> Cell:
        """Return one cell, with everything that is needed to repeat its fit by hand.

        Parameters
        ----------
        **labels
            Coordinate for each dimension of the results with more than one label.

        Returns
        -------
        Cell
            The cell, with its ``X``, ``arguments``, ``fit()`` and ``scores(fit)``.

        Raises
        ------
        ValueError
            If there is no such cell.
        """
        cells = select(self.grid, labels)
        for name, size in cells.sizes.items():
            if size > 1:
                raise ValueError(f"{name} is not given: choose from {cells[name].values.tolist()}.")
        cell: Cell = cells.item()
        return cell

    def best(
        self, metric: str | None = None, *, one_standard_error: bool = True, **conditions: Any
    ) -> BestModel:
        """Return the parameters of the best model, and its fit to all data.

        Parameters
        ----------
        metric : str, optional
            Name of a variable of the results, or of a metric, which stands for its error on
            held-out entries.  By default the first metric.
        one_standard_error : bool, default True
            Whether to take the simplest model (lowest rank, then largest alpha) that is at most
            one standard error of their paired difference over the seeds worse than the best.
        **conditions
            Labels to which the comparison is restricted, for example ``missing=0.5``; by default
            it takes the mean over all conditions.

        Returns
        -------
        BestModel
            Pair (parameters, fit).

        Raises
        ------
        ValueError
            If the metric is unknown, or no model has a score in all its cells.
        """
        labels = choose(self.results, metric, one_standard_error, conditions)
        first = {dim: 0 for dim in CONDITIONS if dim in self.grid.dims}
        cell = select(self.grid.isel(first, drop=True), labels).item()
        fit = replace(cell, missing=NOTHING_HIDDEN, noise=NO_NOISE).fit()
        method = {ALGORITHM: labels[ALGORITHM]} if ALGORITHM in labels else {}
        return BestModel(method | cell.settings, fit)

    def table(self, *metrics: str, **conditions: Any) -> StudyTable:
        """Return a table of means and standard deviations over the seeds.

        Parameters
        ----------
        *metrics : str
            Metrics or variables of the results; by default the first metric and the seconds.
        **conditions
            Labels to which the table is restricted, for example ``missing=0.5``.

        Returns
        -------
        DataFrame
            Table with a row for each model, and columns for each metric and condition.  Jupyter
            shows mean ± standard deviation, with the best in bold.
        """
        return table(self.results, metrics, conditions)

    def rank_test(
        self, metric: str | None = None, *, confidence: float = 0.95, **conditions: Any
    ) -> pd.DataFrame:
        """Return the paired differences of all models to the best, with confidence intervals.

        Parameters
        ----------
        metric : str, optional
            Name of a variable or a metric, as for `best`.
        confidence : float, default 0.95
            Confidence of the intervals, between 0 and 1.
        **conditions
            Labels to which the comparison is restricted, as for `best`.

        Returns
        -------
        DataFrame
            Table with a row for each model, best first: `mean`, `mean_rank`, `difference` to the
            best seed by seed, `low` and `high` ends of its interval, and `beaten`, the fraction of
            conditions and seeds in which the best model is better.

        Notes
        -----
        The seeds hold out entries of the same data, so their results are correlated.  The variance
        of the mean difference over k seeds is therefore taken as (1/k + held out/kept) times the
        variance of the differences [1]_.  The interval is that of Student's t distribution with k -
        1 degrees of freedom.

        References
        ----------
        .. [1] C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine
           Learning 52, 239-281, 2003.
        """
        return rank_test(self.results, metric, confidence, conditions)

    @property
    def plot(self) -> StudyPlots:
        """Plots of the results: ``error`` and ``heatmap``."""
        return StudyPlots(self.results)

    @property
    def _done(self) -> str:
        """How many fits are done, and of how many."""
        keys = {cell.key for cell in self.grid.values.flat}
        return f"{len(keys & self._records.keys())} of {many(len(keys), 'fit')}"

    def _repr_html_(self) -> str:
        return study_html(repr(self), self._results)

    def __repr__(self) -> str:
        """Return the size of the data, the dimensions, the finished fits and the best model."""
        data = self.grid.values.flat[0].data
        (m, n), size = data.observations.shape, many(data.observations.n_observed, "observed entry")
        dims = ", ".join(f"{dim}: {length}" for dim, length in self.grid.sizes.items())
        best = "" if self._results is None else f"\n  {winner(self._results)}"
        return f"<nmd_lab.Study>  {m} x {n}, {size}\n  {dims}\n  {self._done} done{best}"
