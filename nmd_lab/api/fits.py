"""The functions `decompose` and `complete`, from their arguments to the labelled result."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from nmd_lab._runtime.machine import one_thread
from nmd_lab._runtime.progress import interruptible
from nmd_lab.data.inputs import form_of
from nmd_lab.data.labels import pandas_of
from nmd_lab.engines.stages import optimality
from nmd_lab.fit.loop import FitProgress, fit_from
from nmd_lab.fit.starts import engine_for, solve, stopped_by, warmed_up
from nmd_lab.fit.summary import Decided
from nmd_lab.problem.columns import LossArgument, NonlinearityArgument
from nmd_lab.problem.initialization import Start
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
from nmd_lab.warnings import UnobservedWarning

from .messages import joined, message_of_cells, messages_after, messages_before, warn
from .prepare import prepare


@with_option_signature()
def decompose(
    X: Any,
    rank: int | Literal["auto"] = "auto",
    nonlinearity: NonlinearityArgument = "relu",
    loss: LossArgument = "frobenius",
    **options: Unpack[FitArguments],
) -> Decomposition:
    """Fit X ≈ f(WH) to a matrix in which every entry counts.

    The factors W (m, r) and H (r, n), and offsets b if there are any, minimise ::

        Σ_ij w_ij d(x_ij, f((WH)_ij + b_ij)) + alpha/2 (‖W‖² + ‖H‖²) + offset_alpha/2 ‖b‖²

    with an entrywise function f, an entrywise loss d and weights w.  Use `complete` or `impute` if
    entries are missing.

    Parameters
    ----------
    X : array_like (m, n)
        Data: ndarray, masked array, DataFrame, DataArray, scipy.sparse matrix or PyTorch tensor.
        NaN and masked entries are missing; absent entries of a sparse matrix are zeros.  Labels are
        kept.  The largest magnitude is between 1e-120 and 1e120, in float32 between 1e-36 and 1e36.
    rank : int or "auto", default "auto"
        Number of components r, from 1 to min(m, n).  "auto": chosen by held-out entries; for a
        table with classes or levels an upper bound; for a sparse matrix of counts chosen by a
        held-out fraction of each count (identity or ReLU, Frobenius or KL).
    nonlinearity : str, Nonlinearity, dict or sequence, default "relu"
        Function f: "relu", "square", "minmax", "modulus", "identity", another name or object of
        `nmd_lab.nonlinearities`, or one for each column (see the notes).  "auto": chosen by
        held-out entries among the identity, ReLU if X has many zeros and no negative value, and
        MinMax if X documents a range or has many values at both ends of its range.  "monotone": an
        increasing f that is learned from X, of all entries or, in a dict or a list, of a column.
    loss : str, Loss, dict or sequence, default "frobenius"
        Loss d: "frobenius", "l1", "kl", another name or object of `nmd_lab.losses`, a `Loss` of
        your own, or one for each column.  "auto": the one of these three whose noise (Gaussian,
        Laplace, Poisson) makes held-out entries most likely.
    alpha : float or "auto", default 0
        Ridge of the factors.  "auto": chosen by held-out entries.
    offsets : {"none", "global", "rows", "columns", "both", "auto"}, default "none"
        Offsets b, which are added to WH inside f.  "global": a mean; "rows", "columns", "both":
        also an offset for each row, each column, or both.  "auto": chosen if alpha is "auto",
        otherwise none.
    validation : float, array_like, scipy.sparse matrix or Choice, optional
        Entries to hold out: a fraction of the observed ones, their values in the shape of X, or a
        mask.  They are not fitted, and the iterate with the lowest error on them is returned (early
        stopping).  A `Choice` also lists the ranks and ridges to compare, the metric, and the kind
        of held-out entries: blocks, groups of rows or later rows.
    n_init : int, default 1
        Number of starts: the first is that of `init`, the others are random.  The fit with the
        lowest objective is returned; `Decomposition.starts` lists all.
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
        Weights of the entries, >= 0; an entry of weight 0 is missing.  By default all are 1.
    at_most, at_least : array_like of bool (m, n) or scipy.sparse matrix, optional
        Entries (True) of which X is only an upper limit, such as a detection limit, or only a lower
        limit, such as the largest value of a sensor.  If X has no negative value, a value below an
        upper limit is at least 0.
    upper : array_like (m, n) or scipy.sparse matrix, optional
        Upper limits of the entries at which both are True; X has the lower ones.
    dtype : float32 or float64, optional
        Working precision; by default that of X.
    sample_dims : str or sequence of str, optional
        Dimensions of a DataArray that make the rows, for example "time" for maps over time; the
        others make the columns.  By default the first of two.
    init : {"auto", "svd", "randomized", "nndsvd", "random", "path"}, (W, H) or Decomposition
        Starting factors.  "svd": the singular value decomposition; "randomized": an approximation
        of it for large or sparse data; "nndsvd": a nonnegative form of it; "random": small Gaussian
        factors; "path": a few iterations with each of several ridges, from strong to weak, for a
        fit with alpha > 0.  A pair (W, H): these factors, with T = X (√X for Square) where observed
        and 0 for missing entries.  A `Decomposition`: a warm start.  "auto" (default) is "svd"; for
        Modulus and Square "random" with a warm-up of 200 iterations of Modulus + Frobenius, which
        finds the signs; for a nonnegative factor "nndsvd", or "random" (uniform numbers) before a
        descent; for sparse zeros "randomized".
    tol : float, default 0.01
        Relative decrease that is worth 100 more iterations.  A start ends when its lowest objective
        fell by at most `tol` times itself in the last 100 iterations (200 for a `tol` of at most
        1e-4), when refinements no longer lower the objective, or when the fit is exact (residuals
        of 1e-10).  The iterate with the lowest objective is returned.  0: exactly `max_iter`
        iterations, and the last iterate is returned.  With `validation`, the `patience` of `ADMM`
        replaces the rule for the decrease.
    offset_alpha : float or "auto", default "auto"
        Ridge of the offsets of rows and columns.  "auto": chosen if alpha is "auto", otherwise
        equal to `alpha`.
    w_constraint, h_constraint : {"nonnegative", "simplex", "orthonormal", "sparse"} or \
    FactorConstraint, optional
        Constraints on the rows of W and on the columns of H; see `NonNegative`, `Simplex`
        (nonnegative with sum one), `Orthonormal` (for one of the factors) and `SparseFactor` (an l1
        penalty with a weight).  Offsets are not constrained.
    time_limit : float, optional
        Time limit of all starts together, in seconds.  At least one iteration is done.
    callback : callable, optional
        Function of the `State` of each iteration; a true return value ends the fit.
    progress : bool, optional
        Whether to show a progress bar.  By default only on a terminal and after a second; without a
        terminal, a choice that takes more than ten seconds writes a sentence to stderr.
    solver : {"auto", "paper"} or ADMM, default "auto"
        Settings of the algorithm.  "paper": Algorithm 1 of [1]_ alone, with its rule for ρ.
    compute : Compute, optional
        Threads, device, cluster, files and checkpoints.  By default all threads of this machine, or
        the device of a tensor X.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; this is checked before any work.
    MemoryError
        If the fit needs more than the free memory, or more than the limit of the process or of its
        container.  A default fit of dense data needs about 3 to 4 times their size.
    FloatingPointError
        If the first iteration overflows.
    KeyboardInterrupt
        If Ctrl-C comes in a script, or before the first iteration is done; see the notes.
    OSError
        If the checkpoint cannot be written.

    Warns
    -----
    OutOfBoundsWarning
        If values of X lie outside the bounds of MinMax.
    NotConvergedWarning
        If `max_iter` ended a fit whose objective fell by more than 0.1 % in its last tenth; never
        with ``tol=0``.
    OverfitWarning
        If predictions of missing entries are far outside the observed range.
    UnitsWarning
        If entries are missing and columns are in different units.

    See Also
    --------
    complete : The same model where entries are missing.
    sample : Intervals of the entries, by draws from a posterior.
    NMD : The same fit as an estimator of scikit-learn.
    Study : Compare ranks, losses and nonlinearities on held-out entries.

    Notes
    -----
    The fit runs Algorithm 1 of [1]_; after an iteration, the default may do up to four
    passes of refinements, in all at most one for each iteration.  Under constraints on the factors,
    the factor steps are small constrained least-squares problems.  Where f is the identity for such
    WH, least squares of complete data and the divergence with nonnegative factors descend on the
    objective.  A sparse X with less than 30 % stored entries is fitted by quasi-Newton descents
    alone, without the dense variables that ``solver="paper"``, a fixed ρ, ``refine=False`` and
    constraints on the factors require.

    Options that are "auto" are compared by their error at a tenth of the observed entries: at
    random, as blocks if the missing entries of X are blocks, or as `validation` determines.  The
    final fit uses all entries and starts from scratch.  The trials take at most half of
    `time_limit`; `Decomposition.selection` lists them, and `Decomposition.chosen` has the arguments
    that repeat the fit.

    "minmax" has the bounds that X documents in its attributes `valid_range`, or `valid_min` and
    `valid_max`; 0 and 255 for grey levels of type uint8 above 127; otherwise 0 and 1 if X lies
    between them.  ``nmd.MinMax(a, b)`` has others.

    The loss of an entry with limits is 0 where the model satisfies them, and the loss to the
    nearest limit otherwise.  For the Frobenius loss and noise of standard deviation σ > 0
    (`limit_noise` of `ADMM`), it is -σ² log P, where P is the probability of a value within the
    limits under Gaussian noise [2]_.  The loss of an ordinal level is -log P, where P is the
    probability of all levels within the limits.  A limit of one of two classes is the class itself
    or has no effect.

    In a DataFrame, booleans have the logistic loss, ordered levels the ordinal loss, and each
    category (or text with few values) an indicator with the logistic loss.  `loss` and
    `nonlinearity` may be a dict by column label, a sequence with one for each column, or a pair
    (sequence, positions) with the position for each column (n,) or entry (m, n); columns that a
    dict leaves out are treated by their type.  A loss with a link keeps it (logistic, ordinal:
    identity; counts and positive data: exp); other columns share `nonlinearity`, unless it is a
    dict.  Each column is scaled to units of its own, also with ``loss={}``, and for a DataFrame of
    numbers with at most 100 columns if the nonlinearity is "auto".  All columns keep one unit if
    there are limits; they also do if there are many zeros or many values at both ends of one scale,
    unless spreads and sizes of columns differ by a factor of 20.

    In an interactive session (the Python prompt, IPython, Jupyter), a first Ctrl-C or the stop
    button ends the fit after the present iteration.  The best iterate is returned, with the stop
    reason "interrupted".  A second Ctrl-C raises KeyboardInterrupt at once, as the first one does
    in a script.  SIGTERM ends the process.  The last checkpoint is kept in all cases.

    References
    ----------
    .. [1] A. Awari, N. Gillis and A. Vandaele, "Alternating Direction Method of Multipliers for
       Nonlinear Matrix Decompositions", arXiv:2512.17473, 2025.
    .. [2] J. Tobin, "Estimation of relationships for limited dependent variables", Econometrica 26,
       24-36, 1958.

    Examples
    --------
    Half of the pixels of handwritten digits are zero, for which ReLU needs no component.  The
    singular value decomposition has the lowest error of all linear models of its rank:

    >>> import numpy as np
    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(300)
    >>> fit = nmd.decompose(digits, 16, "relu", random_state=0)
    >>> s = np.linalg.svd(digits.values, compute_uv=False)
    >>> svd_error = np.sqrt(np.sum(s[16:] ** 2) / np.sum(s**2))
    >>> f"ReLU {fit.relative_error:.2f}, SVD {svd_error:.2f}"
    'ReLU 0.12, SVD 0.19'

    Nonnegative components of a table, and the columns with the largest numbers in each:

    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> both = {"w_constraint": "nonnegative", "h_constraint": "nonnegative"}
    >>> parts = nmd.decompose(wine / wine.max(), 3, "identity", **both, random_state=0)
    >>> parts.top_of_components(k=1).column.values.ravel().tolist()
    ['od280/od315_of_diluted_wines', 'nonflavanoid_phenols', 'proline']

    Poisson noise for counts, here grey levels from 0 to 16, of a sparse matrix whose absent entries
    are zeros:

    >>> from scipy import sparse
    >>> counts = sparse.csr_array(16 * digits.values)
    >>> fit = nmd.decompose(counts, 8, "identity", "kl", **both, random_state=0)
    >>> bool((fit.H >= 0).all())
    True
    """
    model: dict[str, Any] = {"rank": rank, "nonlinearity": nonlinearity, "loss": loss}
    return run_fit(X, Options.of(options, **model, absent_are_zeros=True))


@with_option_signature(**COMPLETION_DEFAULTS)
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

    Nonlinearity, ridges and offsets are chosen by held-out entries, unless `alpha` is a number.
    For a DataFrame, `impute` and `sample` are usually more accurate and have intervals; `complete`
    is the faster single fit.

    Parameters
    ----------
    X : array_like (m, n)
        Data: ndarray, masked array, DataFrame, DataArray, scipy.sparse matrix, `SparseObservations`
        or PyTorch tensor.  NaN and masked entries are missing, and so are entries that a sparse
        matrix does not store.
    rank : int or "auto", default "auto"
        Number of components.  "auto": chosen by held-out entries; for a table with classes or
        levels an upper bound.
    nonlinearity : str, Nonlinearity, dict or sequence, optional
        Function f, as for `decompose`; by default "auto" if `alpha` is "auto", otherwise
        "identity".
    loss : str, Loss, dict or sequence, default "frobenius"
        Loss d, as for `decompose`.
    observed : array_like of bool (m, n), optional
        Observed entries (True), in addition to NaN and masks; by default all.
    alpha : float or "auto", default "auto"
        Ridge of the factors.  "auto": chosen by held-out entries; 0: no ridge.
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
    decompose : The same model where every entry counts; it documents all options.
    MatrixCompletion : The same fit as an imputer of scikit-learn.
    split_observed : Hold out entries for a test.

    Notes
    -----
    A row or column without an observed entry has zero factors, and its prediction is f
    of the offsets.  The notes of `decompose` describe how "auto" is chosen, entries with limits,
    columns of several kinds, and interrupts.

    Examples
    --------
    Pixels of handwritten digits, of which 30 % are hidden.  The baseline is the mean of each pixel:

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
            if observations.scratch is not None:
                observations.scratch.close()
            return fit
    finally:
        if form.in_files or form.is_dask or asked.compute.client is not None:
            gc.collect()  # T and U are on a disk, or on workers, until nothing holds them


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
    nonlinearity, loss = units.model.shown
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
        nonlinearity=nonlinearity,
        loss=loss,
        kinds=units.model if units.model.is_mixed else None,
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
