"""The functions `decompose` and `complete`, from their arguments to the labelled result.

`prepare` leads to what `solve` runs: observe, describe, decide, formulate.  This module alone
imports `nmd_lab.cluster`, which observes data on other machines.
"""

from __future__ import annotations

import copy
import gc
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from nmd_lab._runtime.checks import is_auto, new_stream
from nmd_lab._runtime.machine import MAX_SHARE, Scratch, free_memory, one_thread
from nmd_lab._runtime.progress import Interruption, interruptible
from nmd_lab.checkpoint import with_checkpoint
from nmd_lab.data.inputs import Form, form_of, observe
from nmd_lab.data.labels import pandas_of
from nmd_lab.data.observations import Observations, float_dtype
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.units import refuse_table
from nmd_lab.devices import device_of
from nmd_lab.engines.stages import optimality
from nmd_lab.fit.held_out import hold_out, refuse_empty, score_of
from nmd_lab.fit.loop import FitProgress, FitState, fit_from
from nmd_lab.fit.starts import (
    all_starts,
    engine_for,
    solve,
    stopped_by,
    warmed_up,
    with_estimated_sd,
)
from nmd_lab.fit.summary import Decided, describe, formulate
from nmd_lab.fit.support import features_of_data, features_of_fit, refuse
from nmd_lab.model.model import make_model
from nmd_lab.problem.columns import LossArgument, NonlinearityArgument
from nmd_lab.problem.initialization import Start, rank_of_init
from nmd_lab.problem.state import State
from nmd_lab.request.constraints import constraints_in_parameters
from nmd_lab.request.options import (
    COMPLETION_DEFAULTS,
    FitArguments,
    Options,
    with_option_signature,
)
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.netcdf import provenance
from nmd_lab.selection.choice import choose
from nmd_lab.warnings import UnobservedWarning

from .messages import joined, message_of_cells, messages_after, messages_before, warn


