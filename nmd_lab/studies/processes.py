"""Tasks become records: one after another, or in several processes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from numbers import Integral
from typing import Any

from .cell import Problem, measure
from .grid import Task

Record = dict[str, Any]


def run_tasks(
    problem: Problem, tasks: Sequence[Task], n_jobs: int, time_limit: float | None
) -> Iterator[Record]:
    """Yield a record for each task, as soon as it is done.

    Parameters
    ----------
    problem : Problem
        What they have in common.
    tasks : sequence of Task
        What is to be done.
    n_jobs : int
        Processes, from 1 (this one).
    time_limit : float or None
        Seconds for each fit.
    """
    if min(n_jobs, len(tasks)) <= 1:
        for task in tasks:
            yield measure(problem, task, time_limit)
        return
    waiting = {task.key: task for task in tasks}
    try:
        for record in _in_processes(problem, tasks, n_jobs, time_limit):
            del waiting[record["key"]]
            yield record
        return
    except _terminated():
        pass
    # Some process died, out of memory for instance, and took its neighbours' fits along: do the
    # rest one by one, so that only the fits that are to blame are lost.
    for task in waiting.values():
        try:
            yield from _in_processes(problem, [task], 2, time_limit)
        except _terminated() as error:
            word = str(error).splitlines()[0] if str(error) else type(error).__name__
            yield {
                "key": task.key,
                "status": "failed",
                "stop_reason": f"failed: its process died ({word})",
            }


def _in_processes(
    problem: Problem, tasks: Iterable[Task], n_jobs: int, time_limit: float | None
) -> Iterator[Record]:
    """Do the tasks in processes of one thread each."""
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        # One fit at a time: a batch would bring its first result only with its last.
        pool = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
        yield from pool(delayed(_measure_in_worker)(problem, task, time_limit) for task in tasks)


def _measure_in_worker(problem: Problem, task: Task, time_limit: float | None) -> Record:
    _watch_parent()
    return measure(problem, task, time_limit)


@cache
def _watch_parent() -> None:
    """End this process with the one that gave it work: a killed study must not leave it behind."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _terminated() -> type[BaseException]:
    from joblib.externals.loky.process_executor import BrokenProcessPool

    return BrokenProcessPool  # type: ignore[no-any-return]


def number_of_processes(n_jobs: Any) -> int:
    """Return how many processes are meant; -1 is one for each processor.

    Raises
    ------
    ValueError, TypeError
        If it is none.
    """
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs={n_jobs!r} is not an integer: give a number >= 1, or -1 for all.")
    if n_jobs < 0:
        count = getattr(os, "process_cpu_count", os.cpu_count)() or 1
        return max(1, count + 1 + int(n_jobs))
    if n_jobs == 0:
        raise ValueError("n_jobs=0 leaves nobody to work: give a number >= 1, or -1 for all.")
    return int(n_jobs)
