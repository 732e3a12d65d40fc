"""Descents one after the other: to the nearest minimum, and on to lower ones.

A matrix factorisation under constraints has many local minima.  Once a descent has settled, some
components of the best factors are replaced by random ones or by rows of X, and the next descent
begins there; the second one begins at nonnegative parts of the SVD.  A descent ends when it has
settled, or when its pace would not bring it below the best.  After a descent in vain the best
factors descend further, for as many steps.  The iterates are the best factors so far, so the
objective never rises.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._stop_reason import StopReason
from nmd_lab.checkpoint.place import NOWHERE, Place
from nmd_lab.data.base import FloatArray
from nmd_lab.model.model import make_model
from nmd_lab.solver.admm import State
from nmd_lab.solver.initialization import Start, svd_start
from nmd_lab.solver.problem import Problem
from nmd_lab.solver.starting_data import starting_data

from .descent import Descended, Descent, kind_of_descent, with_other_components
from .divergence import DivergenceDescent
from .least_squares import LeastSquaresDescent
from .starts import filled, with_simplex

WINDOW = 20  # steps over which the progress of a descent is measured
SETTLED = 1e-4  # relative decrease in a window at or below which a descent has settled
SETTLED_AGAIN = 1e-7  # the same for one that goes on from the best factors
HORIZON = 4.0  # windows in which a descent must reach the best objective at its present pace
REPLACED = 0.4  # largest share of the components that are replaced
FIRST_SQUARES = 10  # steps of least squares before the first descent on the divergence


def make_descent(problem: Problem, rank: int) -> Descent | None:
    """Return the descent that goes with a problem, or None."""
    kind = kind_of_descent(problem)
    if kind is None:
        return None
    return (
        LeastSquaresDescent(problem, rank)
        if kind == "squares"
        else DivergenceDescent(problem, rank)
    )


def after_least_squares(problem: Problem, start: Start) -> Start:
    """Return a random start of the divergence after some steps of least squares, which are fast.

    Other starts, and those of data with holes or weights, are unchanged.  No number is 0 after it.
    """
    free = replace(problem, pair=make_model("identity", "frobenius"), observed_only=False)
    if kind_of_descent(problem) != "divergence" or kind_of_descent(free) != "squares":
        return start
    descent = LeastSquaresDescent(free, start.W.shape[1])
    descent.begin(*problem.projected(start))
    for _ in range(FIRST_SQUARES):
        reached = descent.step()
    W, H, offsets = problem.offset_columns.split(reached.W_aug, reached.H_aug)
    W, H = (np.maximum(each, each.dtype.type(1e-3 * each.mean())) for each in (W, H))
    return Start(W, H, start.from_factors, offsets)


def searched(
    problem: Problem, start: Start, *, exact: float = 0.0, place: Place = NOWHERE
) -> Iterator[State]:
    """Iterate descents without end."""
    began = time.perf_counter()
    search = _Search(problem, start)
    loss, reference = problem.pair.loss, problem.reference
    iteration = 0
    if place.goes_on:
        kept = place.take()
        iteration = kept["iteration"]
        search.restore(kept["search"])
    place.mark(lambda: {"iteration": iteration, "search": search.kept()})
    reason = StopReason("converged", f"converged: relative error at or below {exact:g}")
    while True:
        iteration += 1
        before = search.best
        best = search.step()
        error = loss.relative_error(best.data_term, reference)
        change = 0.0 if before is best or before is None else _change(before, best)
        yield State(
            iteration,
            *problem.offset_columns.split(best.W_aug, best.H_aug),
            W_aug=best.W_aug,
            H_aug=best.H_aug,
            objective=best.objective,
            relative_error=error,
            primal_residual=0.0,
            dual_residual=problem.rule.initial * change,
            penalty=problem.rule.initial,
            relative_residual=math.inf,
            stop_reason=reason if error <= exact else None,
            seconds=time.perf_counter() - began,
        )


def _change(before: Descended, after: Descended) -> float:
    """Return ‖W⁺H⁺ - WH‖ from the Gram matrices of [W⁺, W] and [H⁺; -H]."""
    W = np.hstack([after.W_aug, before.W_aug]).astype(np.float64)
    H = np.vstack([after.H_aug, -before.H_aug]).astype(np.float64)
    return math.sqrt(max(float(np.sum((W.T @ W) * (H @ H.T))), 0.0))


class _Search:
    """The descents of a run, one step at a time."""

    KEPT = ("rng", "best", "recent", "goes_on", "jumps", "steps", "in_vain")

    def __init__(self, problem: Problem, start: Start) -> None:
        rank = start.W.shape[1]
        descent = make_descent(problem, rank)
        assert descent is not None
        self.descent, self.problem = descent, problem
        self.descent.begin(*problem.projected(start))
        self.rng = np.random.default_rng(0)
        self.best: Descended | None = None
        self.recent: deque[float] = deque(maxlen=WINDOW + 1)
        self.goes_on = False  # whether this descent continues from the best factors
        self.jumps = 0
        self.steps = self.in_vain = 0  # of this descent, and of the one before

    def kept(self) -> dict[str, Any]:
        """Return all that changes, for a checkpoint."""
        own = {name: getattr(self, name) for name in self.KEPT}
        return own | {"descent": {name: getattr(self.descent, name) for name in self.descent.KEPT}}

    def restore(self, kept: dict[str, Any]) -> None:
        """Set what `kept` has returned."""
        vars(self.descent).update(kept.pop("descent"))
        vars(self).update(kept)

    def step(self) -> Descended:
        """Do a step of the present descent, and return the best factors so far."""
        reached = self.descent.step()
        self.steps += 1
        self.recent.append(reached.objective)
        if self.best is None or reached.objective < self.best.objective:
            self.best = reached
        if self._has_ended():
            self._begin_next()
        return self.best

    def _has_ended(self) -> bool:
        """Return whether the descent has settled, or is too far behind."""
        if len(self.recent) <= WINDOW:
            return False
        assert self.best is not None
        if self.goes_on and self.steps >= self.in_vain:
            return True
        fell, last = self.recent[0] - self.recent[-1], self.recent[-1]
        limit = SETTLED_AGAIN if self.goes_on else SETTLED
        if fell <= limit * abs(last):
            return True
        return last - HORIZON * fell > self.best.objective

    def _begin_next(self) -> None:
        """Begin another descent: from other components, or, after one in vain, from the best."""
        assert self.best is not None
        in_vain = self.recent[-1] > self.best.objective
        self.recent.clear()
        self.in_vain, self.steps = self.steps, 0
        if in_vain and not self.goes_on:
            self.goes_on = True
            self.descent.begin(self.best.W_aug, self.best.H_aug)
            return
        self.goes_on = False
        self.descent.begin(*self._elsewhere(self.best))

    def _elsewhere(self, best: Descended) -> tuple[FloatArray, FloatArray]:
        """Return feasible factors to begin with: first parts of the SVD, then the best, changed.

        Some components get random numbers, or, every other time, rows of X.
        """
        problem, rank = self.problem, best.H_aug.shape[0] - self.problem.offset_columns.width
        W, H, offsets = problem.offset_columns.split(best.W_aug, best.H_aug)
        self.jumps += 1
        if self.jumps == 1 and problem.constraints.nonnegative:
            data = starting_data(problem.observations, problem.pair)
            start = svd_start(*data, rank, offsets, self.rng, "nndsvd")
            return problem.projected(with_simplex(problem, filled(start, self.rng)))
        most = -(-REPLACED * rank // 1)
        count = int(self.rng.integers(1, most + 1))
        chosen = self.rng.choice(rank, count, replace=False)
        W, H = with_other_components(W, H, chosen, self.rng)
        if self.jumps % 2:
            self._take_rows(H, chosen)
        return problem.projected(Start(W, H, True, offsets))

    def _take_rows(self, H: FloatArray, chosen: NDArray[np.intp]) -> None:
        """Put rows of X into some rows of H, in the size that these have."""
        observations, f = self.problem.observations, self.problem.pair.nonlinearity
        for c in chosen:
            row = int(self.rng.integers(observations.shape[0]))
            entries = observations.csr_rows(slice(row, row + 1))
            preimage, size = np.abs(f.preimage(entries.values)), float(np.mean(np.abs(H[c])))
            if preimage.any():
                H[c] *= 0.1
                H[c, entries.indices] += preimage * (size / preimage.sum() * observations.shape[1])
