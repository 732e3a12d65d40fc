"""`sample` draws the posterior of a model by Gibbs sampling; `impute` fills a table with it.

`resume` continues a run of `sample`, or of a fit, from its checkpoint.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from nmd_lab._runtime.checks import as_generator, is_auto
from nmd_lab._runtime.machine import one_thread, refuse_above
from nmd_lab._runtime.progress import Interruption, StopReason, interruptible
from nmd_lab.checkpoint import Call, exists, read_file, with_checkpoint
from nmd_lab.data.inputs import form_of, observe
from nmd_lab.data.labels import Labels, as_given, pandas_of
from nmd_lab.data.matching import has_dates_in_order, names_of, row_places
from nmd_lab.data.observations import Observations
from nmd_lab.data.units import (
    Facts,
    facts_of,
    names_of_codes,
    refuse_table,
    scale_of,
    units_of_columns,
)
from nmd_lab.fit.support import DATA, features_of_data, refuse
from nmd_lab.model.model import make_model
from nmd_lab.problem.columns import LossArgument, NonlinearityArgument
from nmd_lab.request.options import SampleArguments, SampleOptions, with_option_signature
from nmd_lab.request.settings import Compute, as_compute
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.draws import limits_of
from nmd_lab.result.entries import refuse_sparse
from nmd_lab.result.fill import check_fill
from nmd_lab.result.joint_copies import dataset_of_joint
from nmd_lab.result.netcdf import provenance
from nmd_lab.result.posterior import Posterior
from nmd_lab.sampler.joint_normal import joint_draws
from nmd_lab.sampler.ordered_rows import RowOrder, find_period
from nmd_lab.sampler.problem import SampledProblem, prepare_sample
from nmd_lab.sampler.run import Chains, PosteriorState, ensemble_for
from nmd_lab.sampler.sampled_model import check_bounds, with_ends
from nmd_lab.warnings import UnitsWarning

from .fits import complete, decompose
from .messages import (
    REMEDY_FOR_UNITS,
    joined,
    message_of_cells,
    message_of_chains,
    message_of_data,
    message_of_limits,
    warn,
)


@with_option_signature(SampleOptions)
def sample(
    X: Any,
    rank: Literal["auto"] | int = "auto",
    nonlinearity: NonlinearityArgument = "auto",
    loss: LossArgument = "frobenius",
    **options: Unpack[SampleArguments],
) -> Posterior:
    """Draw from the posterior of X ≈ f(WH): predictions with intervals and probabilities.

    The model of an observed entry, with its column j, is ::

        T_ij = (WH)_ij + b_ij + N(0, 1/ρ_j),    x_ij = f(T_ij) plus the noise of the loss
        w_i ~ N(μ_g, Σ_g) in group g of the rows,    h_j ~ N(μ, Σ)
        w_tk = φ_k w_{t-1,k} + √(1 - φ_k²) N(0, 1) for rows in order

    No ridge is chosen: all are drawn by Gibbs sampling.  Each column of a DataFrame has a
    model of its kind: numeric, binary, ordinal or categorical.

    Parameters
    ----------
    X : array_like, masked array, DataFrame, DataArray, scipy.sparse matrix or SparseObservations
        Data (m, n).  NaN, masked entries, and entries that a sparse matrix does not store are
        missing.
    rank : "auto" or int, default "auto"
        Largest number of components.  "auto": one less than X has columns, at most 20.
    nonlinearity : str, Nonlinearity, dict or sequence, default "auto"
        Nonlinearity f of all entries, or by column.  "auto": the identity; for the numeric columns
        of a table an increasing f that is learned.  A dict: "auto" for columns that it leaves out.
    loss : str, Loss, dict or sequence, default "frobenius"
        Noise after f: "frobenius" (Gaussian), "l1" (Laplace), "kl" (Poisson), "ordinal",
        "logistic", or a `Loss`; or one by column.
    draws : int, default 300
        Number of sweeps after tuning.
    tune : int, optional
        Number of sweeps before them, which are not kept.
    chains : int, default 1
        Number of chains, or of ensembles.
    groups : "auto" or int, default "auto"
        Upper bound for the number of groups of rows, each with its own Gaussian prior.  "auto": 1;
        in a table an ensemble of chains with up to 30 groups.
    order : str, sequence of str or array_like, optional
        Order of the rows: an array of places, or names of dimensions, index levels or columns; the
        last is the place, those before it tell series apart.  A DataFrame with sorted dates as its
        index is in order by itself.
    noise_by : {"auto", "columns", "one"}, default "auto"
        Scale and noise level of each column, or of all.
    random_state : int, Generator or None
        Seed; draws are bit-for-bit identical with any number of threads.

    Returns
    -------
    Posterior
        Draws with the labels of X, with `impute`, `intervals` and `report` for tables, and
        `predict`, `predict_interval` and `top` for single entries.

    Other Parameters
    ----------------
    noise : {"auto", "before", "after"}, default "auto"
        Gaussian noise: X = f(WH + noise) or X = f(WH) + noise.
    offsets : {"auto", "none", "global", "rows", "columns", "both"}, default "auto"
        Offsets added to WH inside f.
    keep : int, optional
        Number of draws to keep of each chain; by default at most 1 GiB.
    observed, weights, dtype, sample_dims, at_most, at_least, upper, time_limit, progress, compute
        As for `complete`.
    bounds : dict, optional
        Ranges of numeric columns, such as ``{"percent": (0, 100)}``.
    init : {"auto", "random", "svd"} or Decomposition, default "auto"
        Start of a chain.
    callback : callable, optional
        Function of each sweep.

    Raises
    ------
    ValueError, TypeError
        If an argument or a column is invalid; this is checked before any work.
    MemoryError, KeyboardInterrupt, OSError
        If memory is short, Ctrl-C comes in a script, or the checkpoint cannot be written.

    Warns
    -----
    UnitsWarning, NotConvergedWarning
        If columns with one noise level have different units, or chains differ.

    See Also
    --------
    impute : A table with its missing cells filled, in one call.
    complete : One fit without intervals, which is faster.
    Posterior : Predictions, intervals, diagnostics and factor analysis.

    Notes
    -----
    A sweep draws T where ADMM takes the proximal map [1]_, with the priors of [2]_.  Intervals
    assume that cells are missing at random.

    References
    ----------
    .. [1] M. Vono, N. Dobigeon and P. Chainais, arXiv:1804.05809, 2019.
    .. [2] R. Salakhutdinov and A. Mnih, ICML, 2008.

    Examples
    --------
    Coverage at held-out cells:

    >>> import numpy as np
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> gone = np.random.default_rng(0).random(wine.shape) < 0.2
    >>> posterior = nmd.sample(wine.mask(gone), draws=100, random_state=0)
    >>> ends = posterior.intervals(wine.mask(gone), level=0.9)
    >>> low, high = (ends.xs(end, axis=1, level="bound") for end in ("low", "high"))
    >>> covered = ((low <= wine) & (wine <= high)).to_numpy()[gone]
    >>> bool(0.8 < covered.mean() < 0.95)
    True
    """
    model: dict[str, Any] = {"rank": rank, "nonlinearity": nonlinearity, "loss": loss}
    asked = SampleOptions.of(options, **model)
    with interruptible() as interruption, one_thread():
        posterior = draw_posterior(X, asked, interruption)
    warn(message_of_chains(posterior), stacklevel=2)
    return posterior


def impute(
    frame: Any,
    n: int | None = None,
    *,
    fill: ArrayLike | dict[Any, Any] | None = None,
    return_posterior: bool = False,
    **options: Any,
) -> Any:
    """Impute the missing cells of a table: once with predictions, or n times with draws.

    The missing cells are predicted by the posterior of X ≈ f(WH) that `sample` draws, with a model
    for the kind of each column: numbers, dates, booleans, ordered categories, categories, or text
    with few values.  For multiple imputation, each copy has draws from the predictive distribution
    of the missing cells given the observed ones ::

        x_missing ~ p(x_missing | x_observed) = ∫ p(x_missing | W, H, noise) p(W, H, noise |
        x_observed)

    Parameters
    ----------
    frame : DataFrame, array_like, masked array or DataArray
        Data (m, n_columns) whose missing cells are NaN, None or masked.
    n : int, optional
        Number of completed copies for multiple imputation.  By default one result with a
        prediction of each cell: a mean if numeric, a median if ordinal, else the most probable
        class.
    fill : array_like of bool or dict, optional
        Missing cells to be filled; by default all.  A mask of the shape of `frame` (True = to be
        filled), or a condition for each of some columns, such as ``{"cigs": "smoker == 'yes'"}``:
        a string for `pandas.DataFrame.eval`, or a function of the filled DataFrame that returns
        booleans.  In each completed copy a missing cell stays so where the condition is False or
        missing there.  Conditions come in their order: one sees which cells those before it left
        missing.  `Posterior.report` suggests conditions.
    return_posterior : bool, default False
        Whether to return the posterior too, which has intervals, probabilities and a report.
    **options
        Options of `sample`, most often `draws`, `chains` and `random_state`.  Cells with limits
        (`at_most`, `at_least`, `upper`) are filled too, within their limits.  Rows in order of
        time (`order`) are filled from their neighbours, also if none of their cells is observed.

    Returns
    -------
    filled : same type as `frame`, or a list of n of them
        Observed cells are unchanged.  A DataFrame (of any library) keeps its types and index.
    posterior : Posterior
        Only if `return_posterior` is True.

    Raises
    ------
    TypeError, ValueError
        As `sample` and `Posterior.impute`: if a column has no number or class, X is sparse, or
        a condition fails or gives no booleans.

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
    One imputed table serves to predict single cells.  A regression on a table that was filled
    once has standard errors that are too small: fit it to each of n completed copies, and pool the
    results by Rubin's rules [1]_.

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

    Five completed copies, for standard errors that include the uncertainty of the missing cells:

    >>> copies = nmd.impute(holed, n=5, draws=50, random_state=0)
    >>> slopes = [np.polyfit(copy["flavanoids"], copy["alcohol"], 1)[0] for copy in copies]
    >>> len(slopes), bool(np.std(slopes) > 0)
    (5, True)

    A question that only smokers have to answer:

    >>> import pandas as pd
    >>> smoker = pd.Series(["yes", "no", None] * 20)
    >>> cigs = pd.Series(range(60)).where(smoker == "yes")
    >>> survey = pd.DataFrame({"smoker": smoker, "cigs": cigs})
    >>> answers = nmd.impute(survey, fill={"cigs": "smoker == 'yes'"}, draws=50, random_state=0)
    >>> bool((answers["cigs"].isna() == (answers["smoker"] == "no")).all())
    True

    Days without a record; an index of sorted dates is the order of the rows:

    >>> wave = np.sin(np.arange(60)[:, None] / 5) * [1.0, 2.0, 3.0]
    >>> sensor = pd.DataFrame(wave, pd.date_range("2024-01-01", periods=60))
    >>> sensor.iloc[[20, 21, 22, 40, 41, 42]] = np.nan
    >>> filled = nmd.impute(sensor, draws=50, random_state=0)
    >>> bool(np.abs(filled - wave).max(axis=None) < 1)
    True
    """
    refuse_sparse(frame)
    plain, fill = pandas_of(frame), pandas_of(fill)
    check_fill(plain, fill)
    asked = SampleOptions.of(options)
    has_copies = n is not None or return_posterior
    with interruptible() as interruption, one_thread():
        posterior = draw_posterior(plain, asked, interruption, copies=has_copies)
    warn(message_of_chains(posterior), stacklevel=2)
    filled = posterior.impute(plain, n, fill=fill, random_state=options.get("random_state"))
    filled = filled if plain is frame else as_given(filled, frame)
    posterior.parameters["copies"] = n
    return (filled, posterior) if return_posterior else filled


def draw_posterior(
    X: Any, asked: SampleOptions, interruption: Interruption, *, copies: bool = True
) -> Posterior:
    """Check the arguments of `sample`, run the chains and label the draws.

    A table has columns of its own units.  It gets draws for completed copies if asked.
    """
    X = pandas_of(X)
    form = form_of(X)
    present = features_of_data(form, asked)
    present["sample"] = DATA["sample"]
    present.pop("learned", None)  # the sampler draws it
    if form.is_dask and not isinstance(X, xr.DataArray):
        present["client"] = "X of Dask"
    refuse(present)
    observations = observe(X, **asked.of_data, form=form)
    if form.is_frame:
        refuse_table(observations.labels, observations.counts(0), X.attrs)
    is_table = form.is_frame or observations.labels.table is not None
    asked, places, period = with_order(asked, observations.labels, is_table=is_table), None, 0
    if asked.order is not None:
        places = row_places(observations, asked.order)
        period = find_period(observations, places)
        places = places.with_phases(places, period)
    by_column = is_table or observations.is_small_table or observations.limits is not None
    facts = facts_of(observations, by_column=by_column or asked.order is not None)
    problem = prepare_sample(observations, facts, asked, is_table=is_table)
    if places is not None:
        problem = replace(problem, order=RowOrder.of(places, period=period))
    model = problem.scaling.model
    check_bounds(asked.bounds, facts, model)
    codes = names_of_codes(facts) if is_table else ()
    of_cells = {}
    if form.is_frame:
        of_cells = message_of_cells(X, asked.observed, facts, in_order=places is not None)
    warn(joined(message_of_data(facts, codes), of_cells), stacklevel=3)
    if apart := not model.is_mixed and units_of_columns(facts, distance=model.squares):
        warn({UnitsWarning: apart.sentence(REMEDY_FOR_UNITS)}, stacklevel=3)
    if not isinstance(init := asked.init, str | Decomposition):
        raise TypeError(f"init is a {type(init).__name__}: give a name or a fit.")
    wanted = (problem.shape, problem.rank)
    if isinstance(init, Decomposition) and (init._shape, init.rank) != wanted:
        raise ValueError(
            f"init has shape {init._shape} and rank {init.rank}: give one of shape {problem.shape} "
            f"and rank {problem.rank}."
        )
    _refuse_large(asked, problem.numbers, problem.work_bytes)
    rng, kinds = as_generator(asked.random_state), model.column_models
    state, save = PosteriorState(copy.deepcopy(rng)), lambda: None
    if asked.compute.checkpoint is not None:
        state, save, rng = with_checkpoint(state, asked, observations, kinds, rng)
    ensemble = ensemble_for(problem, observations, asked, copy.deepcopy(rng), is_table=is_table)
    drawn, reason = Chains(ensemble, asked, state, rng).run(interruption, save)
    decided = replace(asked, tune=ensemble.warm_up)
    if places is not None:
        drawn |= places._asdict()
    arguments = ensemble.problem, observations, facts, decided, drawn, reason
    posterior = package(*arguments, is_table=is_table)
    if reason.code == "draws":
        posterior.parameters.update(ensemble.coverage(state.members))
        if copies and (joint := joint_draws(ensemble, state.members, asked)) is not None:
            posterior = replace(posterior, _joint=dataset_of_joint(joint))
    warn(message_of_limits(posterior, facts), stacklevel=3)
    return posterior


def with_order(asked: SampleOptions, labels: Labels, *, is_table: bool) -> SampleOptions:
    """Return the options with the order of the rows as names or as an array.

    Rows of a table that are labelled by dates are in their order without being asked.
    """
    if asked.order is None and is_table and is_auto(asked.groups) and has_dates_in_order(labels):
        return replace(asked, order=labels.rows[0])
    if asked.order is None or isinstance(asked.order, str):
        return asked
    return replace(asked, order=names_of(asked.order) or np.asarray(asked.order))


def _refuse_large(asked: SampleOptions, numbers: int, of_data: int) -> None:
    """Raise MemoryError if draws of so many numbers, and so many bytes, do not fit."""
    n_draws = -(-asked.draws // asked.step(numbers)) * asked.chains
    needed = 8 * n_draws * numbers + of_data  # the draws are stacked at the end
    what = f"a posterior with draws={asked.draws} of {numbers} numbers each"
    refuse_above(needed, what, "keep fewer, for example keep=50")


def package(
    problem: SampledProblem,
    observations: Observations,
    facts: Facts,
    decided: SampleOptions,
    drawn: dict[str, Any],
    reason: StopReason,
    *,
    is_table: bool,
) -> Posterior:
    """Return the labelled posterior, in the units of X."""
    model, by_column = problem.scaling.model, problem.model.is_mixed
    noises: tuple[str, ...] = problem.noises
    if is_table:
        model, noises = with_ends(model, problem.noises, facts, decided)
    scale = None
    if not by_column and noises[0] == "gaussian":
        scale = scale_of(*np.unique(observations.observed()[0], return_counts=True))
    return Posterior._from_arrays(
        observations.labels,
        drawn,
        _model=model if by_column else make_model(*model.shown),
        noise=noises if by_column else noises[0],
        stop_reason=reason,
        _limits=limits_of(observations) if facts.is_limited else None,
        parameters={
            "rank": problem.rank,
            **decided.plain(),
            "scale": scale,
            "step": decided.step(problem.numbers),
            "sweeps": (decided.tune or 0) + drawn["log_likelihood"].shape[1],
            **provenance(facts, observations.dtype, observations.fingerprint()),
        },
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (decompose, complete, sample)
}
"""Functions that write checkpoints."""


def resume(
    path: str | os.PathLike[str], X: Any, *, compute: Compute | None = None, **arguments: Any
) -> Decomposition | Posterior:
    """Continue a fit or a posterior as if it had never stopped.

    It calls the function that wrote the checkpoint, with the arguments that it had then.  The
    result has the bits of an uninterrupted run, on the same machine with the same number of
    threads.  The same call with the same checkpoint does this, too.

    Parameters
    ----------
    path : path-like
        Checkpoint that `decompose`, `complete` or `sample` has written.  If the last one is
        damaged, the one before it is taken.
    X : array_like
        The same data.
    compute : Compute, optional
        Threads, device, cluster and files; by default those of then, without a cluster.
    **arguments
        Arguments that a checkpoint does not hold, as they were: `observed`, `weights` and limits,
        other arrays, and objects of a class of your own.  `callback`, `progress` and `time_limit`
        may be others.

    Returns
    -------
    Decomposition or Posterior
        Result of the run.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, if X or an argument is another one, or if one is missing.

    Examples
    --------
    >>> import os, tempfile
    >>> import nmd_lab as nmd
    >>> X = nmd.datasets.digits(100)
    >>> path = os.path.join(tempfile.mkdtemp(), "run.checkpoint")
    >>> def stop(state):
    ...     if state.iteration == 20:
    ...         raise SystemExit
    >>> kept = nmd.Compute(checkpoint=path, checkpoint_every=0)
    >>> try:
    ...     fit = nmd.decompose(X, 8, compute=kept, callback=stop)
    ... except SystemExit:
    ...     pass
    >>> fit = nmd.resume(path, X)
    >>> fit.history.sizes["iteration"] > 20, os.path.exists(path)
    (True, True)
    """
    where = Path(path)
    if not exists(where):
        raise FileNotFoundError(
            f"path={str(where)!r} is no file: check the name of the checkpoint."
        )
    call = read_file(where)[0]["call"]
    stored, others = Call.again(call)
    missing = [name for name in others if name not in arguments]
    if missing:
        raise ValueError(
            f"path={os.fspath(path)!r} does not hold {' and '.join(missing)}: give "
            f"{missing[0]}= as it was."
        )
    before = stored.pop("compute")
    compute = Compute(**before) if compute is None else as_compute(compute)
    arguments = stored | arguments | {"compute": replace(compute, checkpoint=path)}
    result: Decomposition | Posterior = FUNCTIONS[call["function"]](X, **arguments)
    return result
