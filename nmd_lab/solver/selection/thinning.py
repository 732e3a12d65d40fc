"""The rank of sparse counts whose absent entries are zeros: a part of each count is held out.

Where every entry counts, none can be left out.  A count can: of x events each is held out with
probability 1/10.  If x is a Poisson number, the two parts are independent, and their means are as
nine to one.  A fit to the larger part is judged by nine times the smaller one at all entries.

A mean of 0 makes each event impossible, and a row of N events does not show that: with the Poisson
distribution a single held-out event would decide.  Each row is therefore judged as if it had one
more event, which is in each column with the share of that column in all counts, as with a Dirichlet
prior of total weight one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.model.loss import NORMAL, POISSON
from nmd_lab.model.model import Model
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.loop import FitProgress, Stopping, fit_from
from nmd_lab.solver.problem import Problem
from nmd_lab.solver.refinement.plan import make_plan
from nmd_lab.solver.starts import all_starts, engine_for, warmed_up
from nmd_lab.solver.state import State
from nmd_lab.solver.tiles import Tiles

from .moves import LONG_RANKS
from .search import RANKS_WITHOUT_GAIN
from .space import Setting, Space
from .trial import Trial
from .trials import Trials

EVENTS = {POISSON: 1.0}
"""Number of events that each row is judged with in addition to its own, by the noise."""


def row_losses(
    held_out: SparseObservations,
    rest: SparseObservations,
    model: Model,
    W: FloatArray,
    H: FloatArray,
) -> Any:
    """Return the mean loss of each row, a tile at a time; absent entries are zeros."""
    tiles = Tiles(held_out.shape, held_out.indptr, held_out.indices, held_out.values)
    (f, loss), sums = model.shown, np.zeros(held_out.shape[0])
    more = np.bincount(rest.indices, rest.values, rest.shape[1]) + 0.5
    more *= EVENTS.get(loss.noise_model, 0.0) / more.sum()
    for tile in tiles():
        y = np.clip(f(W[tile.rows] @ H[:, tile.columns]), *loss.domain) + more[tile.columns]
        x = np.zeros(y.size)
        x[tiles.positions[tile.stored]] = tiles.x[tile.stored]
        sums[tile.rows] += loss(x.reshape(y.shape), y).sum(axis=1)
    return sums / held_out.shape[1]


class ThinnedTrials(Trials):
    """Fits to most of each count, judged by the others; the scores are those of rows."""

    def run(self, setting: Setting, starts: Sequence[Start] | None = None, **_: Any) -> Trial:
        """Do a trial, which begins as a fit does, and ends as it or after fewer iterations."""
        began, losses, ends, n_iter = time.perf_counter(), [], [], 0
        for fold, problem in zip(self.folds, self.problems(setting), strict=True):
            state, iterations = self._fitted(problem, setting.rank)
            model = problem.units.model
            factors = state.W_aug, state.H_aug
            losses.append(row_losses(fold.held_out, fold.rest.as_sparse(), model, *factors))
            ends.append(Start(state.W, state.H, True, state.offsets))
            n_iter += iterations
        mean, seconds = np.mean(losses, axis=0), time.perf_counter() - began
        return self.add(Trial(setting, mean, n_iter, seconds, ends, is_cold=True, refined=True))

    def _fitted(self, problem: Problem, rank: int) -> tuple[State, int]:
        """Return the best state of a fit, and its number of iterations."""
        options = self.options
        plan = make_plan(problem, rank, options)
        start = next(all_starts(problem, rank, options, plan, self.rng))
        most = min(options.max_iter, 200)  # after which the error hardly changes
        rules = Stopping(most, None, lambda _: self.stopped(), tol=options.tol, window=plan.window)
        begin = partial(warmed_up, problem, start, options, plan)
        run = fit_from(problem, begin, rules, engine_for(plan), FitProgress())
        assert run.result is not None
        return run.result, run.n_iter


class RankSearch:
    """A search for the rank alone, over the ascending ranks of a space."""

    not_repeated = None

    def __init__(self, trials: Trials, space: Space) -> None:
        self.trials, self.space = trials, space
        assert space.alpha is not None
        assert space.offset_alpha is not None
        model = space.nonlinearities[0], space.losses[0]
        self.first = Setting(*model, 1, space.alpha, "none", space.offset_alpha)

    def run(self) -> Trial:
        """Return the trial of fewest components whose error is not clearly above the lowest."""
        trials, best, no_gain = self.trials, None, 0
        for rank in self.space.ranks:
            enough = no_gain >= (RANKS_WITHOUT_GAIN if rank <= LONG_RANKS else 1)
            if best is not None and (trials.stopped() or enough):
                break
            trial = trials.run(self.first._replace(rank=rank))
            if best is None or trial < best:
                best, no_gain = trial, 0
            else:
                no_gain += 1
        assert best is not None
        if trials.stopped():
            return best
        return next(trial for trial in trials.done if not best.clearly_below(trial, 1.0))


def check_counts(counts: SparseObservations, model: Model, metric: str) -> None:
    """Raise ValueError if thinning cannot select a rank: it needs counts, and their means."""
    x, (f, loss) = counts.values, model.shown
    wrong = x[(x < 0) | (x != np.floor(x)) | (x > 2.0**53)]  # up to which a double holds each
    if wrong.size:
        what, remedy = f"X has the value {wrong[0]:g}", "whole numbers >= 0"
    elif loss.noise_model not in (NORMAL, POISSON):
        what, remedy = f"loss={loss!r} is no loss of means", "loss='frobenius' or 'kl'"
    elif f.form not in ("identity", "relu"):
        what, remedy = f"nonlinearity={f!r} was given", "nonlinearity='identity' or 'relu'"
    elif metric != "deviance":
        what, remedy = f"metric={metric!r} was given", "metric='deviance'"
    elif counts.limits is not None:
        what, remedy = "X has limits", "X without them"
    else:
        return
    raise ValueError(
        "rank='auto' of a sparse X whose absent entries are zeros holds out a part of each "
        f"count, and {what}: give a rank, or {remedy}, or use complete()."
    )
