"""The two commands, `decompose` and `complete`: prepare, solve, put the labels back on."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, DTypeLike

from ._threads import one_thread
from .model.losses import Loss
from .model.nonlinearities import Nonlinearity
from .result.decomposition import Decomposition
from .result.provenance import provenance
from .solver.admm import State
from .solver.options import FitOptions, Options, with_option_signature
from .solver.prepare import Prepared, prepare
from .solver.refinement.stages import optimality
from .solver.restarts import Solution, iterate, solve
from .solver.run import Run
from .warnings import NotConvergedWarning

STILL_IMPROVING = 1e-3
"""Relative decrease of the objective over the last tenth of the iterations that is a warning."""


@with_option_signature
def decompose(
    X: Any,
    rank: int,
    nonlinearity: str | Nonlinearity = "relu",
    loss: str | Loss = "frobenius",
    *,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    **options: Unpack[FitOptions],
) -> Decomposition:
    """Decompose X ≈ f(WH); every entry counts.

    Parameters
    ----------
    X : array_like (m, n)
        ndarray, masked array, pandas.DataFrame or xarray.DataArray; labels survive.  NaN and
        masked entries are missing.
    rank : int
        Number of components r, from 1 to min(m, n).
    nonlinearity : {"relu", "square", "minmax", "modulus", "identity"} or Nonlinearity
        f; "minmax" has the bounds 0 and 1, ``nmd.MinMax(a, b)`` others.
    loss : {"frobenius", "l1", "kl"} or Loss
        d.
    mask : array_like of bool (m, n), optional
        True where X is observed.
    weights : array_like (m, n), optional
        How much each entry counts, >= 0; 0 is missing.
    dtype : float32 or float64, optional
        Working precision; by default that of X.
    sample_dims : str or sequence of str, optional
        The dimensions of a DataArray that make the rows, for example "time" for maps over time;
        the others make the columns.  By default the first of two.
    init : {"auto", "svd", "randomized", "nndsvd", "random"}, (W, H) or Decomposition
        Starting factors.  "auto", the default, takes the SVD; for Modulus and Square, random
        factors that 200 iterations of Modulus + Frobenius have given their signs.  "randomized" is
        a cheaper SVD for large or sparse data, "nndsvd" a nonnegative one.  From a pair the start
        is T = X on the observed entries (√X for Square), 0 elsewhere; an earlier fit is gone on
        from.
    n_init : int, default 1
        Number of starts: the one that `init` says, then random ones, each given up when it cannot
        reach the first one's objective any more.  The fit of lowest objective is returned;
        `Decomposition.starts` tells of all.
    max_iter : int, default 500
        Most iterations of a start.
    tol : float, default 1e-10
        Ends a start when ‖T - WH‖ and ‖T - T_previous‖, relative to the norm of the starting T,
        are at most this; or when the objective has changed by no more than this share of it over
        200 iterations; or when refinements find nothing lower any more.  The best iterate is
        returned.  0 runs exactly `max_iter` iterations and returns the last one.
    penalty : {"auto", "balanced", "paper"}, float or PenaltyRule, default "auto"
        How ρ is chosen; a number keeps it fixed.  "balanced" keeps the two residuals within a
        factor of 3, "paper" is the paper's rule.  "auto" is "balanced"; but for a loss with a
        kink (L1) and an f that is not even, ρ starts where loss and constraint weigh the same,
        and settles.
    initial_penalty : float, optional
        ρ of the first iteration, for a rule that has a name.
    acceleration : {"auto", None}, default "auto"
        Whether refinements run beside the iteration: quasi-Newton steps with T eliminated, the
        better of the two being kept.  "auto" leaves them out where the plain method is asked for
        (a fixed ρ, the paper's rule, or given factors with a named rule and ``tol=0``), for
        Identity + Frobenius on observed entries only, for more than four million stored entries
        of a sparse matrix, and where they would need more memory than the data.
    homotopy : {"auto", True, False}, default "auto"
        For MinMax: whether a refinement begins with a wide interval, which shrinks to [a, b].
        True does so first, "auto" after a first one without, keeping what is lower.
    polish : {"auto", True, False}, default "auto"
        Whether the best factors go down on the objective itself, if that is smooth or zero can be
        reached.  "auto" does so where `acceleration` may.
    alpha : float, default 0
        Ridge: the objective gets alpha/2 (‖W‖² + ‖H‖²).
    offsets : {"none", "global", "rows", "columns", "both"}, default "none"
        What is added to WH inside f: nothing, a mean, or a mean and offsets of rows or columns.
    constraint : {"auto", "everywhere", "observed"}, default "auto"
        Where T = WH is imposed; "auto" takes the observed entries alone if fewer than a third are.
    validation : float, array_like or scipy.sparse matrix, optional
        A share of the observed entries to hold out, or held-out entries; the iterate of their
        lowest error is returned.
    patience : int, default 10
        Iterations without a lower validation error after which a start ends.
    epsilon : float, default 1e-12
        Relative ridge that keeps the factor steps solvable, at least the rounding unit of the
        precision (1e-7 in float32).
    time_limit : float, optional
        Seconds for all starts together.
    callback : callable, optional
        Called with each `State`; a true value ends the fit.
    progress : bool, optional
        True: a progress bar.  None: only on a terminal, for fits of more than a second.
    random_state : int, Generator or None
        Seed; the same seed gives the same bits on one machine with one thread.
    threads : int, optional
        Shares of large data, or starts, that are worked on at a time; by default as many as
        NUMBA_NUM_THREADS says.

    Returns
    -------
    Decomposition
        The labelled result.

    Raises
    ------
    ValueError, TypeError
        Before any work, in one sentence, if an argument makes no sense.

    Warns
    -----
    NotConvergedWarning
        If `max_iter` ended a fit whose last tenth of iterations still lowered the objective by
        more than 0.1 %; never with ``tol=0``.

    Notes
    -----
    Algorithm 1 of the paper "ADMM for Nonlinear Matrix Decompositions" (Awari, Gillis, Vandaele).
    With ``acceleration=None, homotopy=False, polish=False`` and a `penalty` of "balanced", "paper"
    or a number it is that and nothing else.  An accelerated iteration costs two passes over the
    data instead of one, and its objective is never above that of the plain method after as many.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> rng = np.random.default_rng(0)
    >>> X = np.maximum(rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30)), 0)
    >>> fit = nmd.decompose(X, rank=3, nonlinearity="relu")
    >>> fit.relative_error < 1e-4
    True
    """
    return _fit(X, rank, nonlinearity, loss, mask, weights, dtype, sample_dims, True, options)


@with_option_signature
def complete(
    X: Any,
    rank: int,
    nonlinearity: str | Nonlinearity = "identity",
    loss: str | Loss = "frobenius",
    *,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    **options: Unpack[FitOptions],
) -> Decomposition:
    """Complete a partly observed X by f(WH); only observed entries count.

    The arguments, the result and the errors are those of `decompose`.  The two differ for sparse
    input alone: here absent entries are missing, there they are zeros.  A row or column in which
    nothing is observed gets zero factors, so that its prediction is f(0).

    Parameters
    ----------
    X, rank, nonlinearity, loss, mask, weights, dtype, sample_dims, **options
        See `decompose`; `nonlinearity` is "identity" by default.

    Returns
    -------
    Decomposition
        Its `reconstruct` fills the holes, its `predict` gives single entries.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 30))
    >>> seen = rng.random(X.shape) < 0.6
    >>> fit = nmd.complete(X, rank=2, mask=seen, max_iter=1000)
    >>> bool(np.abs(fit.reconstruct().values - X).max() < 1e-3)
    True
    """
    return _fit(X, rank, nonlinearity, loss, mask, weights, dtype, sample_dims, False, options)


def _fit(
    X: Any,
    rank: int,
    nonlinearity: str | Nonlinearity,
    loss: str | Loss,
    mask: ArrayLike | None,
    weights: ArrayLike | None,
    dtype: DTypeLike | None,
    sample_dims: str | Sequence[str] | None,
    absent_are_zeros: bool,
    options: FitOptions,
) -> Decomposition:
    """Prepare, solve, label and warn."""
    with one_thread():
        prepared = prepare(
            X,
            rank,
            nonlinearity,
            loss,
            mask=mask,
            weights=weights,
            dtype=dtype,
            sample_dims=sample_dims,
            absent_are_zeros=absent_are_zeros,
            **options,
        )
        fit = label(prepared, solve(*prepared))
    _warn_if_still_improving(fit, prepared.options)
    return fit


def label(prepared: Prepared, solution: Solution) -> Decomposition:
    """Return the labelled result of a fit.

    Parameters
    ----------
    prepared : Prepared
        Problem and options of the fit.
    solution : Solution
        Its best outcome.
    """
    problem, outcome = prepared.problem, solution.outcome
    state, observations = outcome.state, problem.observations
    W, H = state.W.copy(), state.H.copy()
    rows, columns = observations.empty_rows_and_columns()
    W[rows], H[:, columns] = 0, 0
    labelled_W, labelled_H = observations.labels.label_factors(W, H)
    iterations = np.arange(1, len(outcome.history["seconds"]) + 1)
    history = xr.Dataset(
        {name: ("iteration", numbers) for name, numbers in outcome.history.items()},
        coords={"iteration": iterations},
    )
    return Decomposition(
        W=labelled_W,
        H=labelled_H,
        offsets=state.offsets,
        nonlinearity=problem.pair.nonlinearity,
        loss=problem.pair.loss,
        history=history,
        stop_reason=outcome.stop_reason,
        labels=observations.labels,
        parameters={
            "rank": W.shape[1],
            "iteration": state.iteration,
            **prepared.options.describe(W.dtype),
            "constraint": "observed" if problem.observed_only else "everywhere",
            "optimality": solution.optimality,
            "starts": solution.starts,
            **provenance(observations),
        },
    )


class ResumableFit:
    """A prepared fit that goes on as many iterations at a time as one wants.

    Its iterates are those of one uninterrupted fit.  With ``tol=0`` and nothing held out, the
    result after k iterations is that of ``max_iter=k``.

    Parameters
    ----------
    prepared : Prepared
        Result of `nmd_lab.solver.prepare.prepare`; only the first of its starts is run.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.run: Run | None = None

    def advance(self, iterations: int, callback: Callable[[State], Any]) -> Decomposition:
        """Do at most so many more iterations, and return the result so far.

        Parameters
        ----------
        iterations : int
            Largest number of further iterations.
        callback : callable
            Function of each state; a true value stops the fit.
        """
        problem, starts, options, plan, held_out = self.prepared
        with one_thread():
            if self.run is None:
                states = iterate(problem, next(starts), options, plan)
                self.run = Run(
                    states, tol=options.tol, held_out=held_out, patience=options.patience
                )
            outcome = self.run.advance(iterations, callback=callback)
            if self.run.gives_last and outcome.stop_reason.code == "callback":
                last = self.run.last
                assert last is not None
                outcome = outcome._replace(state=last, score=last.objective)
            distance = optimality(problem, outcome.state.W_aug, outcome.state.H_aug)
            return label(self.prepared, Solution(outcome, distance, []))


def _warn_if_still_improving(fit: Decomposition, options: Options) -> None:
    """Warn if the last tenth of the iterations still lowered the objective."""
    if options.tol == 0 or fit.stop_reason.code != "max_iter":
        return
    lowest = np.minimum.accumulate(fit.history["objective"].values)
    before, after = lowest[-1 - max(1, fit.n_iter // 10) :][0], lowest[-1]
    if before - after > STILL_IMPROVING * abs(after):
        warnings.warn(
            f"max_iter={options.max_iter} ended a fit whose last tenth of iterations still "
            f"lowered the objective by {(before - after) / abs(before):.1%}: raise max_iter, or "
            "pass tol=0 if so many iterations are what you want.",
            NotConvergedWarning,
            stacklevel=4,
        )
