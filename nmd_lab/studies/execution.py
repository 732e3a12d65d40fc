"""The fits of a study in one or several processes, with their time, warnings and errors."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config

from nmd_lab._errors import sentence
from nmd_lab._threads import one_thread
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.result.selection import SELECTION

from .cell import Cell, StudyProblem
from .grid import Task
from .methods import Result

Record = dict[str, Any]
"""What the journal keeps of a fit: numbers and text by name, which JSON can hold."""


def run_tasks(
    problem: StudyProblem, tasks: Sequence[Task], n_jobs: int, time_limit: float | None
) -> Iterator[Record]:
    """Yield the record of each fit as soon as it is done, in processes of one thread each."""
    calls = (delayed(measure)(problem, task, time_limit) for task in tasks)
    watch = {"initializer": exit_with_parent, "initargs": (os.getpid(),)} if n_jobs > 1 else {}
    with parallel_config("loky", inner_max_num_threads=1, **watch):
        # The records of a batch would come together, at its end: so each fit is its own batch.
        yield from Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")(calls)


def exit_with_parent(parent: int, interval: float = 0.5) -> None:
    """End this process when its parent does, so that a killed study leaves no process behind."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(interval)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def measure(problem: StudyProblem, task: Task, time_limit: float | None) -> Record:
    """Return the record of one fit; an error becomes a record, too."""
    cell, method = Cell(problem, task), task.method
    limit = {} if time_limit is None else {"time_limit": time_limit}
    try:
        with one_thread(), warnings.catch_warnings(record=True) as caught:
            X = cell.X
            arguments = cell.arguments | method.accepted({"progress": False} | limit)
            method.compile(X, arguments)
            caught.clear()
            warnings.simplefilter("always")
            cell.expect_noise()
            begin = time.perf_counter()
            fit = method.function(X, **arguments)
            seconds = time.perf_counter() - begin
            if fit.stop_reason.code == "interrupted":
                raise KeyboardInterrupt  # it has ended the fit early, which is no result
            scores = cell.scores(fit)
    except Exception as error:
        # The library raises these two before any work, where arguments do not fit X
        refused = isinstance(error, TypeError | ValueError)
        failed = not refused or isinstance(error, np.linalg.LinAlgError)
        status = "failed" if failed else "left out"
        return {"key": task.key, "status": status, "stop_reason": f"{status}: {sentence(error)}"}
    record: Record = {"key": task.key, "status": "done", "stop_reason": str(fit.stop_reason)}
    if limit and fit.stop_reason.code == "time_limit":
        reason = f"time limit: not done after {time_limit:g} s"
        return record | {"status": "timed out", "stop_reason": reason}
    messages = dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)
    record |= {"warnings": " | ".join(messages), "seconds": seconds}
    return record | _numbers(fit) | scores


def _numbers(fit: Result) -> Record:
    """Return iterations (0 for a direct method), objective and what was chosen."""
    if isinstance(fit, Posterior):
        return {"n_iter": fit.parameters["sweeps"]}
    values = fit.parameters | {"nonlinearity": repr(fit.nonlinearity), "loss": fit.loss.name}
    names = fit.parameters.get(SELECTION, {}).get("options", [])
    return {
        "n_iter": 0 if fit.stop_reason.code == "direct" else fit.n_iter,
        "objective": fit.objective,
        **{f"{name}_chosen": values.get(name) for name in names},
    }
