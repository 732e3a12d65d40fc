"""The mean of the observed entries as the prediction of every entry."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._runtime.checks import check_rank
from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.inputs import observe_dense
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Identity
from nmd_lab.result.decomposition import Decomposition

from ._objective import Objective
from ._pack import pack


def mean_fill(
    X: Any,
    rank: int = 1,
    *,
    observed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    random_state: Any = None,
) -> Decomposition:
    """Predict every entry by the mean of the observed ones.

    Parameters
    ----------
    X, observed, weights, dtype
        As for `nmd_lab.complete`. With weights the mean is weighted.
    rank : int, default 1
        Without effect, but checked: a constant matrix has rank 1.
    random_state
        Without effect: nothing is random.

    Returns
    -------
    Decomposition
        A fit of rank 1: all entries of W are 1, those of H the mean, in the units of X.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, for example if no entry is observed.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.baselines import mean_fill
    >>> fit = mean_fill(np.array([[1.0, np.nan], [5.0, 3.0]]))
    >>> fit.predict(0, 1)
    array([3.])
    """
    began = time.perf_counter()
    observations = observe_dense(X, observed=observed, weights=weights, dtype=dtype)
    m, n = observations.shape
    check_rank(rank, (m, n))
    values, counts = observations.observed()
    mean = np.average(values, weights=counts)
    seconds = time.perf_counter() - began
    objective = Objective(observations, Identity(), Frobenius())
    iterate = objective.evaluate(np.ones((m, 1)), np.full((1, n), mean), seconds=seconds)
    stop_reason = StopReason("direct", "direct: the mean of the observed entries")
    return pack(objective, iterate, method="mean_fill", stop_reason=stop_reason)
