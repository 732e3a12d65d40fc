"""Truncated singular value decomposition, the best linear model of complete data."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.linalg import svd

from nmd_lab._runtime.checks import check_rank
from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.inputs import observe_dense
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Identity
from nmd_lab.result.decomposition import Decomposition

from ._objective import Objective
from ._pack import pack


def truncated_svd(
    X: Any,
    rank: int,
    *,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    random_state: Any = None,
) -> Decomposition:
    """Take the first `rank` terms of the singular value decomposition of X.

    For complete data this is the closest matrix of that rank (Eckart and Young). So no linear
    model has a smaller Frobenius error. Missing entries are replaced by the mean of the observed
    ones first.

    Parameters
    ----------
    X, observed, dtype
        As for `nmd_lab.complete`.
    rank : int
        Number of components, from 1 to min(m, n).
    random_state
        Without effect: nothing is random.

    Returns
    -------
    Decomposition
        The fit with W = U √Σ and H = √Σ Vᵀ, in decreasing order of the singular values. In each
        row of H the entry of largest absolute value is positive.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, for example a rank above min(m, n).

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.baselines import truncated_svd
    >>> truncated_svd(np.diag([3.0, 2.0, 1.0]), 2).reconstruct().values.round(6) + 0.0
    array([[3., 0., 0.],
           [0., 2., 0.],
           [0., 0., 0.]])
    """
    began = time.perf_counter()
    observations = observe_dense(X, observed=observed, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    objective = Objective(observations, Identity(), Frobenius())
    filled = observations.values
    if observations.weights is not None:
        seen = observations.weights > 0
        filled = np.where(seen, filled, filled[seen].mean(dtype=np.float64).astype(filled.dtype))
    U, singular, Vt = svd(filled, full_matrices=False)
    U, Vt, root = U[:, :rank], Vt[:rank], np.sqrt(singular[:rank])
    # The sign of a pair of singular vectors is arbitrary, and LAPACK's differs by machine.
    sign = np.sign(Vt[np.arange(rank), np.abs(Vt).argmax(axis=1)])
    W, H = U * (sign * root), (sign * root)[:, None] * Vt
    seconds = time.perf_counter() - began
    iterate = objective.evaluate(W, H, seconds=seconds)
    stop_reason = StopReason("direct", "direct: singular value decomposition")
    return pack(objective, iterate, method="truncated_svd", stop_reason=stop_reason)