@with_option_signature(Options)
def decompose(
    X: Any,
    rank: int | Literal["auto"] = "auto",
    nonlinearity: NonlinearityArgument = "relu",
    loss: LossArgument = "frobenius",
    **options: Unpack[FitArguments],
) -> Decomposition:
    """Decompose a matrix: X ≈ f(WH), with the lowest error on its observed entries.

    The factors W (m, r) and H (r, n), and offsets b if there are any, minimise ::

        Σ_ij w_ij d(x_ij, f((WH)_ij + b_ij)) + alpha/2 (‖W‖² + ‖H‖²) + offset_alpha/2 ‖b‖²

    with entrywise f, loss d and weights w.

    Parameters
    ----------
    X : array_like (m, n)
        Data: ndarray, masked array, DataFrame, DataArray, scipy.sparse matrix or PyTorch tensor.
        NaN and masked entries are missing; absent entries of a sparse matrix are zeros.
    rank : int or "auto", default "auto"
        Number of components r.  "auto": chosen by cross-validation.
    nonlinearity : str, Nonlinearity, dict or sequence, default "relu"
        Function f: "relu", "square", "minmax", "modulus", "identity", another name or object of
        `nmd_lab.nonlinearities`, or one for each column.  "auto": chosen by cross-validation.
    loss : str, Loss, dict or sequence, default "frobenius"
        Loss d: "frobenius", "l1", "kl", another name or object of `nmd_lab.losses`, or one for each
        column.  "auto": the most likely of these three at held-out entries.
    alpha : float or "auto", default 0
        Ridge of the factors.  "auto": chosen by cross-validation.
    offsets : {"none", "global", "rows", "columns", "both", "auto"}, default "none"
        Offsets b inside f.  "auto": chosen if alpha is "auto", otherwise none.
    validation : float, array_like, scipy.sparse matrix or Choice, optional
        Entries to hold out: a fraction, their values, or a mask.  The iterate with the lowest
        error on them is returned.  A `Choice` sets how "auto" is chosen.
    n_init : int, default 1
        Number of starts.  The fit with the lowest objective is returned.
    max_iter : int, default 500
        Largest number of iterations of a start.
    random_state : int, Generator or None
        Seed.  Results are bit-for-bit identical on one machine with the same number of threads.

    Returns
    -------
    Decomposition
        Factors with the labels of X, history of the objective, and predictions.

    Other Parameters
    ----------------
    observed : array_like of bool (m, n), optional
        Observed entries (True); by default all.
    weights : array_like (m, n), optional
        Weights of the entries, >= 0; an entry of weight 0 is missing.
    at_most, at_least : array_like of bool (m, n) or scipy.sparse matrix, optional
        Entries (True) of which X is only an upper or a lower limit.
    upper : array_like (m, n) or scipy.sparse matrix, optional
        Upper limits of the entries at which both are True.
    dtype : float32 or float64, optional
        Working precision; by default that of X.
    sample_dims : str or sequence of str, optional
        Dimensions of a DataArray that make the rows; by default the first of two.
    init : {"auto", "svd", "randomized", "nndsvd", "random", "path"}, (W, H) or Decomposition
        Starting factors; "path": by ridges from strong to weak.
    tol : float, default 0.01
        Relative decrease of the objective that is worth 100 more iterations.
    offset_alpha : float or "auto", default "auto"
        Ridge of the offsets.  "auto": chosen if alpha is "auto", otherwise `alpha`.
    w_constraint, h_constraint : {"nonnegative", "simplex", "orthonormal", "sparse"} or \
    FactorConstraint, optional
        Constraints on the factors.
    time_limit : float, optional
        Time limit of all starts together, in seconds.
    callback : callable, optional
        Function of the `State` of each iteration; a true value ends the fit.
    progress : bool, optional
        Whether to show a progress bar.
    solver : {"auto", "paper"} or ADMM, default "auto"
        Settings of the algorithm.  "paper": Algorithm 1 of [1]_ alone, with its rule for ρ.
    compute : Compute, optional
        Threads, device, cluster, files and checkpoints.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.
    MemoryError, FloatingPointError, KeyboardInterrupt, OSError
        If memory is short, the first iteration overflows, Ctrl-C comes in a script, or the
        checkpoint cannot be written.

    Warns
    -----
    OutOfBoundsWarning, NotConvergedWarning, OverfitWarning, UnitsWarning
        Each has its remedy.

    See Also
    --------
    complete : Predict the missing entries of X.
    sample : Predictions with intervals.
    NMD : The same fit as an estimator of scikit-learn.

    Notes
    -----
    The fit runs Algorithm 1 of [1]_ with refinements between its iterations.
    `Decomposition.selection` reports the cross-validation.

    References
    ----------
    .. [1] A. Awari, N. Gillis and A. Vandaele, arXiv:2512.17473, 2025.

    Examples
    --------
    ReLU reproduces zeros without a component:

    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(300)
    >>> fit = nmd.decompose(digits, 16, "relu", random_state=0)
    >>> svd = nmd.baselines.truncated_svd(digits, 16)
    >>> f"ReLU {fit.relative_error:.2f}, SVD {svd.relative_error:.2f}"
    'ReLU 0.12, SVD 0.19'
    """
    model: dict[str, Any] = {"rank": rank, "nonlinearity": nonlinearity, "loss": loss}
    return run_fit(X, Options.of(options, **model, absent_are_zeros=True))


