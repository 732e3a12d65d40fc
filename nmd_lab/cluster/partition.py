"""Partitions of the rows on the workers, and the client that has steps done on them.

A partition is the results of two tasks of Dask: `Rows`, its rows of X and what follows from them,
which no step changes, and `Partition`, everything else that has rows, such as T, U and W.  A step
is a function of the partition and of small arrays, such as H, and returns small arrays, such as
sums over the rows.  The client starts rounds of steps as plain futures.  What is lost with a worker
is computed again by Dask, from the source of the rows, or from a checkpoint.
"""

from __future__ import annotations

import itertools
import time
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.machine import one_thread
from nmd_lab.data.observations import Observations
from nmd_lab.data.split import split

Answer = tuple[Any, ...]
"""What a step returns: arrays and numbers."""

DATA = "X"
"""Name of a partition's rows of X."""


class RowRange(NamedTuple):
    """Where a partition lies in X.

    Attributes
    ----------
    number : int
        Number of the partition.
    rows : slice
        Its rows.
    """

    number: int
    rows: slice


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of X of a partition, and what follows from them, by name; no step changes them."""

    place: RowRange
    objects: dict[str, Any]
    last: Answer = ()

    def __sizeof__(self) -> int:
        X: Observations = self.objects[DATA]
        return X.n_stored * (X.dtype.itemsize + 4)


@dataclass(eq=False)
class Partition:
    """What steps work on.

    Attributes
    ----------
    place : RowRange
        Where the partition lies in X.
    rows : dict
        Objects of `Rows`.
    objects : dict
        Sweeps, factors and the like, by name.
    size : int
        Size of the rows, in bytes.
    done : int
        Number of steps that were done.
    last : tuple
        Answer of the last step.
    """

    place: RowRange
    rows: dict[str, Any]
    objects: dict[str, Any] = field(default_factory=dict)
    size: int = 0
    done: int = 0
    last: Answer = ()

    def named(self, name: str) -> Any:
        """Return an object by its name."""
        return self.rows[name] if name in self.rows else self.objects[name]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"rows": {}}

    def __sizeof__(self) -> int:
        return 3 * self.size + sum(getattr(each, "nbytes", 0) for each in self.objects.values())


class Step(NamedTuple):
    """A step of all partitions.

    Attributes
    ----------
    function : callable
        Function of a partition and of `arguments`.
    arguments : tuple
        Arguments that are the same for all partitions.
    number : int
        Number among the steps that change a `Partition`.
    dropped : tuple of str
        Names of objects that are no longer needed.
    """

    function: Callable[..., Answer]
    arguments: tuple[Any, ...] = ()
    number: int = 0
    dropped: tuple[str, ...] = ()

    def do(self, partition: Partition, of_each: tuple[Any, ...] = ()) -> Answer:
        """Do the step of a partition, with further arguments of its own."""
        with one_thread():
            return self.function(partition, *aligned(self.arguments), *aligned(of_each))


@dataclass(frozen=True, eq=False)
class Boxed:
    """An argument that Dask does not look into."""

    content: Any


def unboxed(boxed: Boxed) -> Any:
    """Return an argument."""
    return boxed.content


def set_up(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Mark a step that adds to `Rows`, and changes nothing else."""
    function.sets_up = True  # type: ignore[attr-defined]
    return function


def make_rows(place: Boxed, load: Boxed, *source: Any) -> Rows:
    """Return the rows of X of a partition."""
    content = [each.content if isinstance(each, Boxed) else each for each in source]
    with one_thread():
        return Rows(place.content, {DATA: load.content(*content)})


def more_rows(rows: Rows, step: Step, of_each: tuple[Any, ...]) -> Rows:
    """Return rows with what a step adds to them."""
    objects = {name: each for name, each in rows.objects.items() if name not in step.dropped}
    return Rows(rows.place, objects, step.do(Partition(rows.place, objects), of_each))


def begin(rows: Rows) -> Partition:
    """Return a partition before all steps."""
    return Partition(rows.place, rows.objects, size=rows.__sizeof__())


def advance(rows: Rows, partition: Partition, step: Step, of_each: tuple[Any, ...]) -> Partition:
    """Do a step that changes a partition, unless it was done."""
    if partition.done == step.number:
        return partition
    if partition.done != step.number - 1:
        raise RuntimeError(f"partition {partition.place.number} has done {partition.done} steps")
    partition.rows = rows.objects
    for name in step.dropped:
        partition.objects.pop(name, None)
    partition.last = step.do(partition, of_each)
    partition.done = step.number
    return partition


