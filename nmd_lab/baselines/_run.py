"""What every baseline shares: how its iterates are judged and recorded, and become a result.

An iterative baseline is a loop of three lines,

    run = Run(observations, f, loss, max_iter=max_iter, tol=tol)
    while run.goes_on(W, H):
        W, H = ...  # one step
    return run.result(method="name")

and a direct one hands its factors to `labelled`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Identity, Nonlinearity
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.options import Settings

from ._pack import data_term, decomposition_of, plain

RECORDED = ("objective", "relative_error", "seconds")
"""The numbers of an iterate that a history keeps."""


@dataclass(frozen=True)
class Iterate:
    """One iteration's result, as a callback sees it; its arrays are never written to again.

    Attributes
    ----------
    iteration : int
        1 for the first.
    W, H : ndarray (m, rank), (rank, n)
        The factors.
    objective : float
        Weighted loss of f(WH) on Ω plus alpha/2 (‖W‖² + ‖H‖²).
    relative_error : float
        The data term as the loss's relative error.
    seconds : float
        What the iterations have taken, without the time that judging them takes.
    """

    iteration: int
    W: FloatArray
    H: FloatArray
    objective: float
    relative_error: float
    seconds: float

    @property
    def is_finite(self) -> bool:
        """Whether every number of the iteration is finite."""
        parts = (self.objective, self.W, self.H)
        return all(bool(np.all(np.isfinite(part))) for part in parts)


class Run:
    """The iterations of a baseline: their numbers, when they end, and the best of them.

    Parameters
    ----------
    observations : Observations
        The data, with absent entries missing.
    nonlinearity : Nonlinearity
        f, which predictions f(WH) pass through.
    loss : Loss
        d, in whose sense errors are meant.
    max_iter : int
        Most iterations.
    tol : float, default 0
        Ends the run when an iteration changes the objective by at most this share of it;
        0 never does.
    time_limit : float, optional
        Seconds of iterating.
    callback : callable, optional
        Called with each `Iterate`; a true value ends the run.
    alpha : float, default 0
        Ridge that the objective has.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense, or the data make none under the loss.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> from nmd_lab.data.observations import observe
    >>> data = observe(np.full((3, 2), 4.0))
    >>> run = Run(data, nmd.Identity(), nmd.Frobenius(), max_iter=3)
    >>> W, H = np.ones((3, 1)), np.ones((1, 2))
    >>> while run.goes_on(W, H):
    ...     H = H + 1
    >>> run.result(method="counting").history.objective.values
    array([12.,  3.,  0.])
    """

    def __init__(
        self,
        observations: Observations,
        nonlinearity: Nonlinearity,
        loss: Loss,
        *,
        max_iter: int,
        tol: float = 0.0,
        time_limit: float | None = None,
        callback: Callable[[Iterate], Any] | None = None,
        alpha: float = 0.0,
    ) -> None:
        self.settings = Settings(  # which checks them
            max_iter=max_iter, tol=tol, time_limit=time_limit, callback=callback, alpha=alpha
        )
        values, weights = observations.observed()
        loss.check_data(float(values.min()), float(values.max()))
        self.observations, self.nonlinearity, self.loss = observations, nonlinearity, loss
        self.reference = loss.reference(values, weights)
        self.best: Iterate | None = None
        self.history: dict[str, list[float]] = {name: [] for name in RECORDED}
        self.stop_reason = ""
        self._resumed: float | None = None
        self._seconds = 0.0

    def goes_on(self, W: FloatArray, H: FloatArray) -> bool:
        """Record an iteration's factors, and say whether there is to be another.

        The first call, with the starting factors, starts the clock and records nothing.  The
        factors are copied, so that a step may work in place.

        Raises
        ------
        FloatingPointError
            If the first iterate already is not finite.
        """
        if self._resumed is not None:
            self._seconds += time.perf_counter() - self._resumed
            self._follow(self._judged(W, H))
        self._resumed = time.perf_counter()
        return not self.stop_reason

    def result(
        self,
        *,
        method: str,
        stop_reason: str | None = None,
        blank_unobserved: bool = True,
        **parameters: Any,
    ) -> Decomposition:
        """Return the iterate of lowest objective as a `Decomposition`.

        Parameters
        ----------
        method : str
            The name of the baseline.
        stop_reason : str, optional
            Why the loop ended, if it did so by itself.
        blank_unobserved : bool, default True
            Whether rows and columns in which nothing is observed get zero factors, as `complete`
            gives them.
        **parameters
            What else the result should remember: plain numbers and words, and of anything else
            (a Generator, starting factors) its type.

        Raises
        ------
        RuntimeError
            If there was no iteration.
        """
        if self.best is None:
            raise RuntimeError("the run has no iterate yet: call goes_on after each step.")
        W, H = self.best.W.copy(), self.best.H.copy()
        if blank_unobserved:
            rows, columns = self.observations.empty_rows_and_columns()
            W[rows], H[:, columns] = 0, 0
        rules = {name: getattr(self.settings, name) for name in ("max_iter", "tol", "time_limit")}
        return decomposition_of(
            self.observations,
            self.nonlinearity,
            self.loss,
            (W, H),
            self.history,
            stop_reason or self.stop_reason,
            {
                "method": method,
                "iteration": self.best.iteration,
                **rules,
                **{name: plain(value) for name, value in parameters.items()},
            },
        )

    def _judged(self, W: FloatArray, H: FloatArray) -> Iterate:
        """Return the iterate that the factors make."""
        dtype = self.observations.values.dtype
        W, H = (np.array(factor, dtype=dtype, order="C") for factor in (W, H))
        with np.errstate(all="ignore"):  # an overflow ends the run, with its own sentence
            error = data_term(self.observations, self.nonlinearity, self.loss, W, H)
            norms = np.sum(np.square(W), dtype=float) + np.sum(np.square(H), dtype=float)
        return Iterate(
            len(self.history["objective"]) + 1,
            W,
            H,
            objective=error + 0.5 * self.settings.alpha * float(norms),
            relative_error=self.loss.relative_error(error, self.reference),
            seconds=self._seconds,
        )

    def _follow(self, iterate: Iterate) -> None:
        """Record an iterate and decide whether it is the last."""
        if not iterate.is_finite:
            self.stop_reason = f"not finite: iteration {iterate.iteration} overflowed"
            if self.best is None:
                raise FloatingPointError(
                    f"{self.stop_reason}: scale X down, or change the start or the step."
                )
            return
        for name in RECORDED:
            self.history[name].append(getattr(iterate, name))
        if self.best is None or iterate.objective < self.best.objective:
            self.best = iterate
        self.stop_reason = self._verdict(iterate)

    def _verdict(self, iterate: Iterate) -> str:
        """Return why the run ends with this iterate, or "" if it does not."""
        rules = self.settings
        stop = rules.callback is not None and rules.callback(iterate)
        last = self.history["objective"][-2:]
        if rules.tol > 0 and len(last) == 2 and abs(last[0] - last[1]) <= rules.tol * last[0]:
            return f"converged: the objective changed by no more than tol={rules.tol:g} of itself"
        if iterate.iteration >= rules.max_iter:
            return f"max_iter: {rules.max_iter} iterations done"
        if stop:
            return f"callback: stopped after {iterate.iteration} iterations"
        if rules.time_limit is not None and iterate.seconds >= rules.time_limit:
            return f"time_limit: {rules.time_limit:g} s passed"
        return ""


def labelled(
    observations: Observations,
    W: FloatArray,
    H: FloatArray,
    loss: Loss,
    *,
    method: str,
    began: float,
    stop_reason: str,
    **parameters: Any,
) -> Decomposition:
    """Return the result of a method that has no iterations, with the nonlinearity Identity.

    Parameters
    ----------
    observations : Observations
        The data.
    W, H : ndarray (m, rank), (rank, n)
        The factors.
    loss : Loss
        In whose sense the errors are meant.
    method : str
        The name of the baseline.
    began : float
        When the work started, by `time.perf_counter`.
    stop_reason : str
        Why it ended.
    **parameters
        What else the result should remember.
    """
    seconds = time.perf_counter() - began
    dtype = observations.values.dtype
    W, H = (np.ascontiguousarray(factor, dtype=dtype) for factor in (W, H))
    objective = data_term(observations, Identity(), loss, W, H)
    relative_error = loss.relative_error(objective, loss.reference(*observations.observed()))
    history = dict(zip(RECORDED, ([objective], [relative_error], [seconds]), strict=True))
    remembered = {"method": method, "iteration": 1, **parameters}
    return decomposition_of(
        observations, Identity(), loss, (W, H), history, stop_reason, remembered
    )
