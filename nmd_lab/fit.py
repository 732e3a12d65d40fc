"""The two commands, `decompose` and `complete`: from any input to a labelled result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, DTypeLike

from .admm import Outcome, Problem, Stopping, admm, run
from .decomposition import Decomposition
from .losses import Loss
from .nonlinearities import Nonlinearity
from .observations import Observations, observe
from .penalty import as_penalty_rule
from .progress import with_progress
from .provenance import provenance
from .proximal import Pair, make_pair
from .settings import Settings, check_rank, with_settings_signature
from .starts import Start, given_start, random_start, svd_start

WARM_UP = 200
"""Iterations of Modulus + Frobenius that come before another even pair under ``init="auto"``."""


@with_settings_signature
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
    **settings: Any,
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
    init : {"auto", "svd", "random"}, (W, H) or Decomposition, default "auto"
        Starting factors.  "auto" takes the SVD; for Modulus and Square, random factors that 200
        iterations of Modulus + Frobenius have given their signs.  From a pair the start is T = X
        on the observed entries (√X for Square), 0 elsewhere; an earlier fit is gone on from.
    n_init : int, default 1
        Number of random starts; the fit of lowest objective is returned.
    max_iter : int, default 500
        Most iterations of a start.
    tol : float, default 1e-8
        Ends a start when ‖T - WH‖ and ‖T - T_previous‖, relative to the norm of the starting T,
        are at most this.  0 runs exactly `max_iter` iterations.
    penalty : {"balanced", "paper"}, float or PenaltyRule, default "balanced"
        How ρ is chosen; a number keeps it fixed.
    alpha : float, default 0
        Ridge: the objective gets alpha/2 (‖W‖² + ‖H‖²).
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

    Returns
    -------
    Decomposition
        The labelled result.

    Raises
    ------
    ValueError, TypeError
        Before any work, in one sentence, if an argument makes no sense.

    Notes
    -----
    Algorithm 1 of the paper "ADMM for Nonlinear Matrix Decompositions" (Awari, Gillis, Vandaele).

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> rng = np.random.default_rng(0)
    >>> X = np.maximum(rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30)), 0)
    >>> fit = nmd.decompose(X, rank=3, nonlinearity="relu")
    >>> fit.relative_error < 1e-4
    True
    """
    return _fit(X, rank, nonlinearity, loss, mask, weights, dtype, sample_dims, "data", settings)