def look(rows: Rows, partition: Partition, step: Step, of_each: tuple[Any, ...]) -> Any:
    """Return the answer of a step that changes nothing."""
    partition.rows = rows.objects
    return step.do(partition, of_each)


def last_of(partition: Rows | Partition) -> Answer:
    """Return the answer of the last step."""
    return partition.last


def again(
    rows: Rows, sweeps: Sequence[Step], done: int, read: Callable[[Partition], None]
) -> Partition:
    """Return a partition whose state is in a file."""
    partition = begin(rows)
    for step in sweeps:
        step.do(partition)
    read(partition)
    partition.done = done
    return partition


def nothing(partition: Partition) -> Answer:
    """Do nothing."""
    return ()


def add_answers(*answers: Answer) -> Answer:
    """Return the sums of answers, in their order."""
    return tuple(sum(each[1:], start=each[0]) for each in zip(*answers, strict=True))


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


def ask(partition: Partition, name: str, method: str, *arguments: Any) -> tuple[Any]:
    """Return the answer of a method of an object of a partition."""
    return (getattr(partition.named(name), method)(*arguments),)


@set_up
def make(partition: Partition, name: str, result: str, method: str, *arguments: Any) -> tuple[()]:
    """Make observations by a method of others."""
    partition.rows[result] = getattr(partition.rows[name], method)(*arguments)
    return ()


@set_up
def divide(
    partition: Partition,
    name: str,
    rest: str,
    held: str,
    parts: Callable[..., tuple[Observations, Observations]],
    *arguments: Any,
) -> tuple[()]:
    """Make two observations from others."""
    one, other = parts(partition.rows[name], *arguments)
    partition.rows |= {rest: one, held: other.as_sparse()}
    return ()


def random_share(
    observations: Observations, share: float, seed: int
) -> tuple[Observations, Observations]:
    """Return observations without a part of them, and that part."""
    if not observations.n_observed:
        return observations, observations
    return split(observations, share, np.random.default_rng(seed))


class Summary(NamedTuple):
    """Summary, at the client, of a matrix on the workers.

    Attributes
    ----------
    dtype : dtype
        Type of the values.
    n_stored, n_observed : int
        Numbers of stored and of observed entries.
    sparse : bool
        Whether entries that are not stored are missing.
    absent_are_zeros : bool
        Whether entries that are not stored are zeros.
    weights : dtype or None
        Type of the weights, bool for a mask; None if every weight is one.
    smallest, largest : float
        Smallest and largest observed value.
    column_counts : ndarray of int (n,)
        Number of observed entries of each column.
    """

    dtype: np.dtype[Any]
    n_stored: int
    n_observed: int
    sparse: bool
    absent_are_zeros: bool
    weights: np.dtype[Any] | None
    smallest: float
    largest: float
    column_counts: NDArray[np.integer]

    @classmethod
    def of(cls, parts: Sequence[Summary]) -> Summary:
        """Return the summary of all partitions."""
        weights = [each.weights for each in parts if each.weights is not None]
        return parts[0]._replace(
            n_stored=sum(each.n_stored for each in parts),
            n_observed=sum(each.n_observed for each in parts),
            weights=max(weights, key=lambda dtype: dtype.itemsize) if weights else None,
            smallest=min(each.smallest for each in parts),
            largest=max(each.largest for each in parts),
            column_counts=np.sum([each.column_counts for each in parts], axis=0),
        )


def summarize(partition: Partition, name: str) -> tuple[Summary]:
    """Return the summary of the rows of a partition."""
    X: Observations = partition.rows[name]
    weights = X.weight_reader()
    summary = Summary(
        *(X.dtype, X.n_stored, X.n_observed, X.pattern is not None, X.absent_are_zeros),
        None if weights is None else weights.dtype,
        *(X.range() if X.n_observed else (np.inf, -np.inf)),
        X.counts(0),
    )
    return (summary,)


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
CHECK_SECONDS = 1.0  # seconds between two looks at whether scheduler and workers are there
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
                results.append(futures[len(results)].result(timeout=CHECK_SECONDS))
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
