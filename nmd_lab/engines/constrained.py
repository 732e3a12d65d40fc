"""Descents of factors under constraints, where the objective is simple enough to need no split.

A descent has feasible factors.  Each step lowers the objective, or the descent takes it back.

**Least squares:** alternating steps in W and H with extrapolation.  With Identity + Frobenius,
complete data and ρ = 1, Algorithm 1 has Z = T + U = X: it is alternating least squares, or, with
nonnegative factors, hierarchical alternating least squares (HALS).  Then T and U are not needed,
and an iteration costs two products with X.  Each factor is extrapolated along its last change; a
step that does not lower the objective is taken back (A. M. S. Ang and N. Gillis, "Accelerating
nonnegative matrix factorization algorithms using extrapolation", 2019).

**The Kullback-Leibler divergence with nonnegative factors:** descent number by number.  As a
function of one number z of W, the divergence of a row has the slope C - Σ x_j h_j / y_j(z), with y
= WH and C = Σ h_j.  The sum is a sum of poles.  Each step replaces it by one pole, S / (z + β),
with its value and its slope, and solves for z: a step longer than that of Newton's method where z
grows, and shorter where z shrinks.  It is exact if one entry of X depends on the number.  Only
positive x enter the sum, so zeros cost nothing.  Compare C.-J. Hsieh and I. S. Dhillon, "Fast
coordinate descent methods with variable selection for non-negative matrix factorization", 2011, who
take Newton steps.

**One descent after the other:** to the nearest minimum, and on to lower ones.  A matrix
factorisation under constraints has many local minima.  Once a descent has converged, some
components of the best factors are replaced by random ones or by rows of X, and the next descent
begins there; the second one begins at nonnegative parts of the SVD.  A descent ends when it has
converged, or when its pace would not bring it below the best.  After a descent that failed the best
factors descend further, for as many steps.  The iterates are the best factors so far, so the
objective never rises.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nmd_lab._runtime.compiler import cached_kernel
from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.kernels.products import CsrStorage
from nmd_lab.kernels.row_steps import ConstrainedColumns, penalty_of, proximal_move, solver_for
from nmd_lab.model.loss import POISSON
from nmd_lab.model.model import make_model
from nmd_lab.model.positive import KL_FLOOR
from nmd_lab.problem.initialization import Start, svd_start
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import Iterate
from nmd_lab.request.constraints import Simplex, is_nonnegative


def kind_of_descent(problem: Problem) -> str | None:
    """Return which descent goes with a problem: "squares", "divergence" or None.

    Both need data without limits.  Squares need complete data without weights, and constraints
    that hold row by row; the divergence needs nonnegative factors and no offsets.  A nonlinearity
    that is the identity for nonnegative WH counts as one.
    """
    model, constraints = problem.model, problem.constraints
    if model.is_mixed or problem.observations.limits is not None:
        return None
    f, loss = model.nonlinearity, model.loss
    both = is_nonnegative(constraints.W) and is_nonnegative(constraints.H)
    positive = both and problem.offset_columns.kind == "none"
    if not (f.form == "identity" or (positive and f.form in ("relu", "modulus"))):
        return None
    sides = problem.constrained_columns(1)
    if any(side is not None and side.couples_rows for side in sides):
        return None
    whole = not problem.sparse and problem.observations.weight_reader() is None
    if loss.squares and whole and not problem.observed_only:
        return "squares"
    entrywise = all(side is not None and side.entrywise is not None for side in sides)
    return "divergence" if loss.noise_model is POISSON and positive and entrywise else None


FIRST_FRACTION = 0.5  # first fraction of the last change that is added


@dataclass
class LeastSquaresState:
    """Factors, H extrapolated, and how far the next step goes ahead."""

    W: FloatArray
    H: FloatArray
    ahead_H: FloatArray
    best: Iterate | None = None
    share: float = 0.0
    limit: float = 1.0
    steps: int = 0
    last_good: float = FIRST_FRACTION


class LeastSquaresDescent:
    """Alternating constrained least squares for a complete matrix."""

    def __init__(self, problem: Problem, rank: int) -> None:
        observations, self.problem = problem.observations, problem
        self.envelope = problem.envelope()
        zeros = observations.absent_are_zeros
        self.X = observations.as_sparse().to_csr() if zeros else observations.values
        self.half_square = observations.sum_of(lambda x, weights: 0.5 * np.square(x))
        self.constrained, self.ridges = problem.constrained_columns(rank), problem.ridges(rank)
        self.solved = problem.offset_columns.solved(rank)
        eps = float(np.finfo(observations.dtype).eps)
        self.least_exact = 1e5 * eps  # of ‖X‖² / 2; below, residuals give the objective

    def begin(self, W_aug: FloatArray, H_aug: FloatArray) -> LeastSquaresState:
        """Return the state of a descent that begins at feasible factors."""
        return LeastSquaresState(W_aug, H_aug, H_aug)

    def step(self, state: LeastSquaresState) -> Iterate:
        """Do one step in W and in H, and return the factors of lowest objective."""
        state.steps += 1
        if state.steps == 3:  # the first ones find the scale of a random start
            state.share = FIRST_FRACTION
        XHt = np.asarray(self.X @ np.ascontiguousarray(state.ahead_H[self.solved[0]].T))
        W = self._next(0, state.W, state.ahead_H.T, XHt)
        W = self._ahead(0, state.W, W, state.share)
        XtW = self.X.T @ W
        Ht = self._next(1, state.ahead_H.T, W, XtW[:, self.solved[1]])
        H = np.ascontiguousarray(Ht.T)
        reached = self._descended(W, H, XtW)
        if state.best is not None and reached.objective > state.best.objective:
            state.limit, state.share = state.last_good, state.share / 1.5
            state.ahead_H = state.H
            return state.best
        state.ahead_H = np.ascontiguousarray(self._ahead(1, state.H.T, Ht, state.share).T)
        state.W, state.H = W, H
        if state.share:
            state.last_good = state.share
            state.share = min(state.limit, 1.05 * state.share)
            state.limit = min(1.0, 1.01 * state.limit)
        state.best = reached
        return reached

    def _next(
        self, side: int, rows: FloatArray, others: FloatArray, products: FloatArray
    ) -> FloatArray:
        """Return W (side 0) or Hᵀ after a step, given the other one and X times that."""
        solved, following = self.solved[side], np.array(rows, order="C")
        partners = others[:, solved]
        gram, ridge = others.T @ partners, self.ridges[side](partners, 1.0)
        improve = solver_for(self.constrained[side], gram[solved], ridge, 1.0, sweeps=1)
        following[:, solved] = improve(following[:, solved], products - rows @ gram)
        return following

    def _ahead(self, side: int, before: FloatArray, after: FloatArray, share: float) -> FloatArray:
        """Return rows that are extrapolated along their change, and allowed."""
        if not share:
            return after
        ahead = after + after.dtype.type(share) * (after - before)
        constrained, solved = self.constrained[side], self.solved[side]
        if constrained is not None:
            ahead[:, solved] = constrained.project(ahead[:, solved])
        return ahead

    def _descended(self, W: FloatArray, H: FloatArray, XtW: FloatArray) -> Iterate:
        """Return the factors with their objective."""
        mixed = np.einsum("ij,ji->", XtW, H, dtype=np.float64)
        gram_W, gram_H = (each.astype(np.float64) for each in (W.T @ W, H @ H.T))
        data_term = self.half_square - float(mixed) + 0.5 * float(np.sum(gram_W * gram_H))
        if data_term < self.least_exact * self.half_square:
            data_term = self.envelope.evaluate(W, H, 1.0).data_term  # without cancellation
        rows = W[:, self.solved[0]], H[self.solved[1]].T
        penalties = map(penalty_of, rows, self.ridges, self.constrained)
        error = self.problem.model.relative_error(data_term, self.problem.reference)
        penalty = self.problem.rule.initial
        return Iterate(W, H, data_term + sum(penalties), error, penalty=penalty)


@dataclass
class DivergenceState:
    """W and Hᵀ in double precision."""

    W: NDArray[np.float64]
    Ht: NDArray[np.float64]


class DivergenceDescent:
    """Descent on the divergence, number by number."""

    def __init__(self, problem: Problem, rank: int) -> None:
        self.problem, observations = problem, problem.observations.as_sparse()
        self.dtype, of_entries = observations.dtype, observations.weights
        x = observations.values.astype(np.float64)
        values = observations.to_csr(x)
        weights = observations.to_csr(np.ones(x.size) if of_entries is None else of_entries)
        positive = values > 0
        X, factors = values * positive, weights * positive
        complete = observations.n_observed == math.prod(observations.shape)
        everywhere = complete and bool(np.all(weights.data == 1))
        self.weights = None if everywhere else (weights, weights.T.tocsr())
        self.constant = float(np.sum(factors.data * (X.data * np.log(X.data) - X.data)))
        self.sides = _positive(X, factors), _positive(X.T.tocsr(), factors.T.tocsr())
        self.constrained, self.ridges = problem.constrained_columns(rank), problem.ridges(rank)

    def begin(self, W_aug: FloatArray, H_aug: FloatArray) -> DivergenceState:
        """Return the state of a descent that begins at feasible factors."""
        W = np.array(W_aug, dtype=np.float64, order="C")
        return DivergenceState(W, np.array(H_aug.T, dtype=np.float64, order="C"))

    def step(self, state: DivergenceState) -> Iterate:
        """Do one step in W and in H, and return the factors."""
        factors = W, Ht = state.W, state.Ht
        for side, of in enumerate(self.constrained):
            assert of is not None
            partners, alphas = factors[1 - side], self.ridges[side].alphas
            weight = (of.entrywise.weight if of.entrywise else 0.0) or 0.0
            shared = np.ascontiguousarray(partners.T), self._slopes(side, partners) + weight
            indptr, indices, *entries = self.sides[side]
            improve = cached_kernel(_improve, f"divergence_rows_{indices.dtype}")
            logs = float(improve(indptr, indices, *entries, *shared, alphas, factors[side]))
        data_term = self.constant - logs + float(np.sum(Ht * self._slopes(1, W)))
        total = data_term + sum(map(penalty_of, factors, self.ridges, self.constrained))
        H = np.ascontiguousarray(Ht.T, dtype=self.dtype)
        error = self.problem.model.relative_error(max(data_term, 0.0), self.problem.reference)
        penalty = self.problem.rule.initial
        return Iterate(W.astype(self.dtype), H, total, error, penalty=penalty)

    def gradients(self, W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of the divergence in W (m, rank) and in Hᵀ (n, rank)."""
        W, Ht = W.astype(np.float64), H.T.astype(np.float64)
        indptr, indices, x, weighted = self.sides[0]
        pattern = CsrStorage((len(W), len(Ht)), indptr, indices)
        y = np.maximum(pattern.all_products(W, Ht.T), KL_FLOOR * x)
        ratios = csr_array((weighted / y, indices, indptr), shape=pattern.shape)
        return self._slopes(0, Ht) - ratios @ Ht, self._slopes(1, W) - ratios.T @ W

    def _slopes(self, side: int, partners: FloatArray) -> NDArray[np.float64]:
        """Return the weighted sums of the other factor, for each row or for all at once."""
        if self.weights is None:
            return np.asarray(partners.sum(axis=0)[None, :])
        return np.asarray(self.weights[side] @ partners)


