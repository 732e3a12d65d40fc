"""Algorithm 1 as an iterator of states.

With A = WH and the scaled dual variable U = Λ/ρ, one iteration is

    W ← Z Hᵀ (H Hᵀ + ridge I)⁻¹                  Z = T + U
    H ← (WᵀW + ridge I)⁻¹ Wᵀ Z
    V = A - U;   T ← prox(V; X, ρ) on Ω, V elsewhere;   U ← T - V
    ρ ← rule(residuals);   U rescaled by ρ_old / ρ_new

The T- and U-update and the next W-step need one block of rows at a time, so that one pass over the
data does both.  The loop below therefore begins with the H-step.

Source: A. Awari, N. Gillis and A. Vandaele, "Alternating Direction Method of Multipliers for
Nonlinear Matrix Decompositions", Algorithm 1.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nmd_lab._checks import check_positions
from nmd_lab._stop_reason import StopReason
from nmd_lab.checkpoint.place import NOWHERE, Place
from nmd_lab.data.base import FloatArray
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.model.mixed import AnyPair
from nmd_lab.model.offsets import Offsets

from .initialization import Start
from .problem import Problem


@dataclass(frozen=True)
class State:
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
        Reason to end the run here, from the refinements or from a comparison of starts; None if
        there is none.
    pair : Pair or MixedPair, optional
        Nonlinearity and loss in the units of X, with the parameters that are learned so far.  A
        callback always has them.

    Examples
    --------
    A callback gets the state of each iteration, and ends the fit by returning True:

    >>> import numpy as np, nmd_lab as nmd
    >>> def enough(state):
    ...     return state.relative_error < 0.5 or state.iteration == 7
    >>> X = np.maximum(np.random.default_rng(0).normal(size=(30, 20)), 0)
    >>> fit = nmd.decompose(X, 3, "relu", callback=enough, random_state=0)
    >>> fit.stop_reason.code, fit.n_iter <= 7
    ('callback', True)
    """

    iteration: int
    W: FloatArray
    H: FloatArray
    offsets: Offsets
    W_aug: FloatArray
    H_aug: FloatArray
    objective: float
    relative_error: float
    primal_residual: float
    dual_residual: float
    penalty: float
    relative_residual: float
    seconds: float
    stop_reason: StopReason | None = None
    pair: AnyPair | None = None

    @property
    def fitted(self) -> FittedValues:
        """f(WH) at positions."""
        pair = self.pair
        assert pair is not None
        return FittedValues(self.W, self.H, self.offsets, pair.nonlinearity, pair.loss)

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
        (m, n), fitted = self.fitted.shape, self.fitted.without(without)
        return fitted.at(check_positions("rows", i, m), check_positions("columns", j, n))

    @property
    def is_finite(self) -> bool:
        """Whether objective and residuals are finite."""
        return math.isfinite(self.objective + self.primal_residual + self.dual_residual)

    def __repr__(self) -> str:
        m, n, rank = self.W.shape[0], self.H.shape[1], self.W.shape[1]
        return (
            f"<nmd_lab.State>  iteration: {self.iteration}, objective: {self.objective:.6g}, "
            f"relative error: {self.relative_error:.3g}, W: {m} x {rank}, H: {rank} x {n}, "
            f"{self.seconds:.3g} s"
        )


def admm(problem: Problem, start: Start, place: Place = NOWHERE) -> Iterator[State]:
    """Iterate Algorithm 1 without end."""
    began = time.perf_counter()
    rule, loss = problem.rule, problem.pair.loss
    sweep = problem.sweep(start.W.shape[1])
    size_of_T = sweep.split_variable.size_of_T or 1.0
    reference = problem.reference
    rho, next_penalty, first = rule.initial, rule.begin(), 1

    if place.goes_on:
        kept = place.take()
        W, H, result = (kept[name] for name in ("W", "H", "result"))
        rho, next_penalty, first = kept["rho"], kept["next_penalty"], kept["iteration"] + 1
        dual, objective = kept["dual"], kept["objective"]
        sweep.restore(kept["sweep"])
    else:
        W, H = problem.projected(start)
        if start.from_factors:
            result = sweep.update_T_and_W(W, H, rho)
        else:
            if problem.constraints.of_W is None:
                W[:, sweep.solved_W] = 0  # so that S = T - offsets, and the W-step solves for W
            result = sweep.update_W(W, H, rho)

    def describe() -> dict[str, Any]:
        own = {"W": W, "H": H, "result": result, "rho": rho, "next_penalty": next_penalty}
        numbers = {"iteration": iteration, "dual": dual, "objective": objective}
        return own | numbers | {"sweep": sweep.kept()}

    place.mark(describe)
    for iteration in itertools.count(first):
        if iteration > 1:
            new_rho = next_penalty(rho, result.primal, dual, objective)
            if new_rho != rho:  # the W-step assumed the old ρ: repeat it
                sweep.split_variable.rescale(rho / new_rho)
                rho = new_rho
                result = sweep.update_W(W, H, rho)

        H = sweep.update_H(result, W, H, rho)
        W = result.W
        result = sweep.update_T_and_W(W, H, rho, projected=rule.projected)

        dual = rho * (result.projected_change if rule.projected else result.change)
        objective = result.data_term + sweep.ridge_term(W, H)
        yield State(
            iteration,
            *problem.offset_columns.split(W, H),
            W_aug=W,
            H_aug=H,
            objective=objective,
            relative_error=loss.relative_error(result.data_term, reference),
            primal_residual=result.primal,
            dual_residual=dual,
            penalty=rho,
            relative_residual=max(result.primal, result.change) / size_of_T,
            seconds=time.perf_counter() - began,
        )
