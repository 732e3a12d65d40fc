"""The latent-variable problem of ReLU-NMD, shared by four methods.

They minimise ‖Z - WH‖² over W, H and a latent matrix Z with max(0, Z) = X at the observed entries.
So Z = X where X > 0, and Z <= 0 where X = 0. For given factors the best Z is min(0, WH) where X is
0, and WH where X is not observed.

This is not the problem min ‖X - max(0, WH)‖², although both have the same exact solutions. If a
zero of X is hidden by positive noise, the latent problem penalises a WH far below zero there.

The problem was introduced in L. K. Saul, "A nonlinear matrix decomposition for mining the zeros of
sparse data" (2022).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.linalg import eigh

from nmd_lab._runtime.checks import check_rank
from nmd_lab.baselines import first_factors
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import observe_dense
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import ReLU

from ._iterations import BaselineRun


class LatentProblem:
    """Data and starting factors of a latent-variable method.

    Attributes
    ----------
    observations : Observations
        The data.
    positive : ndarray of bool (m, n)
        True where X > 0, so that Z = X.
    ceiling : ndarray (m, n)
        Upper bound of Z where X is not positive: 0 where X = 0, infinity where X is not
        observed.
    W, H : ndarray (m, rank), (rank, n)
        Starting factors.
    """

    def __init__(
        self,
        X: Any,
        rank: int,
        observed: ArrayLike | None,
        dtype: DTypeLike | None,
        init: Any,
        random_state: Any,
    ) -> None:
        self.observations = observe_dense(X, observed=observed, dtype=dtype)
        values, weights = self.observations.values, self.observations.weights
        if values.min() < 0:
            raise ValueError(
                f"X holds the negative value {values.min():g}, which no latent Z explains: "
                "clip X at 0, or use coordinate_descent."
            )
        self.positive = values > 0
        self.ceiling = np.zeros_like(values)
        if weights is not None:
            self.ceiling[weights == 0] = np.inf
        rank = check_rank(rank, self.observations.shape)
        self.W, self.H = first_factors(self.observations, rank, init, random_state)

    def run(
        self,
        *,
        max_iter: int,
        tol: float,
        time_limit: float | None,
        callback: Callable[..., Any] | None,
    ) -> BaselineRun:
        """Return a recorder that evaluates max(0, WH)."""
        return BaselineRun(self.observations, ReLU(), Frobenius(), max_iter=max_iter, tol=tol,
                   time_limit=time_limit, callback=callback)  # fmt: skip

    def closest(self, theta: FloatArray) -> FloatArray:
        """Return the nearest matrix Z to Θ with max(0, Z) = X."""
        Z: FloatArray = np.minimum(theta, self.ceiling)
        np.copyto(Z, self.observations.values, where=self.positive)
        return Z


def best_low_rank(Z: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """Return W and H whose product is the best approximation of Z of this rank.

    The singular vectors of the shorter side come from the Gram matrix in double precision, which
    is much cheaper than an SVD of Z.
    """
    m, n = Z.shape
    exact = Z.astype(np.float64, copy=False)
    gram = exact @ exact.T if m <= n else exact.T @ exact
    _, vectors = eigh(gram, subset_by_index=[len(gram) - rank, len(gram) - 1])
    basis = vectors.astype(Z.dtype, copy=False)
    return (basis, basis.T @ Z) if m <= n else (Z @ basis, np.ascontiguousarray(basis.T))


def least_squares_step(Z: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return W and H after minimising ‖Z - WH‖ over W and then over H.

    Only the product WH matters. So W is an orthonormal basis of the column space that the first
    step gives, and then H = WᵀZ.
    """
    W, _ = np.linalg.qr(Z @ H.T)
    return W, W.T @ Z
