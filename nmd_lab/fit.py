"""The functions `decompose` and `complete`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

from numpy.typing import ArrayLike, DTypeLike

from ._fitting import run_fit
from .data.limits import GivenLimits
from .result.decomposition import Decomposition
from .solver.columns import LossArgument, NonlinearityArgument
from .solver.options import COMPLETION_DEFAULTS, FitOptions, with_option_signature


@with_option_signature()
def decompose(
    X: Any,
    rank: int | Literal["auto"] = "auto",
    nonlinearity: NonlinearityArgument = "relu",
    loss: LossArgument = "frobenius",
    *,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    at_most: ArrayLike | None = None,
    at_least: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    limit_noise: float | Literal["auto"] = "auto",
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
        Number of components r, from 1 to min(m, n).  "auto": chosen by held-out entries.
    nonlinearity : str, Nonlinearity, dict or sequence
        Entrywise function f, by default "relu": "relu", "square", "minmax", "modulus", "identity",
        another name or object of ``docs/models.md``, `nmd.Smooth` of a function, or several (see
        the notes).  "auto": chosen by held-out entries among "identity", "relu" if X has many zeros
        and nothing below, and MinMax if X documents a range or has many values at both ends of it.
        "minmax" has the bounds that X documents by its attributes `valid_range`, or `valid_min` and
        `valid_max`, 0 and 255 for grey levels of type uint8 above 127, or else 0 and 1 if X lies
        between them; ``nmd.MinMax(a, b)`` has others.
    loss : str, Loss, dict or sequence
        Entrywise loss d, by default "frobenius": "frobenius", "l1", "kl", another name or object of
        ``docs/models.md``, a `Loss` of your own, or several (see the notes).  "auto": that of the
        three whose noise (Gaussian, Laplace, Poisson) makes held-out entries most likely.
    mask : array_like of bool (m, n), optional
        Observed entries (True); by default all.
    weights : array_like (m, n), optional
        Weights of the entries, >= 0; an entry of weight 0 is missing.  By default all are 1.
    at_most, at_least : array_like of bool (m, n) or scipy.sparse matrix, optional
        Entries (True) of which X is only an upper limit, such as a detection limit, or only a lower
        limit, such as the largest value of a sensor.  If no value of X is negative, what is below
        an upper limit is taken to be at least 0.  See the notes.
    upper : array_like (m, n) or scipy.sparse matrix, optional
        Upper limits of the entries at which both are True; X has the lower ones.
    limit_noise : float or "auto", default "auto"
        Standard deviation of the noise at entries with limits, for the Frobenius loss, in units of
        X.  "auto": that of held-out errors or of a pilot run.  0: any value within the limits is as
        good as another.
    dtype : float32 or float64, optional
        Working precision; by default that of X.
    sample_dims : str or sequence of str, optional
        Dimensions of a DataArray that make the rows, for example "time" for maps over time; the
        others make the columns.  By default the first of two.
    init : {"auto", "svd", "randomized", "nndsvd", "random"}, (W, H) or Decomposition
        Starting factors.  "svd": from the singular value decomposition; "randomized": from an
        approximation of it, for large or sparse data; "nndsvd": a nonnegative form of it; "random":
        small Gaussian factors.  A pair (W, H): these factors, with T = X (√X for Square) where
        observed and 0 elsewhere.  A Decomposition: a warm start from an earlier fit.
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
        `max_iter` iterations, and the last iterate is returned.  With `validation`, `patience`
        takes the place of the rule for the gain.
    penalty : {"auto", "balanced", "paper"}, float or PenaltyRule, default "auto"
        Rule for ρ; a number is a fixed ρ.  "balanced" keeps the two residuals within a factor of 3,
        "paper" is the paper's rule.  "auto" is "balanced", except for a loss with a kink (L1) and
        an f that is not even.  There, ρ starts at the value that gives loss and constraint the same
        weight, and changes less and less often.  "auto" starts at that value for all other pairs in
        which ρ has a unit (KL, Square), too, at a tenth of it if f is even (Modulus, Square):
        multiples of X are fitted alike.
    initial_penalty : float, optional
        ρ of the first iteration, > 0, if `penalty` is "auto", "balanced" or "paper".  By default
        the rule sets it.
    acceleration : {"auto", None}, default "auto"
        Refinements between the iterations: quasi-Newton steps with T eliminated, once the plain
        iteration slows down.  The factors of lower objective are kept.  None: no refinements.
        "auto" means no refinements for a fixed ρ or the paper's rule; for given factors with
        ``tol=0`` and a `penalty` other than "auto"; for Identity + Frobenius on observed entries
        only; for a sparse matrix with more than four million stored entries; and if they would need
        much more memory than the data.
    homotopy : {"auto", True, False}, default "auto"
        Refinement of MinMax that begins with a wide interval, which shrinks to [a, b].  True: as
        the first refinement.  "auto": as a later one.  False: never.
    polish : {"auto", True, False}, default "auto"
        Descent on the objective itself from the best factors, if the loss is smooth or the fit is
        nearly exact.  "auto" has the same exceptions as `acceleration`.
    alpha : float or "auto", default 0
        Ridge: the objective has the term alpha/2 (‖W‖² + ‖H‖²).  "auto": chosen by held-out
        entries; see the notes.
    offsets : {"none", "global", "rows", "columns", "both", "auto"}, default "none"
        Offsets added to WH inside f.  "global": a mean; "rows", "columns", "both": also an offset
        for each row, each column, or both.  "auto": chosen with alpha="auto", "none" otherwise.
    offset_alpha : float or "auto", default "auto"
        Ridge of the offsets b of rows and columns: the objective has the term offset_alpha/2 ‖b‖².
        "auto": chosen with alpha="auto", equal to `alpha` otherwise.
    constraint : {"auto", "everywhere", "observed"}, default "auto"
        Entries on which T = WH is imposed.  "auto" is "observed" if fewer than a third of the
        entries are observed.
    w_constraint, h_constraint : {"nonnegative", "simplex", "orthonormal", "sparse"} or \
    FactorConstraint, optional
        Constraints on the rows of W, and on the columns of H.  "nonnegative": no negative number;
        "simplex": nonnegative, with sum one; "orthonormal": orthonormal columns of W (rows of H),
        for at most one of the two; "sparse": an l1 penalty, see `SparseFactor` for its weight.  An
        object of one of the classes `NonNegative`, `Simplex`, `Orthonormal` and `SparseFactor`, or
        of your own (`FactorConstraint`).  Offsets are not constrained.  By default None.
    validation : float, array_like or scipy.sparse matrix, optional
        Share of the observed entries to hold out, between 0 and 1, or held-out entries in the shape
        of X.  They are not fitted: entries of X at the positions of a given matrix are left out.
        The iterate of lowest error on them is returned (early stopping).  A share takes at least
        one entry, and leaves one in each row and column; a ValueError says if that is impossible.
    patience : int, default 10
        Iterations without a lower validation error after which a start ends.
    epsilon : float, default 1e-12
        Relative ridge that keeps the factor steps solvable; at least the rounding unit of the
        precision (1e-7 in float32).
    time_limit : float, optional
        Time limit of all starts together, in seconds.  At least one iteration is done.
    callback : callable, optional
        Function of the `State` of each iteration; a true return value ends the fit.
    progress : bool, optional
        Whether to show a progress bar.  By default only on a terminal, and only after a second.
    random_state : int, Generator or None
        Seed.  It gives the same bits on one machine with the same number of threads.
    threads : int, optional
        Largest number of threads, which work on parts of large data or on several starts; by
        default NUMBA_NUM_THREADS.
    device : str, optional
        Device of PyTorch on which the passes over the data run, such as "cuda" (extra "torch"), for
        a piecewise-linear f or Square with Frobenius, L1 or KL, dense data, masked ones, and sparse
        zeros.  The results are those of NumPy up to rounding.  By default that of a tensor X.
    checkpoint : path-like, optional
        File that keeps the state of the fit while it runs.  If the file exists, the fit goes on
        from it, with the same bits as if it had never stopped; `nmd_lab.resume` does the same.
        The file may be read by another process, and holds W, H, T and U.
    checkpoint_every : float, default 60
        Time between two checkpoints, in seconds.
    work_dir : path-like, optional
        Folder for T and U of a dense X in a file (memmap, zarr array, dataset of HDF5, DataArray
        that is not loaded), which is then read block by block.  By default X is read as a whole if
        a fit fits into memory, and otherwise by blocks with the system's temporary folder.  The
        results are the same.  Rank and ridge must be given.
    memory_limit : float, optional
        Largest memory that the arrays of a fit may take beside X, in GiB.  A fit that needs more is
        refused before the work; X in a file is then read by blocks.
    client : distributed.Client or "active", optional
        Client of a Dask cluster whose workers make the passes over the rows (extra "dask"); by
        default the active one if X is of Dask: an array, a DataArray over one, or for `complete` a
        table of Dask with the columns row, column and value.  The iterates are those of Algorithm 1
        on one machine, up to rounding.  Rank and ridge must be given.  See ``docs/cluster.md``.

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
        If `checkpoint` cannot be written.

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
    Multipliers for Nonlinear Matrix Decompositions".  With ``acceleration=None, homotopy=False,
    polish=False`` and a `penalty` of "balanced", "paper" or a number it is that algorithm and
    nothing else.  An iteration is always one of that algorithm; after it, the default may do up to
    four passes of refinements, in all at most one for each iteration.

    Under constraints on the factors, the factor steps are small constrained least-squares problems.
    Where f is the identity for such WH, least squares of complete data and the divergence with
    nonnegative factors descend on the objective itself by default.  A sparse X with less than 30 %
    stored entries is fitted by quasi-Newton descents alone, without the dense T and U for which a
    fixed ρ, the rule "paper", ``acceleration=None`` and constraints on the factors ask.

    What is "auto" is chosen by the error at a tenth of the observed entries, which are held out, at
    random, as blocks if the holes of X are blocks, or those of `validation`.  The fit then begins
    at the chosen factors, with all entries.  At most half of `time_limit` is for the trials, which
    `Decomposition.selection` lists and ``docs/choosing.md`` explains.

    The loss of an entry with limits is 0 where the model satisfies them, and that to the nearest
    limit elsewhere.  For the Frobenius loss and noise of standard deviation σ = `limit_noise` > 0,
    it is -σ² log P, with the probability P of a value within the limits under Gaussian noise
    (J. Tobin, Econometrica 26, 1958).  A limit then draws the model to its inside.

    For mixed columns, `loss` and `nonlinearity` may be a dict by column label, a sequence with one
    for each column, or a pair (sequence, positions) with the position of each column's own (n,) or
    each entry's own (m, n).  Columns that a dict does not name keep what their type says.  In a
    DataFrame, booleans have the logistic loss, ordered levels the ordinal loss, and each category
    an indicator with the logistic loss.  A loss with a link keeps it (logistic, ordinal: identity;
    counts and positive data: exp); other columns share `nonlinearity`, unless it is a dict.  Each
    column has units of its own (`nmd_lab.solver.column_units`), so that none drowns another.  The
    same holds with ``loss={}``, and for a DataFrame of numbers in different units (two columns
    whose spreads differ by a factor of 30) if the nonlinearity is "auto".
    `Decomposition.impute` and `Decomposition.probabilities` answer in the kind of each column.

    In an interactive session (the Python prompt, IPython, Jupyter), once an iteration is done, a
    first Ctrl-C or the stop button ends the fit after the present iteration.  The best iterate is
    returned, with the stop reason "interrupted".  A second one raises KeyboardInterrupt at once, as
    the first one does in a script.  SIGTERM ends the process.  In all cases the last `checkpoint`
    is there.

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
    limits = GivenLimits(at_most, at_least, upper, limit_noise)
    model = (rank, nonlinearity, loss)
    data = {"mask": mask, "weights": weights, "dtype": dtype, "sample_dims": sample_dims}
    return run_fit(decompose, X, model, data, limits, options, absent_are_zeros=True)


@with_option_signature(**COMPLETION_DEFAULTS)
def complete(
    X: Any,
    rank: int | Literal["auto"] = "auto",
    nonlinearity: NonlinearityArgument | None = None,
    loss: LossArgument = "frobenius",
    *,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    at_most: ArrayLike | None = None,
    at_least: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    limit_noise: float | Literal["auto"] = "auto",
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
    X, rank, loss, mask, weights, at_most, at_least, upper, limit_noise, dtype, sample_dims
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
    >>> fit = nmd.complete(X, mask=seen, random_state=0)
    >>> int(fit.parameters["rank"]), bool(np.std(fit.reconstruct().values - truth) < 0.05)
    (2, True)
    """
    settings: Any = COMPLETION_DEFAULTS | options
    if nonlinearity is None:
        nonlinearity = "auto" if settings["alpha"] == "auto" else "identity"
    limits = GivenLimits(at_most, at_least, upper, limit_noise)
    model = (rank, nonlinearity, loss)
    data = {"mask": mask, "weights": weights, "dtype": dtype, "sample_dims": sample_dims}
    return run_fit(complete, X, model, data, limits, settings, absent_are_zeros=False)
