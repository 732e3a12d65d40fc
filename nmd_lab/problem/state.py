"""What is known of a fit after an iteration, in the units of X, and what is learned from it.

Learned are a monotone f, a dispersion and cut points.  The objective is minimised over the factors
and over these parameters in turn (block coordinate descent).  Between two rounds of iterations f
comes nearer to X, and the parameters become those of highest likelihood, at the factors of lowest
objective.  The next round begins there, so that the lowest objective never rises.  Rounds become
longer.  A round continues without a pause where new parameters would gain next to nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nmd_lab._runtime.checks import check_positions
from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.kernels.products import CsrStorage
from nmd_lab.model.fitted_values import FittedValues, Offsets
from nmd_lab.model.model import Model

from .problem import Problem


@dataclass(frozen=True)
class Iterate:
    """The iterate of a state, in the units of the problem.  Later steps do not change it.

    Attributes
    ----------
    W_aug, H_aug : ndarray (m, rank + ...) and (rank + ..., n)
        Factors extended by the offsets (`OffsetColumns`); f is applied to ``W_aug @ H_aug``.
    objective : float
        Weighted loss of f(WH) on the observed entries, plus the ridge of factors and offsets.
    relative_error : float
        Relative error of f(WH), as the loss defines it.
    primal_residual, dual_residual, penalty : float
        ‖T - WH‖, the dual residual, and ρ.
    relative_residual : float
        Larger of ‖T - WH‖ and ‖T - T_previous‖ over the norm of the starting T.
    """

    W_aug: FloatArray
    H_aug: FloatArray
    objective: float = math.inf
    relative_error: float = math.inf
    primal_residual: float = 0.0
    dual_residual: float = 0.0
    penalty: float = math.nan
    relative_residual: float = math.inf

    @property
    def is_finite(self) -> bool:
        """Whether objective and residuals are finite."""
        return math.isfinite(self.objective + self.primal_residual + self.dual_residual)

    def with_residuals_of(self, other: Iterate) -> Iterate:
        """Return the iterate with the residuals and the penalty of another one."""
        names = ("primal_residual", "dual_residual", "penalty", "relative_residual")
        return replace(self, **{name: getattr(other, name) for name in names})


@dataclass(frozen=True, kw_only=True)
class State(Iterate):
    """The result of one iteration.  Later iterations do not change its arrays.

    Attributes
    ----------
    iteration : int
        Number of the iteration, 1 for the first.
    W, H : ndarray (m, rank) and (rank, n)
        Factors.
    offsets : Offsets
        Offsets, which are added to WH inside f.
    W_aug, H_aug : ndarray (m, rank + ...) and (rank + ..., n)
        Factors extended by the offsets (`OffsetColumns`); f is applied to ``W_aug @ H_aug``.
    objective : float
        Weighted loss of f(WH) on the observed entries, plus the ridge of factors and offsets.
    relative_error : float
        Relative error of f(WH), as the loss defines it.
    primal_residual : float
        ‖T - WH‖.
    dual_residual : float
        ρ‖T - T_previous‖; ρ‖Wᵀ(T - T_previous)‖ for the rule "paper".
    penalty : float
        ρ of this iteration.
    relative_residual : float
        Larger of ‖T - WH‖ and ‖T - T_previous‖ over the norm of the starting T.
    seconds : float
        Time since the start, in seconds.
    stop_reason : StopReason or None
        Reason to end the run here, from the refinements; None if there is none.
    model : Model, optional
        Nonlinearity and loss in the units of X, with the parameters that are learned so far.  A
        callback always has them.

    Examples
    --------
    A callback gets the state of each iteration, and ends the fit by returning True:

    >>> import nmd_lab as nmd
    >>> def enough(state):
    ...     return state.relative_error < 0.3 or state.iteration == 50
    >>> digits = nmd.datasets.digits(100)
    >>> fit = nmd.decompose(digits, 8, "relu", callback=enough, random_state=0)
    >>> fit.stop_reason.code, fit.relative_error < 0.3
    ('callback', True)
    """

    W: FloatArray
    H: FloatArray
    offsets: Offsets
    iteration: int = 1
    seconds: float = 0.0
    stop_reason: StopReason | None = None
    model: Model | None = None

    @property
    def _fitted(self) -> FittedValues:
        """f(WH) at positions."""
        assert self.model is not None
        return FittedValues(self.W, self.H, self.offsets, self.model)

    def predict(self, rows: Any, columns: Any, *, without: ArrayLike = ()) -> FloatArray:
        """Return f(WH) at positions, for a callback that compares iterates with other data.

        Parameters
        ----------
        rows, columns : int or array_like of int
            Positions, which broadcast.
        without : int or array_like of int, optional
            Numbers of components that are left out of WH.

        Returns
        -------
        ndarray, 1-D
            One number for each pair of row and column.
        """
        i, j = np.broadcast_arrays(np.atleast_1d(rows), np.atleast_1d(columns))
        (m, n), fitted = self._fitted.shape, self._fitted.without(without)
        return fitted.at(check_positions("rows", i, m), check_positions("columns", j, n))

    def __repr__(self) -> str:
        m, n, rank = self.W.shape[0], self.H.shape[1], self.W.shape[1]
        return (
            f"<nmd_lab.State>  iteration: {self.iteration}, objective: {self.objective:.6g}, "
            f"relative error: {self.relative_error:.3g}, W: {m} x {rank}, H: {rank} x {n}, "
            f"{self.seconds:.3g} s"
        )


def state_of(problem: Problem, iterate: Iterate, **others: Any) -> State:
    """Return an iterate of a problem in the units of X, with other fields of a state.

    In these units offsets have ones beside them.
    """
    units, exponent = problem.units, problem.units.exponent
    W, H, offsets = problem.offset_columns.split(iterate.W_aug, iterate.H_aug)
    if exponent:
        W, H, offsets = np.ldexp(W, exponent), np.ldexp(H, exponent), units.given_offsets(offsets)
        columns = replace(problem.offset_columns, mean=offsets.mean, constant=1.0)
        pieces, H_aug = columns.extend(W, H, offsets)
        of_T, of_penalty = 2.0 ** (2 * exponent), 2.0**units.log2_unit_of_penalty
        W_size = 2.0**exponent if problem.rule.projected else 1.0
        iterate = replace(
            iterate,
            W_aug=problem.observations.stacked(pieces, H_aug.dtype),
            H_aug=H_aug,
            objective=iterate.objective * 2.0**units.log2_unit_of_objective,
            primal_residual=iterate.primal_residual * of_T,
            dual_residual=iterate.dual_residual * of_penalty * of_T * W_size,
            penalty=iterate.penalty * of_penalty,
        )
    return State(**vars(iterate), W=W, H=H, offsets=offsets, **others)


def learned_state(problem: Problem, last: State, best: State) -> State | None:
    """Return the best state with parameters of higher likelihood, as the last state.

    None if they would gain next to nothing.
    """
    observations = problem.units.given_observations(problem.observations)
    rows, columns, x = observations.entries()
    (_, weights), x = observations.observed(), x.astype(np.float64)
    t = products_at(best.W_aug, best.H_aug, rows, columns).astype(np.float64)
    old = best.model
    assert old is not None
    limits = observations.as_sparse().limits if observations.limits is not None else None
    exact = slice(None) if limits is None else limits.codes == 0
    new = old.learned(x[exact], t[exact], weights[exact], rows[exact], columns[exact])
    before, after = (
        float(np.sum(weights * model.losses(x, t, rows, columns, limits))) for model in (old, new)
    )
    gain = before - after
    if not gain > 1e-4 * abs(best.objective):  # which is not worth a new round
        return None
    error = best.relative_error
    if observations.limits is None and not problem.units.exponent:
        error = new.relative_error(after, problem.reference)
    return replace(
        last,
        **{name: getattr(best, name) for name in ("W", "H", "offsets", "W_aug", "H_aug")},
        objective=best.objective - gain,
        relative_error=error,
        stop_reason=None,
        model=new,
    )


def products_at(W: FloatArray, H: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """Return WH at entries, given their positions, row by row."""
    indptr = np.searchsorted(rows, np.arange(len(W) + 1))
    storage = CsrStorage((len(W), H.shape[1]), indptr, columns.astype(np.int32, copy=False))
    return storage.all_products(W, H)


def with_learned(problem: Problem, model: Model, penalty: float) -> Problem:
    """Return the problem with another model, whose ρ begins where the last round ended."""
    learned = problem.with_model(model)
    if problem.units.exponent or problem.rule.initial == penalty:
        return learned
    return learned.changed(rule=replace(learned.rule, initial=penalty))