@with_settings_signature
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
    **settings: Any,
) -> Decomposition:
    """Complete a partly observed X by f(WH); only observed entries count.

    The arguments, the result and the errors are those of `decompose`.  The two differ for sparse
    input alone: here absent entries are missing, there they are zeros.  A row or column in which
    nothing is observed gets zero factors, so that its prediction is f(0).

    Parameters
    ----------
    X, rank, nonlinearity, loss, mask, weights, dtype, sample_dims, **settings
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
    return _fit(X, rank, nonlinearity, loss, mask, weights, dtype, sample_dims, "missing", settings)


def _fit(
    X: Any,
    rank: int,
    nonlinearity: str | Nonlinearity,
    loss: str | Loss,
    mask: ArrayLike | None,
    weights: ArrayLike | None,
    dtype: DTypeLike | None,
    sample_dims: str | Sequence[str] | None,
    absent: Literal["data", "missing"],
    options: dict[str, Any],
) -> Decomposition:
    """Check everything, fit from each start, label the best."""
    settings = Settings.of(options)
    pair = make_pair(nonlinearity, loss)
    observations = observe(
        X, mask=mask, weights=weights, dtype=dtype, sample_dims=sample_dims, absent=absent
    )
    rank = check_rank(rank, observations.shape)
    values, _ = observations.observed()
    pair.loss.check_data(float(values.min()), float(values.max()))
    if absent == "data":
        _check_lines(observations)
    starts = _starts(observations, pair, rank, settings)
    outcome = _best_outcome(observations, pair, starts, settings)
    return _labelled(observations, pair, outcome, settings)


def _check_lines(observations: Observations) -> None:
    """Refuse rows and columns about which nothing is known, where every entry is to count."""
    for line, empty in zip(("row", "column"), observations.unobserved_lines(), strict=True):
        if empty.size:
            raise ValueError(
                f"X has no observed entry in {line} {empty[0]}: drop it, or use complete(), which "
                "lets it fall back to f(0)."
            )


def _starts(
    observations: Observations, pair: Pair, rank: int, settings: Settings
) -> Iterator[Start]:
    """Yield the chosen start, then random ones."""
    rng = settings.generator()
    f, init = pair.nonlinearity, settings.init
    for index in range(settings.n_init):
        if index > 0 or init == "random" or (init == "auto" and f.even):
            start = random_start(observations, f, rank, rng)
            yield _warmed_up(observations, pair, start, settings) if init == "auto" else start
        elif isinstance(init, str):
            yield svd_start(observations, f, rank)
        else:
            yield given_start(observations, rank, init)


def _warmed_up(observations: Observations, pair: Pair, start: Start, settings: Settings) -> Start:
    """Let an even f find its signs first: Modulus + Frobenius on the starting T."""
    easy = make_pair("modulus", "frobenius")
    if not pair.nonlinearity.even or pair.structure == easy.structure:
        return start
    sizes = pair.nonlinearity.preimage(observations.values)
    problem = Problem(
        replace(observations, values=sizes),
        easy,
        alpha=settings.alpha,
        epsilon=settings.epsilon_for(sizes.dtype),
    )
    states = admm(problem, start)
    state = run(states, Stopping(WARM_UP, settings.tol, settings.time_limit)).state
    return Start(state.W, state.H, from_factors=True)


def _best_outcome(
    observations: Observations, pair: Pair, starts: Iterator[Start], settings: Settings
) -> Outcome:
    """Run each start and return the outcome of lowest objective."""
    dtype = observations.values.dtype
    best: Outcome | None = None
    seconds = 0.0
    for start in starts:
        problem = Problem(
            observations,
            pair,
            rule=as_penalty_rule(settings.penalty),
            alpha=settings.alpha,
            epsilon=settings.epsilon_for(dtype),
        )
        states = admm(problem, start)
        limit = settings.time_limit
        stopping = Stopping(
            settings.max_iter,
            settings.tol,
            None if limit is None else limit - seconds,
            settings.callback,
        )
        outcome = run(with_progress(states, settings.max_iter, settings.progress), stopping)
        seconds += outcome.history["seconds"][-1]
        if best is None or outcome.state.objective < best.state.objective:
            best = outcome
        if not outcome.complete:
            best = best._replace(stop_reason=outcome.stop_reason)
            break
    assert best is not None
    return best


def _labelled(
    observations: Observations, pair: Pair, outcome: Outcome, settings: Settings
) -> Decomposition:
    """Put the labels back on."""
    state, labels = outcome.state, observations.labels
    W, H = state.W.copy(), state.H.copy()
    rows, columns = observations.unobserved_lines()
    W[rows], H[:, columns] = 0, 0
    labelled_W, labelled_H = labels.label_factors(W, H)
    iterations = np.arange(1, len(outcome.history["seconds"]) + 1)
    history = xr.Dataset(
        {name: ("iteration", numbers) for name, numbers in outcome.history.items()},
        coords={"iteration": iterations},
    )
    return Decomposition(
        W=labelled_W,
        H=labelled_H,
        nonlinearity=pair.nonlinearity,
        loss=pair.loss,
        history=history,
        stop_reason=outcome.stop_reason,
        labels=labels,
        parameters={
            "rank": W.shape[1],
            "iteration": state.iteration,
            **settings.describe(W.dtype),
            **provenance(observations),
        },
    )
