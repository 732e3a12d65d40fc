"""Partitions of the rows of X on the workers of a client.

What never changes, such as rows of X and of a W, is a future of each partition.  T and U, which
each pass changes, are an actor of each partition (`sweeps.PartitionSweep`).  All tasks of a
partition run on one worker.  They return small arrays, such as sums over rows.  An actor is lost
with its worker, which ends the fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from nmd_lab._runtime.machine import one_thread

N_BRANCHES = 4  # answers that a task adds up
CHECK_SECONDS = 1.0  # seconds between two looks at whether scheduler and workers are there

WORKER_LOST = (
    "a worker of the cluster is gone, and with it a part of the fit: call nmd_lab.resume() with "
    "the checkpoint if there is one, or start the fit again."
)
SCHEDULER_LOST = (
    "the scheduler of the cluster is gone: start a cluster, and call nmd_lab.resume() with the "
    "checkpoint if there is one."
)


class Partitions:
    """The partitions of a matrix on the workers of a client.

    Attributes
    ----------
    ranges : list of slice
        Rows of each partition.
    workers : list of str
        Address of the worker of each partition, as many for each thread.
    """

    def __init__(self, client: Any, sizes: Sequence[int]) -> None:
        self.client = client
        self.ranges = [slice(*ends) for ends in pairwise(accumulate(sizes, initial=0))]
        threads = [worker for worker, n in self.threads().items() for _ in range(n)]
        if not threads:
            raise ConnectionError("the cluster has no worker: start one before the fit.")
        self.workers = [threads[k * len(threads) // len(sizes)] for k in range(len(sizes))]

    def __len__(self) -> int:
        return len(self.ranges)

    @property
    def n_rows(self) -> int:
        """Number of rows of X."""
        return int(self.ranges[-1].stop)

    def map(
        self,
        function: Callable[..., Any],
        *local: Sequence[Any],
        shared: tuple[Any, ...] = (),
        actor: bool = False,
    ) -> list[Any]:
        """Return futures of a function of each partition, of local and of shared arguments."""
        arguments = self._submit(partial(packed, *shared)) if shared else ()
        futures: list[Any] = [None] * len(self)
        for worker in dict.fromkeys(self.workers):
            here = [k for k in range(len(self)) if self.workers[k] == worker]
            columns = [[function] * len(here), [arguments] * len(here)]
            columns += [[each[k] for k in here] for each in local]
            with silent():
                mapped = self.client.map(run, *columns, workers=[worker], actor=actor, pure=False)
            for k, future in zip(here, mapped, strict=True):
                futures[k] = future
        return futures

    def answers(
        self, function: Callable[..., Any], *local: Sequence[Any], shared: tuple[Any, ...] = ()
    ) -> list[Any]:
        """Return the values of a function of each partition."""
        return self.results(self.map(function, *local, shared=shared))

    def sum(
        self, function: Callable[..., Any], *local: Sequence[Any], shared: tuple[Any, ...] = ()
    ) -> Any:
        """Return the sums of the answers of all partitions, which the workers add up."""
        answers = self.map(function, *local, shared=shared)
        while len(answers) > 1:
            groups = [answers[i : i + N_BRANCHES] for i in range(0, len(answers), N_BRANCHES)]
            answers = [self._submit(add_answers, *group) for group in groups]
        return self.results(answers)[0]

    def results(self, futures: list[Any]) -> list[Any]:
        """Return the results of futures."""
        from distributed import TimeoutError as OutOfTime

        results: list[Any] = []
        while len(results) < len(futures):
            try:
                results.append(futures[len(results)].result(timeout=CHECK_SECONDS))
            except (OutOfTime, UnboundLocalError):  # the latter if the wait was cancelled
                if futures[len(results)].status == "error":  # the task itself ran out of time
                    raise
                self._check()
            except Exception as error:
                error.__traceback__ = None  # Dask keeps the error, and with its frames all futures
                self._check()
                raise
        return results

    def threads(self) -> dict[str, int]:
        """Return the number of threads of each worker there is."""
        try:
            threads: dict[str, int] = self.client.nthreads()
        except (OSError, RuntimeError, AttributeError) as error:  # the last two if it is closed
            raise ConnectionError(SCHEDULER_LOST) from error
        return threads

    def _check(self) -> None:
        """Raise ConnectionError if the scheduler or a worker of a partition is gone."""
        if not self.threads().keys() >= set(self.workers):
            raise ConnectionError(WORKER_LOST) from None

    def _submit(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a task."""
        with silent():
            return self.client.submit(task, *arguments, pure=False)


@contextmanager
def silent() -> Iterator[None]:
    """Let Dask not warn of arrays that the client sends."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")
        yield


def packed(*arguments: Any) -> tuple[Any, ...]:
    """Return the arguments."""
    return arguments


def run(function: Callable[..., Any], shared: tuple[Any, ...], *local: Any) -> Any:
    """Return the value of a function, with the object of an actor in the place of the actor."""
    from distributed import Actor, get_worker

    at_hand = [
        get_worker().state.actors[each.key] if isinstance(each, Actor) else aligned(each)
        for each in local
    ]
    with one_thread():
        return function(*at_hand, *aligned(shared))


def add_answers(*answers: Any) -> Any:
    """Return the sum of arrays or numbers, or the sums of those in tuples, in their order."""
    if isinstance(answers[0], tuple):
        return tuple(add_answers(*each) for each in zip(*answers, strict=True))
    return sum(answers[1:], start=answers[0])


def aligned(argument: Any) -> Any:
    """Return an argument with its arrays aligned in memory, as those of a single machine are.

    An array that came over a network may not be, for which kernels would be compiled again.
    """
    if isinstance(argument, np.ndarray):
        return np.require(argument, requirements="A")
    if isinstance(argument, tuple | list):
        items = [aligned(each) for each in argument]
        return argument._make(items) if hasattr(argument, "_make") else type(argument)(items)
    if isinstance(argument, dict):
        return {name: aligned(each) for name, each in argument.items()}
    return argument
