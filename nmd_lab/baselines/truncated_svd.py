"""The best linear model of complete data, and the usual first attempt at incomplete data."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.linalg import svd

from nmd_lab._checks import check_rank
from nmd_lab.data.dense import observe_dense
from nmd_lab.model.losses import Frobenius
from nmd_lab.result.decomposition import Decomposition

from ._run import labelled


def truncated_svd(
    X: Any,
    rank: int,
    *,
    mask: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    random_state: Any = None,
) -> Decomposition:
    """Cut off the singular value decomposition of X after `rank` terms.

    Without holes this is the closest matrix of that rank (Eckart and Young), so no linear model
    has a lower Frobenius error.  Holes are first filled with the mean of the observed entries.

    Parameters
    ----------
    X, mask, dtype
        As for `complete`.
    rank : int
        Number of singular values kept, from 1 to min(m, n).
    random_state
        Without effect: nothing is random.

    Returns
    -------
    Decomposition
        W = U √Σ and H = √Σ Vᵀ, components from the largest singular value down, each with the sign
        that makes the largest entry of its row of H positive.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense, for example a rank above min(m, n).

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
    observations = observe_dense(X, mask=mask, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    filled = observations.values
    if observations.weights is not None:
        seen = observations.weights > 0
        filled = np.where(seen, filled, filled[seen].mean(dtype=np.float64).astype(filled.dtype))
    U, singular, Vt = svd(filled, full_matrices=False)
    U, Vt, root = U[:, :rank], Vt[:rank], np.sqrt(singular[:rank])
    # The sign of a pair of singular vectors is arbitrary; LAPACK's differs between machines.
    sign = np.sign(Vt[np.arange(rank), np.abs(Vt).argmax(axis=1)])
    return labelled(
        observations,
        U * (sign * root),
        (sign * root)[:, None] * Vt,
        Frobenius(),
        method="truncated_svd",
        began=began,
        stop_reason="direct: singular value decomposition",
    )
