"""The fits of a study, one after another or in several processes."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any

from .cell import StudyProblem, measure
from .grid import Task

Record = dict[str, Any]


def run_tasks(
    problem: StudyProblem, tasks: Sequence[Task], n_jobs: int, time_limit: float | None
) -> Iterator[Record]:
    """Yield the record of each fit as soon as it is done.

    Parameters
    ----------
    problem : StudyProblem
        Data and errors, which all fits share.
    tasks : sequence of Task
        Tasks whose fits are to be done.
    n_jobs : int
        Number of processes; 1 is this process alone.
    time_limit : float or None
        Largest duration of each fit in seconds; None sets no limit.
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
    except _broken_pool():
        pass
    # When a process dies, for example for lack of memory, the fits of all processes are lost.  The
    # rest is done one at a time, so that only fits that end their own process have no result.
    for task in waiting.values():
        try:
            yield from _in_processes(problem, [task], 2, time_limit)
        except _broken_pool() as error:
            cause = str(error).splitlines()[0] if str(error) else type(error).__name__
            yield {
                "key": task.key,
                "status": "failed",
                "stop_reason": f"failed: its process died ({cause})",
            }


def failure_counts() -> Callable[[Record], str]:
    """Return a function of records that counts those without a result, as text for a bar."""
    counts: Counter[str] = Counter()

    def text(record: Record) -> str:
        if record["status"] != "done":
            counts[record["status"]] += 1
        return ", ".join(f"{count} {status}" for status, count in counts.items())

    return text


def _in_processes(
    problem: StudyProblem, tasks: Iterable[Task], n_jobs: int, time_limit: float | None
) -> Iterator[Record]:
    """Yield the records of fits in processes of one thread each."""
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(
        backend="loky",
        inner_max_num_threads=1,
        initializer=exit_with_parent,
        initargs=(os.getpid(),),
    ):
        # The records of a batch would come together, at its end: so each fit is its own batch.
        pool = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
        yield from pool(delayed(measure)(problem, task, time_limit) for task in tasks)


def exit_with_parent(parent: int, interval: float = 0.5) -> None:
    """End this process when its parent does, so that a killed study leaves no process behind.

    Parameters
    ----------
    parent : int
        Id of the parent process, which may have ended already.
    interval : float, default 0.5
        Seconds between two looks of the thread that watches the parent.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(interval)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _broken_pool() -> type[BaseException]:
    """Return the exception that joblib raises when a process dies."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    return BrokenProcessPool  # type: ignore[no-any-return]


def number_of_processes(n_jobs: Any) -> int:
    """Return the number of processes for the argument `n_jobs`.

    Parameters
    ----------
    n_jobs : int
        Number of processes; -1 is one for each processor, -2 one less, and so on.

    Raises
    ------
    ValueError, TypeError
        If `n_jobs` is 0 or no integer.
    """
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs={n_jobs!r} is not an integer: give a number >= 1, or -1 for all.")
    if n_jobs < 0:
        count = getattr(os, "process_cpu_count", os.cpu_count)() or 1
        return max(1, count + 1 + int(n_jobs))
    if n_jobs == 0:
        raise ValueError("n_jobs=0 means no process: give a number >= 1, or -1 for all processors.")
    return int(n_jobs)
