"""The client's side of a cluster: rounds of steps, and what is done when workers come and go.

Parts of the rows lie on the workers (`part`).  A round sends one task to each worker, which does a
step of all its parts.  The answers are added up by a tree of tasks, so that the client gets one
sum, whatever the number of workers.

The tasks are plain futures.  Each is bound to the worker of its parts.  When a worker is lost, its
parts are made again elsewhere from their sources, and do the steps of the log.
"""

from __future__ import annotations

import itertools
import logging
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np

from . import tasks
from .part import (
    BEFORE_ALL,
    Answer,
    Before,
    Part,
    RowRange,
    Step,
    add_answers,
    apply,
    are_here,
    make_part,
    run,
    state_of,
)
from .placement import Placement
from .sources import Source
from .tasks import PartsAreLost, Tasks, WorkersAreLost

LOG = logging.getLogger("nmd_lab")


BRANCHES = 4
"""Number of answers that a task adds up."""

ATTEMPTS = 20
"""Number of times that workers may be lost in one round."""

_HOPELESS = (
    f"workers were lost {ATTEMPTS} times in one step: give them more memory, more workers, or "
    "smaller blocks."
)


class Cluster:
    """The parts of a matrix on the workers of a client.

    Attributes
    ----------
    places : list of RowRange
        Where the parts lie in X.
    recovered : list of str
        What was done about workers that were lost or came.
    dropped : list of str
        Names of objects of the parts that nothing refers to any more.
    known : dict
        Objects of the parts by name.
    """

    def __init__(
        self,
        client: Any,
        sources: Sequence[Source],
        load: Callable[..., Any],
    ) -> None:
        self.client, self.sources, self.load = client, list(sources), load
        self.name = uuid.uuid4().hex
        ends = np.cumsum([0, *(source.n_rows for source in sources)]).tolist()
        self.places = [
            RowRange(number, slice(first, last))
            for number, (first, last) in enumerate(pairwise(ends))
        ]
        self.recovered: list[str] = []
        self.dropped: list[str] = []
        self.known: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._names = itertools.count(1)
        self._log: list[Step] = []
        self._before = BEFORE_ALL
        self._held: dict[int, Any] = {}
        self._looked = time.monotonic()
        sizes = [source.n_bytes for source in sources]
        self.placement = Placement.even(sizes, client.nthreads())
        self._tasks = Tasks(client, self.placement.homes)
        self._make(range(len(self.places)))

    def __len__(self) -> int:
        return len(self.places)

    def new_name(self, kind: str) -> str:
        """Return a name for an object of the parts that no other has, not even in older files."""
        return f"{kind} {next(self._names)} of {self.name[:12]}"

    @property
    def n_rows(self) -> int:
        """Number of rows of X."""
        return int(self.places[-1].rows.stop)

    def map(
        self,
        function: Callable[..., Answer],
        *arguments: Any,
        own: dict[int, tuple[Any, ...]] | None = None,
        changes: bool = False,
    ) -> list[Answer]:
        """Return the answers of all parts."""
        by_worker, _ = self._round(Step(function, arguments, own or {}), changes, add=False)
        answers = {
            number: answer
            for numbers, given in by_worker
            for number, answer in zip(numbers, given, strict=True)
        }
        return [answers[number] for number in range(len(self))]

    def sum(
        self, function: Callable[..., Answer], *arguments: Any, changes: bool = False
    ) -> Answer:
        """Return the sums of the answers of all parts; see `map`."""
        ((_, total),), seconds = self._round(Step(function, arguments), changes, add=True)
        if changes:
            self.placement.note(seconds)
        result: Answer = total
        return result

    def keep(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return futures of a function of each part, whose results stay on the workers."""
        futures = {
            self._tasks.submit(home, apply, self.name, number, function, arguments): home
            for number, home in enumerate(self.placement.homes)
        }
        self._tasks.wait(futures)
        return list(futures)

    def _round(self, step: Step, changes: bool, *, add: bool) -> tuple[list[Any], dict[int, float]]:
        """Do a step of all parts, and recover what is lost meanwhile."""
        self._look()
        number = None
        if changes:
            dropped, self.dropped[:] = tuple(self.dropped), []
            step = step._replace(dropped=dropped)
            self._log.append(step)
            number = len(self._log)
        for _ in range(ATTEMPTS):
            try:
                return self._attempt(number, step, add)
            except WorkersAreLost as lost:
                self._recover(lost.workers)
            except PartsAreLost:
                self._recover(self._without_parts())
        raise ConnectionError(_HOPELESS)

    def _attempt(
        self, number: int | None, step: Step, add: bool
    ) -> tuple[list[Any], dict[int, float]]:
        """Do a step of all parts, if no worker is lost."""
        by_worker = self.placement.by_worker()
        shared = self._tasks.sent(step.arguments)
        futures = []
        for worker, numbers in by_worker.items():
            own = self._tasks.sent({n: step.own[n] for n in numbers if n in step.own})
            task = (_run, self.name, numbers, number, step.function, shared, own, step.dropped, add)
            futures.append(self._tasks.submit(worker, *task))
        if not add:
            answers = self._tasks.results(futures)
            seconds = {n: s for _, times in answers for n, s in times.items()}
            return list(zip(by_worker.values(), (a for a, _ in answers), strict=True)), seconds
        while len(futures) > 1:
            groups = [futures[i : i + BRANCHES] for i in range(0, len(futures), BRANCHES)]
            futures = [self._tasks.anywhere(add_answers, *group) for group in groups]
        ((total, seconds),) = self._tasks.results(futures)
        return [(None, total)], seconds

    def _without_parts(self) -> set[str]:
        """Return the workers that have lost parts, though they may be there."""
        lost = set()
        for worker, numbers in self.placement.by_worker().items():
            future = self._tasks.submit(worker, are_here, self.name, numbers, len(self._log))
            try:
                if not all(self._tasks.results([future])[0]):
                    lost.add(worker)
            except WorkersAreLost as gone:
                lost |= gone.workers
        return lost

    def _look(self) -> None:
        """Use new workers, and take work from slow ones, if it is time to look."""
        if time.monotonic() - self._looked < tasks.LOOK:
            return
        self._looked = time.monotonic()
        workers = self._tasks.workers()
        try:
            while (move := self.placement.move(workers)) is not None:
                self._move(*move)
        except WorkersAreLost as lost:
            self._recover(lost.workers)
        except PartsAreLost:
            self._recover(self._without_parts())

    def _move(self, number: int, worker: str) -> None:
        """Bring a part to another worker, with its state."""
        before = self.placement.homes[number]
        kept = self._tasks.submit(before, state_of, self.name, number)
        self.placement.homes[number] = worker
        self._make([number], kept)
        self._say(f"rows {_text(self.places[number])} went from {before} to {worker}")

    def settle(self, folder: str, read: Callable[[Part, str], None]) -> None:
        """Take the present state from files when a part has to be made again."""
        self._before = Before(len(self._log), read=read, folder=folder)
        for number, step in enumerate(self._log):
            if not getattr(step.function, "sets_up", False):
                self._log[number] = Step(step.function)  # its arrays are not needed again

    def _make(self, numbers: Sequence[int], state: Any = None) -> None:
        """Make parts at their homes, one at a time on each worker; a state is that of now."""
        before = self._before if state is None else Before(len(self._log), state)
        homes = self.placement.homes
        waiting: dict[str, list[int]] = {}
        for number in numbers:
            waiting.setdefault(homes[number], []).append(number)
        for several in zip_longest(*waiting.values()):
            futures = {n: self._begin(n, before) for n in several if n is not None}
            self._tasks.wait({future: homes[number] for number, future in futures.items()})
            self._held |= futures

    def _begin(self, number: int, before: Before) -> Any:
        """Return the future of a part that is made at its home."""
        worker = self.placement.homes[number]
        log = self._tasks.sent([step.of_part(number) for step in self._log])
        return self._tasks.submit(
            worker,
            *(make_part, self.name, self.places[number], self.load),
            *(self.sources[number].on(self._tasks, worker), log, self.placement.shares()[worker]),
            tuple(before),
        )

    def _recover(self, workers: set[str]) -> None:
        """Make the parts of lost workers again, on those that are left."""
        began, missing = time.monotonic(), set[int]()
        for _ in range(ATTEMPTS):
            missing |= {n for n, home in enumerate(self.placement.homes) if home in workers}
            there = self._tasks.workers_or_wait()
            self.placement.leave(workers, {w: t for w, t in there.items() if w not in workers})
            try:
                self._make(sorted(missing))
                break
            except WorkersAreLost as lost:
                workers = workers | lost.workers
            except PartsAreLost:  # their workers are known to be gone at the next attempt
                pass
        else:
            raise ConnectionError(_HOPELESS)
        if not missing:
            return
        rows = ", ".join(_text(self.places[number]) for number in sorted(missing))
        self._say(
            f"{', '.join(sorted(workers))} lost: rows {rows} were made again on other workers, "
            f"with {len(self._log)} steps, in {time.monotonic() - began:.3g} s"
        )

    def _say(self, text: str) -> None:
        """Note what was done about workers."""
        self.recovered.append(text)
        LOG.warning("nmd_lab: %s", text)


def _run(
    cluster: str,
    numbers: Sequence[int],
    number: int | None,
    function: Callable[..., Answer],
    shared: tuple[Any, ...],
    own: dict[int, tuple[Any, ...]],
    dropped: tuple[str, ...],
    add: bool,
) -> Any:
    """Do a step of the parts of this worker."""
    return run(cluster, numbers, number, Step(function, shared, own, dropped), add)


def _text(place: RowRange) -> str:
    return f"{place.rows.start} to {place.rows.stop - 1}"
