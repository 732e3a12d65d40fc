"""The least that any completion has to beat: one number for every entry."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._checks import check_rank
from nmd_lab.data.dense import observe_dense
from nmd_lab.model.losses import Frobenius
from nmd_lab.result.decomposition import Decomposition

from ._run import labelled


def mean_fill(
    X: Any,
    rank: int = 1,
    *,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    random_state: Any = None,
) -> Decomposition:
    """Predict every entry by the mean of the observed ones.

    Parameters
    ----------
    X, mask, weights, dtype
        As for `complete`; with weights it is the weighted mean.
    rank : int, default 1
        Checked, and otherwise without effect: a constant has rank 1.
    random_state
        Without effect: nothing is random.

    Returns
    -------
    Decomposition
        Of rank 1, with W = 1 and H the mean, in the units of X.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense, for example when nothing is observed.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.baselines import mean_fill
    >>> fit = mean_fill(np.array([[1.0, np.nan], [5.0, 3.0]]))
    >>> fit.predict(0, 1)
    array([3.])
    """
    began = time.perf_counter()
    observations = observe_dense(X, mask=mask, weights=weights, dtype=dtype)
    m, n = observations.shape
    check_rank(rank, (m, n))
    values, counts = observations.observed()
    mean = np.average(values, weights=counts)
    return labelled(
        observations,
        np.ones((m, 1)),
        np.full((1, n), mean),
        Frobenius(),
        method="mean_fill",
        began=began,
        stop_reason="direct: the mean of the observed entries",
    )
