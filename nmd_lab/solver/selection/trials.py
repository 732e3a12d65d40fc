"""Trials: short fits to some of the entries, judged by the others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.model.kind import NO_LIMIT_MODEL, LimitModel
from nmd_lab.model.loss import Loss
from nmd_lab.model.model import Model, make_model
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.solver.engines.admm import Admm
from nmd_lab.solver.engines.protocol import FitEngine, Iterate, iterates
from nmd_lab.solver.engines.refined import Refined
from nmd_lab.solver.formulation import make_problem, observed_only
from nmd_lab.solver.held_out import HeldOut
from nmd_lab.solver.initialization import Start, svd_start
from nmd_lab.solver.learning import learned_state, with_learned
from nmd_lab.solver.limit_noise import first_sd, with_sd
from nmd_lab.solver.options import Options
from nmd_lab.solver.problem import Problem
from nmd_lab.solver.refinement.plan import make_plan
from nmd_lab.solver.ridge_path import after_strong_ridges, iterations_of
from nmd_lab.solver.scaling import scaling_for
from nmd_lab.solver.settings import is_automatic
from nmd_lab.solver.split_variable import pseudo_inverses
from nmd_lab.solver.starting_data import offsets_of
from nmd_lab.solver.starts import first_start
from nmd_lab.solver.state import State, state_of
from nmd_lab.solver.storage import CsrStorage, storage_of

from .folds import Fold
from .progress import (
    Progress,
    Run,
    best_ending,
    completed,
    is_beaten,
    lowest_of,
    mean_at,
    scores_of,
)
from .setting import Setting, Trial, mean_score
from .squares import after_few, iterated, suits
from .trial_starts import alive_components, components, singular_components, with_offsets_of

FEWEST = 3  # least number of iterations from the factors of another trial
FEWEST_SLOW = 10  # the same for a loss that is not a square
FEWEST_TABLE = 5  # the same for a table of several kinds of columns
FEWEST_COLD = 12  # the same without factors to begin with
FEWEST_PATIENT = 100  # the same for a patient trial
EXACT = 1e-8  # error, over the largest |x|, that counts as none; at least 100 rounding units
SEED_SIZE = 0.1  # least size of a new component, as a share of that in the residual


class Trials:
    """Runs trials on all folds, and keeps a list of them.

    Attributes
    ----------
    done : list of Trial
        Trials so far.
    limits : LimitModel
        What is known of entries with limits, with the lowest held-out error so far as sd if that is
        to be estimated.
    """

    def __init__(
        self,
        folds: list[Fold],
        options: Options,
        size: float,
        rng: np.random.Generator,
        stopped: Callable[[], bool],
        after: Callable[[Trial], None] = lambda trial: None,
        limits: LimitModel = NO_LIMIT_MODEL,
        kinds: Model | None = None,
    ) -> None:
        on_observed = observed_only(
            folds[0].rest.shape, folds[0].rest.n_observed, options.solver.split
        )
        self.folds = [fold.sparse() for fold in folds] if on_observed else folds
        self.options, self.size, self.rng, self._kinds = options, size, rng, kinds
        self._on_observed = on_observed
        self.stopped, self.after = stopped, after
        self.metric = options.validation.metric
        self.done: list[Trial] = []
        weights = [w for fold in folds if (w := fold.held_out.weights) is not None]
        self.mean_weight = float(np.mean(np.concatenate(weights))) if weights else 1.0
        rounding = 100 * float(np.finfo(folds[0].rest.dtype).eps)
        self._exact = max(EXACT, rounding)
        self._estimates_sd = math.isnan(limits.sd)
        first = first_sd(folds[0].rest) if self._estimates_sd else limits.sd
        self.limits = limits._replace(sd=first)
        self._problems: dict[tuple[Nonlinearity, Loss, str], list[Problem]] = {}

    @property
    def has_limits(self) -> bool:
        """Whether only limits are known of some entries."""
        return self.folds[0].rest.limits is not None

    @property
    def is_mixed(self) -> bool:
        """Whether there are several kinds of columns, each in units of its own."""
        return self._kinds is not None

    def may_follow_path(self, setting: Setting) -> bool:
        """Return whether a fit may begin with a path of ridges and end early."""
        options, problem = self.options, self.problems(setting)[0]
        begins = options.init == "auto" and options.n_init == 1 and setting.alpha > 0
        ends = options.tol == Options.tol and not options.validation.stops_early
        model = problem.units.model
        simple = not (self.is_mixed or model.learns or model.even or problem.is_constrained)
        return begins and ends and simple and is_automatic(options.solver)

    def problems(self, setting: Setting) -> list[Problem]:
        """Return the problem of each fold, with the ridges of a setting."""
        f, loss, kind = setting.nonlinearity, setting.loss, setting.offsets
        if (f, loss, kind) not in self._problems:
            options = replace(self.options, alpha=1.0, offset_alpha=1.0, offsets=kind)
            model = (self._kinds or make_model(f, loss)).with_limits(self.limits)
            scaling = scaling_for(model, self.size)
            self._problems[f, loss, kind] = [
                make_problem(fold.rest, scaling, options, self._on_observed)[0]
                for fold in self.folds
            ]
        base = self._problems[f, loss, kind]
        ridged = [_with_ridges(problem, setting.alpha, setting.offset_alpha) for problem in base]
        if self._estimates_sd:
            return [with_sd(problem, self.limits.sd) for problem in ridged]
        return ridged

    def run(
        self,
        setting: Setting,
        starts: list[Start] | None = None,
        *,
        patient: bool = False,
        refined: bool | None = None,
        fresh: bool = False,
        path: bool = False,
        offsets_alone: bool = False,
    ) -> Trial:
        """Do a trial.

        A patient one has about as many iterations as a fit.  A fresh one goes on even if others are
        better, and so does one of offsets alone, with which the best one is compared.  One with a
        path begins as `init="path"` does, and has the scores after as many iterations as are best.
        """
        problems = self.problems(setting)
        learns = problems[0].units.model.learns
        slow = learns or self.is_mixed or setting.loss.degree != 2
        fewest = FEWEST_TABLE if self.is_mixed else FEWEST_SLOW if slow else FEWEST
        if patient or starts is None:
            fewest = FEWEST_PATIENT if patient else FEWEST_COLD
        if refined is None:
            refined = self.options.alpha != "auto"
        began = time.perf_counter()
        best = None if fresh or path or offsets_alone else lowest_of(self.done, setting)
        runs: list[Run] = []
        for index, problem in enumerate(problems):
            start = None if starts is None else starts[index]
            if start is not None and start.model is not None:
                model = start.model.with_limits(problem.units.model.limits)
                if model.structure == problem.units.model.structure:  # not another f or loss
                    problem = with_learned(problem, model, problem.rule.initial)
            lowest = math.inf if best is None else mean_at(best, index, self.folds)
            by_log = self.metric == "log_score"  # whose mean score is an exponential
            lowest = lowest**self.mean_weight if by_log else lowest * self.mean_weight
            progress = Progress(
                *(lowest, fewest),
                most=self.options.max_iter if fresh and refined else None,
                is_slow=slow,
                learns=learns,
                keeps_best=path,
            )
            if start is not None and offsets_alone:
                begin = problem.units.scaled_start(start)
            else:
                begin = self._start(setting, problem, start, path)
            runs.append(self._run(index, problem, begin, progress, refined))
            losses = scores_of(runs) / self.mean_weight
            if starts is not None and best is not None and is_beaten(losses, best):
                break
        seconds = time.perf_counter() - began
        ends = [run.start for run in runs] + (starts or [])[len(runs) :]
        n_iter = sum(run.progress.count for run in runs)
        trial = Trial(setting, completed(losses, best), n_iter, seconds, ends)
        trial.cold, trial.refined, trial.metric = starts is None, refined, self.metric
        trial.offsets_alone = offsets_alone
        if path:
            trial.ending, losses = best_ending(runs, self.metric, self.options.max_iter)
            trial.losses = losses / self.mean_weight
        trial.counts = path or self.stopped() or all(run.progress.counts for run in runs)
        if self._estimates_sd:
            self._estimate_sd(trial)
        trial.is_exact = trial.mean <= (self._exact * self.size) ** trial.degree
        return self.add(trial)

    def add(self, trial: Trial) -> Trial:
        """Add a trial to the list."""
        self.done.append(trial)
        self.after(trial)
        return trial

    def _estimate_sd(self, trial: Trial) -> None:
        """Take the error of a trial at the held-out entries whose values are known, if lower."""
        if not trial.setting.loss.squares:
            return
        exact = np.concatenate([fold.is_known for fold in self.folds])
        if exact.any():
            error = trial.gaussian_sd(exact)
            self.limits = self.limits._replace(sd=min(self.limits.sd, error))

    def _run(
        self, index: int, problem: Problem, start: Start, progress: Progress, refined: bool
    ) -> Run:
        """Return how a trial ends on a fold; what a fit learns is learned on the way."""
        if self.metric in ("deviance", "rmse") and not refined and suits(problem, start):
            return self._run_of_squares(index, problem, start, progress)
        curve: list[FloatArray] = []
        while True:
            model, learned = problem.units.model, None
            score = HeldOut(self.folds[index].held_out, model)
            with np.errstate(over="ignore", invalid="ignore"):
                for iterate in self._iterates(problem, start, refined):
                    state = state_of(problem, iterate, model=model)
                    losses = score.scores(state.W_aug, state.H_aug, self.metric)
                    progress.add(mean_score(losses, self.metric), iterate)
                    if progress.keeps_best:
                        curve.append(losses)
                    if progress.is_over or self.stopped() or not iterate.is_finite:
                        return Run(losses, _start_from(state), progress, curve)
                    if progress.may_learn:
                        learned = learned_state(problem, state, state)
                        progress.is_learned = learned is None
                        if learned is not None:
                            break
            assert learned is not None
            assert learned.model is not None
            problem = with_learned(problem, learned.model, learned.penalty)
            start = problem.units.scaled_start(_start_from(learned))
            progress.begin_round()

    def _run_of_squares(
        self, index: int, problem: Problem, start: Start, progress: Progress
    ) -> Run:
        """Return how a trial ends on a fold of small data, with linear f and squares."""
        held_out = self.folds[index].held_out
        with np.errstate(over="ignore", invalid="ignore"):
            ending = iterated(
                problem,
                start,
                (held_out.rows, held_out.indices, held_out.values),
                (2 * progress.lowest, progress.fewest, progress.most, progress.keeps_best),
            )
        progress.count, losses = ending.n_iter, 0.5 * ending.squares
        curve = list(losses[: ending.n_iter]) if progress.keeps_best else []
        return Run(losses[len(curve) - 1 if curve else 0], ending.start(problem), progress, curve)

    def _iterates(self, problem: Problem, start: Start, refined: bool) -> Iterator[Iterate]:
        """Return the iterates of a trial."""
        plan = make_plan(problem, start.W.shape[1], self.options) if refined else None
        engine: FitEngine[Any] = Refined(plan) if plan else Admm()
        return iterates(engine, problem, start)

    def _start(self, setting: Setting, problem: Problem, start: Start | None, path: bool) -> Start:
        """Return the start of a trial, in the units of the problem."""
        rank = setting.rank
        if start is None:
            first = self._first_start(problem, rank)
            if not path:
                return first
            after = after_few if suits(problem, first) else iterations_of(Admm())
            return after_strong_ridges(problem, first, after, self.stopped)
        scaled = with_offsets_of(problem, problem.units.scaled_start(start))
        rotates = not problem.is_constrained  # a rotation would break a constraint
        components_of = singular_components if rotates else components
        alive = alive_components(components_of(scaled), rank, problem.size_of_T)
        return alive if alive.W.shape[1] == rank else self._extended(problem, alive, rank)

    def _first_start(self, problem: Problem, rank: int) -> Start:
        """Return the start of a fit, with the warm-up of an even f."""
        options = replace(self.options, init="auto", time_limit=None)
        return first_start(problem, offsets_of(problem), rank, options, self.rng)

    def _extended(self, problem: Problem, start: Start, rank: int) -> Start:
        """Return a start with further components, the largest of the residual under the ridge."""
        model, observations = problem.model, problem.observations
        W_aug, H_aug = problem.offset_columns.extend(start.W, start.H, start.offsets)
        storage = storage_of(observations)
        if isinstance(storage, CsrStorage):
            A = storage.all_products(W_aug, H_aug)
        else:
            A = (W_aug @ H_aug).ravel()
        residual = pseudo_inverses(observations, model) - A
        if model.single is not None:
            residual[model.nonlinearity(A) == observations.values.ravel()] = 0
        rest = observations.with_stored(residual)
        added = rank - start.W.shape[1]
        kind = "nndsvd" if problem.constraints.nonnegative else "randomized"
        identity = make_model("identity", "frobenius")
        new = svd_start(rest, identity, added, NO_OFFSETS, self.rng, kind)
        sizes = np.linalg.norm(new.H, axis=1) ** 2
        shrunk = np.maximum(sizes - problem.alpha, SEED_SIZE * sizes)
        root = np.sqrt(np.divide(shrunk, sizes, out=np.zeros_like(shrunk), where=sizes > 0))
        root = root.astype(start.W.dtype)
        return start._replace(
            W=np.hstack([start.W, new.W * root]), H=np.vstack([start.H, root[:, None] * new.H])
        )


def _start_from(state: State) -> Start:
    """Return the start of another trial, with what was learned."""
    model = state.model if state.model is not None and state.model.learns else None
    return Start(state.W, state.H, True, state.offsets, model)


def _with_ridges(problem: Problem, alpha: float, offset_alpha: float) -> Problem:
    """Return the problem with other ridges, which are in the units of X."""
    units, constant = problem.units, problem.offset_columns.constant
    return problem.described().changed(
        alpha=units.scaled_alpha(alpha),
        offset_alpha=units.scaled_offset_alpha(offset_alpha, constant),
    )
