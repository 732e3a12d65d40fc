"""The client's side of a cluster: sources of rows, and rounds of steps as plain futures of Dask."""

from __future__ import annotations

import itertools
import time
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from nmd_lab.data.observations import Observations

from .partition import (
    Answer,
    Boxed,
    Partition,
    RowRange,
    Step,
    add_answers,
    advance,
    again,
    begin,
    last_of,
    look,
    make_rows,
    more_rows,
    nothing,
    unboxed,
)


class Source(NamedTuple):
    """What the rows of one partition are made from.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    load : callable
        Function that makes them on a worker.
    arguments : list
        Its arguments, some of which may be futures.
    """

    n_rows: int
    load: Callable[..., Observations]
    arguments: list[Any]


BRANCHES = 4  # answers that a task adds up
LOOK = 1.0  # seconds between two looks at whether scheduler and workers are there
PATIENCE = 60.0  # seconds for which a cluster may be without workers


class Cluster:
    """The partitions of a matrix on the workers of a client.

    Attributes
    ----------
    places : list of RowRange
        Where the partitions lie in X.
    dropped, dropped_rows : list of str
        Names of objects of `Partition` and of `Rows` that nothing refers to any more.
    known : dict
        Objects of the partitions by name.
    """

    def __init__(self, client: Any, sources: Iterable[Source]) -> None:
        self.client, self.name = client, uuid.uuid4().hex
        if not self.workers():
            raise ConnectionError("the cluster has no worker: start one before the fit.")
        self.dropped: list[str] = []
        self.dropped_rows: list[str] = []
        self.named: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._names = itertools.count(1)
        self._done, self._sweeps = 0, dict[str, Step]()
        self.places: list[RowRange] = []
        self._rows: list[Any] = []
        for number, (count, load, arguments) in enumerate(sources):
            first = self.n_rows if number else 0
            self.places.append(RowRange(number, slice(first, first + count)))
            self._rows.append(
                self._submit(make_rows, Boxed(self.places[-1]), Boxed(load), *arguments)
            )
        self._partitions = self._each(begin, self._rows)

    def __len__(self) -> int:
        return len(self.places)

    def new_name(self, kind: str) -> str:
        """Return a name for an object that no other has, not even in older files."""
        return f"{kind} {next(self._names)} of {self.name[:12]}"

    @property
    def n_rows(self) -> int:
        """Number of rows of X."""
        return int(self.places[-1].rows.stop)

    def map(
        self,
        function: Callable[..., Answer],
        *arguments: Any,
        of_each: dict[int, tuple[Any, ...]] | None = None,
        changes: bool = False,
    ) -> list[Answer]:
        """Return the answers of all partitions."""
        return self.results(self._answers(Step(function, arguments), of_each or {}, changes))

    def sum(
        self, function: Callable[..., Answer], *arguments: Any, changes: bool = False
    ) -> Answer:
        """Return the sums of the answers of all partitions."""
        answers = self._answers(Step(function, arguments), {}, changes)
        while len(answers) > 1:
            groups = [answers[i : i + BRANCHES] for i in range(0, len(answers), BRANCHES)]
            answers = [self._submit(add_answers, *group) for group in groups]
        return tuple(self.results(answers)[0])

    def keep(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return futures of a function of each partition, whose results stay on the workers."""
        return self._answers(Step(function, arguments), {}, False)

    def settle(self, read: Callable[[Partition], None]) -> None:
        """Take the present state from files, so that what is lost begins there."""
        arguments = [list(self._sweeps.values()), self._done, read]
        self._partitions = self._each(
            again, self._rows, *([each] * len(self) for each in arguments)
        )

    def workers(self) -> dict[str, int]:
        """Return the number of threads of each worker there is."""
        try:
            threads: dict[str, int] = self.client.nthreads()
        except (OSError, RuntimeError, AttributeError) as error:  # the last two if it is closed
            raise ConnectionError(
                "the scheduler of the cluster is gone: start a cluster, and resume from the "
                "checkpoint if there is one."
            ) from error
        return threads

    def results(self, futures: list[Any]) -> list[Any]:
        """Return the results of futures."""
        from distributed import TimeoutError as OutOfTime
        from distributed.client import FutureCancelledError

        results: list[Any] = []
        seen = time.monotonic()
        while len(results) < len(futures):
            try:
                results.append(futures[len(results)].result(timeout=LOOK))
            except (OutOfTime, UnboundLocalError):  # the latter if the wait was cancelled
                seen = time.monotonic() if self.workers() else seen
            except FutureCancelledError:
                self.workers()  # or the scheduler is gone
                raise
            if time.monotonic() - seen > PATIENCE and not self.workers():
                raise ConnectionError(
                    f"the cluster has had no worker for {PATIENCE:g} s: start workers, and "
                    "resume from the checkpoint if there is one."
                )
        return results

    def _answers(self, step: Step, of_each: dict[int, tuple[Any, ...]], changes: bool) -> list[Any]:
        """Return the futures of the answers of a step."""
        sets_up = getattr(step.function, "sets_up", False)
        if changes and (sets_up or self.dropped_rows):
            dropped, self.dropped_rows[:] = tuple(self.dropped_rows), []
            added, further = (step, of_each) if sets_up else (Step(nothing), {})
            self._rows = self._all(more_rows, added._replace(dropped=dropped), further, self._rows)
        if sets_up:
            return self._each(last_of, self._rows)
        if not changes:
            return self._all(look, step, of_each, self._rows, self._partitions)
        self._done += 1
        dropped, self.dropped[:] = tuple(self.dropped), []
        step = step._replace(number=self._done, dropped=dropped)
        for name in dropped:
            self._sweeps.pop(name, None)
        if getattr(step.function, "makes_sweep", False):
            self._sweeps[step.arguments[0]] = step
        self._partitions = self._all(advance, step, of_each, self._rows, self._partitions)
        return self._each(last_of, self._partitions)

    def _all(
        self, task: Callable[..., Any], step: Step, of_each: dict[int, Any], *partitions: list[Any]
    ) -> list[Any]:
        """Return futures of a task with a step, which the workers fetch from each other."""
        shared = self._submit(unboxed, Boxed(step))
        further = [of_each.get(number, ()) for number in range(len(self))]
        return self._each(task, *partitions, [shared] * len(self), further)

    def _each(self, task: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Return the futures of a task of each partition."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            futures: list[Any] = self.client.map(task, *arguments, pure=False)
            return futures

    def _submit(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a task."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            return self.client.submit(task, *arguments, pure=False)
