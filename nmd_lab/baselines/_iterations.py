"""What every baseline is made with: its objective, its starting factors, its loop and its result.

An iterative baseline is a loop of three lines:

    run = BaselineRun(observations, f, loss, max_iter=max_iter, tol=tol)
    while run.record(W, H):
        W, H = ...  # one step
    return run.result(method="name")
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._runtime.checks import as_generator, check_size, check_word
from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.fit.loop import Stopping
from nmd_lab.kernels.products import products_of_blocks, storage_of
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.model.losses import Loss
from nmd_lab.model.model import make_model
from nmd_lab.model.nonlinearities import Identity, Nonlinearity
from nmd_lab.problem.initialization import given_start, random_start, svd_start
from nmd_lab.request.options import Options
from nmd_lab.result.decomposition import Decomposition


class Record(NamedTuple):
    """The numbers of one iterate that a history keeps; see `Iterate`."""

    objective: float
    relative_error: float
    seconds: float


@dataclass(frozen=True)
class Iterate:
    """Factors after one iteration, with their objective. Callbacks get it.

    Attributes
    ----------
    iteration : int
        Number of the iteration, 1 for the first.
    W, H : ndarray (m, rank), (rank, n)
        Factors. The arrays are never changed later.
    objective : float
        Weighted loss of f(WH) on the observed entries plus alpha/2 (‖W‖² + ‖H‖²).
    relative_error : float
        Relative error of f(WH) on the observed entries, as the loss defines it.
    seconds : float
        Time of all iterations so far. The time of evaluating the objective is not included.
    """

    iteration: int
    W: FloatArray
    H: FloatArray
    objective: float
    relative_error: float
    seconds: float

    @property
    def record(self) -> Record:
        """The numbers for the history."""
        return Record(self.objective, self.relative_error, self.seconds)

    @property
    def is_finite(self) -> bool:
        """Whether the objective and both factors are finite."""
        return all(bool(np.all(np.isfinite(a))) for a in (self.objective, self.W, self.H))


@dataclass(frozen=True)
class Objective:
    """The weighted loss of f(WH) on the observed entries, plus a ridge on the factors."""

    observations: Observations
    nonlinearity: Nonlinearity
    loss: Loss
    alpha: float = 0.0

    def __post_init__(self) -> None:
        """Refuse data that the loss does not allow, or whose errors overflow or vanish."""
        values, _ = self.observations.observed()
        smallest, largest = float(values.min()), float(values.max())
        self.loss.check_data(smallest, largest)
        check_size("X", max(-smallest, largest), values.dtype)

    @cached_property
    def reference(self) -> float:
        """The data term that stands for a relative error of one."""
        return self.loss.reference(*self.observations.observed())

    def evaluate(
        self, W: FloatArray, H: FloatArray, *, iteration: int = 1, seconds: float
    ) -> Iterate:
        """Return an iterate with copies of the factors, in the precision of the data."""
        dtype = self.observations.dtype
        W, H = (np.array(factor, dtype=dtype, order="C") for factor in (W, H))
        data_term = self._data_term(W, H)
        norms = np.sum(np.square(W), dtype=float) + np.sum(np.square(H), dtype=float)
        return Iterate(
            iteration,
            W,
            H,
            objective=data_term + 0.5 * self.alpha * float(norms),
            relative_error=self.loss.relative_error(data_term, self.reference),
            seconds=seconds,
        )

    def _data_term(self, W: FloatArray, H: FloatArray) -> float:
        """Return the weighted loss of f(WH), summed block by block."""
        observations = self.observations
        storage, values = storage_of(observations), observations.values.ravel()
        weights = None if observations.weights is None else observations.weights.ravel()
        total = 0.0
        for block, model in products_of_blocks(storage, W, storage.pack(H)):
            losses = self.loss(values[block.entries], self.nonlinearity(model))
            total += float(np.sum(losses if weights is None else losses * weights[block.entries]))
        return total


def pack(
    objective: Objective,
    iterate: Iterate,
    history: Sequence[Record] | None = None,
    *,
    method: str,
    stop_reason: StopReason,
    **parameters: Any,
) -> Decomposition:
    """Return the result of a baseline, with the labels of X."""
    observations = objective.observations
    records = [iterate.record] if history is None else history
    columns = zip(Record._fields, zip(*records, strict=True), strict=True)
    return Decomposition._from_matrices(
        observations.labels,
        iterate.W,
        iterate.H,
        dict(columns),
        nonlinearity=objective.nonlinearity,
        loss=objective.loss,
        stop_reason=stop_reason,
        parameters={
            "rank": iterate.W.shape[1],
            "n_observed": observations.n_observed,
            "method": method,
            "iteration": iterate.iteration,
            **{name: storable(value) for name, value in parameters.items()},
        },
    )


def storable(value: Any) -> Any:
    """Return a number, text or None for a file; of any other object only its type is kept."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | float | int | None) else f"given {type(value).__name__}"


