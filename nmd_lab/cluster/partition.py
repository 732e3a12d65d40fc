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

from nmd_lab._runtime.machine import one_thread
from nmd_lab.data.observations import Observations, Transform, fingerprint
from nmd_lab.data.split import flat_positions, split

Answer = tuple[Any, ...]
"""What a step returns: arrays and numbers."""

DATA = "X"
"""Name of a partition's rows of X."""

READ = "read "
"""Beginning of the name of a state that was read for a sweep to come."""


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


def state_of(partition: Partition) -> dict[str, Any]:
    """Return T, U and the like of the sweeps, the matrices, and the names of all objects."""
    objects = partition.objects
    sweeps = {name: arrays_of(each) for name, each in objects.items() if hasattr(each, "now")}
    arrays = {name: each for name, each in objects.items() if isinstance(each, np.ndarray)}
    read = {name: each for name, each in objects.items() if name.startswith(READ)}
    return {"sweeps": sweeps, "arrays": arrays, "read": read, "names": list(objects)}


def arrays_of(sweep: Any) -> dict[str, Any]:
    """Return T, U and the like of a sweep."""
    get = sweep.split_variable.device.get
    numbers = {name: each for name, each in vars(sweep.now).items() if isinstance(each, float)}
    arrays = {name: each for name, each in vars(sweep.now).items() if name not in numbers}
    return numbers | {name: None if each is None else get(each) for name, each in arrays.items()}


def set_arrays(sweep: Any, arrays: dict[str, Any]) -> None:
    """Set what `arrays_of` has returned."""
    vars(sweep.now).update(arrays)
    sweep.now.on(sweep.split_variable.device)


def restore(partition: Partition, state: dict[str, Any]) -> None:
    """Set what `state_of` has returned."""
    for name, arrays in state["sweeps"].items():
        set_arrays(partition.objects[name], arrays)
    partition.objects |= state["arrays"] | state["read"]
    partition.objects = {
        name: partition.objects[name] for name in state["names"] if name in partition.objects
    }


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


def summarize(partition: Partition, name: str) -> tuple[Any, ...]:
    """Return what the client has to know of a partition."""
    observations: Observations = partition.rows[name]
    weights = observations.weight_reader()
    kind = (
        *(observations.dtype, observations.n_stored, observations.n_observed),
        *(observations.pattern is not None, observations.absent_are_zeros),
        None if weights is None else weights.dtype,
    )
    ends = observations.range() if observations.n_observed else (np.inf, -np.inf)
    return kind, ends, observations.counts(0)


def sum_of_blocks(partition: Partition, name: str, function: Callable[..., Any]) -> tuple[Any]:
    """Return the sum over the blocks of a partition."""
    observations: Observations = partition.rows[name]
    return (observations.sum_of_blocks(function),)


def row_sums(partition: Partition, name: str, transform: Transform) -> tuple[Any]:
    """Return the sum of transform(X) over the stored entries of each row."""
    return (partition.rows[name].row_sums(transform),)


def different_values(partition: Partition, name: str) -> tuple[Any]:
    """Return the different observed values of a partition."""
    observations: Observations = partition.rows[name]
    return (
        observations.different_values()
        if observations.n_observed
        else np.zeros(0, observations.dtype),
    )


def row_counts(partition: Partition, name: str) -> tuple[Any]:
    """Return the number of observed entries of each row."""
    return (partition.rows[name].counts(1),)


def empty_rows(partition: Partition, name: str) -> tuple[Any]:
    """Return the positions in X of the rows without an observed entry."""
    return (np.flatnonzero(partition.rows[name].counts(1) == 0) + partition.place.rows.start,)


def hash_of(partition: Partition, name: str) -> tuple[str]:
    """Return the hash of a partition."""
    return (fingerprint(partition.rows[name]),)


@set_up
def map_values(partition: Partition, name: str, result: str, transform: Transform) -> tuple[()]:
    """Make observations of transform(X)."""
    partition.rows[result] = partition.rows[name].mapped(transform)
    return ()


@set_up
def make_sparse(partition: Partition, name: str, result: str) -> tuple[()]:
    """Make sparse observations."""
    partition.rows[result] = partition.rows[name].as_sparse()
    return ()


@set_up
def hold_out_share(
    partition: Partition, name: str, rest: str, held: str, share: float, seed: int
) -> tuple[()]:
    """Make observations without a share of them, and that share."""
    observations: Observations = partition.rows[name]
    if observations.n_observed:
        one, other = split(observations, share, np.random.default_rng(seed))
    else:
        one = other = observations
    partition.rows[rest], partition.rows[held] = one, other.as_sparse()
    return ()


@set_up
def hold_out_given(
    partition: Partition, name: str, rest: str, held: str, chosen: Observations
) -> tuple[()]:
    """Make observations without those at the positions of given ones."""
    observations = partition.rows[name]
    theirs, mine = (flat_positions(each) for each in (chosen, observations))
    keep = ~np.isin(mine, theirs, assume_unique=True)
    partition.rows[rest] = observations if keep.all() else observations.select(keep)
    partition.rows[held] = chosen.as_sparse()
    return ()
