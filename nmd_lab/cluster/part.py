"""The worker's side of a cluster: parts of the rows, and the steps that work on them.

A part holds everything that has rows: its rows of X, T, U and W.  It lives in the memory of one
worker, as the result of the task that made it.  The client asks for steps: each is a function of
the part and of small arrays, such as H, and returns small arrays, such as sums over the rows.

Steps that change a part are numbered.  A step that was done is not done again, since its answer is
kept until the next one.  A part that has missed a step refuses the next.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from nmd_lab._files import Scratch
from nmd_lab._threads import one_thread
from nmd_lab.data.base import Observations

Answer = tuple[Any, ...]
"""What a step returns: arrays and numbers."""

DATA = "X"
"""Name of a part's rows of X."""

KEPT = "kept "
"""Beginning of the name of a state that was read for a sweep to come."""


class PartIsLost(RuntimeError):
    """A worker has no part of that number, or one that has missed a step."""


class Step(NamedTuple):
    """A step of all parts.

    Attributes
    ----------
    function : callable
        Function of a part and of `arguments`.
    arguments : tuple
        Arguments that are the same for all parts.
    own : dict
        Further arguments of single parts, by their numbers.
    dropped : tuple of str
        Names of objects that are no longer needed.
    """

    function: Callable[..., Answer]
    arguments: tuple[Any, ...] = ()
    own: dict[int, tuple[Any, ...]] = {}  # noqa: RUF012  it is never changed
    dropped: tuple[str, ...] = ()

    def do(self, part: Part) -> Answer:
        """Do the step of a part."""
        for name in self.dropped:
            part.objects.pop(name, None)
        answer = self.function(part, *aligned(self.arguments_of(part.place.number)))
        if part.scratch is not None:
            part.scratch.give_back()
        return answer

    def arguments_of(self, number: int) -> tuple[Any, ...]:
        """Return the arguments for one part."""
        return (*self.arguments, *self.own.get(number, ()))

    def of_part(self, number: int) -> Step:
        """Return the step with the arguments of one part alone."""
        return self._replace(own={number: self.own[number]} if number in self.own else {})


def aligned(argument: Any) -> Any:
    """Return an argument with its arrays aligned in memory, as those of a single machine are.

    An array that came over a network may not be, and NumPy then multiplies matrices by another
    routine, which rounds otherwise.
    """
    if isinstance(argument, np.ndarray):
        return np.require(argument, requirements="A")
    if isinstance(argument, tuple | list):
        parts = [aligned(each) for each in argument]
        return argument._make(parts) if hasattr(argument, "_make") else type(argument)(parts)
    if isinstance(argument, dict):
        return {name: aligned(each) for name, each in argument.items()}
    return argument


class RowRange(NamedTuple):
    """Where a part lies in X.

    Attributes
    ----------
    number : int
        Number of the part.
    rows : slice
        Its rows.
    """

    number: int
    rows: slice


@dataclass(eq=False)
class Part:
    """A part of the rows.

    Attributes
    ----------
    place : RowRange
        Where it lies in X.
    objects : dict
        Everything that has rows, by name: observations, sweeps, factors.
    threads : int
        Number of threads of the worker.
    scratch : Scratch or None
        Folder for arrays of the size of the part, if they would not fit into memory.
    done : int
        Number of steps that were done.
    """

    place: RowRange
    objects: dict[str, Any]
    threads: int = 1
    scratch: Scratch | None = None
    done: int = 0
    last: Answer = ()
    lock: threading.Lock = field(default_factory=threading.Lock)

    def step(self, number: int | None, step: Step) -> Answer:
        """Do a step, or return the answer of one that was done."""
        with self.lock:
            if number is not None and number == self.done:
                return self.last
            if number is not None and number != self.done + 1:
                raise PartIsLost(f"part {self.place.number} has done {self.done} steps")
            answer = step.do(self)
            if number is not None:
                self.done, self.last = number, answer
            return answer

    def __reduce__(self) -> Any:
        """Refuse to be moved to a disk or to another worker, which would be another part."""
        raise TypeError("a part of a fit stays in the memory of its worker")