@with_option_signature(Options, **COMPLETION_DEFAULTS)
def complete(
    X: Any,
    rank: int | Literal["auto"] = "auto",
    nonlinearity: NonlinearityArgument | None = None,
    loss: LossArgument = "frobenius",
    **options: Unpack[FitArguments],
) -> Decomposition:
    """Fit X ≈ f(WH) to the observed entries of X, and predict the missing ones.

    The factors W (m, r) and H (r, n), and offsets b, minimise the sum over observed entries ::

        Σ_(i,j) observed  w_ij d(x_ij, f((WH)_ij + b_ij))
            + alpha/2 (‖W‖² + ‖H‖²) + offset_alpha/2 ‖b‖²

    Nonlinearity, ridges and offsets are chosen by cross-validation, unless `alpha` is a number.
    For a DataFrame, `impute` and `sample` are usually more accurate and have intervals; `complete`
    is the faster single fit.

    Parameters
    ----------
    X : array_like (m, n)
        Data: ndarray, masked array, DataFrame, DataArray, scipy.sparse matrix, `SparseObservations`
        or PyTorch tensor.  NaN and masked entries are missing, and so are entries that a sparse
        matrix does not store.
    rank : int or "auto", default "auto"
        Number of components.  "auto": chosen by cross-validation; for a table with
        categorical or ordinal columns an upper bound.
    nonlinearity : str, Nonlinearity, dict or sequence, optional
        Function f, as for `decompose`; by default "auto" if `alpha` is "auto", otherwise
        "identity".
    loss : str, Loss, dict or sequence, default "frobenius"
        Loss d, as for `decompose`.
    observed : array_like of bool (m, n), optional
        Observed entries (True), in addition to NaN and masks; by default all.
    alpha : float or "auto", default "auto"
        Ridge of the factors.  "auto": chosen by cross-validation; 0: no ridge.
    offsets : {"auto", "none", "global", "rows", "columns", "both"}, default "auto"
        Offsets of rows and columns inside f.  "auto": chosen if alpha is "auto", otherwise none.
    validation : float, array_like, scipy.sparse matrix or Choice, optional
        Entries to hold out, as for `decompose`; for blocks, groups of rows or later rows a
        `Choice`.
    sample_dims : str or sequence of str, optional
        Dimensions of a DataArray that make the rows, for example "time" for maps over time.
    random_state : int, Generator or None
        Seed of the starts and of the held-out entries.

    Returns
    -------
    Decomposition
        Its method `reconstruct` returns the full matrix, `predict` single entries, and `impute` a
        table with the missing cells filled.

    Other Parameters
    ----------------
    weights, at_most, at_least, upper, dtype : as for `decompose`
        Weights, limits and precision.
    init, n_init, max_iter, tol, time_limit, callback, progress : as for `decompose`
        Starts and iterations.
    offset_alpha, w_constraint, h_constraint : as for `decompose`
        Ridge of the offsets, and constraints on the factors.
    solver, compute : as for `decompose`
        Settings of the algorithm and of the machine.

    Raises
    ------
    ValueError, TypeError, MemoryError, FloatingPointError, KeyboardInterrupt, OSError
        As `decompose`.  Rows and columns without an observed entry are allowed here.

    Warns
    -----
    OutOfBoundsWarning, NotConvergedWarning, OverfitWarning, UnitsWarning
        As `decompose`.
    UnobservedWarning
        If rows or columns have no observed entry and there are no offsets.

    See Also
    --------
    impute : A table with its missing cells filled, in one call.
    sample : Predictions with intervals.
    decompose : The same model with the error on the observed entries; it documents all options.
    MatrixCompletion : The same fit as an imputer of scikit-learn.
    split_observed : Hold out entries for a test.

    Notes
    -----
    A row or column without an observed entry has zero factors, and its prediction is f
    of the offsets.  In an interactive session, Ctrl-C or the stop button ends the fit after the
    present iteration, and the best iterate is returned.

    Examples
    --------
    Pixels of handwritten digits, with 30 % held out.  The baseline is the mean of each pixel:

    >>> import numpy as np
    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(300)
    >>> hidden = np.random.default_rng(0).random(digits.shape) < 0.3
    >>> seen = digits.where(~hidden)
    >>> fit = nmd.complete(seen, 16, "minmax", random_state=0)
    >>> error = nmd.metrics.rmse(digits.values[hidden], fit.reconstruct().values[hidden])
    >>> mean = np.broadcast_to(seen.mean("image"), digits.shape)
    >>> baseline = nmd.metrics.rmse(digits.values[hidden], mean[hidden])
    >>> f"{error:.2f}, pixel means {baseline:.2f}"
    '0.17, pixel means 0.27'

    The choice, with all its trials, and the arguments that repeat the fit:

    >>> fit.selection.attrs["options"]
    'alpha, offsets, offset_alpha'
    >>> again = nmd.complete(seen, **fit.chosen, random_state=0)
    >>> bool(np.allclose(again.reconstruct(), fit.reconstruct()))
    True

    A table of numbers and a class, which is filled by its kind:

    >>> from sklearn.datasets import load_iris
    >>> iris = load_iris(as_frame=True)
    >>> flowers = iris.data.assign(species=iris.target_names[iris.target])
    >>> holed = flowers.mask(np.random.default_rng(0).random(flowers.shape) < 0.2)
    >>> filled = nmd.complete(holed, alpha=0.3, random_state=0).impute(holed)
    >>> at = holed["species"].isna()
    >>> bool((filled["species"] == flowers["species"])[at].mean() > 0.8)
    True
    """
    if nonlinearity is None:
        nonlinearity = "auto" if options.get("alpha", "auto") == "auto" else "identity"
    model: dict[str, Any] = {"rank": rank, "nonlinearity": nonlinearity, "loss": loss}
    return run_fit(X, Options.of(COMPLETION_DEFAULTS | options, **model))


