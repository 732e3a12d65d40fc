"""RTRMC: matrix completion by Riemannian trust regions on the Grassmann manifold."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nmd_lab._runtime.checks import check_number, check_rank
from nmd_lab._runtime.machine import one_thread
from nmd_lab._runtime.progress import StopReason
from nmd_lab.baselines import first_factors
from nmd_lab.data.inputs import observe
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.problem.columns import with_bounds
from nmd_lab.result.decomposition import Decomposition

from ._iterations import BaselineRun
from ._observed_matrices import ObservedMatrices, normal_matrices, solve_each

Doubles = NDArray[np.float64]


@one_thread()
def rtrmc(
    X: Any,
    rank: int,
    *,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    nonlinearity: str | Nonlinearity = "identity",
    init: Any = "svd",
    max_iter: int = 100,
    tol: float = 1e-9,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
    regularization: float = 1e-4,
    max_inner: int = 50,
) -> Decomposition:
    """Complete X by a matrix WH of fixed rank with a second-order method on subspaces.

    The factor of the shorter side spans a subspace, and the other factor follows from it by least
    squares. So the subspace is the only unknown. The trust-region method of Pymanopt minimises the
    error, with gradient and Hessian in closed form. An iteration is one accepted step.

    Parameters
    ----------
    X, observed, dtype
        As for `nmd_lab.complete`. The computations are in double precision.
    rank : int
        Number of components, from 1 to min(m, n).
    nonlinearity : str or Nonlinearity, default "identity"
        Nonlinearity f of the predictions, for example ``nmd.MinMax(0, 1)`` to clip them. The steps
        fit WH without f. The history is that of f(WH).
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors, or how to make them. Only the factor of the shorter side is used. "svd"
        is the truncated singular value decomposition of X with missing entries replaced by the
        mean.
    max_iter : int, default 100
        Largest number of accepted steps.
    tol : float, default 1e-9
        Largest relative change of the objective at which the run stops. 0 switches this rule off.
    time_limit : float, optional
        Largest time of the iterations, in seconds. Default: no limit.
    callback : callable, optional
        Function called with the `State` of each iteration. A true return value stops the run.
    random_state : int, Generator or None
        Seed of a random start.
    regularization : float, default 1e-4
        Parameter λ, from 1e-8 to 0.1. Missing entries are fitted to 0 with the weight λ².
    max_inner : int, default 50
        Largest number of conjugate gradient steps in one iteration.

    Returns
    -------
    Decomposition
        The fit. The columns of W are orthonormal if m <= n, and else the rows of H.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.
    ImportError
        If Pymanopt is missing.

    Notes
    -----
    N. Boumal and P.-A. Absil, "RTRMC: a Riemannian trust-region method for low-rank matrix
    completion", 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.methods import rtrmc
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[0, 2] = np.nan
    >>> rtrmc(X, 1).predict(0, 2).round(3)
    array([4.])
    """
    regularization = check_number("regularization", regularization, 1e-8)
    max_inner = int(check_number("max_inner", max_inner, 1))
    observations = observe(X, observed=observed, dtype=dtype)
    f = with_bounds(nonlinearity, observations)
    rank = check_rank(rank, observations.shape)
    run = BaselineRun(
        observations,
        f,
        Frobenius(),
        max_iter=max_iter,
        tol=tol,
        time_limit=time_limit,
        callback=callback,
    )
    W, H = first_factors(observations, rank, init, random_state)
    tall = observations.shape[0] > observations.shape[1]
    entries = ObservedMatrices.of(observations, np.float64)
    problem = SubspaceProblem(entries if tall else entries.T, regularization)

    def record(U: Doubles) -> bool:
        V = problem.at(U).V
        return run.record(*((V, U.T) if tall else (U, V.T)))

    start, _ = np.linalg.qr((H.T if tall else W).astype(np.float64))
    problem.minimise(start, record, max_inner, max_iter)
    if run.best is None:  # no step was accepted, so the start is the result
        record(start)
    stationary = StopReason("converged", "converged: the gradient is zero to rounding")
    return run.result(method="rtrmc", stop_reason=run.stop_reason or stationary,
                      regularization=regularization, init=init, random_state=random_state,
                      max_inner=max_inner)  # fmt: skip


class SubspaceProblem:
    """The least-squares error of completion as a function of a subspace.

    The subspace of the shorter side is spanned by the orthonormal columns of U. The other factor V
    is the solution of one least-squares problem for each row of X, with the normal matrix
    (1 - λ²) Σ u_j u_jᵀ + λ² I. Error, gradient and Hessian are divided by ‖X‖².
    """

    def __init__(self, entries: ObservedMatrices, regularization: float) -> None:
        self.entries = entries
        self.missing_weight = regularization**2
        self.scale = 1 / max(float(np.sum(np.square(entries.values.data))), 1e-300)
        self.U: Doubles | None = None

    def at(self, U: Doubles) -> SubspaceProblem:
        """Solve for V, unless it belongs to this U already, and return self."""
        if U is not self.U:
            entries, weight = self.entries, self.missing_weight
            self.U, self.matrices = U, (1 - weight) * normal_matrices(entries.weights, U)
            self.matrices[:, range(U.shape[1]), range(U.shape[1])] += weight
            self.V = solve_each(self.matrices, entries.values @ U)
            model = entries.model(self.V, U.T).data
            self.model, self.error = model, model - entries.values.data
            self.residual = entries.matrix(self.error - weight * model)
        return self

    def cost(self, U: Doubles) -> float:
        """Return the relative squared error, with the penalty on missing entries."""
        self.at(U)
        missing_squares = float(np.sum(np.square(self.V)) - np.sum(np.square(self.model)))
        squares = float(np.sum(np.square(self.error)))
        return 0.5 * self.scale * (squares + self.missing_weight * missing_squares)

    def gradient(self, U: Doubles) -> Doubles:
        """Return the Riemannian gradient."""
        self.at(U)
        gradient = self.residual.T @ self.V + self.missing_weight * U @ (self.V.T @ self.V)
        return self.scale * self._tangential(gradient)

    def hessian(self, U: Doubles, direction: Doubles) -> Doubles:
        """Return the Riemannian Hessian applied to a tangent direction."""
        self.at(U)
        entries, observed_weight = self.entries, 1 - self.missing_weight
        # derivatives of model, V and residual along the direction
        d_model = entries.model(self.V, direction.T)
        d_V = -solve_each(
            self.matrices, self.residual @ direction + observed_weight * (d_model @ U)
        )
        d_model_and_V = d_model.data + entries.model(d_V, U.T).data
        d_residual = entries.matrix(observed_weight * d_model_and_V)
        change = self._tangential(d_residual.T @ self.V + self.residual.T @ d_V)
        return self.scale * (change + self.missing_weight * direction @ (self.V.T @ self.V))

    def _tangential(self, change: Doubles) -> Doubles:
        """Return the component of a change of U that is orthogonal to the subspace."""
        U = self.U
        assert U is not None
        return change - U @ (U.T @ change)

    def minimise(
        self,
        start: Doubles,
        record: Callable[[Doubles], bool],
        max_inner: int,
        max_iter: int,
        *,
        gradient_norm: float = 1e-13,
    ) -> None:
        """BaselineRun the trust-region method of Pymanopt until a stopping rule holds.

        Pymanopt has no callback. But it computes the gradient exactly once at each accepted point.
        """
        try:
            import pymanopt
        except ImportError as error:
            raise ImportError("rtrmc needs Pymanopt: pip install pymanopt") from error

        manifold = pymanopt.manifolds.Grassmann(*start.shape)
        numpy = pymanopt.function.numpy(manifold)

        def gradient(U: Doubles) -> Doubles:
            slope = self.gradient(U)
            if not record(U) or np.linalg.norm(slope) <= gradient_norm:
                raise _StopOptimizer
            return slope

        problem = pymanopt.Problem(
            manifold,
            numpy(self.cost),
            riemannian_gradient=numpy(gradient),
            riemannian_hessian=numpy(self.hessian),
        )
        optimizer = pymanopt.optimizers.TrustRegions(
            min_gradient_norm=0,
            max_iterations=10 * max_iter,  # rejected steps count here too
            max_time=np.inf,
            verbosity=0,
        )
        with suppress(_StopOptimizer):
            optimizer.run(problem, initial_point=start, maxinner=max_inner)


class _StopOptimizer(Exception):
    """Raised inside the gradient to leave Pymanopt."""
