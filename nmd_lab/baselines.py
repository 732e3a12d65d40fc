"""Other methods to compare a fit with: the mean, the SVD, NMF and soft-impute.

Each is called like `complete`, as ``method(X, rank, observed=None, ...)``, and returns a
`Decomposition`. So everything that works on a fit (scores, plots, files) works on a baseline too.

>>> import numpy as np
>>> from nmd_lab import baselines
>>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
>>> baselines.mean_fill(X).reconstruct().values
array([[2., 2.],
       [2., 2.]])
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.linalg import pinvh, svd
from sklearn.utils.extmath import svd_flip

from nmd_lab._runtime.checks import (
    as_generator,
    check_number,
    check_rank,
    check_size,
    check_word,
    many,
)
from nmd_lab._runtime.machine import one_thread
from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import observe, observe_dense
from nmd_lab.data.observations import Observations
from nmd_lab.fit.loop import Stopping
from nmd_lab.kernels.products import CsrStorage, products_of_blocks, singular_factors, storage_of
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.model.losses import Frobenius, Loss, as_loss
from nmd_lab.model.model import Model, make_model
from nmd_lab.model.nonlinearities import Identity, Nonlinearity
from nmd_lab.problem.columns import with_bounds
from nmd_lab.problem.initialization import Start, given_start, random_start, svd_start
from nmd_lab.problem.state import State
from nmd_lab.request.options import Options
from nmd_lab.result.decomposition import Decomposition

__all__ = ["mean_fill", "nmf", "soft_impute", "truncated_svd"]


def recorded(state: State) -> dict[str, float]:
    """Return the numbers of an iteration for the history."""
    return {name: getattr(state, name) for name in ("objective", "relative_error", "seconds")}


@dataclass(frozen=True)
class Objective:
    """The weighted loss of f(WH) on the observed entries, plus a ridge on the factors."""

    observations: Observations
    nonlinearity: Nonlinearity
    loss: Loss
    alpha: float = 0.0

    def __post_init__(self) -> None:
        """Refuse data that the loss does not allow, or whose errors overflow or vanish."""
        smallest, largest = self.observations.range()
        self.loss.check_data(smallest, largest)
        check_size("X", max(-smallest, largest), np.float64)

    @cached_property
    def reference(self) -> float:
        """The data term that stands for a relative error of one."""
        return self.loss.reference(*self.observations.observed())

    def evaluate(
        self, W: FloatArray, H: FloatArray, *, iteration: int = 1, seconds: float
    ) -> State:
        """Return the state with copies of the factors, in the precision of the data.

        Its seconds are those of the iterations, without the time of this evaluation.
        """
        dtype = self.observations.dtype
        W, H = (np.array(factor, dtype=dtype, order="C") for factor in (W, H))
        data_term = self._data_term(W, H)
        norms = np.sum(np.square(W), dtype=float) + np.sum(np.square(H), dtype=float)
        objective = data_term + 0.5 * self.alpha * float(norms)
        error = self.loss.relative_error(data_term, self.reference)
        numbers: dict[str, Any] = {"iteration": iteration, "seconds": seconds}
        numbers |= {"model": self.model, "offsets": NO_OFFSETS}
        return State(W, H, objective, error, W=W, H=H, **numbers)

    def _data_term(self, W: FloatArray, H: FloatArray) -> float:
        """Return the weighted loss of f(WH), summed block by block."""
        observations = self.observations
        storage, values = storage_of(observations), observations.values.ravel()
        weights = None if observations.weights is None else observations.weights.ravel()
        total = 0.0
        for block, model in products_of_blocks(storage, W, storage.pack(H)):
            losses = self.loss(values[block.entries], self.nonlinearity(model))
            total += float(np.sum(losses if weights is None else losses * weights[block.entries]))
        return total

    @property
    def model(self) -> Model:
        """Nonlinearity and loss of all entries."""
        return make_model(self.nonlinearity, self.loss)

    def direct(
        self, W: FloatArray, H: FloatArray, began: float, text: str, method: str
    ) -> Decomposition:
        """Return factors as the result of a method that does not iterate."""
        iterate = self.evaluate(W, H, seconds=time.perf_counter() - began)
        return self.result(iterate, StopReason("direct", f"direct: {text}"), method)

    def result(
        self,
        iterate: State,
        stop_reason: StopReason,
        method: str,
        history: Sequence[Mapping[str, float]] = (),
        **parameters: Any,
    ) -> Decomposition:
        """Return an iterate as the result of a method, with the labels of X."""
        records = history or [recorded(iterate)]
        parameters = {name: storable(value) for name, value in parameters.items()}
        return Decomposition._from_matrices(
            self.observations.labels,
            iterate.W,
            iterate.H,
            {name: [record[name] for record in records] for name in records[0]},
            _model=self.model,
            stop_reason=stop_reason,
            parameters={
                "rank": iterate.W.shape[1],
                "n_observed": self.observations.n_observed,
                "method": method,
                "iteration": iterate.iteration,
                **parameters,
            },
        )


def storable(value: Any) -> Any:
    """Return a number, text or None for a file; of any other object only its type is kept."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | float | int | None) else f"given {type(value).__name__}"


