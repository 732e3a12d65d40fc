"""eBCD-NMD: block coordinate descent, over-relaxed as long as that helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._checks import check_number
from nmd_lab._threads import one_thread
from nmd_lab.result.decomposition import Decomposition

from ._latent import LatentProblem, least_squares_step

GOOD_RATIO = 0.7
"""A step that leaves less than this of ‖Z - WH‖ needs no stronger extrapolation."""


@one_thread()
def ebcd(
    X: Any,
    rank: int,
    *,
    mask: ArrayLike | None = None,
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

    W and H, by least squares and in turn, are fitted to αZ + (1 - α)WH instead of Z.  The
    extrapolation α starts at 1, which is plain block coordinate descent, and grows while
    ‖Z - WH‖ falls; a step that raises it is taken back, and α is 1 again.

    Parameters
    ----------
    X, rank, mask, dtype, init, max_iter, tol, time_limit, callback, random_state
        As for `anmd`.
    max_extrapolation : float, default 4
        The most that α may be; 1 gives plain block coordinate descent.

    Returns
    -------
    Decomposition
        The iterate with the smallest ‖X - max(0, WH)‖.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense, for example if X has a negative entry.

    Notes
    -----
    N. Gillis, M. Porcelli, G. Seraghiti, "An extrapolated and provably convergent algorithm for
    nonlinear matrix decomposition with the ReLU function" (2025).  The rule for α is that of
    Z. Wen, W. Yin, Y. Zhang, "Solving a low-rank factorization model for matrix completion by a
    nonlinear successive over-relaxation algorithm" (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.baselines import ebcd
    >>> angles = np.arange(12.0)
    >>> X = np.maximum(0, np.cos(angles[:, None] - angles))
    >>> ebcd(X, 2).relative_error < 1e-4
    True
    """
    check_number("max_extrapolation", max_extrapolation, 1, 100)
    problem = LatentProblem(X, rank, mask, dtype, init, random_state)
    W, H = problem.W, problem.H
    run = problem.run(max_iter=max_iter, tol=tol, time_limit=time_limit, callback=callback)
    alpha, increment, accepted_H = 1.0, 0.25, H
    product = W @ H
    Z = problem.closest(product)
    lowest = np.linalg.norm(Z - product)
    while run.goes_on(W, H):
        W, H = least_squares_step(product + alpha * (Z - product), accepted_H)
        new_product = W @ H
        new_Z = problem.closest(new_product)
        error = np.linalg.norm(new_Z - new_product)
        if error >= lowest:
            alpha = 1.0
            continue
        if error > GOOD_RATIO * lowest:
            increment = max(increment, 0.25 * (alpha - 1))
            alpha = min(alpha + increment, max_extrapolation)
        accepted_H, product, Z, lowest = H, new_product, new_Z, error
    return run.result(method="ebcd", init=init, random_state=random_state,
                      max_extrapolation=max_extrapolation)  # fmt: skip
