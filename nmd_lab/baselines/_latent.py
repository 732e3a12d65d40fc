"""What the latent-variable solvers of ReLU-NMD share: a Z behind the zeros of X.

They minimise ‖Z - WH‖² over W, H and a Z with max(0, Z) = X: where X > 0 is observed, Z = X; where
X = 0 is, Z is whatever WH says, but not above 0; and where nothing is, Z = WH.  That is not the
problem min ‖X - max(0, WH)‖², although both have the same exact solutions: where X > 0 is only
noise on a zero, WH is punished for being far below it.  Introduced in L. K. Saul, "A nonlinear
matrix decomposition for mining the zeros of sparse data" (2022).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.linalg import eigh

from nmd_lab._checks import check_rank
from nmd_lab.data.base import FloatArray
from nmd_lab.data.dense import observe_dense
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import ReLU

from ._run import Run
from ._start import first_factors


class LatentProblem:
    """Data that a latent Z explains, and where the search for W and H begins.

    Parameters
    ----------
    X, rank, mask, dtype, init, random_state
        As for `anmd`.

    Attributes
    ----------
    observations : Observations
        The data.
    positive : ndarray of bool (m, n)
        Where Z is X.
    ceiling : ndarray (m, n)
        What Z may not exceed elsewhere: 0 where X is 0, infinity where X is not observed.
    W, H : ndarray (m, rank), (rank, n)
        Starting factors.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense, for example if X has a negative entry.
    """

    def __init__(
        self,
        X: Any,
        rank: int,
        mask: ArrayLike | None,
        dtype: DTypeLike | None,
        init: Any,
        random_state: Any,
    ) -> None:
        self.observations = observe_dense(X, mask=mask, dtype=dtype)
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
    ) -> Run:
        """Return the recorder, which judges max(0, WH)."""
        return Run(self.observations, ReLU(), Frobenius(), max_iter=max_iter, tol=tol,
                   time_limit=time_limit, callback=callback)  # fmt: skip

    def closest(self, theta: FloatArray) -> FloatArray:
        """Return the Z nearest to Θ that has max(0, Z) = X."""
        Z: FloatArray = np.minimum(theta, self.ceiling)
        np.copyto(Z, self.observations.values, where=self.positive)
        return Z


def truncated(Z: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """Return W and H whose product is the matrix of that rank that is closest to Z.

    One of them holds the leading singular vectors of Z's smaller side, from its Gram matrix in
    double precision, which is much cheaper than an SVD of Z.
    """
    m, n = Z.shape
    exact = Z.astype(np.float64, copy=False)
    gram = exact @ exact.T if m <= n else exact.T @ exact
    _, vectors = eigh(gram, subset_by_index=[len(gram) - rank, len(gram) - 1])
    basis = vectors.astype(Z.dtype, copy=False)
    return (basis, basis.T @ Z) if m <= n else (Z @ basis, np.ascontiguousarray(basis.T))


def least_squares_step(Z: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the W, H that follow if ‖Z - WH‖ is minimised over W and then over H.

    WH is all that matters, so W is an orthonormal basis of the range that the first step gives,
    and the second step needs no equation to be solved.
    """
    W, _ = np.linalg.qr(Z @ H.T)
    return W, W.T @ Z
