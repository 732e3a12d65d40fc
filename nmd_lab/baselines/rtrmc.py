"""RTRMC: matrix completion by Riemannian trust regions on the Grassmann manifold."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nmd_lab._checks import check_number, check_rank
from nmd_lab._threads import one_thread
from nmd_lab.data.observations import observe
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Nonlinearity, as_nonlinearity
from nmd_lab.result.decomposition import Decomposition

from ._residuals import Entries, grams, solve_each
from ._run import Run
from ._start import first_factors

Doubles = NDArray[np.float64]

STATIONARY = 1e-13
"""Norm of the gradient of the relative squared error below which there is nothing left to do."""


@one_thread()
def rtrmc(
    X: Any,
    rank: int,
    *,
    mask: ArrayLike | None = None,
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
    """Complete X by WH of a fixed rank, by a second-order search among subspaces.

    The best fit within a subspace of the shorter side follows from least squares, so that the
    subspace is the only unknown.  Pymanopt's trust-region method moves it, with the gradient and
    the Hessian written out here; an iteration is one step that it accepts.

    Parameters
    ----------
    X, mask, dtype
        As for `complete`; the work is done in double precision.
    rank : int
        Number of components, from 1 to min(m, n).
    nonlinearity : str or Nonlinearity, default "identity"
        Applied to the predictions of the linear fit, whose steps do not see it; for example
        ``nmd.MinMax(0, 1)`` clips.  The history is that of f(WH).
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors, of which that of the shorter side counts; "svd" are those of X with its
        holes filled by the mean.
    max_iter : int, default 100
        Most accepted steps.
    tol : float, default 1e-9
        Ends the run when an iteration changes the objective by at most this share; 0 never does.
    time_limit : float, optional
        Seconds of iterating.
    callback : callable, optional
        Called with each `Iterate`; a true value ends the run.
    random_state : int, Generator or None
        Seed of a random start.
    regularization : float, default 1e-4
        λ, from 1e-8 to 0.1: missing entries are drawn to 0 with the weight λ².
    max_inner : int, default 50
        Most steps of conjugate gradients in an iteration.

    Returns
    -------
    Decomposition
        With orthonormal columns in W (m <= n) or orthonormal rows in H.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense.
    ImportError
        If Pymanopt is missing.

    Notes
    -----
    N. Boumal and P.-A. Absil, "RTRMC: a Riemannian trust-region method for low-rank matrix
    completion", 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.baselines import rtrmc
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[0, 2] = np.nan
    >>> rtrmc(X, 1).predict(0, 2).round(3)
    array([4.])
    """
    f = as_nonlinearity(nonlinearity)
    regularization = check_number("regularization", regularization, 1e-8, 0.1)
    max_inner = int(check_number("max_inner", max_inner, 1))
    observations = observe(X, mask=mask, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    run = Run(observations, f, Frobenius(), max_iter=max_iter, tol=tol, time_limit=time_limit,
              callback=callback)  # fmt: skip
    W, H = first_factors(observations, rank, init, random_state)
    tall = observations.shape[0] > observations.shape[1]
    entries = Entries.of(observations, np.float64)
    search = Subspaces(entries if tall else entries.T, regularization)

    def goes_on(U: Doubles) -> bool:
        V = search.at(U).V
        return run.goes_on(*((V, U.T) if tall else (U, V.T)))

    start, _ = np.linalg.qr((H.T if tall else W).astype(np.float64))
    search.minimise(start, goes_on, max_inner, max_iter)
    if run.best is None:  # no step was accepted: the start is as good as it gets
        goes_on(start)
    stop_reason = run.stop_reason or "converged: the gradient is zero to rounding"
    remembered = {"init": init, "random_state": random_state, "max_inner": max_inner}
    return run.result(
        method="rtrmc", stop_reason=stop_reason, regularization=regularization, **remembered
    )


class Subspaces:
    """The least-squares error of the best fit within a subspace, as a function of the subspace.

    The subspace is spanned by the orthonormal columns of U (short side, rank); the other factor
    V (long side, rank) solves, for each row of X, a problem with the matrix
    (1 - λ²) Σ u uᵀ + λ² I.  Everything is relative to ‖X‖², as are gradient and Hessian.

    Parameters
    ----------
    entries : Entries
        X with the long side as its rows, in double precision.
    regularization : float
        λ.
    """

    def __init__(self, entries: Entries, regularization: float) -> None:
        self.entries = entries
        self.missing = regularization**2
        self.scale = 1 / max(float(np.sum(np.square(entries.values.data))), 1e-300)
        self.U: Doubles | None = None

    def at(self, U: Doubles) -> Subspaces:
        """Solve for V, unless it is known, and return self."""
        if U is not self.U:
            entries, missing = self.entries, self.missing
            self.U, self.matrices = U, (1 - missing) * grams(entries.weights, U)
            self.matrices[:, range(U.shape[1]), range(U.shape[1])] += missing
            self.V = solve_each(self.matrices, entries.values @ U)
            model = entries.model(self.V, U.T).data
            self.fit, self.error = model, model - entries.values.data
            self.R = entries.matrix(self.error - missing * model)
        return self

    def cost(self, U: Doubles) -> float:
        """Return the error."""
        self.at(U)
        elsewhere = float(np.sum(np.square(self.V)) - np.sum(np.square(self.fit)))
        squares = float(np.sum(np.square(self.error)))
        return 0.5 * self.scale * (squares + self.missing * elsewhere)

    def gradient(self, U: Doubles) -> Doubles:
        """Return the Riemannian gradient."""
        self.at(U)
        gradient = self.R.T @ self.V + self.missing * U @ (self.V.T @ self.V)
        return self.scale * self._across(gradient)

    def hessian(self, U: Doubles, direction: Doubles) -> Doubles:
        """Return how the gradient changes along a tangent direction."""
        self.at(U)
        entries, share = self.entries, 1 - self.missing
        moved = entries.model(self.V, direction.T)
        V_moved = -solve_each(self.matrices, self.R @ direction + share * (moved @ U))
        R_moved = entries.matrix(share * (moved.data + entries.model(V_moved, U.T).data))
        change = self._across(R_moved.T @ self.V + self.R.T @ V_moved)
        return self.scale * (change + self.missing * direction @ (self.V.T @ self.V))

    def _across(self, change: Doubles) -> Doubles:
        """Return the part of a change of U that leaves the subspace."""
        U = self.U
        assert U is not None
        return change - U @ (U.T @ change)

    def minimise(
        self, start: Doubles, goes_on: Callable[[Doubles], bool], max_inner: int, max_iter: int
    ) -> None:
        """Run Pymanopt's trust regions until `goes_on` says no, or nothing is left to gain.

        Pymanopt has no callback, but asks for the gradient once at every point that it accepts.
        """
        try:
            import pymanopt
        except ImportError as error:
            raise ImportError('rtrmc needs Pymanopt: pip install "nmd-lab[baselines]"') from error

        manifold = pymanopt.manifolds.Grassmann(*start.shape)
        numpy = pymanopt.function.numpy(manifold)

        def gradient(U: Doubles) -> Doubles:
            slope = self.gradient(U)
            if not goes_on(U) or np.linalg.norm(slope) <= STATIONARY:
                raise _Ended
            return slope

        problem = pymanopt.Problem(
            manifold,
            numpy(self.cost),
            riemannian_gradient=numpy(gradient),
            riemannian_hessian=numpy(self.hessian),
        )
        optimizer = pymanopt.optimizers.TrustRegions(
            min_gradient_norm=0,
            max_iterations=10 * max_iter,  # rejected steps count there
            max_time=np.inf,
            verbosity=0,
        )
        with suppress(_Ended):
            optimizer.run(problem, initial_point=start, maxinner=max_inner)


class _Ended(Exception):
    """The run is over."""
