"""Trials of linear f and squares: alternating least squares, for all folds at once.

With T = WH on the observed entries and ρ = 1, Algorithm 1 has T + U = X at all times.  What is left
of it are the steps of rows

    w⁺ = w + (Σ h_j h_jᵀ + ridge I)⁻¹ (Σ s_ij h_j - ridge w),    S = X - WH,

with sums over the observed entries of row i, and likewise of columns, without T, U and ρ.

The folds are the diagonal blocks of one matrix.  No row or column belongs to two of them, so that
each ends where it would by itself, and small data wait for Python once and not for every fold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.solver.constraints.steps import Ridge
from nmd_lab.solver.devices import HOST
from nmd_lab.solver.gram import chunk_of_rows, per_row
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.problem import Problem
from nmd_lab.solver.row_updates import update_rows
from nmd_lab.solver.storage import Block, CsrStorage

from .folds import Fold
from .progress import predicted_fall
from .trial import SETTLED

MOST = 30  # iterations
SMALL = 10_000  # observed entries below which Python takes longer than the steps of ADMM
LARGEST = 1 << 22  # products in the normal matrices of small data, above which ADMM is quicker


def suits(problem: Problem, rank: int) -> bool:
    """Return whether the steps minimise the objective of the problem, and are quick."""
    data, width = problem.observations, rank + problem.offset_columns.width
    if data.remote or data.scratch is not None or data.limits is not None:
        return False
    simple = problem.model.is_least_squares and not problem.is_constrained and problem.alpha > 0
    small = data.n_observed < SMALL and data.n_observed * width**2 <= LARGEST
    quick = (problem.observed_only or small) and problem.device is HOST
    if not (simple and quick) or data.absent_are_zeros:
        return False
    weights = data.weight_reader()
    return weights is None or weights.dtype == bool or bool(np.isin(weights[:], (0, 1)).all())


class Entries:
    """The entries of several matrices of one shape, as those of a block-diagonal one."""

    def __init__(self, parts: Sequence[SparseObservations]) -> None:
        (m, n), count = parts[0].shape, len(parts)
        ends = np.cumsum([0] + [part.n_observed for part in parts])
        pointers = [part.indptr[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
        indptr = np.concatenate([[0], *pointers]).astype(parts[0].indptr.dtype)
        columns = [part.indices + k * n for k, part in enumerate(parts)]
        self._set(
            CsrStorage((count * m, count * n), indptr, np.concatenate(columns)),
            np.concatenate([part.values for part in parts]),
        )

    def _set(self, storage: CsrStorage, values: FloatArray) -> None:
        self.storage, self.values = storage, values
        self.whole = Block(slice(0, storage.shape[0]), slice(0, values.size))

    def transposed(self) -> Entries:
        """Return the entries of the transpose."""
        other = Entries.__new__(Entries)
        storage, order = self.storage.transposed()
        other._set(storage, self.values[order])
        return other

    def residuals(self, rows: FloatArray, partners: FloatArray) -> FloatArray:
        """Return the values less the products of rows and partners."""
        found = np.empty_like(self.values)
        self.storage.products(self.whole, rows, partners, found)
        return np.subtract(self.values, found, out=found)

    def step(self, rows: FloatArray, partners: FloatArray, solved: slice, ridge: Ridge) -> None:
        """Move some columns of the rows to the least squares solutions for their entries."""
        used = np.ascontiguousarray(partners[:, solved])
        gram = per_row(chunk_of_rows(self.storage), self.residuals(rows, partners), used)
        update_rows(None, gram, ridge(used, 1.0), 1.0, self.whole.rows, solved, rows)


class Squares:
    """Alternating least squares on the folds of some data."""

    def __init__(self, problems: list[Problem], folds: list[Fold]) -> None:
        units = problems[0].units
        self.rows = Entries([problem.observations.as_sparse() for problem in problems])
        self.columns = self.rows.transposed()
        self.held_out = Entries([units.scaled_observations(f.held_out).as_sparse() for f in folds])
        self._unit = 0.5 * 4.0**units.of_X

    def run(
        self, problems: list[Problem], starts: list[Start], lowest: float, fewest: int
    ) -> tuple[FloatArray, list[Start], int]:
        """Return halved squared errors at held-out entries, factors, and the number of iterations.

        The iterations end where the mean error has settled, or cannot come below the lowest of
        other trials.  Starts are in the units of the problems, errors and factors in those of X.
        """
        first, count, rank = problems[0], len(problems), starts[0].W.shape[1]
        pairs = [problem.projected(each) for problem, each in zip(problems, starts, strict=True)]
        W = np.vstack([W for W, _ in pairs])
        Ht = np.ascontiguousarray(np.vstack([H.T for _, H in pairs]))
        (solved_W, solved_H), (of_W, of_H) = first.offset_columns.solved(rank), first.ridges(rank)
        means: list[float] = []
        while not _has_ended(means, lowest, fewest):
            self.rows.step(W, Ht, solved_W, of_W)
            self.columns.step(Ht, W, solved_H, of_H)
            errors = self.held_out.residuals(W, Ht)
            losses = self._unit * np.square(errors, dtype=np.float64)
            means.append(float(np.mean(losses)))
        factors = zip(problems, np.split(W, count), np.split(Ht, count), strict=True)
        ends = [_in_units_of_X(problem, W, Ht) for problem, W, Ht in factors]
        return losses, ends, len(means)


def _has_ended(means: list[float], lowest: float, fewest: int) -> bool:
    """Return whether no further iteration is worth it after those with some mean errors."""
    if len(means) < max(fewest, 3):
        return bool(means) and not math.isfinite(means[-1])
    further, last = predicted_fall(*means[-3:]), means[-1]
    settled = abs(further) <= SETTLED * last
    cannot_win = min(last, last - further) > (1 + SETTLED) * lowest
    return settled or cannot_win or len(means) >= MOST


def _in_units_of_X(problem: Problem, W_aug: FloatArray, Ht_aug: FloatArray) -> Start:
    """Return extended factors as a start."""
    units = problem.units
    W, H, offsets = problem.offset_columns.split(W_aug, np.ascontiguousarray(Ht_aug.T))
    W, H = (np.ldexp(factor, units.exponent) for factor in (W, H))
    return Start(W, H, True, units.given_offsets(offsets))