class Before(NamedTuple):
    """The state of a part after some steps.

    Attributes
    ----------
    steps : int
        Number of these steps.
    state : dict or None
        What `state_of` has returned.
    read : callable or None
        Function of a part and of `folder` that reads the state, if it is in a file.
    folder : str
        Folder of that file.
    """

    steps: int = 0
    state: dict[str, Any] | None = None
    read: Callable[[Part, str], None] | None = None
    folder: str = ""

    def restore(self, part: Part) -> None:
        """Give a part the state."""
        if self.read is not None:
            self.read(part, self.folder)
        else:
            assert self.state is not None
            restore(part, self.state)


BEFORE_ALL = Before()
"""The state before all steps."""


PARTS: WeakValueDictionary[tuple[str, int], Part] = WeakValueDictionary()
"""The parts of this process by the name of their cluster and their number."""


def make_part(
    cluster: str,
    place: RowRange,
    load: Callable[..., Observations],
    source: Sequence[Any],
    steps: Sequence[Step],
    share: int,
    before: Sequence[Any],
) -> Part:
    """Make a part, and do the steps that others have done already."""
    state, (threads, scratch) = Before(*before), _of_worker(share)
    with one_thread():
        part = Part(place, {DATA: load(*source, scratch=scratch)}, threads, scratch)
        if scratch is not None:
            scratch.give_back()
        for number, step in enumerate(steps, 1):
            if number > state.steps or getattr(step.function, "sets_up", False):
                part.last = step.do(part)
            if number == state.steps:
                state.restore(part)
            part.done = number
        PARTS[cluster, place.number] = part
    return part


def set_up(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Mark a step that makes something out of the data, and so is done again on another worker."""
    function.sets_up = True  # type: ignore[attr-defined]
    return function


def state_of(cluster: str, number: int) -> dict[str, Any]:
    """Return all that steps have changed in a part."""
    part = part_here(cluster, number)
    with part.lock:
        return state_of_part(part)


def state_of_part(part: Part) -> dict[str, Any]:
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


def run(
    cluster: str, numbers: Sequence[int], step_number: int | None, step: Step, add: bool
) -> tuple[Any, dict[int, float]]:
    """Do a step of several parts of this worker."""
    answers, seconds = [], {}
    with one_thread():
        for number in numbers:
            began = time.perf_counter()
            answers.append(part_here(cluster, number).step(step_number, step))
            seconds[number] = time.perf_counter() - began
    return (add_up(answers) if add else answers), seconds


def apply(cluster: str, number: int, function: Callable[..., Any], arguments: Any) -> Any:
    """Return a function of a part, which stays on this worker."""
    part = part_here(cluster, number)
    with part.lock:
        return function(part, *arguments)


def add_up(answers: Sequence[Answer]) -> Answer:
    """Return the sums of answers, in their order."""
    return tuple(sum(each[1:], start=each[0]) for each in zip(*answers, strict=True))


def add_answers(*given: tuple[Answer, dict[int, float]]) -> tuple[Answer, dict[int, float]]:
    """Return the sums of what `run` has returned on several workers."""
    seconds = {number: time for _, times in given for number, time in times.items()}
    return add_up([answer for answer, _ in given]), seconds


def are_here(cluster: str, numbers: Sequence[int], steps: int) -> list[bool]:
    """Return whether parts are on this worker, and have done all steps but the last one."""
    parts = [PARTS.get((cluster, number)) for number in numbers]
    return [part is not None and part.done >= steps - 1 for part in parts]


def part_here(cluster: str, number: int) -> Part:
    """Return a part of this worker."""
    part = PARTS.get((cluster, number))
    if part is None:
        raise PartIsLost(f"part {number} is not here")
    return part


SHARE_OF_MEMORY = 0.1
"""Largest size of the rows of X on a worker, in units of its memory, that are kept in memory."""


def _of_worker(share: int) -> tuple[int, Scratch | None]:
    """Return the number of threads of this worker, and a folder if X, T and U would not fit.

    T, U and what is made of them take several times the size of X, and a worker that has filled
    four fifths of its memory takes no more tasks.
    """
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    fits = not limit or share < SHARE_OF_MEMORY * limit
    return worker.state.nthreads, None if fits else Scratch(worker.local_directory)
