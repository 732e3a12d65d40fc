"""`sample`: the posterior of a model, by Gibbs sampling.

>>> import numpy as np, nmd_lab as nmd
>>> rng = np.random.default_rng(0)
>>> truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
>>> X = np.where(rng.random(truth.shape) < 0.5, truth + 0.1 * rng.normal(size=truth.shape), np.nan)
>>> posterior = nmd.sample(X, 4, random_state=0)
>>> low, high = posterior.predict_interval([0, 1], [0, 1], level=0.9).T  # of new observations
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from numpy.typing import ArrayLike, DTypeLike

from ._messages import message_of_chains, warn
from ._runtime.machine import one_thread
from ._runtime.progress import interruptible
from ._sampling import draw_posterior
from .result.posterior import Posterior
from .solver.columns import LossArgument, NonlinearityArgument
from .solver.options import SampleOptions
from .solver.settings import Compute


def sample(
    X: Any,
    rank: Literal["auto"] | int = "auto",
    nonlinearity: NonlinearityArgument = "auto",
    loss: LossArgument = "frobenius",
    *,
    draws: int = 300,
    tune: int | None = None,
    chains: int = 1,
    keep: int | None = None,
    groups: Literal["auto"] | int = "auto",
    noise: Literal["auto", "before", "after"] = "auto",
    noise_by: Literal["auto", "columns", "one"] = "auto",
    offsets: Literal["auto", "none", "global", "rows", "columns", "both"] = "auto",
    observed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    at_most: ArrayLike | None = None,
    at_least: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    init: Literal["auto", "random", "svd"] | Any = "auto",
    callback: Callable[..., Any] | None = None,
    time_limit: float | None = None,
    progress: bool | None = None,
    random_state: Any = None,
    compute: Compute | None = None,
) -> Posterior:
    """Draw from the posterior of X ≈ f(WH): predictions with intervals, and better ones.

    Only observed entries count, as for `complete`.  W, H, offsets, noise levels and the scales of
    all of them are drawn, so that nothing is to be tuned.  The mean over draws is usually closer to
    the truth than any single fit.  A DataFrame may hold numbers, booleans, ordered levels,
    categories and text with few values, each of which is drawn as what it is; the posterior says
    in one line what was taken for what.

    Parameters
    ----------
    X : array_like, masked array, DataFrame, DataArray, scipy.sparse matrix or SparseObservations
        Data (m, n).  NaN, masked entries, and entries that a sparse matrix does not store are
        missing.
    rank : "auto" or int, default "auto"
        Upper bound for the number of components.  More than enough does no harm.  "auto": one less
        than X has columns, and at most 20.
    nonlinearity : str, Nonlinearity, dict or sequence, default "auto"
        Nonlinearity f, of all entries or by column, as for `complete`.  "monotone" is a rising f
        that maps normal quantiles to those of X, or of a column.  "auto": the identity, and
        for numbers of a table whose columns have noise of their own a `Monotone` of share 0.5,
        which is learned from the values of the column, unless many of them are at its end, or a
        limit, a loss or `noise` is given.  A dict: "auto" for the columns that it leaves out.
    loss : str, Loss, dict or sequence, default "frobenius"
        Noise after f: "frobenius" (Gaussian), "l1" (Laplace), "kl" (Poisson), or a Loss.  "ordinal"
        or an `Ordinal`: ordered levels with learned cut points.  By column as for `complete`; there
        "logistic" stands for yes and no.  Each column then has units and noise levels for itself.
    draws : int, default 300
        Number of sweeps after tuning, of each chain.
    tune : int, optional
        Number of sweeps before them, which are not kept; by default 100.
    chains : int, default 1
        Number of chains.
    keep : int, optional
        Number of draws to keep of each chain, evenly spaced; by default all, or as many as take
        1 GiB.
    groups : "auto" or int, default "auto"
        Upper bound for the number of groups of rows.  The rows of a group have a Gaussian prior of
        their own, so that relations between columns may be curved, or differ between groups; groups
        that nothing speaks for stay empty.  "auto": up to 8 where each column has a noise of its
        own (`noise_by`), unless two short chains show that cells hidden from both are predicted
        worse than without groups; otherwise 1.
    noise : {"auto", "before", "after"}, default "auto"
        Where the Gaussian noise of the Frobenius loss is.  "before": X = f(WH + noise) exactly, so
        that a value at a limit of f says that WH + noise is beyond it.  "after": X = f(T) + noise.
        "auto" is "before" where f has flat pieces, and X their values and no other value that f
        does not take.
    noise_by : {"auto", "columns", "one"}, default "auto"
        Whose noise levels there are.  "columns": each column has units and noise levels of its own.
        "one": all share one.  "auto": "columns" for columns of several kinds, and for a DataFrame
        of numbers at least half of whose cells are observed, or that has at most 100 columns and 20
        observed cells for each, unless `nonlinearity` or `loss` is given; otherwise "one".
    offsets : {"auto", "none", "global", "rows", "columns", "both"}, default "auto"
        Offsets added to WH inside f; "auto" is "both", "none" for an even f, and "columns" where
        each column has a noise of its own.
    observed, weights, dtype, sample_dims
        As for `complete`.  A weight multiplies the precision of an entry.
    at_most, at_least, upper : array_like, optional
        Entries of which only limits are known, as for `complete`.  Their values are drawn within
        the limits: numbers where the noise is that of "frobenius", "l1" or "kl", and levels.
    init : {"auto", "random", "svd"} or Decomposition, default "auto"
        Where a chain begins.  A fit: at its factors.
    callback : callable, optional
        Function of a `Sweep` (chain, sweep, tuning, log_likelihood, seconds); a true value ends the
        run.
    time_limit : float, optional
        Time limit of all chains together, in seconds.  At least one sweep is done.  The two that
        choose groups take at most a tenth each, so that their choice may depend on the machine.
    progress : bool, optional
        Whether to show a progress bar.  By default only on a terminal, and only after a second.
    random_state : int, Generator or None
        Seed.  The same seed gives the same bits, with any number of threads.
    compute : Compute, optional
        Threads and checkpoints; see `Compute`.  The draws have the same bits with any number of
        threads.

    Returns
    -------
    Posterior
        Labelled draws and predictions.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; this is checked before any work.  A DataFrame with one row, a
        column name that comes twice, or a column of identifiers, free text or dates, without any
        value, or with more than 1000 categories is refused, with the remedy.
    OSError
        If the checkpoint cannot be written.
    MemoryError
        If the draws would not fit into what is left of the memory.
    KeyboardInterrupt
        If Ctrl-C comes in a script, or before the first sweep is done.  Later, in an interactive
        session, it ends the run, and the draws so far are returned.

    Warns
    -----
    UnitsWarning
        If columns that share one noise are in different units.
    NotConvergedWarning
        If the chains do not agree with one another, or with their own halves.

    Notes
    -----
    T_ij ~ N((WH)_ij + offsets, 1/ρ), and x_ij is f(T_ij) with the noise of the loss.  A sweep draws
    T where ADMM takes the proximal map, and rows and columns where ADMM solves for them (M. Vono,
    N. Dobigeon and P. Chainais, "Split-and-augmented Gibbs sampler", 2019).  Rows of W and columns
    of H are Gaussian with unknown mean and precision (R. Salakhutdinov and A. Mnih, "Bayesian
    probabilistic matrix factorization using Markov chain Monte Carlo", 2008).  Multiples of X have
    multiples of the same posterior.

    In a DataFrame, whole numbers are numbers, however few: make them an ordered categorical if they
    are levels.  Where a tenth or more of a column of numbers is its smallest or its largest value,
    such as the zeros of an amount, T is drawn as elsewhere, and predictions are those of T clipped
    to this end; ``nonlinearity={"amount": "identity"}`` leaves them alone, and `at_most` says that
    such values hide what is beyond them.

    Where each column has a noise of its own, T is in the units of its column, and ρ, β and cut
    points are those of the column.  A level, or yes and no, says between which cut points T lies
    (J. H. Albert and S. Chib, 1993); a category has such a T for each of its indicators.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> rng = np.random.default_rng(0)
    >>> truth = np.outer(np.arange(1.0, 31), np.linspace(1, 2, 20))
    >>> X = truth + rng.normal(size=truth.shape)
    >>> X[3, 4] = np.nan
    >>> posterior = nmd.sample(X, 2, draws=200, random_state=0)
    >>> low, high = posterior.predict_interval(3, 4)[0]
    >>> bool(low < truth[3, 4] < high)
    True

    A table of several kinds:

    >>> import pandas as pd
    >>> size = np.arange(40.0)
    >>> table = pd.DataFrame(
    ...     {"size": size, "weight": 3 * size, "adult": size > 20}
    ... ).convert_dtypes()
    >>> table.loc[39, ["weight", "adult"]] = pd.NA
    >>> posterior = nmd.sample(table, 1, draws=100, random_state=0)
    >>> bool(posterior.impute(table, 1, random_state=0)[0].loc[39, "adult"])
    True
    """
    asked = SampleOptions(
        rank=rank,
        nonlinearity=nonlinearity,
        loss=loss,
        draws=draws,
        tune=tune,
        chains=chains,
        keep=keep,
        groups=groups,
        noise=noise,
        noise_by=noise_by,
        offsets=offsets,
        observed=observed,
        weights=weights,
        at_most=at_most,
        at_least=at_least,
        upper=upper,
        dtype=dtype,
        sample_dims=sample_dims,
        init=init,
        callback=callback,
        time_limit=time_limit,
        progress=progress,
        random_state=random_state,
        compute=compute,
    )
    with interruptible() as interruption, one_thread():
        posterior = draw_posterior(X, asked, interruption)
    warn(message_of_chains(posterior), stacklevel=2)
    return posterior
