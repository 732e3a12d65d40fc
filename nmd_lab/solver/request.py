"""What is known of data before a fit is decided (`describe` asks them), and what a fit is to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._runtime.checks import check_rank, check_size, is_auto
from nmd_lab._runtime.compiler import is_ours
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.data.units import units_of_columns
from nmd_lab.model import checks
from nmd_lab.model.checks import report_of
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.model.kind import LimitModel
from nmd_lab.model.losses import Loss, as_loss
from nmd_lab.model.model import Model, make_model
from nmd_lab.model.nonlinearity import Nonlinearity

from .bounds import model_of_all
from .columns import is_by_column, is_mixed, measures_distance, mixed_model
from .formulation import observed_only
from .held_out import HeldOut
from .initialization import Start, given_start
from .limit_noise import limit_model
from .loop import Stopping
from .options import Options
from .problem import Problem
from .refinement.plan import RefinementPlan
from .run import FitState
from .selection.folds import Fold, draw_folds
from .selection.space import suitable_nonlinearities


class Known(NamedTuple):
    """Facts from the data, and results of the trials.

    Attributes
    ----------
    observations : Observations
        Data of the last fit.
    model : Model
        Model with what the data decide of it; stand-ins for what is to be chosen.
    nonlinearity, loss : Nonlinearity, Loss or Mixed, or None
        Those of the model; None if they are to be chosen.
    rank : int or None
        Number of components; None if it is to be chosen.
    limits : LimitModel
        What is known of entries with limits; sd = NaN if it is to be estimated.
    size : float
        Largest magnitude.
    observed_only : bool
        Whether T = WH is imposed on the observed entries alone.
    held_out : Observations or None
        Entries that stop the last fit early; None if it has all of them.
    folds : list of Fold or None
        Entries of the trials and those that judge them; None if the choice draws them itself.
    drawn : str
        How the folds were drawn, for `Decomposition.selection`.
    start : Start or None
        Factors of the trials from which the fit begins; None if it begins by `init`.
    selection : dict or None
        What `Decomposition.selection` tells; None if nothing was chosen.
    spent : float
        Seconds of `time_limit` that the choice took.
    """

    observations: Observations
    model: Model
    nonlinearity: Any
    loss: Any
    rank: int | None
    limits: LimitModel
    size: float
    observed_only: bool
    held_out: Any = None
    folds: list[Fold] | None = None
    drawn: str = "given"
    start: Start | None = None
    selection: dict[str, Any] | None = None
    spent: float = 0.0

    def model_with(self, f: Nonlinearity, loss: Loss) -> Model:
        """Return the model with a chosen f and loss; several kinds of columns are never chosen."""
        return self.model if self.model.is_mixed else make_model(f, loss)

    def is_open(self, options: Options) -> bool:
        """Return whether something is to be chosen by held-out entries."""
        found = self.nonlinearity, self.loss, self.rank
        return is_auto(options.alpha) or any(each is None for each in found)

    def folds_for_trials(self, rng: np.random.Generator) -> tuple[list[Fold], str]:
        """Return the folds, and how they were drawn; `rng` draws them if there are none."""
        if self.folds is None:
            return draw_folds(self.observations, rng)
        return self.folds, self.drawn


def describe(
    observations: Observations, rank: int | None, options: Options, *, is_table: bool
) -> Known:
    """Return the facts in the data; raise an error for options that do not suit them."""
    nonlinearity, loss = options.nonlinearity, options.loss
    if rank is not None:
        rank = check_rank(rank, observations.shape)
        if not isinstance(options.init, str):
            given_start(observations, rank, options.init, NO_OFFSETS)  # checks it
    distance = not (is_mixed(loss) or is_auto(loss)) and measures_distance(as_loss(loss))
    by_column = is_by_column(nonlinearity, loss, observations.labels)
    if is_table and is_auto(nonlinearity) and distance and options.compute.device is None:
        by_column |= has_units(observations, squares=as_loss(loss).squares)
    if by_column:
        model = mixed_model(nonlinearity, loss, observations)
    else:
        likely = "frobenius" if is_auto(loss) else loss
        model = model_of_all(nonlinearity, likely, observations, centred=True)
    f, d = model.shown
    if not by_column:  # None is to be chosen
        f, d = None if is_auto(nonlinearity) else f, None if is_auto(loss) else d
    size = check_size("X", max(map(abs, observations.range())), observations.dtype)
    if not (by_column or model.is_ours):
        refuse_wrong_parts(model, next(iter(observations.observed_blocks()))[0])
    on_observed = observed_only(observations.shape, observations.n_observed, options.solver.split)
    limits = LimitModel()
    if observations.limits is not None:
        limits = limit_model(observations, options.solver.limit_noise)
    return Known(observations, model, f, d, rank, limits, size, on_observed)


def has_units(observations: Observations, *, squares: bool) -> bool:
    """Return whether the columns of a DataFrame of numbers have units of their own.

    They have, but where many zeros or values at both ends suggest that all have one unit, in which
    ReLU or MinMax may suit them, or where there are limits, whose noise several kinds do not have;
    there, and for losses other than squares, only if the units are apart.
    """
    if not observations.is_small_table:
        return False
    plain = squares and observations.limits is None
    plain = plain and len(suitable_nonlinearities(observations)) == 1
    return plain or units_of_columns(observations) is not None


def stand_in(nonlinearity: Any, loss: Any) -> Model:
    """Return a model of one kind, with stand-ins for what data or trials decide."""
    f = "identity" if is_mixed(nonlinearity) or is_auto(nonlinearity) else nonlinearity
    return make_model(f, "frobenius" if is_mixed(loss) or is_auto(loss) else loss)


N_INPUTS = 200
"""Inputs for each check."""


def refuse_wrong_parts(model: Model, data: FloatArray) -> None:
    """Raise ValueError if a check fails near some values, with the object and the input."""
    f, d = model.nonlinearity, model.loss
    rng = np.random.default_rng(0)
    x = np.asarray(rng.choice(data, N_INPUTS), dtype=np.float64)
    rho = 10.0 ** rng.uniform(-2, 2, N_INPUTS)
    noise = rng.normal(size=N_INPUTS) * 10.0 ** rng.uniform(-2, 0, N_INPUTS)
    v = np.asarray(f.pseudo_inverse(x), dtype=np.float64) + noise * (1.0 + 0.1 * float(np.std(x)))
    if not is_ours(type(d)):
        few, y = np.unique(x)[:: max(1, N_INPUTS // 20)], np.unique(x + np.abs(noise))[::10]
        y = y[(y > d.domain[0]) & (y < d.domain[1])]
        centre = x + noise * (1.0 + 0.1 * np.abs(x))
        report_of(
            d,
            [
                ("d is a number", lambda: checks.loss_values(d, few, y)),
                (checks.CONVEX, lambda: checks.loss_is_convex(d, few[::3], y)),
                ("derivatives are those of d", lambda: checks.loss_derivatives(d, few, y)),
                (checks.PROXIMAL, lambda: checks.proximal_is_minimiser(d, x, centre, rho)),
            ],
        ).raise_for_failure()
    if not is_ours(type(f)):
        report_of(
            f,
            [
                ("f is finite", lambda: checks.f_is_finite(f, v)),
                ("f is continuous", lambda: checks.f_is_continuous(f, v)),
                ("derivative is that of f", lambda: checks.f_derivative(f, v)),
                ("f is its pieces", lambda: checks.f_pieces(f, v)),
            ],
        ).raise_for_failure()
    subject = f if is_ours(type(d)) else d
    check = (checks.MINIMISER, lambda: checks.t_update_is_minimiser(f, d, x, v, rho))
    report_of(subject, [check]).raise_for_failure()


class Decided(NamedTuple):
    """A checked problem with all that `solve` needs.

    Attributes
    ----------
    options : Options
        What was asked for, with the rank and what else was chosen in place of "auto".
    observations : Observations
        Data to fit, in the units of X.
    problem : Problem
        Problem to solve, with its model.
    starts : iterator of Start
        Starting points, each computed when it is requested.
    plan : RefinementPlan
        Refinements to run between the iterations of Algorithm 1.
    held_out : HeldOut or None
        Held-out entries for early stopping; None without validation.
    state : FitState
        Where the fit stands.
    save : callable
        Function that writes the state from time to time, if it is asked before each iteration.
    selection : dict or None
        What `Decomposition.selection` tells; None if nothing was chosen.
    spent : float
        Seconds of `time_limit` that the choice took.
    """

    options: Options
    observations: Observations
    problem: Problem
    starts: Iterator[Start]
    plan: RefinementPlan
    held_out: HeldOut | None
    state: FitState
    save: Callable[[], None]
    selection: dict[str, Any] | None = None
    spent: float = 0.0

    @property
    def model(self) -> Model:
        """Model, in the units of X."""
        return self.problem.units.model

    @property
    def after_choice(self) -> Options:
        """The options with what the choice left of the time limit."""
        limit = self.options.time_limit
        if limit is None:
            return self.options
        return replace(self.options, time_limit=max(limit - self.spent, 0.0))

    @property
    def rules(self) -> Stopping:
        """Rules that end the run from its first start."""
        options, patience = self.after_choice, self.options.solver.patience
        rules = Stopping(options.max_iter, options.time_limit, tol=options.tol, patience=patience)
        return replace(rules, window=self.plan.window)
