"""eBCD-NMD: block coordinate descent with extrapolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._runtime.checks import check_number
from nmd_lab._runtime.machine import one_thread
from nmd_lab.result.decomposition import Decomposition

from ._latent import LatentProblem, least_squares_step
from ._relaxation import Relaxation


@one_thread()
def ebcd(
    X: Any,
    rank: int,
    *,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    init: Any = "svd",
    max_iter: int = 1000,
    tol: float = 1e-9,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
    max_extrapolation: float = 4.0,
) -> Decomposition:
    """Decompose X ≈ max(0, WH) by extrapolated block coordinate descent.

    An iteration fits W and then H by least squares to αZ + (1 - α)WH instead of Z. The
    extrapolation α starts at 1, which is plain block coordinate descent. It grows while ‖Z - WH‖
    decreases slowly. A step that does not decrease it is rejected, and α is set to 1.

    Parameters
    ----------
    X, rank, observed, dtype, init, max_iter, tol, time_limit, callback, random_state
        As for `anmd`.
    max_extrapolation : float, default 4
        Upper bound of α. 1 gives plain block coordinate descent.

    Returns
    -------
    Decomposition
        The iterate of smallest ‖X - max(0, WH)‖.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, for example if X has a negative entry.

    Notes
    -----
    N. Gillis, M. Porcelli, G. Seraghiti, "An extrapolated and provably convergent algorithm for
    nonlinear matrix decomposition with the ReLU function" (2025). The rule for α is that of
    Z. Wen, W. Yin, Y. Zhang, "Solving a low-rank factorization model for matrix completion by a
    nonlinear successive over-relaxation algorithm" (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.methods import ebcd
    >>> angles = np.arange(12.0)
    >>> X = np.maximum(0, np.cos(angles[:, None] - angles))
    >>> ebcd(X, 2).relative_error < 1e-4
    True
    """
    check_number("max_extrapolation", max_extrapolation, 1)
    problem = LatentProblem(X, rank, observed, dtype, init, random_state)
    W, H = problem.W, problem.H
    run = problem.run(max_iter=max_iter, tol=tol, time_limit=time_limit, callback=callback)
    relaxation, accepted_H = Relaxation(0.25, largest=max_extrapolation), H
    product = W @ H
    Z = problem.closest(product)
    smallest_error = np.linalg.norm(Z - product)
    while run.record(W, H):
        W, H = least_squares_step(product + relaxation.omega * (Z - product), accepted_H)
        new_product = W @ H
        new_Z = problem.closest(new_product)
        error = np.linalg.norm(new_Z - new_product)
        if error >= smallest_error:
            relaxation.omega = 1.0
            continue
        if error > relaxation.slow * smallest_error:
            relaxation.increase()
        accepted_H, product, Z, smallest_error = H, new_product, new_Z, error
    return run.result(method="ebcd", init=init, random_state=random_state,
                      max_extrapolation=max_extrapolation)  # fmt: skip
