"""Trials: short fits to some of the entries, judged by the others.

Trials of linear f and squares are alternating least squares, for all folds at once.  With T = WH on
the observed entries and ρ = 1, Algorithm 1 has T + U = X at all times.  What is left of it are the
steps of rows

    w⁺ = w + (Σ h_j h_jᵀ + ridge I)⁻¹ (Σ s_ij h_j - ridge w),    S = X - WH,

with sums over the observed entries of row i, and likewise of columns, without T, U and ρ.  The
folds are the diagonal blocks of one matrix.  No row or column belongs to two of them, so that each
ends where it would by itself, and small data wait for Python once and not for every fold.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import block_diag

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.folds import Fold
from nmd_lab.data.observations import Observations
from nmd_lab.devices import HOST
from nmd_lab.engines import FitEngine, iterates
from nmd_lab.engines.admm import Admm
from nmd_lab.engines.refined import Refined, make_plan
from nmd_lab.fit.held_out import HeldOut, row_losses
from nmd_lab.fit.loop import FitProgress, Stopping, fit_from
from nmd_lab.fit.starts import (
    after_strong_ridges,
    all_starts,
    engine_for,
    first_sd,
    first_start,
    starts_of_rank,
    warmed_up,
    with_sd,
)
from nmd_lab.fit.summary import DataSummary, make_problem, observed_only, with_offsets
from nmd_lab.kernels.products import CsrStorage
from nmd_lab.kernels.row_steps import Ridge, chunk_of_rows, update_rows
from nmd_lab.model.loss import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.problem.initialization import Start
from nmd_lab.problem.problem import Problem, scaling_for
from nmd_lab.problem.state import State, learned_state, state_of, with_learned
from nmd_lab.request.options import Options, Setting
from nmd_lab.request.settings import is_automatic

from .progress import MIN_ITERATIONS, FoldResult, Kind, Progress, Trial, best_ending, mean_score


class Trials:
    """Runs trials on all folds, and keeps a list of them.

    Attributes
    ----------
    done : list of Trial
        Trials so far.
    is_mixed : bool
        Whether there are several kinds of columns, each in units of its own.
    refined : bool
        Whether the iterates are refined as those of a fit.
    have_zeros : bool
        Whether absent entries are zeros, of which folds hold out a part.
    limits : LimitModel
        What is known of entries with limits, with the lowest held-out error so far as sd if that is
        to be estimated.
    """

    def __init__(
        self,
        folds: list[Fold],
        known: DataSummary,
        options: Options,
        rng: np.random.Generator,
        stopped: Callable[[], bool],
        after: Callable[[Trial], None] = lambda trial: None,
    ) -> None:
        rest = folds[0].rest
        self._on_observed = observed_only(rest.shape, rest.n_observed, options.solver.split)
        self.folds = [fold.sparse() for fold in folds] if self._on_observed else folds
        self.options, self.rng, self._known = options, rng, known
        self.is_mixed, self.refined = known.model.is_mixed, options.alpha != "auto"
        self.have_zeros = rest.absent_are_zeros
        self.stopped, self.after = stopped, after
        self.metric = options.validation.metric
        self.done: list[Trial] = []
        weights = [w for fold in folds if (w := fold.held_out.weights) is not None]
        self.mean_weight = float(np.mean(np.concatenate(weights))) if weights else 1.0
        sizes = [fold.held_out.n_observed for fold in folds]
        self._first_of_fold = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        eps = float(np.finfo(rest.dtype).eps)
        self._exact = max(1e-8, 100 * eps)
        self._rounding = 4 * eps * (1.0 if self.is_mixed else known.size)
        self._estimates_sd, self.limits = math.isnan(known.limits.sd), known.limits
        if self._estimates_sd:
            self.limits = known.limits._replace(sd=first_sd(rest))
        self._first_limits = self.limits
        self._problems: dict[tuple[Nonlinearity, Loss, int], Problem] = {}
        self._squares: Squares | None = None

    @property
    def null_error(self) -> float:
        """Error of the first trial, which has no components: a size in the units of the errors."""
        return self.done[0].error if math.isfinite(self.done[0].error) else 0.0

    def may_follow_path(self, setting: Setting) -> bool:
        """Return whether a fit may begin with a path of ridges and end early."""
        options, problem = self.options, self.problem(setting)
        begins = options.init == "auto" and options.n_init == 1 and setting.alpha > 0
        ends = options.tol == Options.tol and not options.validation.stops_early
        model = problem.units.model
        simple = not (self.is_mixed or model.learns or model.even or problem.is_constrained)
        return begins and ends and simple and is_automatic(options.solver)

    def problem(self, setting: Setting, index: int = 0) -> Problem:
        """Return the problem of a fold, with the ridges of a setting."""
        f, loss = setting.nonlinearity, setting.loss
        if (f, loss, index) not in self._problems:
            options = replace(self.options, alpha=1.0, offset_alpha=1.0, offsets="none")
            model = self._known.model_with(f, loss).with_limits(self._first_limits)
            scaling = scaling_for(model, self._known.size)
            plain = make_problem(self.folds[index].rest, scaling, options, self._on_observed)
            self._problems[f, loss, index] = plain.with_cached_statistics()
        base = self._problems[f, loss, index]
        problem = with_offsets(base, setting.offsets, setting.offset_alpha)
        problem = problem.changed(alpha=base.units.scaled_alpha(setting.alpha))
        return with_sd(problem, self.limits.sd) if self._estimates_sd else problem

    def run(
        self, setting: Setting, starts: list[Start] | None = None, *, kind: Kind = "short"
    ) -> Trial:
        """Do a trial from the factors of another one, or as a fit begins."""
        same = [t for t in self.done if t.setting.loss == setting.loss and math.isfinite(t.mean)]
        best = min(same, default=None)
        alike = [t for t in same if kind != "cold_start" or t.kind == kind]
        ends_early = kind in ("short", "long_trial", "cold_start")
        to_beat = min(alike, default=None) if ends_early else None
        began, path = time.perf_counter(), kind == "ridge_path"
        runs, ending, indices = list[FoldResult](), None, range(len(self.folds))
        squares = self.metric in ("deviance", "rmse") and not (path or self.refined)
        if squares and suits(self.problem(setting), setting.rank):
            problems = [self.problem(setting, index) for index in indices]
            begin = self._begin(setting.rank, problems, starts, kind)
            if self._squares is None:
                self._squares = Squares(problems, self.folds)
            lowest, fewest = math.inf if to_beat is None else to_beat.mean, 3 if starts else 6
            losses, ends, n_iter = self._squares.run(problems, begin, lowest, fewest)
        else:
            # Of a path, a few folds are followed at every iteration.
            for index in indices[: 3 if path else None]:
                start = None if starts is None else starts[index]
                runs.append(self._on_fold(index, setting, start, kind, to_beat))
                losses = np.concatenate([run.losses for run in runs])
                if to_beat is not None and to_beat.prunes(losses):
                    break
            ends = [run.start for run in runs]
            ends += (starts or ends[-1:] * len(indices))[len(runs) :]
            n_iter = sum(run.n_iter for run in runs)
            if path:
                ending, losses = best_ending(runs, self.metric, self.options.max_iter)
        if not (path or self.stopped() or all(run.counts for run in runs)):
            losses = np.full_like(losses, np.inf)
        trial = Trial(
            setting,
            losses if best is None else best.completed(losses),
            n_iter,
            time.perf_counter() - began,
            ends,
            kind=kind,
            metric=self.metric,
            ending=ending,
        )
        self._estimate_sd(trial)
        self.done.append(trial)
        self.after(trial)
        trial.is_exact = trial.error <= self._exact * self.null_error + self._rounding
        return trial

    def _on_fold(
        self, index: int, setting: Setting, start: Start | None, kind: Kind, best: Trial | None
    ) -> FoldResult:
        """Return how a trial ends on a fold."""
        problem = self.problem(setting, index)
        if self.have_zeros:
            return self._as_fit(index, problem, setting.rank)
        learns = problem.units.model.learns
        slow = learns or self.is_mixed or setting.loss.degree != 2
        warm = 5 if self.is_mixed else 10 if slow else MIN_ITERATIONS
        if start is not None and start.model is not None:
            model = start.model.with_limits(problem.units.model.limits)
            if model.structure == problem.units.model.structure:  # not another f or loss
                problem = with_learned(problem, model, problem.rule.initial)
        at = slice(self._first_of_fold[index], self._first_of_fold[index + 1])
        progress = Progress(
            math.inf if best is None else mean_score(best.losses[at], self.metric),
            100 if kind == "long_trial" else 12 if start is None else warm,
            most=self.options.max_iter if kind == "cold_start" and self.refined else None,
            is_slow=slow,
            learns=learns,
            keeps_best=kind == "ridge_path",
        )
        (begin,) = self._begin(setting.rank, [problem], None if start is None else [start], kind)
        return self._iterated(index, problem, begin, progress)

    def _estimate_sd(self, trial: Trial) -> None:
        """Take the error of a trial at the held-out entries whose values are known, if lower."""
        if not (self._estimates_sd and trial.setting.loss.squares):
            return
        exact = np.concatenate([fold.held_out.exact for fold in self.folds])
        if exact.any():
            error = trial.gaussian_sd(exact)
            self.limits = self.limits._replace(sd=min(self.limits.sd, error))

    def _iterated(
        self, index: int, problem: Problem, start: Start, progress: Progress
    ) -> FoldResult:
        """Return how the iterations of an engine end; what a fit learns is learned on the way."""
        curve: list[FloatArray] = []
        while True:
            plan = make_plan(problem, start.W.shape[1], self.options) if self.refined else None
            model, learned = problem.units.model, None
            score = HeldOut(self.folds[index].held_out, model, self.folds[index].rest)
            engine: FitEngine = Refined(plan) if plan else Admm()
            with np.errstate(over="ignore", invalid="ignore"):
                for iterate in iterates(engine, problem, start):
                    ends, mean = self.stopped() or not iterate.is_finite, None
                    if ends or progress.needs_score:
                        of_X = state_of(problem, iterate) if problem.units.exponent else iterate
                        losses = score.scores(of_X.W_aug, of_X.H_aug, self.metric)
                        losses = losses / self.mean_weight
                        mean = mean_score(losses, self.metric)
                    progress.add(mean, iterate.objective, iterate.relative_residual)
                    if progress.keeps_best:
                        curve.append(losses)
                    if ends or progress.is_over:
                        end = _start_from(state_of(problem, iterate, model=model))
                        return FoldResult(losses, end, progress.count, progress.counts, curve)
                    if progress.may_learn:
                        state = state_of(problem, iterate, model=model)
                        learned = learned_state(problem, state, state)
                        progress.is_learned = learned is None
                        if learned is not None:
                            break
            assert learned is not None
            problem = with_learned(problem, learned.model or model, learned.penalty)
            start = problem.units.scaled_start(_start_from(learned))
            progress.begin_round()

    def _as_fit(self, index: int, problem: Problem, rank: int) -> FoldResult:
        """Return how a fit ends, or its iterations after which the error hardly changes."""
        options, fold = self.options, self.folds[index]
        plan = make_plan(problem, rank, options)
        start = next(all_starts(problem, rank, options, plan, self.rng))
        most = min(options.max_iter, 200)  # a trial is shorter than a fit
        rules = Stopping(most, None, lambda _: self.stopped(), tol=options.tol, window=plan.window)
        begin = partial(warmed_up, problem, start, options, plan)
        run = fit_from(problem, begin, rules, engine_for(plan), FitProgress())
        assert run.result is not None
        state, model = run.result, problem.units.model
        losses = row_losses(fold.held_out, fold.rest.as_sparse(), model, state.W_aug, state.H_aug)
        return FoldResult(losses, _start_from(state), run.n_iter)

    def _begin(
        self, rank: int, problems: list[Problem], starts: list[Start] | None, kind: Kind
    ) -> list[Start]:
        """Return where a trial begins, in the units of the problems."""
        if starts:
            units = problems[0].units
            scaled = [units.scaled_start(start) for start in starts]
            if kind == "offsets_alone":
                return scaled
            return starts_of_rank(problems, scaled, rank, self.rng)
        options = replace(self.options, init="auto", time_limit=None)
        first = [first_start(problem, rank, options, self.rng) for problem in problems]
        if kind != "ridge_path":
            return first
        pairs = zip(problems, first, strict=True)
        return [after_strong_ridges(*pair, Admm(), self.stopped) for pair in pairs]


def _start_from(state: State) -> Start:
    """Return the start of another trial, with what was learned."""
    model = state.model if state.model is not None and state.model.learns else None
    return Start(state.W, state.H, True, state.offsets, model)


MAX_STEPS = 30  # iterations


def suits(problem: Problem, rank: int) -> bool:
    """Return whether the steps minimise the objective of the problem, and are quick."""
    data, width = problem.observations, rank + problem.offset_columns.width
    simple = problem.model.is_least_squares and not problem.is_constrained and problem.alpha > 0
    # Python takes longer than the steps of ADMM on small data, unless normal matrices are large.
    small = data.n_observed < 10_000 and data.n_observed * width**2 <= 1 << 22
    quick = (problem.observed_only or small) and problem.device is HOST
    if not (simple and quick) or data.limits is not None:
        return False
    weights = data.weight_reader()
    return weights is None or bool(np.isin(weights[:], (0, 1)).all())


class FoldEntries:
    """The entries of several matrices of one shape, as those of a block-diagonal one."""

    def __init__(self, matrix: Any) -> None:
        self.matrix, self.values = matrix, matrix.data
        self.storage = CsrStorage(matrix.shape, matrix.indptr, matrix.indices)

    @classmethod
    def of_folds(cls, folds: Iterable[Observations]) -> FoldEntries:
        """Return the entries of all folds."""
        return cls(block_diag([fold.as_sparse().to_csr() for fold in folds], format="csr"))

    def residuals(self, rows: FloatArray, partners: FloatArray) -> FloatArray:
        """Return the values less the products of rows and partners."""
        return np.asarray(self.values - self.storage.all_products(rows, partners.T))

    def step(self, rows: FloatArray, partners: FloatArray, solved: slice, ridge: Ridge) -> None:
        """Move some columns of the rows to the least squares solutions for their entries."""
        used = np.ascontiguousarray(partners[:, solved])
        entries = [chunk_of_rows(self.storage)], self.residuals(rows, partners), used
        update_rows(None, *entries, ridge(used, 1.0), 1.0, slice(0, len(rows)), solved, rows)


class Squares:
    """Alternating least squares on the folds of some data."""

    def __init__(self, problems: list[Problem], folds: list[Fold]) -> None:
        units = problems[0].units
        self.rows = FoldEntries.of_folds(problem.observations for problem in problems)
        self.columns = FoldEntries(self.rows.matrix.T.tocsr())
        held_out = (units.scaled_observations(fold.held_out) for fold in folds)
        self.held_out = FoldEntries.of_folds(held_out)
        self._unit = 0.5 * 4.0**units.log2_unit_of_x

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
        solved_W, solved_H = first.offset_columns.solved(rank)
        ridges_W, ridges_H = first.ridges(rank)
        progress = Progress(lowest, fewest, most=MAX_STEPS)
        while True:
            self.rows.step(W, Ht, solved_W, ridges_W)
            self.columns.step(Ht, W, solved_H, ridges_H)
            errors = self.held_out.residuals(W, Ht)
            losses = self._unit * np.square(errors, dtype=np.float64)
            progress.add(float(np.mean(losses)))
            if progress.is_over:
                break
        factors = zip(problems, np.split(W, count), np.split(Ht, count), strict=True)
        ends = [_in_units_of_X(problem, W, Ht) for problem, W, Ht in factors]
        return losses, ends, progress.count


def _in_units_of_X(problem: Problem, W_aug: FloatArray, Ht_aug: FloatArray) -> Start:
    """Return extended factors as a start."""
    units = problem.units
    W, H, offsets = problem.offset_columns.split(W_aug, np.ascontiguousarray(Ht_aug.T))
    W, H = (np.ldexp(factor, units.exponent) for factor in (W, H))
    return Start(W, H, True, units.given_offsets(offsets))