def run_fit(X: Any, asked: Options) -> Decomposition:
    """Prepare, solve, label and warn."""
    X = pandas_of(X)
    form = form_of(X)
    try:
        with interruptible() as signals, one_thread():
            decided = prepare(X, form, asked, signals)
            facts, options = decided.summary.facts, decided.options
            observations, model = decided.problem.observations, decided.problem.units.model
            of_cells = message_of_cells(X, asked.observed, facts) if form.is_frame else {}
            if options.offsets == "none":
                of_cells.pop(UnobservedWarning, None)  # the one after the fit says more
            warn(joined(messages_before(facts, model, decided.outside), of_cells), stacklevel=3)
            run, starts = solve(decided)
            fit = package(decided, run, starts)
            with observations.computing():
                warn(messages_after(fit, facts, options), stacklevel=3)
            if signals and not signals.reported:
                fit = package(decided, stopped_by(signals, run), starts)
            return fit
    finally:
        if form.in_files or form.is_dask or asked.compute.client is not None:
            gc.collect()  # T and U are on a disk, or on workers, until nothing holds them


CHOSEN = ("rank", "alpha", "offsets", "offset_alpha", "max_iter", "tol", "init")
"""Options that a choice may change."""

OF_SOLVER = ("refine", "homotopy", "polish")
"""Settings of the solver that it may change."""

FOUND = ("model", "limits", "start", "selection", "spent")
"""What it finds of the data."""


def prepare(X: Any, form: Form, asked: Options, signals: Interruption | None = None) -> Decided:
    """Return the fit that was asked for, ready to be solved, with a choice for what is "auto"."""
    began = time.perf_counter()
    if asked.compute.device is None:
        asked = replace(asked, compute=replace(asked.compute, device=form.device))
    device_of(asked.compute.device)  # refuses an unknown one
    rank = _rank(asked)
    observations = observed(X, form, rank, asked)
    summary = describe(observations, rank, asked, is_table=form.is_frame)
    rng, kinds = asked.generator(), summary.model.column_models
    state, save = FitState(copy.deepcopy(rng)), lambda: None
    if asked.compute.checkpoint is not None:
        state, save, rng = with_checkpoint(state, asked, observations, kinds, rng)
    if asked.validation.splitter is not None:
        summary = hold_out(summary, X, asked, rng)
    options = replace(asked.settled(), rank=summary.rank or 1)  # 1 stands for an open one
    if summary.is_open(asked):
        smallest = replace(asked, rank=options.rank, alpha=0.0, offsets="none", init="auto")
        formulate(summary, smallest.settled())  # refuses what does not fit into memory
        stream = new_stream(rng)
        if state.decided is None:
            signals = Interruption() if signals is None else signals
            chosen, found = choose(summary, asked, stream, began=began, signals=signals)
            names = CHOSEN if isinstance(chosen.init, str) else CHOSEN[:-1]  # or it was given
            stored = (chosen, names), (chosen.solver, OF_SOLVER), (found, FOUND)
            state.decided = [{n: getattr(record, n) for n in names} for record, names in stored]
        of_options, of_solver, of_data = state.decided
        solver = replace(asked.solver, **of_solver)
        options, summary = replace(asked, **of_options, solver=solver), summary._replace(**of_data)
    problem, plan = formulate(summary, options)
    if math.isnan(summary.limits.sd):
        problem = with_estimated_sd(problem, options)
    starts = all_starts(problem, options.rank, options, plan, rng, summary.start)
    held_out = score_of(summary.held_out, problem.units.model)
    return Decided(options, summary, problem, starts, plan, held_out, state, save)


def observed(X: Any, form: Form, rank: int | None, asked: Options) -> Observations:
    """Return the observations of a fit, if all that the call has goes together."""
    client, zeros, scratch = asked.compute.client, asked.absent_are_zeros, None
    if client is not None or form.is_dask:
        from nmd_lab.cluster.observations import checked_client, observe_on_cluster

        client = checked_client(X, client)
    elif form.in_files and not (zeros and form.is_sparse):
        scratch = _scratch(X, asked)  # a fit to implicit zeros has no arrays of the size of X
    places: dict[str, Any] = {"on_cluster": client is not None, "scratch": scratch}
    refuse(features_of_data(form, asked, zeros=zeros, **places) | features_of_fit(rank, asked))
    data = asked.of_data | {"absent_are_zeros": zeros}
    if client is None:
        observations = observe(X, **data, scratch=scratch, form=form)
    else:
        observations = observe_on_cluster(X, client, **data)
    if zeros:
        refuse_empty(observations)
    elif form.is_frame:
        refuse_table(observations.labels, observations.counts(0), X.attrs)
    return observations


