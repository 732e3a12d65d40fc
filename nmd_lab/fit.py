"""The functions `decompose` and `complete`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

from numpy.typing import ArrayLike, DTypeLike

from ._fitting import run_fit
from .result.decomposition import Decomposition
from .solver.columns import LossArgument, NonlinearityArgument
from .solver.options import COMPLETION_DEFAULTS, FitOptions, Options, with_option_signature


@with_option_signature()
def decompose(
    X: Any,
    rank: int | Literal["auto"] = "auto",
    nonlinearity: NonlinearityArgument = "relu",
    loss: LossArgument = "frobenius",
    *,
    observed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    at_most: ArrayLike | None = None,
    at_least: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    **options: Unpack[FitOptions],
) -> Decomposition:
    """Decompose X ≈ f(WH); every entry counts.

    Parameters
    ----------
    X : array_like (m, n)
        Data: ndarray, masked array, DataFrame, DataArray, scipy.sparse matrix or PyTorch tensor.
        NaN and masked entries are missing, absent entries of a sparse matrix are zeros.  Labels are
        kept.  The largest magnitude may be from 1e-120 to 1e120, in float32 from 1e-36 to 1e36.
    rank : int or "auto", default "auto"
        Number of components r, from 1 to min(m, n).  "auto": chosen by held-out entries;
        for a table with classes or levels a bound, since its ridge removes components; for a sparse
        matrix of counts by a held-out share of each count (identity or ReLU, Frobenius or KL).
    nonlinearity : str, Nonlinearity, dict or sequence
        Entrywise function f, by default "relu": "relu", "square", "minmax", "modulus", "identity",
        another name or object of `nmd.nonlinearities`, such as `Smooth` of a function, or several
        (see the notes).  "auto": chosen by held-out entries among "identity", "relu" if X has many
        zeros and nothing below, and MinMax if X documents a range or has many values at both ends.
        "minmax" has the bounds that X documents by its attributes `valid_range`, or `valid_min` and
        `valid_max`, 0 and 255 for grey levels of type uint8 above 127, or else 0 and 1 if X lies
        between them; ``nmd.MinMax(a, b)`` has others.  "monotone" is a rising f that is learned
        from X, between rounds of iterations (`nmd.nonlinearities.Monotone`), of all entries or, in
        a dict or a list, of each column.
    loss : str, Loss, dict or sequence
        Entrywise loss d, by default "frobenius": "frobenius", "l1", "kl", another name or object of
        `nmd.losses`, a `Loss` of your own, or several (see the notes).  "auto": that of the
        three whose noise (Gaussian, Laplace, Poisson) makes held-out entries most likely.
    observed : array_like of bool (m, n), optional
        Observed entries (True); by default all.
    weights : array_like (m, n), optional
        Weights of the entries, >= 0; an entry of weight 0 is missing.  By default all are 1.
    at_most, at_least : array_like of bool (m, n) or scipy.sparse matrix, optional
        Entries (True) of which X is only an upper limit, such as a detection limit, or only a lower
        limit, such as the largest value of a sensor.  If no value of X is negative, what is below
        an upper limit is taken to be at least 0.  See the notes.
    upper : array_like (m, n) or scipy.sparse matrix, optional
        Upper limits of the entries at which both are True; X has the lower ones.
    dtype : float32 or float64, optional
        Working precision; by default that of X.
    sample_dims : str or sequence of str, optional
        Dimensions of a DataArray that make the rows, for example "time" for maps over time; the
        others make the columns.  By default the first of two.
    init : {"auto", "svd", "randomized", "nndsvd", "random", "path"}, (W, H) or Decomposition
        Starting factors.  "svd": from the singular value decomposition; "randomized": from an
        approximation of it, for large or sparse data; "nndsvd": a nonnegative form of it; "random":
        small Gaussian factors; "path": a few iterations with each of several ridges, from strong to
        weak, after "svd", for a fit with alpha > 0 that ends early.  A pair (W, H): these factors,
        with T = X (√X for Square) where observed and 0 elsewhere.  A Decomposition: a warm start
        from an earlier fit.
        "auto" (default) is "svd"; for Modulus and Square it is "random" with a warm-up of 200
        iterations of Modulus + Frobenius, which finds the signs; for a nonnegative factor it is
        "nndsvd", or "random" (uniform numbers) where a descent follows, and for sparse zeros
        "randomized" (see the notes).
    n_init : int, default 1
        Number of starts.  The first is that of `init`, the others are random.  A random start ends
        early when it can no longer reach the objective of the first one.  The fit of lowest
        objective is returned, and `Decomposition.starts` lists all.
    max_iter : int, default 500
        Largest number of iterations of a start.
    tol : float, default 0.01
        Relative gain that is worth 100 more iterations.  A start ends when its lowest objective has
        fallen by at most `tol` times itself in the last 100 iterations (200 for a `tol` of at most
        1e-4).  It also ends when refinements no longer lower the objective, and when the fit is
        exact (residuals of 1e-10).  The iterate of lowest objective is returned.  0: exactly
        `max_iter` iterations, and the last iterate is returned.  With `validation`, the `patience`
        of `ADMM` takes the place of the rule for the gain.
    alpha : float or "auto", default 0
        Ridge: the objective has the term alpha/2 (‖W‖² + ‖H‖²).  "auto": chosen by held-out
        entries; see the notes.
    offsets : {"none", "global", "rows", "columns", "both", "auto"}, default "none"
        Offsets added to WH inside f.  "global": a mean; "rows", "columns", "both": also an offset
        for each row, each column, or both.  "auto": chosen with alpha="auto", "none" otherwise.
    offset_alpha : float or "auto", default "auto"
        Ridge of the offsets b of rows and columns: the objective has the term offset_alpha/2 ‖b‖².
        "auto": chosen with alpha="auto", equal to `alpha` otherwise.
    w_constraint, h_constraint : {"nonnegative", "simplex", "orthonormal", "sparse"} or \
    FactorConstraint, optional
        Constraints on the rows of W, and on the columns of H.  "nonnegative": no negative number;
        "simplex": nonnegative, with sum one; "orthonormal": orthonormal columns of W (rows of H),
        for at most one of the two; "sparse": an l1 penalty, see `SparseFactor` for its weight.  An
        object of one of the classes `NonNegative`, `Simplex`, `Orthonormal` and `SparseFactor`, or
        of your own (`FactorConstraint`).  Offsets are not constrained.  By default None.
    validation : float, array_like, scipy.sparse matrix or Choice, optional
        Share of the observed entries to hold out, between 0 and 1, held-out entries in the shape of
        X, or a mask, True where X is held out.  They are not fitted: entries of X at the positions
        of a given matrix are left out.  The iterate of lowest error on them is returned (early
        stopping).  A share takes at least one entry, and leaves one in each row and column; a
        ValueError says if that is impossible.  A `Choice` also says among which ranks and ridges to
        choose, by which metric, and on which entries: blocks, groups of rows, later rows.
    time_limit : float, optional
        Time limit of all starts together, in seconds.  At least one iteration is done.
    callback : callable, optional
        Function of the `State` of each iteration; a true return value ends the fit.
    progress : bool, optional
        Whether to show a progress bar.  By default only on a terminal, and only after a second;
        elsewhere a sentence on stderr if a choice takes more than ten seconds.
    random_state : int, Generator or None
        Seed.  It gives the same bits on one machine with the same number of threads.
    solver : {"auto", "paper"} or ADMM, default "auto"
        Settings of the algorithm.  "paper": the paper's Algorithm 1 and nothing else, with its rule
        for ρ.  An `ADMM` has settings of your own.
    compute : Compute, optional
        Threads, device, cluster, files and checkpoints; see `Compute`.  By default all threads of
        this machine, or the device of a tensor X.

    Returns
    -------
    Decomposition
        Labelled factors, history and predictions.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; this is checked before any work.
    MemoryError
        If the fit would not fit into what is left of the memory: the free memory, the limit of the
        process, or that of its container.  A default fit of dense data needs about 3 to 4 times
        their size.
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
        If `max_iter` ended a fit that still fell by more than 0.1 % in its last tenth; never with
        ``tol=0``.
    OverfitWarning
        If predictions of missing entries are far outside the observed range.
    UnitsWarning
        If entries are missing, and columns are in different units.
    UnobservedWarning
        If rows or columns have no observed entry and there are no offsets (`complete` only).

    Notes
    -----
    Algorithm 1 of A. Awari, N. Gillis and A. Vandaele, "Alternating Direction Method of
    Multipliers for Nonlinear Matrix Decompositions".  An iteration is always one of that
    algorithm; after it, the default may do up to four passes of refinements, in all at most one for
    each iteration.

    Under constraints on the factors, the factor steps are small constrained least-squares problems.
    Where f is the identity for such WH, least squares of complete data and the divergence with
    nonnegative factors descend on the objective itself by default.  A sparse X with less than 30 %
    stored entries is fitted by quasi-Newton descents alone, without the dense T and U for which
    ``solver="paper"``, a fixed ρ, ``refine=False`` and constraints on the factors ask.

    What is "auto" is chosen by the error at a tenth of the observed entries, which are held out, at
    random, as blocks if the holes of X are blocks, or as `validation` says.  Where absent entries
    of a sparse X are zeros, only the rank of counts is chosen, by a tenth of each count.  The fit
    then has all entries, and begins afresh; it may follow a path of ridges (`init`) and end early.
    At most half of `time_limit` is for the trials, which `Decomposition.selection` lists and
    ``docs/choosing.md`` explains.  `Decomposition.chosen` has the arguments that repeat the fit.

    The loss of an entry with limits is 0 where the model satisfies them, and that to the nearest
    limit elsewhere.  For the Frobenius loss and noise of standard deviation σ > 0 (`limit_noise`
    of `ADMM`), it is -σ² log P, with the probability P of a value within the limits under Gaussian
    noise (J. Tobin, Econometrica 26, 1958).  A limit then draws the model to its inside.  That of
    an ordinal level is -log P, with the probability of all levels within the limits; that of one
    of two classes is the class itself, or says nothing.

    For mixed columns, `loss` and `nonlinearity` may be a dict by column label, a sequence with one
    for each column, or a pair (sequence, positions) with the position of each column's own (n,) or
    each entry's own (m, n).  Columns that a dict does not name keep what their type says.  In a
    DataFrame, booleans have the logistic loss, ordered levels the ordinal loss, and each category
    (text with few values is one, too) an indicator with the logistic loss.  A loss with a link
    keeps it (logistic, ordinal: identity; counts and positive data: exp); other columns share
    `nonlinearity`, unless it is a dict.  Each column has units of its own
    (`nmd_lab.solver.columns`), so that none drowns another.  The same holds with ``loss={}``,
    and for a DataFrame of numbers with at most 100 columns if the nonlinearity is "auto".  There
    many zeros, or many values at both ends of one scale, say that all columns have one unit, in
    which ReLU or MinMax may suit them, unless their spreads and sizes differ by a factor of 20; and
    so do limits.
    `Decomposition.impute` and `Decomposition.probabilities` answer in the kind of each column.  To
    fill the holes of such a table `nmd_lab.sample` is better, and has intervals.

    In an interactive session (the Python prompt, IPython, Jupyter), once an iteration is done, a
    first Ctrl-C or the stop button ends the fit after the present iteration.  The best iterate is
    returned, with the stop reason "interrupted".  A second one raises KeyboardInterrupt at once, as
    the first one does in a script.  SIGTERM ends the process.  In all cases the last checkpoint is
    there.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> rng = np.random.default_rng(0)
    >>> X = np.maximum(rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30)), 0)
    >>> fit = nmd.decompose(X, rank=3, nonlinearity="relu")
    >>> fit.relative_error < 1e-4
    True
    >>> import pandas as pd
    >>> size = np.arange(12.0)
    >>> table = pd.DataFrame({"size": size, "adult": pd.array(size > 5, dtype="boolean")})
    >>> table["adult"] = table["adult"].mask(size == 9)
    >>> fit = nmd.complete(table, 1, alpha=0.1, random_state=0)
    >>> bool(fit.impute(table)["adult"][9])
    True
    """
    asked = Options.of(
        options,
        rank=rank,
        nonlinearity=nonlinearity,
        loss=loss,
        observed=observed,
        weights=weights,
        at_most=at_most,
        at_least=at_least,
        upper=upper,
        dtype=dtype,
        sample_dims=sample_dims,
        absent_are_zeros=True,
    )
    return run_fit(X, asked)


@with_option_signature(**COMPLETION_DEFAULTS)
def complete(
    X: Any,
    rank: int | Literal["auto"] = "auto",
    nonlinearity: NonlinearityArgument | None = None,
    loss: LossArgument = "frobenius",
    *,
    observed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    at_most: ArrayLike | None = None,
    at_least: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    **options: Unpack[FitOptions],
) -> Decomposition:
    """Complete a partly observed X by f(WH); only observed entries count.

    The arguments, the result and the errors are those of `decompose`, with three differences.
    Absent entries of a sparse X are missing here, and zeros there.  A row or column without an
    observed entry is an error there; here it gets zero factors, and its prediction is f of the
    offsets.  And ridges, offsets and nonlinearity are chosen by held-out entries here, unless a
    number is given for `alpha`; ``alpha=0`` is the plain problem.

    Parameters
    ----------
    X, rank, loss, observed, weights, at_most, at_least, upper, dtype, sample_dims
    **options
        See `decompose`; `alpha` and `offsets` are "auto" by default.
    nonlinearity : str or Nonlinearity, optional
        See `decompose`; by default "auto" if `alpha` is "auto", and "identity" otherwise.

    Returns
    -------
    Decomposition
        Its method `reconstruct` returns the full matrix, `predict` single entries.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 50))
    >>> X = truth + 0.1 * rng.normal(size=truth.shape)
    >>> seen = rng.random(X.shape) < 0.6
    >>> fit = nmd.complete(X, observed=seen, random_state=0)
    >>> int(fit.parameters["rank"]), bool(np.std(fit.reconstruct().values - truth) < 0.05)
    (2, True)
    """
    if nonlinearity is None:
        nonlinearity = "auto" if options.get("alpha", "auto") == "auto" else "identity"
    asked = Options.of(
        COMPLETION_DEFAULTS | options,
        rank=rank,
        nonlinearity=nonlinearity,
        loss=loss,
        observed=observed,
        weights=weights,
        at_most=at_most,
        at_least=at_least,
        upper=upper,
        dtype=dtype,
        sample_dims=sample_dims,
    )
    return run_fit(X, asked)