START_FUNCTIONS: dict[str, Callable[..., Start]] = {"svd": svd_start, "random": random_start}
"""Functions that make starting factors, by the value of `init`."""


def first_factors(
    observations: Observations,
    rank: int,
    init: Any,
    random_state: Any,
    nonlinearity: Nonlinearity | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return new arrays W (m, rank) and H (rank, n) to start from."""
    f, rng = nonlinearity or Identity(), as_generator(random_state)
    if not isinstance(init, str):
        start = given_start(observations, rank, init, NO_OFFSETS)
    else:
        check_word("init", init, START_FUNCTIONS, ", a pair (W, H) or a fit")
        model = make_model(f, "frobenius")
        start = START_FUNCTIONS[init](observations, model, rank, NO_OFFSETS, rng)
    return start.W, start.H


BETA_LOSSES = {"frobenius": "frobenius", "kl": "kullback-leibler"}
"""Names of the losses here, and in scikit-learn's NMF."""


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
    >>> import nmd_lab as nmd
    >>> fit = nmd.baselines.mean_fill(nmd.datasets.digits())  # pixels from 0 to 1
    >>> fit.predict(0, 0).round(3)
    array([0.305])
    """
    began = time.perf_counter()
    observations = observe_dense(X, observed=observed, weights=weights, dtype=dtype)
    m, n = observations.shape
    check_rank(rank, (m, n))
    values, counts = observations.observed()
    factors = np.ones((m, 1)), np.full((1, n), np.average(values, weights=counts))
    objective = Objective(observations, Identity(), Frobenius())
    return objective.direct(*factors, began, "the mean of the observed entries", "mean_fill")


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
    >>> import nmd_lab as nmd
    >>> fit = nmd.baselines.truncated_svd(nmd.datasets.digits(), 16)
    >>> round(float(fit.relative_error), 3)
    0.218
    """
    began = time.perf_counter()
    observations = observe_dense(X, observed=observed, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    objective = Objective(observations, Identity(), Frobenius())
    matrix = observations.to_array()
    filled = np.nan_to_num(matrix, nan=float(np.nanmean(matrix, dtype=np.float64)))
    U, singular, Vt = svd(filled, full_matrices=False)
    # The sign of a pair of singular vectors is arbitrary, and LAPACK's differs by machine.
    U, Vt = svd_flip(U[:, :rank], Vt[:rank], u_based_decision=False)
    root = np.sqrt(singular[:rank])
    factors = U * root, root[:, None] * Vt
    return objective.direct(*factors, began, "singular value decomposition", "truncated_svd")


def nmf(
    X: Any,
    rank: int,
    loss: str | Loss = "frobenius",
    *,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    max_iter: int = 500,
    tol: float = 1e-4,
    random_state: Any = None,
) -> Decomposition:
    """Factorise X ≈ WH with W, H >= 0.

    Parameters
    ----------
    X, observed, dtype
        As for `nmd_lab.decompose`. All entries must be observed and >= 0.
    rank : int
        Number of components, from 1 to min(m, n).
    loss : {"frobenius", "kl"} or Loss, default "frobenius"
        Loss d. The solver is coordinate descent for "frobenius", and multiplicative updates for
        "kl".
    max_iter : int, default 500
        Largest number of iterations.
    tol : float, default 1e-4
        Tolerance of the stopping rule of `sklearn.decomposition.NMF`.
    random_state : int, RandomState or None
        Seed of the starting factors.

    Returns
    -------
    Decomposition
        A fit with nonnegative W and H.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, X has missing or negative entries, or NMF lacks the loss.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If `max_iter` was too small for `tol`.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> fit = nmd.baselines.nmf(nmd.datasets.digits(100), 8, random_state=0)
    >>> fit.relative_error < 0.4, bool((fit.H >= 0).all())
    (True, True)
    """
    from sklearn.decomposition import NMF  # takes a second to import

    began = time.perf_counter()
    d = as_loss(loss)
    check_word("loss", d.name, BETA_LOSSES)
    observations = observe_dense(X, observed=observed, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    n_missing = observations.values.size - observations.n_observed
    if n_missing:
        raise ValueError(
            f"X has {n_missing} missing entries, which NMF cannot leave out: use nmd.complete, or "
            "fill them first."
        )
    if observations.values.min() < 0:
        raise ValueError(
            f"X holds the negative value {observations.values.min():g}, which NMF cannot reach: "
            "shift or clip X, or use truncated_svd."
        )
    objective = Objective(observations, Identity(), d)
    model = NMF(
        rank,
        init="nndsvda",
        solver="cd" if d.name == "frobenius" else "mu",
        beta_loss=BETA_LOSSES[d.name],
        max_iter=max_iter,
        tol=tol,
        random_state=random_state,
    )
    W = model.fit_transform(observations.values)
    seconds = time.perf_counter() - began
    iterate = objective.evaluate(W, model.components_, seconds=seconds)
    stop_reason = StopReason(
        "converged" if model.n_iter_ < max_iter else "max_iter",
        f"scikit-learn's NMF: {many(model.n_iter_, 'iteration')} done",
    )
    return objective.result(iterate, stop_reason, "nmf", max_iter=max_iter, tol=tol)


@one_thread()
def soft_impute(
    X: Any,
    rank: int,
    *,
    shrinkage: float = 1.0,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    nonlinearity: str | Nonlinearity = "identity",
    init: Any = "svd",
    max_iter: int = 500,
    tol: float = 1e-9,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
) -> Decomposition:
    """Complete X by a low-rank matrix with a penalty on its nuclear norm.

    The objective is Σ (X - WH)² / 2 over the observed entries plus λ times the nuclear norm of WH.
    This norm is the minimum of (‖W‖² + ‖H‖²) / 2 over all factors of WH. An iteration fills the
    missing entries with WH and takes a ridge regression for W, and then the same for H. The filled
    matrix is stored as WH plus a sparse residual, so sparse data stay sparse.

    If the solution has a smaller rank than `rank`, it solves the convex problem without a bound on
    the rank.

    Parameters
    ----------
    X, observed, dtype
        As for `nmd_lab.complete`.
    rank : int
        Largest rank of the model, from 1 to min(m, n).
    shrinkage : float, default 1
        Penalty λ, in the units of the singular values of X, which shrink by about λ.
    nonlinearity : str or Nonlinearity, default "identity"
        Nonlinearity f of the predictions, for example ``nmd.MinMax(0, 1)`` to clip them. The steps
        fit WH without f. The history is that of f(WH), and
        its objective includes the penalty.
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors, or how to make them. "svd" is the truncated singular value decomposition
        of X with missing entries replaced by the mean.
    max_iter : int, default 500
        Largest number of iterations.
    tol : float, default 1e-9
        Largest relative change of the objective at which the run stops. 0 switches this rule off.
    time_limit : float, optional
        Largest time of the iterations, in seconds. Default: no limit.
    callback : callable, optional
        Function called with the `State` of each iteration. A true return value stops the run.
    random_state : int, Generator or None
        Seed of a random start.

    Returns
    -------
    Decomposition
        The fit with W = U √D and H = √D Vᵀ, in decreasing order of the singular values D of WH.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.

    Notes
    -----
    T. Hastie, R. Mazumder, J. D. Lee and R. Zadeh, "Matrix completion and low-rank SVD via fast
    alternating least squares", 2015 (softImpute-ALS).

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(300)
    >>> train, test = nmd.split_observed(digits, 0.3, random_state=0)
    >>> fit = nmd.baselines.soft_impute(train, 16, shrinkage=2.0)
    >>> bool(nmd.metrics.rmse(test.values, fit.predict(test).values) < 0.2)
    True
    """
    observations = observe(X, observed=observed, dtype=dtype)
    f = with_bounds(nonlinearity, observations)
    rank = check_rank(rank, observations.shape)
    shrinkage = check_number("shrinkage", shrinkage, 0)
    rules: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "time_limit": time_limit}
    Options(callback=callback, **rules)  # which checks them
    objective = Objective(observations, f, Frobenius(), shrinkage)
    stored = observations.as_sparse()
    storage = CsrStorage(stored.shape, stored.indptr, stored.indices)

    def residual(W: FloatArray, H: FloatArray) -> Any:
        model = storage.all_products(np.ascontiguousarray(W), H)
        return stored.to_csr(stored.values - model)

    W, H, _ = singular_factors(*first_factors(observations, rank, init, random_state))
    stopping, seconds = Stopping(max_iter, time_limit, callback), 0.0
    history: list[dict[str, float]] = []
    best: State | None = None
    reason: StopReason | None = None
    while reason is None:
        began = time.perf_counter()
        W = _ridge(W @ (H @ H.T) + residual(W, H) @ H.T, H, shrinkage)
        S = residual(W, H)
        H = _ridge(H.T @ (W.T @ W) + S.T @ W, W.T, shrinkage).T
        W, H, _ = singular_factors(W, H)
        seconds += time.perf_counter() - began
        number = len(history) + 1
        with np.errstate(all="ignore"):  # an overflow is a stop reason
            iterate = objective.evaluate(W, H, iteration=number, seconds=seconds)
        if not np.isfinite(iterate.objective):
            reason = StopReason("not finite", f"not finite: iteration {number} overflowed")
            if best is None:
                raise FloatingPointError(f"{reason}: scale X down, or change the start or f.")
            break
        history.append(recorded(iterate))
        if best is None or iterate.objective < best.objective:
            best = iterate
        reason = stopping.reason(iterate, number)
        last = [record["objective"] for record in history[-2:]]
        if tol > 0 and len(last) == 2 and abs(last[0] - last[1]) <= tol * last[0]:
            text = f"converged: the objective changed by no more than tol={tol:g} of itself"
            reason = StopReason("converged", text)
    assert best is not None
    W, H = observations.zero_unobserved(best.W, best.H)
    rules |= {"init": init, "random_state": random_state, "shrinkage": shrinkage}
    return objective.result(replace(best, W=W, H=H), reason, "soft_impute", history, **rules)


def _ridge(products: FloatArray, factor: FloatArray, shrinkage: float) -> FloatArray:
    """Return the solutions of ridge regressions on a factor (rank, n), one for each row."""
    gram = factor @ factor.T + shrinkage * np.eye(len(factor), dtype=factor.dtype)
    return np.asarray(products @ pinvh(gram))