def _positive(X: Any, weights: Any) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return the positive entries of X by rows: their ends, columns, values and weighted values."""
    integer = np.int32 if max(X.data.size, *X.shape) < 2**31 else np.int64
    return X.indptr.astype(integer), X.indices.astype(integer), X.data, X.data * weights.data


def _improve(indptr, indices, x, weighted, partners, slopes, alphas, rows):  # type: ignore[no-untyped-def]
    """Improve rows in place, and return Σ weight x log y at the end."""
    rank, longest, shared = rows.shape[1], 0, slopes.shape[0] == 1
    for i in range(rows.shape[0]):
        longest = max(longest, indptr[i + 1] - indptr[i])
    H, model = np.empty((rank, longest)), np.empty(longest)
    logs = 0.0
    for i in range(rows.shape[0]):
        begin, size = indptr[i], indptr[i + 1] - indptr[i]
        y, counts = model[:size], weighted[begin : begin + size]
        y[:] = 0.0
        for c in range(rank):
            w, h = rows[i, c], H[c]
            for k in range(size):
                h[k] = partners[c, indices[begin + k]]
                y[k] += w * h[k]
        for k in range(size):
            y[k] = max(y[k], KL_FLOOR * x[begin + k])
        for c in range(rank):
            slope, alpha, w, h = slopes[0 if shared else i, c], alphas[c], rows[i, c], H[c]
            value, decline = 0.0, 0.0
            for k in range(size):
                t = h[k] / y[k]
                value += counts[k] * t
                decline += counts[k] * t * t
            if value <= 0.0:
                new = 0.0 if slope + alpha > 0.0 else w
            else:
                beta, S = value / decline - w, value * value / decline
                linear, free = slope + alpha * beta, S - slope * beta
                root = math.sqrt(max(linear * linear + 4.0 * alpha * free, 0.0))
                new = 2.0 * free / max(linear + root, 1e-300)
                if new < 0.1 * w:  # an entry that depends on this number alone must not vanish
                    largest = 0.0
                    for k in range(size):
                        largest = max(largest, h[k] / y[k])
                    new = 0.1 * w if largest * w > 0.9 else max(new, 0.0)
            step = new - w
            if step != 0.0:
                rows[i, c] = new
                for k in range(size):
                    y[k] += step * h[k]
        for k in range(size):
            logs += counts[k] * math.log(y[k])
    return logs


def violation(
    factors: tuple[FloatArray, FloatArray],
    gradients: tuple[FloatArray, FloatArray],
    alphas: tuple[FloatArray, FloatArray],
    constrained: tuple[ConstrainedColumns | None, ConstrainedColumns | None],
    size: float,
) -> float:
    """Return the larger relative length of a proximal gradient step in W and in H.

    Factors are the solved columns of W and rows of H, (m, n_solved) and (n, n_solved), `gradients`
    those of the data term, and `size` is twice the size of the objective.
    """
    return max(
        relative_move(rows, gradient + ridge * rows, size or 1.0, of)
        for rows, gradient, ridge, of in zip(factors, gradients, alphas, constrained, strict=True)
    )


def relative_move(
    rows: FloatArray, gradient: FloatArray, size: float, constrained: ConstrainedColumns | None
) -> float:
    """Return the relative length of a proximal gradient step.

    Without a constraint it is ‖gradient‖ ‖rows‖ / size.
    """
    norm = float(np.linalg.norm(rows)) or 1.0
    length = norm**2 / size
    return float(np.linalg.norm(proximal_move(rows, gradient, length, constrained))) / norm


Descent = LeastSquaresDescent | DivergenceDescent
N_DESCENT_STEPS = 20  # steps over which the progress of a descent is measured


@dataclass
class SearchState:
    """Where the descents stand.

    Attributes
    ----------
    descent : LeastSquaresState or DivergenceState
        State of the present descent.
    rng : Generator
        Random numbers.
    best : Iterate or None
        Factors of lowest objective so far; the dual residual is ρ‖W⁺H⁺ - WH‖ from those before.
    recent : deque of float
        Objectives of the last steps of the present descent.
    from_best : bool
        Whether this descent continues from the best factors.
    n_restarts, steps, steps_of_last_failure : int
        Descents that began elsewhere; steps of the present descent, and of the one before.
    """

    descent: Any
    rng: np.random.Generator
    best: Iterate | None = None
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=N_DESCENT_STEPS + 1))
    from_best: bool = False
    n_restarts: int = 0
    steps: int = 0
    steps_of_last_failure: int = 0


class Constrained:
    """Descents under constraints as an engine."""

    def __init__(self, *, exact: float = 0.0) -> None:
        self.exact = exact
        self._descent: Descent | None = None

    def init(self, problem: Problem, start: Start) -> SearchState:
        """Return the state before the first step."""
        self._descent = None
        descent = self._descent_of(problem, start.W.shape[1])
        return SearchState(descent.begin(*problem.projected(start)), np.random.default_rng(0))

    def step(self, problem: Problem, state: SearchState) -> SearchState:
        """Do a step of the present descent, and begin another one if it has ended."""
        rank = state.descent.W.shape[1] - problem.offset_columns.width
        descent, before = self._descent_of(problem, rank), state.best
        reached = descent.step(state.descent)
        state.steps += 1
        state.recent.append(reached.objective)
        best = reached if before is None or reached.objective < before.objective else before
        change = 0.0 if before is best or before is None else _change(before, best)
        state.best = best = replace(best, dual_residual=best.penalty * change)
        if _has_ended(state, best):
            _begin_next(problem, descent, state, best)
        return state

    def iterate(self, problem: Problem, state: SearchState) -> Iterate:
        """Return the best factors, and the numbers to record."""
        assert state.best is not None
        return state.best

    def status(self, state: SearchState) -> StopReason | None:
        """Return why the run ends if the fit is exact, or None."""
        if state.best is not None and state.best.relative_error <= self.exact:
            return StopReason("converged", f"converged: relative error at or below {self.exact:g}")
        return None

    def _descent_of(self, problem: Problem, rank: int) -> Descent:
        """Return the descent that goes with a problem."""
        if self._descent is None:
            squares = kind_of_descent(problem) == "squares"
            kind = LeastSquaresDescent if squares else DivergenceDescent
            self._descent = kind(problem, rank)
        return self._descent


def after_least_squares(problem: Problem, start: Start) -> Start:
    """Return a random start of the divergence after some steps of least squares, which are fast.

    Other starts, and those of data with missing entries or weights, are unchanged.  No number is 0
    after it.
    """
    free = replace(problem, model=make_model("identity", "frobenius"), observed_only=False)
    if kind_of_descent(problem) != "divergence" or kind_of_descent(free) != "squares":
        return start
    descent = LeastSquaresDescent(free, start.W.shape[1])
    state = descent.begin(*problem.projected(start))
    for _ in range(10):
        reached = descent.step(state)
    W, H, offsets = problem.offset_columns.split(reached.W_aug, reached.H_aug)
    W, H = (np.maximum(each, each.dtype.type(1e-3 * each.mean())) for each in (W, H))
    return Start(W, H, start.from_factors, offsets)


def _change(before: Iterate, after: Iterate) -> float:
    """Return ‖W⁺H⁺ - WH‖ from the Gram matrices of [W⁺, W] and [H⁺; -H]."""
    W = np.hstack([after.W_aug, before.W_aug]).astype(np.float64)
    H = np.vstack([after.H_aug, -before.H_aug]).astype(np.float64)
    return math.sqrt(max(float(np.sum((W.T @ W) * (H @ H.T))), 0.0))


def _has_ended(state: SearchState, best: Iterate) -> bool:
    """Return whether the descent has converged, or would not reach the best in four windows."""
    recent = state.recent
    if len(recent) <= N_DESCENT_STEPS:
        return False
    if state.from_best and state.steps >= state.steps_of_last_failure:
        return True
    fell, last = recent[0] - recent[-1], recent[-1]
    limit = 1e-7 if state.from_best else 1e-4
    if fell <= limit * abs(last):
        return True
    return last - 4 * fell > best.objective


def _begin_next(problem: Problem, descent: Descent, state: SearchState, best: Iterate) -> None:
    """Begin another descent: from other components, or, after one that failed, from the best."""
    has_failed = state.recent[-1] > best.objective
    state.recent.clear()
    state.steps_of_last_failure, state.steps = state.steps, 0
    state.from_best = has_failed and not state.from_best
    factors = best.W_aug, best.H_aug
    if not state.from_best:
        factors = _perturbed_start(problem, state, best)
    state.descent = descent.begin(*factors)


def _perturbed_start(
    problem: Problem, state: SearchState, best: Iterate
) -> tuple[FloatArray, FloatArray]:
    """Return feasible factors to begin with: first parts of the SVD, then the best, changed.

    Some components get random numbers, or, every other time, rows of X.
    """
    rank, rng = best.H_aug.shape[0] - problem.offset_columns.width, state.rng
    W, H, offsets = problem.offset_columns.split(best.W_aug, best.H_aug)
    state.n_restarts += 1
    if state.n_restarts == 1 and problem.constraints.nonnegative:
        data = problem.starting_data
        start = svd_start(*data, rank, offsets, rng, "nndsvd")
        return problem.projected(with_simplex(problem, filled(start, rng)))
    most = -(-0.4 * rank // 1)
    count = int(rng.integers(1, most + 1))
    chosen = rng.choice(rank, count, replace=False)
    W, H = W.copy(), H.copy()
    for factor in (W.T, H):  # random numbers of the mean size of all
        size = float(np.mean(np.abs(factor)))
        new = 2 * size * rng.random((count, factor.shape[1]))
        factor[chosen] = new if factor.min() >= 0 else np.sqrt(3) * (new - size)
    if state.n_restarts % 2:
        _take_rows(problem, H, chosen, rng)
    return problem.projected(Start(W, H, True, offsets))


def _take_rows(
    problem: Problem, H: FloatArray, chosen: NDArray[np.intp], rng: np.random.Generator
) -> None:
    """Put rows of X into some rows of H, in the size that these have."""
    observations, f = problem.observations, problem.model.nonlinearity
    for c in chosen:
        row = int(rng.integers(observations.shape[0]))
        entries = observations.csr_rows(slice(row, row + 1))
        T, size = np.abs(f.pseudo_inverse(entries.values)), float(np.mean(np.abs(H[c])))
        if T.any():
            H[c] *= 0.1
            H[c, entries.indices] += T * (size / T.sum() * observations.shape[1])


def random_within(problem: Problem, rank: int, start: Start, rng: np.random.Generator) -> Start:
    """Return a random start that suits the constraints of a problem.

    Nonnegative factors are uniform, of such a size that the mean of WH is that of T, so that no
    component begins at 0.  A factor without a bound keeps the numbers of `start`.
    """
    constraints = problem.constraints
    observations, model = problem.starting_data
    pseudo_inverse = model.nonlinearity.pseudo_inverse
    total, size = observations.weighted_sums(lambda x: np.abs(pseudo_inverse(x)))
    mean = size / total
    largest = 2.0 * np.sqrt((mean or 1.0) / rank)
    W, H = start.W, start.H
    if is_nonnegative(constraints.W):
        W = (largest * rng.random(W.shape)).astype(W.dtype)
    if is_nonnegative(constraints.H):
        H = (largest * rng.random(H.shape)).astype(H.dtype)
    return with_simplex(problem, start._replace(W=W, H=H))


def filled(start: Start, rng: np.random.Generator) -> Start:
    """Return a nonnegative start without zeros, which an iteration might not leave."""
    W, H = start.W, start.H
    for factor in (W, H):
        mean = float(np.mean(factor))
        zeros = factor <= 0
        factor[zeros] = (0.02 * mean * rng.random(int(zeros.sum()))).astype(factor.dtype)
    return start


def with_simplex(problem: Problem, start: Start) -> Start:
    """Return a start in which rows that must sum to one do so, at nearly the same product."""
    constraints, size = problem.constraints, 2.0**problem.units.exponent
    W, H = start.W, start.H
    if isinstance(constraints.W, Simplex):
        W, mean = _normalized(W, size)
        H = H * H.dtype.type(mean)
    if isinstance(constraints.H, Simplex):
        columns, mean = _normalized(H.T, size)
        H = np.ascontiguousarray(columns.T)
        W = W if isinstance(constraints.W, Simplex) else W * W.dtype.type(mean)
    return start._replace(W=np.ascontiguousarray(W), H=np.ascontiguousarray(H))


def _normalized(rows: FloatArray, size: float) -> tuple[FloatArray, float]:
    """Return rows with sums of 1 / size, and the mean factor that this takes from them."""
    sums = np.abs(rows).sum(axis=1, keepdims=True) * size
    mean = float(np.mean(sums)) or 1.0
    return rows / np.where(sums > 0, sums, 1.0), mean