def _rank(asked: Options) -> int | None:
    """Return the rank by a number or by starting factors; None if it is to be chosen."""
    rank = asked.rank
    if rank is None or (isinstance(rank, str) and not is_auto(rank)):
        raise TypeError(f"rank={rank!r} is not a number: give a whole number >= 1, or 'auto'.")
    if is_auto(rank):
        return None if isinstance(asked.init, str) else rank_of_init(asked.init)
    number: int = rank
    return number


def _scratch(X: Any, options: Options) -> Scratch | None:
    """Return a folder for arrays of the size of X, which is in a file, if it is read by blocks.

    It is if there is a `work_dir`, or if T and U would not fit with X into the free memory, or
    into `memory_limit`.
    """
    limit = options.compute.memory_limit
    free = free_memory() if limit is None else limit * 2**30
    size = X.n_stored if isinstance(X, SparseObservations) else X.size
    # Four arrays of the size of X must fit, or data in files are read by blocks.
    fits = 4 * size * float_dtype(X, None).itemsize < MAX_SHARE * free
    return None if options.compute.work_dir is None and fits else Scratch(options.compute.work_dir)


def package(decided: Decided, run: FitProgress, starts: list[dict[str, Any]]) -> Decomposition:
    """Return the labelled result of a fit, with a row of numbers for each of its starts."""
    state = run.result
    assert state is not None
    problem, observations = decided.problem.of(state), decided.summary.observations
    units = problem.units
    W, H = observations.gathered(state.W), state.H.copy()
    if not problem.is_constrained:  # a constraint defines a row without an entry
        W, H = observations.zero_unobserved(W, H)
    offsets = state.offsets
    if offsets.rows is not None:
        offsets = offsets._replace(rows=np.asarray(offsets.rows))
    model = units.model if units.model.is_mixed else make_model(*units.model.shown)
    smallest, sd = units.model.limits
    is_limited = observations.limits is not None and not units.model.is_mixed
    limits = {"limit_noise": sd, "smallest_value": smallest} if is_limited else {}
    selection, rms_error = decided.summary.selection, problem.rms_error(state.relative_error)
    seen = {} if math.isnan(rms_error) else {"error_where_seen": rms_error}
    return Decomposition._from_matrices(
        observations.labels,
        W,
        H,
        run.history,
        offsets=offsets,
        _model=model,
        stop_reason=run.stop_reason,
        parameters={
            "rank": W.shape[1],
            "iteration": state.iteration,
            **decided.options.describe(W.dtype),
            "split": "observed" if problem.observed_only else "everywhere",
            **constraints_in_parameters(problem.constraints),
            "optimality": optimality(problem.observations, problem, *problem.extended(state)),
            **limits,
            **({"absent_are_zeros": True} if observations.absent_are_zeros else {}),
            "starts": starts,
            **({} if selection is None else {"selection": selection | seen}),
            **provenance(decided.summary.facts, observations.dtype, observations.fingerprint()),
        },
    )


class ResumableFit:
    """A fit that is ready and can pause after any iteration and resume.

    Its iterates are those of an uninterrupted fit.  With ``tol=0`` and no held-out entries, the
    result after k iterations is that of ``max_iter=k``.
    """

    def __init__(self, decided: Decided) -> None:
        self.decided, self.progress = decided, FitProgress()
        self._engine = engine_for(decided.plan)

    def advance(self, iterations: int, callback: Callable[[State], Any]) -> Decomposition:
        """Do at most `iterations` more iterations, and return the result so far."""
        decided, run, problem = self.decided, self.progress, self.decided.problem
        options, plan, held_out = decided.after_choice, decided.plan, decided.held_out

        def start() -> Start:
            return warmed_up(problem, next(decided.starts), options, plan)

        rules = replace(decided.rules, most=run.n_iter + iterations, callback=callback)
        with one_thread():
            fit_from(problem, start, rules, self._engine, run, held_out=held_out)
            if options.tol == 0 and held_out is None and run.stop_reason.code == "callback":
                run.result = run.last  # as after so many iterations
            return package(decided, run, [])
