"""Nonnegative matrix factorisation by scikit-learn: parts that only add up."""

from __future__ import annotations

import time
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._checks import check_rank
from nmd_lab.data.dense import observe_dense
from nmd_lab.model.losses import Loss, as_loss
from nmd_lab.result.decomposition import Decomposition

from ._run import labelled

BETA_LOSSES = {"frobenius": "frobenius", "kl": "kullback-leibler"}
"""Our names of the losses that scikit-learn's NMF has, and its own."""


def nmf(
    X: Any,
    rank: int,
    loss: str | Loss = "frobenius",
    *,
    mask: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    max_iter: int = 500,
    tol: float = 1e-4,
    random_state: Any = None,
) -> Decomposition:
    """Factorise X ≈ WH with W, H >= 0.

    Parameters
    ----------
    X, mask, dtype
        As for `decompose`; every entry must be observed and >= 0.
    rank : int
        Number of components, from 1 to min(m, n).
    loss : {"frobenius", "kl"} or Loss, default "frobenius"
        Coordinate descent serves the first, multiplicative updates the second.
    max_iter : int, default 500
        Most iterations.
    tol : float, default 1e-4
        Ends the iteration; see `sklearn.decomposition.NMF`.
    random_state : int, RandomState or None
        Seed of the starting factors.

    Returns
    -------
    Decomposition
        With nonnegative W and H.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense, X has holes or negative values, or NMF lacks the loss.

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
    observations = observe_dense(X, mask=mask, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    holes = observations.values.size - observations.n_observed
    if holes:
        raise ValueError(
            f"X has {holes} missing entries, which NMF cannot leave out: use nmd.complete, or "
            "fill them first."
        )
    if observations.values.min() < 0:
        raise ValueError(
            f"X holds the negative value {observations.values.min():g}, which NMF cannot reach: "
            "shift or clip X, or use truncated_svd."
        )
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
    return labelled(
        observations,
        W,
        model.components_,
        d,
        method="nmf",
        began=began,
        stop_reason=f"scikit-learn's NMF: {model.n_iter_} iterations done",
        max_iter=max_iter,
        tol=tol,
    )