class BaselineRun:
    """The recorder of an iterative baseline.

    It evaluates each iterate, keeps the best one and decides when to stop.

    Attributes
    ----------
    objective : Objective
        The objective of the iterates.
    best : Iterate or None
        The iterate of lowest objective, None before the first iteration.
    history : list of Record
        Numbers of all iterations.
    stop_reason : StopReason or None
        Code and sentence of the reason why the run stopped, None while it continues.
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
        self.settings = Options(  # which checks them
            max_iter=max_iter, tol=tol, time_limit=time_limit, callback=callback, alpha=alpha
        )
        self.objective = Objective(observations, nonlinearity, loss, alpha)
        self.best: Iterate | None = None
        self.history: list[Record] = []
        self.stop_reason: StopReason | None = None
        self._resumed: float | None = None
        self._seconds = 0.0

    def record(self, W: FloatArray, H: FloatArray) -> bool:
        """Record an iterate, and return whether to continue.

        The first call takes the starting factors. It starts the clock and records nothing. The
        factors are copied, so a step may change them in place.
        """
        if self._resumed is not None:
            self._seconds += time.perf_counter() - self._resumed
            with np.errstate(all="ignore"):  # an overflow stops the run with a reason of its own
                iterate = self.objective.evaluate(
                    W, H, iteration=len(self.history) + 1, seconds=self._seconds
                )
            self._keep(iterate)
        self._resumed = time.perf_counter()
        return self.stop_reason is None

    def result(
        self,
        *,
        method: str,
        stop_reason: StopReason | None = None,
        zero_unobserved: bool = True,
        **parameters: Any,
    ) -> Decomposition:
        """Return the iterate of lowest objective as a `Decomposition`."""
        if self.best is None:
            raise RuntimeError("the run has no iterate yet: call record after each step.")
        best = self.best
        if zero_unobserved:
            W, H = self.objective.observations.zero_unobserved(best.W, best.H)
            best = replace(best, W=W, H=H)
        rules = {name: getattr(self.settings, name) for name in ("max_iter", "tol", "time_limit")}
        return pack(
            self.objective,
            best,
            self.history,
            method=method,
            stop_reason=stop_reason or self.stop_reason or StopReason("other", ""),
            **rules,
            **parameters,
        )

    def _keep(self, iterate: Iterate) -> None:
        """Add an iterate to the history, unless it is not finite, and apply the stopping rules."""
        if not iterate.is_finite:
            self.stop_reason = StopReason(
                "not finite", f"not finite: iteration {iterate.iteration} overflowed"
            )
            if self.best is None:
                raise FloatingPointError(
                    f"{self.stop_reason}: scale X down, or change the start or the step."
                )
            return
        self.history.append(iterate.record)
        if self.best is None or iterate.objective < self.best.objective:
            self.best = iterate
        self.stop_reason = self._stop_reason_at(iterate)

    def _stop_reason_at(self, iterate: Iterate) -> StopReason | None:
        """Return why the run stops at an iterate, or None if it continues."""
        rules = self.settings
        stopping = Stopping(rules.max_iter, rules.time_limit, rules.callback)
        ended = stopping.reason(iterate, iterate.iteration)
        last = [record.objective for record in self.history[-2:]]
        if rules.tol > 0 and len(last) == 2 and abs(last[0] - last[1]) <= rules.tol * last[0]:
            text = f"converged: the objective changed by no more than tol={rules.tol:g} of itself"
            return StopReason("converged", text)
        return ended


START_FUNCTIONS = {"svd": svd_start, "random": random_start}
"""Functions that make starting factors, by the value of `init`."""


def first_factors(
    observations: Observations,
    rank: int,
    init: Any,
    random_state: Any,
    nonlinearity: Nonlinearity | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return new arrays W (m, rank) and H (rank, n) to start from."""
    f, rng = nonlinearity or Identity(), as_generator(random_state)
    if not isinstance(init, str):
        start = given_start(observations, rank, init, NO_OFFSETS)
    else:
        check_word("init", init, START_FUNCTIONS, ", a pair (W, H) or a fit")
        model = make_model(f, "frobenius")
        start = START_FUNCTIONS[init](observations, model, rank, NO_OFFSETS, rng)
    return start.W, start.H
