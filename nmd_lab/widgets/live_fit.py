"""A fit in a thread of its own, which can be stopped at any iteration and goes on from there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

from nmd_lab._threads import one_thread
from nmd_lab.fit import label
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.admm import State
from nmd_lab.solver.prepare import Prepared
from nmd_lab.solver.refinement.stages import optimality
from nmd_lab.solver.restarts import Solution, iterate
from nmd_lab.solver.run import VALIDATION, Run

from .snapshots import Snapshots

Phase = Literal["ready", "running", "stopped", "finished", "failed"]

REDRAW = 0.25
"""Seconds between two looks at a running fit, at least."""

SHARE = 19.0
"""Looking takes at most one part in twenty of the time."""


class ResumableFit:
    """A prepared fit that goes on as many iterations at a time as one wants.

    Its iterates are those of one uninterrupted fit.  With ``tol=0`` and nothing held out, the
    result after k iterations is that of ``max_iter=k``.

    Parameters
    ----------
    prepared : Prepared
        Result of `nmd_lab.solver.prepare.prepare`; only the first of its starts is run.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.run: Run | None = None

    def advance(self, iterations: int, callback: Callable[[State], bool]) -> Decomposition:
        """Do at most so many more iterations, and return the result so far.

        Parameters
        ----------
        iterations : int
            Largest number of further iterations.
        callback : callable
            Function of each state; a true value stops the fit.
        """
        problem, starts, options, plan, held_out = self.prepared
        with one_thread():
            if self.run is None:
                states = iterate(problem, next(starts), options, plan)
                self.run = Run(
                    states, tol=options.tol, held_out=held_out, patience=options.patience
                )
            outcome = self.run.advance(iterations, callback=callback)
            if self.run.gives_last and outcome.stop_reason.code == "callback":
                last = self.run.last
                assert last is not None
                outcome = outcome._replace(state=last, score=last.objective)
            distance = optimality(problem, outcome.state.W_aug, outcome.state.H_aug)
            return label(self.prepared, Solution(outcome, distance, []))


class LiveFit:
    """What an explorer runs: at most one fit, in a worker thread, and all that is known of it.

    Listeners are called without arguments, from whichever thread; while the fit runs at most
    four times a second.

    Attributes
    ----------
    phase : {"ready", "running", "stopped", "finished", "failed"}
        Where the fit stands.
    message : str
        The same in a sentence.
    result : Decomposition or None
        The fit as far as it has come; None before it first pauses.
    snapshots : Snapshots
        Some of its states.
    curves : dict of str to list of float
        Numbers of each iteration so far.
    state : State or None
        The last state.
    planned : int
        The iteration at which it will end.
    """

    def __init__(self) -> None:
        self.listeners: list[Callable[[], None]] = []
        self.finishing: Callable[[Decomposition], None] | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._clear()

    def _clear(self) -> None:
        self.phase: Phase = "ready"
        self.message = "ready"
        self.result: Decomposition | None = None
        self.snapshots = Snapshots()
        self.curves: dict[str, list[float]] = {}
        self.state: State | None = None
        self.planned = 0
        self._fit: ResumableFit | None = None
        self._next_look = 0.0

    @property
    def can_proceed(self) -> bool:
        """Whether there is something to go on from."""
        ended = self.result is not None and self.result.stop_reason.code == "converged"
        return self.phase in ("stopped", "finished") and self._fit is not None and not ended

    def start(self, prepare: Callable[[], Prepared], iterations: int) -> None:
        """Begin anew.

        Parameters
        ----------
        prepare : callable
            Checks the arguments and returns the prepared fit; called in the worker thread.
        iterations : int
            How many to do.
        """
        self.reset(tell=False)
        self._launch(lambda: ResumableFit(prepare()), iterations)

    def proceed(self, iterations: int) -> None:
        """Go on from where the fit stands; nothing happens if it cannot."""
        fit = self._fit
        if self.can_proceed and fit is not None:
            self._launch(lambda: fit, iterations)

    def stop(self) -> None:
        """Ask a running fit to stop at its next iteration."""
        if self.phase == "running":
            self._stop.set()
            self.message = "stopping …"

    def reset(self, *, tell: bool = True) -> None:
        """Forget the fit; one that runs ends unseen at its next iteration."""
        self._stop.set()
        self._stop = threading.Event()
        self._clear()
        if tell:
            self.tell()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs; return whether that came about in `timeout` seconds."""
        if self._thread is not None:
            self._thread.join(timeout)
            return not self._thread.is_alive()
        return True

    def tell(self) -> None:
        """Call the listeners."""
        for listener in self.listeners:
            listener()

    def _launch(self, fit: Callable[[], ResumableFit], iterations: int) -> None:
        self._stop = threading.Event()
        self.phase, self.message = "running", "starting …"
        self.planned = iterations + (0 if self.state is None else self.state.iteration)
        self._thread = threading.Thread(
            target=self._work, args=(fit, iterations, self._stop), name="nmd-fit", daemon=True
        )
        self.tell()
        self._thread.start()

    def _work(
        self, make: Callable[[], ResumableFit], iterations: int, stop: threading.Event
    ) -> None:
        """Do the fit; `stop` tells this run from later ones."""
        try:
            fit = make()
            result = fit.advance(iterations, lambda state: self._watch(state, fit, stop))
            if stop is not self._stop:
                return
            self._fit, self.result = fit, result
            if stop.is_set() and result.stop_reason.code == "callback":
                self.phase = "stopped"
                why = f"stopped after {result.n_iter} iterations"
            else:
                self.phase, why = "finished", result.stop_reason
            self.message = f"{why}; relative error {result.relative_error:.6g}"
            self.tell()
            if self.finishing is not None:
                self.finishing(result)
                self.tell()
        except Exception as error:
            if stop is self._stop:
                self.phase, self.message = "failed", sentence(error)
                self.tell()

    def _watch(self, state: State, fit: ResumableFit, stop: threading.Event) -> bool:
        """Keep what is to be shown of a state; return whether to stop."""
        if stop is not self._stop:
            return True
        self.state = state
        self.snapshots.add(state)
        numbers = {
            "iteration": state.iteration,
            "relative_error": state.relative_error,
            "primal_residual": state.primal_residual,
            "dual_residual": state.dual_residual,
        }
        if fit.run is not None and VALIDATION in fit.run.history:
            numbers[VALIDATION] = fit.run.history[VALIDATION][-1]
        for name, number in numbers.items():
            self.curves.setdefault(name, []).append(number)
        now = time.perf_counter()
        if now >= self._next_look and not stop.is_set():
            self.message = (
                f"running: iteration {state.iteration} of {self.planned}, "
                f"relative error {state.relative_error:.4g}"
            )
            self.tell()
            later = time.perf_counter()
            self._next_look = later + max(REDRAW, SHARE * (later - now))
        return stop.is_set()


def sentence(error: BaseException) -> str:
    """Return an error as one line that names its kind unless it explains itself."""
    words = " ".join(str(error.args[0] if error.args else error).split())
    kind = type(error).__name__
    return words if isinstance(error, ValueError | TypeError) and words else f"{kind}: {words}"
