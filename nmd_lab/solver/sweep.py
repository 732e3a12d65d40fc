"""One pass over the data, block of rows by block of rows.

Within a block everything happens while it is in cache: A = WH, the T- and U-update, the block's
next rows of W, and its share of what the H-step needs.  Only those sums cross blocks.

All steps are written with S = T + U - WH, the part of Z = T + U that is not low-rank.  Then

    Z Hᵀ = W (H Hᵀ) + S Hᵀ,    so    W⁺ = W + (S Hᵀ - ridge W) (H Hᵀ + ridge I)⁻¹,

and likewise for H.  S is zero wherever nothing is observed, so the same steps serve data that are
dense, masked or sparse; and they lose no digits when the change of W is small.

`Steps` is the sweep; `EverywhereSteps` imposes T = WH on every entry as the paper does, and
`nmd_lab.solver.observed_sweep` on the observed entries alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from nmd_lab.data.base import FloatArray

from .split_variable import Splitting
from .storage import Block, Layout

SHARE_ENTRIES = 1 << 18  # fewer entries than this are not worth a thread of their own


@dataclass
class Pass:
    """What one sweep leaves behind.

    Attributes
    ----------
    W : ndarray (m, rank)
        The next rows of W.
    StW : ndarray (n, rank)
        Sᵀ times the next W, for the H-step.
    data_term : float
        Weighted loss of f(WH).
    primal, change : float
        ‖T - WH‖ and ‖T - T_previous‖.
    projected_change : float
        ‖Wᵀ(T - T_previous)‖, if it was asked for.
    """

    W: FloatArray
    StW: FloatArray
    data_term: float = math.nan
    primal: float = math.nan
    change: float = math.nan
    projected_change: float = math.nan


@dataclass(frozen=True)
class Ridge:
    """The ridge terms of both factor steps: epsilon ‖other factor‖² + alpha / ρ."""

    epsilon: float
    alpha: float

    def __call__(self, other: FloatArray, penalty: float) -> float:
        """Return the ridge, never quite zero so that a factor of zeros stays finite."""
        norm = float(np.sum(other * other, dtype=np.float64))
        smallest = float(np.finfo(other.dtype).tiny) * 16
        return self.epsilon * norm + self.alpha / penalty + smallest


@dataclass(eq=False)
class Steps:
    """The sweep over all rows, which leaves the factor steps to its subclasses.

    Parameters
    ----------
    layout : Layout
        Where the stored entries are.
    splitting : Splitting
        T and U at these entries.
    ridge : Ridge
        The ridge terms.
    free_W, free_H : slice
        Which columns of W and which rows of H are solved for; the others are held for offsets.
    threads : int
        Shares of the rows that are worked on at the same time.
    """

    layout: Layout
    splitting: Splitting
    ridge: Ridge
    free_W: slice
    free_H: slice
    threads: int = 1

    def __post_init__(self) -> None:
        """Cut the rows into as many shares as are worth a thread."""
        self.parts = shares(self.layout, self.threads)

    def sweep(
        self,
        W: FloatArray,
        H: FloatArray,
        penalty: float,
        *,
        update: bool = True,
        projected: bool = False,
    ) -> Pass:
        """Go over all rows once.

        Parameters
        ----------
        W, H : ndarray
            The factors that make A = WH.
        penalty : float
            ρ of this iteration and, it is assumed, of the next W-step.
        update : bool
            Whether T and U are updated before the next rows of W follow from them.
        projected : bool
            Whether Wᵀ(T - T_previous) is wanted.
        """
        right, next_W = self.layout.prepare(H), W.copy()
        take_rows = self._row_step(W, H, right, self.ridge(H[self.free_W], penalty), next_W)

        def share(part: int) -> tuple[FloatArray, FloatArray, FloatArray]:
            rank, n = H.shape
            StW, CtW = (
                np.zeros((n, rank), H.dtype),
                np.zeros((n if projected else 0, rank), H.dtype),
            )
            sums, buffers = np.zeros(4), np.empty((2, self.layout.block_size), H.dtype)
            for block in self.layout.blocks(part, self.parts):
                S, change = self._buffers(block, buffers)
                self.layout.products(block, W, right, S)
                if update:
                    wanted = change if projected else None
                    sums += self.splitting.update(block.entries, S, penalty, wanted)
                    if projected:
                        self.layout.add_StW(block, change, W, CtW)
                else:
                    self.splitting.refresh(block.entries, S)
                take_rows(block, S, StW)
            return StW, CtW, sums

        StW, CtW, sums = in_parallel(share, self.parts)
        result = Pass(next_W, StW)
        if update:
            self.splitting.dual_scale = 1.0
            self._residuals(result, CtW if projected else None, sums)
        return result

    def next_H(self, sweep: Pass, W: FloatArray, H: FloatArray, penalty: float) -> FloatArray:
        """Return the next H from the sweep made with W and H."""
        raise NotImplementedError

    def squared_norm(self, W: FloatArray, H: FloatArray) -> float:
        """Return ‖W‖² + ‖H‖² of all that is solved for."""
        solved = (W[:, self.free_W], H[self.free_H])
        return float(sum(np.sum(factor * factor, dtype=np.float64) for factor in solved))

    def _row_step(
        self, W: FloatArray, H: FloatArray, right: FloatArray, ridge: float, next_W: FloatArray
    ) -> Callable[[Block, FloatArray, FloatArray], None]:
        """Return what puts a block's next rows into `next_W` and adds its share to StW."""
        raise NotImplementedError

    def _buffers(self, block: Block, buffers: FloatArray) -> FloatArray:
        """Return where a block's S and change go."""
        return buffers[:, : block.entries.stop - block.entries.start]

    def _residuals(self, result: Pass, CtW: FloatArray | None, sums: FloatArray) -> None:
        """Turn a sweep's sums into residuals."""
        result.data_term = float(sums[0])
        result.primal, result.change = math.sqrt(sums[1]), math.sqrt(sums[2])
        if CtW is not None:
            result.projected_change = float(np.linalg.norm(CtW))


