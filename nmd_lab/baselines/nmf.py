"""Nonnegative matrix factorisation by scikit-learn."""

from __future__ import annotations

import time
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._runtime.checks import check_rank
from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.inputs import observe_dense
from nmd_lab.model.losses import Loss, as_loss
from nmd_lab.model.nonlinearities import Identity
from nmd_lab.result.decomposition import Decomposition

from ._objective import Objective
from ._pack import pack

BETA_LOSSES = {"frobenius": "frobenius", "kl": "kullback-leibler"}
"""Names of the losses here, and in scikit-learn's NMF."""


def nmf(
    X: Any,
    rank: int,
    loss: str | Loss = "frobenius",
    *,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    max_iter: int = 500,
    tol: float = 1e-4,
    random_state: Any = None,
) -> Decomposition:
    """Factorise X ≈ WH with W, H >= 0.

    Parameters
    ----------
    X, observed, dtype
        As for `nmd_lab.decompose`. All entries must be observed and >= 0.
    rank : int
        Number of components, from 1 to min(m, n).
    loss : {"frobenius", "kl"} or Loss, default "frobenius"
        Loss d. The solver is coordinate descent for "frobenius", and multiplicative updates for
        "kl".
    max_iter : int, default 500
        Largest number of iterations.
    tol : float, default 1e-4
        Tolerance of the stopping rule of `sklearn.decomposition.NMF`.
    random_state : int, RandomState or None
        Seed of the starting factors.

    Returns
    -------
    Decomposition
        A fit with nonnegative W and H.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, X has missing or negative entries, or NMF lacks the loss.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If `max_iter` was too small for `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.baselines import nmf
    >>> fit = nmf(np.outer([1.0, 2.0, 3.0], [1.0, 0.0, 2.0]), 1, random_state=0)
    >>> fit.relative_error < 1e-3, bool((fit.H >= 0).all())
    (True, True)
    """
    from sklearn.decomposition import NMF  # takes a second to import

    began = time.perf_counter()
    d = as_loss(loss)
    if d.name not in BETA_LOSSES:
        raise ValueError(f"loss={d.name!r} is not one of NMF's: choose from {list(BETA_LOSSES)}.")
    observations = observe_dense(X, observed=observed, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    n_missing = observations.values.size - observations.n_observed
    if n_missing:
        raise ValueError(
            f"X has {n_missing} missing entries, which NMF cannot leave out: use nmd.complete, or "
            "fill them first."
        )
    if observations.values.min() < 0:
        raise ValueError(
            f"X holds the negative value {observations.values.min():g}, which NMF cannot reach: "
            "shift or clip X, or use truncated_svd."
        )
    objective = Objective(observations, Identity(), d)
    model = NMF(
        rank,
        init="nndsvda",
        solver="cd" if d.name == "frobenius" else "mu",
        beta_loss=BETA_LOSSES[d.name],
        max_iter=max_iter,
        tol=tol,
        random_state=random_state,
    )
    W = model.fit_transform(observations.values)
    seconds = time.perf_counter() - began
    iterate = objective.evaluate(W, model.components_, seconds=seconds)
    stop_reason = StopReason(
        "converged" if model.n_iter_ < max_iter else "max_iter",
        f"scikit-learn's NMF: {model.n_iter_} iterations done",
    )
    return pack(objective, iterate, method="nmf", stop_reason=stop_reason, max_iter=max_iter,
                tol=tol)  # fmt: skip
