"""The worker's side of a cluster: partitions of the rows, and the steps that work on them.

A partition is the results of two tasks of Dask: `Rows`, its rows of X and what follows from them,
which no step changes, and `Part`, everything else that has rows, such as T, U and W.  A step is a
function of the partition and of small arrays, such as H, and returns small arrays, such as sums
over the rows.  What is lost with a worker is computed again by Dask, from the source of the rows,
or from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._threads import one_thread
from nmd_lab.data.base import Observations

Answer = tuple[Any, ...]
"""What a step returns: arrays and numbers."""

DATA = "X"
"""Name of a partition's rows of X."""

KEPT = "kept "
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
class Part:
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
        Number among the steps that change a `Part`.
    dropped : tuple of str
        Names of objects that are no longer needed.
    """

    function: Callable[..., Answer]
    arguments: tuple[Any, ...] = ()
    number: int = 0
    dropped: tuple[str, ...] = ()

    def do(self, part: Part, own: tuple[Any, ...] = ()) -> Answer:
        """Do the step of a partition, with further arguments of its own."""
        with one_thread():
            return self.function(part, *aligned(self.arguments), *aligned(own))


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
    given = [each.content if isinstance(each, Boxed) else each for each in source]
    with one_thread():
        return Rows(place.content, {DATA: load.content(*given)})


def more_rows(rows: Rows, step: Step, own: tuple[Any, ...]) -> Rows:
    """Return rows with what a step adds to them."""
    objects = {name: each for name, each in rows.objects.items() if name not in step.dropped}
    return Rows(rows.place, objects, step.do(Part(rows.place, objects), own))


def begin(rows: Rows) -> Part:
    """Return a partition before all steps."""
    return Part(rows.place, rows.objects, size=rows.__sizeof__())


def advance(rows: Rows, part: Part, step: Step, own: tuple[Any, ...]) -> Part:
    """Do a step that changes a partition, unless it was done."""
    if part.done == step.number:
        return part
    if part.done != step.number - 1:
        raise RuntimeError(f"partition {part.place.number} has done {part.done} steps")
    part.rows = rows.objects
    for name in step.dropped:
        part.objects.pop(name, None)
    part.last = step.do(part, own)
    part.done = step.number
    return part


def look(rows: Rows, part: Part, step: Step, own: tuple[Any, ...]) -> Any:
    """Return the answer of a step that changes nothing."""
    part.rows = rows.objects
    return step.do(part, own)


def last_of(partition: Rows | Part) -> Answer:
    """Return the answer of the last step."""
    return partition.last


def again(rows: Rows, sweeps: Sequence[Step], done: int, read: Callable[[Part], None]) -> Part:
    """Return a partition whose state is in a file."""
    part = begin(rows)
    for step in sweeps:
        step.do(part)
    read(part)
    part.done = done
    return part


def nothing(part: Part) -> Answer:
    """Do nothing."""
    return ()


def state_of(part: Part) -> dict[str, Any]:
    """Return T, U and the like of the sweeps, the matrices, and the names of all objects."""
    objects = part.objects
    sweeps = {name: arrays_of(each) for name, each in objects.items() if hasattr(each, "now")}
    arrays = {name: each for name, each in objects.items() if isinstance(each, np.ndarray)}
    read = {name: each for name, each in objects.items() if name.startswith(KEPT)}
    return {"sweeps": sweeps, "arrays": arrays, "read": read, "names": list(objects)}


def arrays_of(sweep: Any) -> dict[str, Any]:
    """Return T, U and the like of a sweep."""
    get = sweep.split_variable.device.get
    own = {name: each for name, each in vars(sweep.now).items() if isinstance(each, float)}
    arrays = {name: each for name, each in vars(sweep.now).items() if name not in own}
    return own | {name: None if each is None else get(each) for name, each in arrays.items()}


def set_arrays(sweep: Any, arrays: dict[str, Any]) -> None:
    """Set what `arrays_of` has returned."""
    vars(sweep.now).update(arrays)
    sweep.now.on(sweep.split_variable.device)


def restore(part: Part, kept: dict[str, Any]) -> None:
    """Set what `state_of` has returned."""
    for name, own in kept["sweeps"].items():
        set_arrays(part.objects[name], own)
    part.objects |= kept["arrays"] | kept["read"]
    part.objects = {name: part.objects[name] for name in kept["names"] if name in part.objects}


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
