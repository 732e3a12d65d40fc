"""`Study`: a grid of fits as one labelled Dataset."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import xarray as xr
from numpy.typing import ArrayLike

from nmd_lab._checks import check_integer, check_rank
from nmd_lab.result import netcdf
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.options import Options

from .cell import Cell, Problem, make_metrics
from .dataset import journal_header, to_dataset
from .grid import CONDITIONS, Grid, make_grid
from .journal import Journal
from .known_entries import known_entries, picture_of_rows
from .processes import number_of_processes, run_tasks
from .progress import with_progress
from .summary import choose, rank_test, table

if TYPE_CHECKING:
    import pandas as pd

    from .accessor import StudyPlots


class Best(NamedTuple):
    """What `Study.best` found: the parameters, and a fit with them to all data."""

    parameters: dict[str, Any]
    fit: Decomposition


class Study:
    """Many fits of one data set, compared on entries that they did not see.

    Any argument of `nmd_lab.complete` may be given; a list of values makes it a dimension of the
    results.  Each seed hides other entries and draws other noise, the same for all models, so
    that comparisons are paired.

    Parameters
    ----------
    X : array_like, scipy.sparse matrix, pandas.DataFrame or xarray.DataArray (m, n)
        The data, as `complete` takes them.
    method : str, callable or list, default "admm"
        "admm" is `complete`; "svd" (truncated, holes filled with the mean), "mean_fill", "nmf"
        (complete data only) and the other functions of `nmd_lab.baselines` go by their names; any
        function (X, rank, ...) that returns a `Decomposition` will do.  Each gets those of the
        arguments that it takes.
    missing : float, list or dict, default 0.2
        Share of the known entries that is hidden from the fits, from 0 to below 1.  A dict names
        other ways to hide: "random", "rows" and "columns" (whole ones), "blocks" (square patches
        of a picture) and "by_value" (the larger a value, the likelier), each with its shares, for
        example ``{"random": [0.2, 0.5], "blocks": 0.2}``.
    noise : dict, optional
        Noise that is added to the known entries before some are hidden: "gaussian" (the level is
        the standard deviation, in the units of X), "salt_and_pepper" (share of the entries that
        are set to an extreme of X), "poisson" (counts per unit of X) and "outliers" (share of
        the entries that get an error of five standard deviations of X), each with its levels.
    n_splits : int, default 3
        Number of seeds.
    random_state : int, default 0
        The first seed; the others follow it.
    metrics : str, callable or list, default ["rmse", "mae", "relative_error"]
        Errors: these, "relative_error_l1", "relative_error_kl", or functions of (X, Y).
    mask : array_like of bool (m, n), optional
        True where X is observed.
    clean : array_like (m, n), optional
        The truth behind X, if it is known; with `noise` it is X itself unless given.
    shape : (int, int), optional
        Height and width of the picture that each row is, for "blocks"; by default those that the
        coordinates `y` and `x` of the columns tell, else X itself is one picture.
    sample_dims : str or tuple of str, optional
        The dimensions of a DataArray that make the rows.
    **arguments
        `rank`, `nonlinearity`, `loss`, `alpha`, `max_iter` and all others of `complete`.

    Attributes
    ----------
    results : xarray.Dataset
        What `run` returned last.

    Raises
    ------
    ValueError, TypeError
        Before any work, in one sentence, if an argument makes no sense.

    Notes
    -----
    The holes of a small share are among those of a larger one, and a level scales one draw of
    noise, so that curves over shares and levels are smooth.  At least one entry of each row and
    column is left where entries are hidden one by one, as far as the share allows.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> study = nmd.Study(nmd.datasets.digits(60), rank=[2, 6], loss=["frobenius", "l1"],
    ...                   method=["admm", "svd"], missing=[0.2, 0.5], max_iter=50)
    >>> results = study.run(progress=False)
    >>> results.held_out_rmse.dims
    ('method', 'loss', 'rank', 'missing', 'seed')
    >>> parameters, fit = study.best("held_out_rmse", missing=0.2)
    >>> parameters["rank"]
    6
    """  # fmt: skip

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
        mask: ArrayLike | None = None,
        clean: Any = None,
        shape: tuple[int, int] | None = None,
        sample_dims: str | Sequence[str] | None = None,
        **arguments: Any,
    ) -> None:
        check_integer("n_splits", n_splits, 1)
        check_integer("random_state", random_state, 0)
        first, count = int(random_state), int(n_splits)
        seeds, own = range(first, first + count), list(inspect.signature(Study).parameters)
        known = known_entries(X, mask=mask, clean=clean, sample_dims=sample_dims)
        blocks = isinstance(missing, Mapping) and "blocks" in missing
        picture = picture_of_rows(known, shape) if blocks or shape is not None else None
        self.grid: Grid = make_grid(arguments, missing, noise, method, seeds, own, picture)
        for rank in next((a.values for a in self.grid.axes if a.name == "rank"), ()):
            check_rank(rank, known.shape)
        self.problem = Problem(
            known=known,
            metrics=make_metrics(metrics),
            noisy=any(c.level > 0 for c in self.grid.axis("noise").values),
            constants={} if sample_dims is None else {"sample_dims": sample_dims},
        )
        self._records: dict[str, dict[str, Any]] = {}
        self._results: xr.Dataset | None = None

    def run(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        n_jobs: int = 1,
        progress: bool = True,
        time_limit: float | None = None,
        retry: bool = False,
    ) -> xr.Dataset:
        """Do the fits that are not done yet, and return all results.

        Parameters
        ----------
        path : path-like, optional
            NetCDF file for the results, for example "study.nc".  Beside it, study.nc.journal
            receives each fit as soon as it is done; another run, of a grown grid too, goes on
            from there.
        n_jobs : int, default 1
            Processes, with one thread each; -1 is one for each processor.
        progress : bool, default True
            Whether to show a bar.  Fits are done in an order as good as random, so that the rate
            so far is a fair guess of the rate to come.
        time_limit : float, optional
            Seconds for each fit; one that takes longer has NaN and its reason for results.
        retry : bool, default False
            Whether fits that failed or took too long are done again.

        Returns
        -------
        Dataset
            Over every argument that varies and `seed`: ``held_out_rmse``, ``observed_rmse``,
            ``clean_rmse`` and so on for each metric, `objective`, `n_iter`, `seconds`,
            `peak_memory` in bytes (see Notes), `status` ("done", "left out", "timed out",
            "failed"), `stop_reason`, `warnings`, and `fit`, the name of the fit: cells that differ
            only in what their method ignores share one.  Choose a method with
            ``results.sel({"method": "svd"})``, since ``sel(method=...)`` means something else to
            xarray.

        Raises
        ------
        ValueError
            If `path` holds another study, or this one with other data or settings.
        RuntimeError
            If another process is writing to `path`.

        Notes
        -----
        The errors on held-out and observed entries are taken against the values with noise, as in
        real life, those on clean entries against all that is known of the truth.  Seconds are
        without compilation.  The peak memory is the growth of the process's resident size during
        the fit, exact to a fraction of a MiB; outside Linux it is NaN.
        """
        processes = number_of_processes(n_jobs)
        Options.of({"time_limit": time_limit})
        path = None if path is None else Path(path)
        tasks = list(self.grid)
        with Journal(path, journal_header(self.grid, self.problem), self._records) as journal:
            self._records = journal.records
            again = ("failed", "timed out") if retry else ()
            done = {key for key, r in journal.records.items() if r["status"] not in again}
            todo = sorted({t.key: t for t in tasks if t.key not in done}.items())
            records = run_tasks(self.problem, [t for _, t in todo], processes, time_limit)
            for record in with_progress(records, len(todo), progress):
                journal.add(record)
            self._results = to_dataset(self.grid, tasks, journal.records, self.problem)
            if path is not None:
                netcdf.write(self._results, path)
        return self._results

    @property
    def results(self) -> xr.Dataset:
        """What `run` returned last."""
        if self._results is None:
            raise ValueError("results are not there yet: call run() first.")
        return self._results

    def cell(self, **labels: Any) -> Cell:
        """Return one cell: the matrix that its fit sees, its arguments, and what it hides.

        Parameters
        ----------
        **labels
            A coordinate of the results for each dimension with more than one.

        Returns
        -------
        Cell
            With ``X``, ``arguments``, ``fit()`` and ``scores(fit)``.

        Raises
        ------
        ValueError
            If there is no such cell.
        """
        return Cell(self.problem, self.grid.task(labels))

    def best(
        self, metric: str | None = None, *, one_standard_error: bool = True, **conditions: Any
    ) -> Best:
        """Return the parameters of lowest error, and a fit with them to all data.

        Parameters
        ----------
        metric : str, optional
            A variable of the results, or a metric, which then means its held-out part.  By default
            the first metric.
        one_standard_error : bool, default True
            Take the simplest model (lowest rank, then largest alpha) that is not worse than the
            best by more than one standard error of their paired difference over the seeds.
        **conditions
            What to judge by, for example ``missing=0.5``; by default the mean over all.

        Returns
        -------
        Best
            A pair (parameters, fit).

        Raises
        ------
        ValueError
            If the metric is unknown, or no model was fitted in all its cells.
        """
        best = choose(self.results, metric, simplest=one_standard_error, conditions=conditions)
        dims = self.grid.dims
        trial = {name: dims[name].labels[0] for name in CONDITIONS if name in dims}
        task = self.grid.task(best | trial)
        everything = Cell(self.problem, task.on_all_data())
        method = {"method": task.method.name} if "method" in self.grid.dims else {}
        return Best(method | task.arguments, everything.fit())

    def table(self, *metrics: str, **conditions: Any) -> pd.DataFrame:
        """Return mean and standard deviation over the seeds, a row for each model.

        Parameters
        ----------
        *metrics : str
            Variables of the results; by default the first metric and the seconds.
        **conditions
            As for `best`; by default each condition has its own columns.

        Returns
        -------
        DataFrame
            In Jupyter shown as mean ± standard deviation with the best in bold.
        """
        return table(self.results, *metrics, conditions=conditions)

    def rank_test(
        self, metric: str | None = None, *, confidence: float = 0.95, **conditions: Any
    ) -> pd.DataFrame:
        """Return how surely each model is worse than the best: paired differences with intervals.

        Parameters
        ----------
        metric : str, optional
            As for `best`.
        confidence : float, default 0.95
            Of the intervals, between 0 and 1.
        **conditions
            As for `best`.

        Returns
        -------
        DataFrame
            A row for each model, best first: its mean, its mean rank, its difference to the best
            (taken seed by seed), the ends of that difference's interval, and the share of trials
            in which the best is better.

        Notes
        -----
        The seeds hide entries of the same data, so their results depend on each other.  The
        variance of the mean difference is therefore taken as (1/k + hidden/kept) times that of k
        differences (Nadeau and Bengio, 2003), and the interval is Student's with k - 1 degrees of
        freedom.
        """
        return rank_test(self.results, metric, confidence=confidence, conditions=conditions)

    @property
    def plot(self) -> StudyPlots:
        """Pictures of the results: ``error``, ``heatmap`` and ``cost``."""
        from .accessor import StudyPlots

        return StudyPlots(self.results)

    def __repr__(self) -> str:
        """Return a few readable lines."""
        m, n = self.problem.known.shape
        dims = ", ".join(f"{name}: {len(axis.values)}" for name, axis in self.grid.dims.items())
        keys = {task.key for task in self.grid}
        done = sum(key in self._records for key in keys)
        return (
            f"<nmd_lab.Study>  {m} x {n}, {self.problem.known.size} known entries\n"
            f"  {dims}\n"
            f"  {done} of {len(keys)} fits done"
        )
