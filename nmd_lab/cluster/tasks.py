"""Tasks that are bound to one worker each, and the loss of a worker.

A task whose worker is gone would wait for ever.  Its client therefore looks from time to time which
workers there are.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from nmd_lab._errors import sentence

from .part import PartIsLost

LOOK = 1.0  # seconds between two looks at which workers there are
EMBEDDED = 1 << 16  # bytes of arguments sent with a task; larger ones go to the workers before
PATIENCE = 60.0  # seconds for which a cluster may be without workers


class WorkersAreLost(Exception):
    """Workers are gone whose answers are needed."""

    def __init__(self, workers: set[str]) -> None:
        super().__init__(", ".join(sorted(workers)))
        self.workers = workers


class PartsAreLost(Exception):
    """A worker has no longer what a task needs."""


class Tasks:
    """Tasks on the workers of a client."""

    def __init__(self, client: Any, needed: list[str]) -> None:
        self.client, self._needed = client, needed

    def submit(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a task that runs on one worker."""
        where = {"workers": [worker], "allow_other_workers": False}
        return self.client.submit(function, *arguments, **where, pure=False)

    def anywhere(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a task that runs on any worker."""
        return self.client.submit(function, *arguments, pure=False)

    def sent(self, argument: Any) -> Any:
        """Return an argument, or the future of a task that returns it if it is large.

        The workers fetch the result from each other.  If one that has it is lost, the task runs
        again, which data that are scattered could not do.
        """
        if _size(argument) <= EMBEDDED:
            return argument
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            return self.anywhere(_same, Boxed(argument))

    def put(self, data: Any, worker: str) -> Any:
        """Return the future of data that are sent to one worker, and kept by nobody else."""
        self.refuse_lost()
        try:
            return self.client.scatter(data, workers=[worker], hash=False)
        except (OSError, TimeoutError) as error:
            self.refuse_lost()
            raise PartsAreLost(str(error)) from error

    def results(self, futures: Iterable[Any]) -> list[Any]:
        """Return the results of futures."""
        from distributed import TimeoutError as OutOfTime
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        results = []
        for future in futures:
            while True:
                try:
                    results.append(future.result(timeout=LOOK))
                    break
                except (OutOfTime, UnboundLocalError):  # the latter if the wait was cancelled
                    self.refuse_lost()
                except (PartIsLost, KilledWorker, FutureCancelledError) as error:
                    self.refuse_lost()
                    raise PartsAreLost(str(error)) from error
        return results

    def wait(self, futures: dict[Any, str]) -> None:
        """Wait for tasks on workers, whose results stay there."""
        self.results([self.submit(worker, _done, future) for future, worker in futures.items()])

    def workers(self) -> dict[str, int]:
        """Return the number of threads of each worker there is."""
        try:
            threads: dict[str, int] = self.client.nthreads()
        except OSError as error:
            raise ConnectionError(
                "the scheduler of the cluster is gone: start a cluster, and go on from the "
                f"checkpoint if there is one ({sentence(error)})."
            ) from error
        return threads

    def workers_or_wait(self) -> dict[str, int]:
        """Return the workers; wait for one if there is none."""
        began = time.monotonic()
        while not (workers := self.workers()):
            if time.monotonic() - began > PATIENCE:
                raise ConnectionError(
                    f"the cluster has had no worker for {PATIENCE:g} s: start workers, and "
                    "go on from the checkpoint if there is one."
                )
            time.sleep(0.1)
        return workers

    def refuse_lost(self) -> None:
        """Raise `WorkersAreLost` if a worker that is needed is gone."""
        gone = set(self._needed) - set(self.workers())
        if gone:
            raise WorkersAreLost(gone)


@dataclass(frozen=True, eq=False)
class Boxed:
    """An argument that is not looked into for futures."""

    content: Any


def _same(boxed: Boxed) -> Any:
    """Return an argument."""
    return boxed.content


def _done(result: Any) -> None:
    """Take what a task has made on this worker."""


def _size(argument: Any) -> int:
    """Return about how many bytes an argument has."""
    if isinstance(argument, dict):
        return sum(map(_size, argument.values()))
    if isinstance(argument, tuple | list):
        return sum(map(_size, argument))
    return int(getattr(argument, "nbytes", 64))