class EverywhereSteps(Steps):
    """Algorithm 1: T = WH is imposed on every entry, and one r x r matrix serves all rows.

    W ← Z Hᵀ (H Hᵀ + ridge I)⁻¹ and H ← (WᵀW + ridge I)⁻¹ Wᵀ Z.  Where nothing is stored T = WH at
    all times, so the residuals there follow from how far WH has moved.
    """

    moved: Moved | None = None

    def _row_step(
        self, W: FloatArray, H: FloatArray, right: FloatArray, ridge: float, next_W: FloatArray
    ) -> Callable[[Block, FloatArray, FloatArray], None]:
        partners = H[self.free_W]
        solve = inverse(partners @ partners.T, ridge).astype(H.dtype)

        def take_rows(block: Block, S: FloatArray, StW: FloatArray) -> None:
            step = self.layout.times_Ht(block, S, right)[:, self.free_W]
            step -= ridge * W[block.rows, self.free_W]
            next_W[block.rows, self.free_W] += step @ solve
            self.layout.add_StW(block, S, next_W, StW)

        return take_rows

    def next_H(self, sweep: Pass, W: FloatArray, H: FloatArray, penalty: float) -> FloatArray:
        """Return the next H from the sweep made with W and H."""
        free, change = self.free_H, sweep.W - W
        gram, drift = sweep.W.T @ sweep.W, sweep.W.T @ change
        ridge = self.ridge(sweep.W[:, free], penalty)
        step = sweep.StW.T[free] - drift[free] @ H - ridge * H[free]
        next_H = H.copy()
        next_H[free] += inverse(gram[free, free], ridge).astype(H.dtype) @ step
        if not self.layout.complete:
            self.moved = Moved(gram, drift, change.T @ change, H, next_H - H)
        return next_H

    def _residuals(self, result: Pass, CtW: FloatArray | None, sums: FloatArray) -> None:
        if self.moved is not None:
            sums[2] = max(sums[2] + self.moved.squared_norm() - sums[3], 0.0)
            CtW = None if CtW is None else CtW + self.moved.projected().T
        super()._residuals(result, CtW, sums)


class Moved(NamedTuple):
    """How far WH has moved since the last sweep, on all entries, told by small matrices.

    The change is ΔW H + W⁺ ΔH.

    Attributes
    ----------
    gram, drift, step : ndarray (rank, rank)
        W⁺ᵀW⁺, W⁺ᵀΔW and ΔWᵀΔW.
    H, change : ndarray (rank, n)
        H before and ΔH.
    """

    gram: FloatArray
    drift: FloatArray
    step: FloatArray
    H: FloatArray
    change: FloatArray

    def squared_norm(self) -> float:
        """Return ‖W⁺H⁺ - WH‖²."""
        mixed = np.sum(self.drift.T * (self.H @ self.change.T))
        ends = np.sum(self.step * (self.H @ self.H.T))
        ends += np.sum(self.gram * (self.change @ self.change.T))
        return float(ends + 2 * mixed)

    def projected(self) -> FloatArray:
        """Return W⁺ᵀ(W⁺H⁺ - WH)."""
        return self.drift @ self.H + self.gram @ self.change


def inverse(normal: FloatArray, ridge: float) -> FloatArray:
    """Return (normal + ridge I)⁻¹ in double precision, or NaN where there is none."""
    identity = np.eye(normal.shape[0])
    try:
        return cho_solve(cho_factor(normal + ridge * identity, check_finite=False), identity)
    except (np.linalg.LinAlgError, ValueError):
        return np.full_like(identity, np.nan)


def shares(layout: Layout, threads: int) -> int:
    """Return into how many shares the rows are cut."""
    return max(1, min(threads, layout.n_entries // SHARE_ENTRIES))


def in_parallel(
    share: Callable[[int], tuple[FloatArray, ...]], parts: int
) -> tuple[FloatArray, ...]:
    """Work on several shares at a time and add their results up, always in the same order."""
    if parts == 1:
        return share(0)
    with ThreadPoolExecutor(parts) as pool:
        results = list(pool.map(share, range(parts)))
    return tuple(sum(arrays[1:], start=arrays[0]) for arrays in zip(*results, strict=True))
