"""Ctrl-C at random moments of a fit in a session: the best so far with its reason."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import warnings
from functools import cache
from typing import Any, TextIO

import numpy as np

import nmd_lab

from .faults import Fault, kind_of
from .ledger import Ledger
from .processes import forked

STARTS, ITERATIONS = 3, 60
"""Numbers of starts, and of iterations of each."""

KINDS: dict[str, dict[str, Any]] = {
    "plain": {"nonlinearity": "relu"},
    "warm-up": {"nonlinearity": "square"},
    "validation": {
        "nonlinearity": "identity",
        "validation": 0.2,
        "solver": nmd_lab.ADMM(patience=1000),
        "alpha": 1,
    },
    "sparse": {
        "nonlinearity": "relu",
        "solver": nmd_lab.ADMM(split="observed"),
        "offsets": "both",
    },
    "choice": {"alpha": "auto"},
}
"""Kinds of fits; each has three starts."""

FIRST_DONE = "the first iteration is done\n"
"""What a child writes when a fit has something to return."""

ALL_DONE = "all iterations are done\n"
"""What a child writes when a fit may return at any moment."""


def fit(kind: str) -> nmd_lab.Decomposition:
    """Return a fit of some tenths of a second."""
    X = np.random.default_rng(0).random((40, 30))
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    options = {
        "n_init": STARTS,
        "max_iter": ITERATIONS,
        "tol": 0,
        "random_state": 0,
        "progress": False,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nmd_lab.warnings.NMDWarning)
        return nmd_lab.complete(X, 3, **{"alpha": 0} | KINDS[kind], **options)


@cache
def duration(kind: str) -> float:
    """Return how long such a fit takes, in seconds."""
    fit(kind)
    began = time.monotonic()
    fit(kind)
    return time.monotonic() - began


def interrupt_once(seed: int) -> None:
    """Send Ctrl-C to a fit at a random moment, and look at what it gives."""
    chance = random.Random(seed)
    kind = chance.choice(list(KINDS))
    moment = chance.uniform(0, 1.1 * duration(kind))
    reading, writing = os.pipe()
    child = forked(lambda: _fit_and_tell(kind, writing))
    os.close(writing)
    with os.fdopen(reading) as told:
        told.readline()  # the fit begins
        time.sleep(moment)
        os.kill(child, signal.SIGINT)
        rest = told.read().split(FIRST_DONE)[-1]
        *all_done, text = rest.split(ALL_DONE)
    _, status = os.waitpid(child, 0)
    if not text:
        ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "nothing said"
        raise Fault("Ctrl-C ends a fit without a result", f"{kind}: {ended}")
    answer = json.loads(text)
    if "error" in answer and answer["error"] != "KeyboardInterrupt":
        raise Fault("Ctrl-C gives another exception", f"{kind}: {answer['error']}")
    if "error" in answer and answer["iterations"] > 0 and not all_done:
        raise Fault("Ctrl-C loses a fit that has iterates", f"{kind}: {answer['iterations']}")
    if "code" in answer and not (answer["finite"] and answer["n_iter"] >= 1 and answer["sentence"]):
        raise Fault("Ctrl-C gives a fit that is not valid", f"{kind}: {answer}")


def _fit_and_tell(kind: str, writing: int) -> None:
    """Fit, and write as JSON what came of it; run in a child."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.ps1 = ">>> "  # a session in which somebody types commands
    told = os.fdopen(writing, "w")
    done = _count_iterations(told)
    answer: dict[str, Any] = {}
    try:
        told.write("begin\n")
        told.flush()
        result = fit(kind)
        answer = {
            "code": result.stop_reason.code,
            "sentence": str(result.stop_reason),
            "n_iter": result.n_iter,
            "finite": bool(np.isfinite(result.reconstruct().values).all()),
        }
    except BaseException as error:
        if not answer:
            answer = {"error": type(error).__name__, "iterations": done()}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told.write(json.dumps(answer))
    told.close()


def _count_iterations(told: TextIO) -> Any:
    """Return a function that says how many iterates the runs of a fit have looked at so far.

    With the first one it writes `FIRST_DONE`, with the last one `ALL_DONE`.
    """
    from nmd_lab.solver import stopping

    count = 0
    reason = stopping.Stopping.reason

    def counting(self: Any, shown: Any, iteration: int) -> Any:
        nonlocal count
        answer = reason(self, shown, iteration)
        # those of a warm-up have no result that could be returned
        count += self.most == ITERATIONS
        written = {1: FIRST_DONE, STARTS * ITERATIONS: ALL_DONE}.get(count)
        if written and self.most == ITERATIONS:
            told.write(written)
            told.flush()
        return answer

    stopping.Stopping.reason = counting  # type: ignore[method-assign]
    return lambda: count


def look(ledger: Ledger, seed: int) -> None:
    """Interrupt once, and record it."""
    part = "kills: SIGINT"
    ledger.passed(part)
    try:
        interrupt_once(seed)
    except Exception as error:
        again = f"fuzz.interrupts.interrupt_once({seed})"
        ledger.failed(part, kind_of(error), str(error), again)
