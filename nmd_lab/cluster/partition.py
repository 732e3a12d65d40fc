"""The worker's side of a cluster: partitions of the rows, and the steps that work on them.

A partition is the results of two tasks of Dask: `Rows`, its rows of X and what follows from them,
which no step changes, and `Partition`, everything else that has rows, such as T, U and W.  A step
is a function of the partition and of small arrays, such as H, and returns small arrays, such as
sums over the rows.  What is lost with a worker is computed again by Dask, from the source of the
rows, or from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
