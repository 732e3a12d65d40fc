"""Which worker has which parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

GAIN = 0.3  # least distance of two workers after a move, over the time of the slowest, that pays
ROUNDS = 4  # rounds over which longer times are averaged, about
LEAST = 0.05  # seconds of a round of the slowest worker below which no part moves


@dataclass
class Placement:
    """The home of each part, and how long its steps take.

    Attributes
    ----------
    sizes : list of int
        Sizes of the parts, in bytes.
    homes : list of str
        Worker of each part.
    seconds : dict
        Mean time of a step of a part, by its number.
    """

    sizes: list[int]
    homes: list[str]
    seconds: dict[int, float] = field(default_factory=dict)

    @classmethod
    def even(cls, sizes: Sequence[int], workers: dict[str, int]) -> Placement:
        """Return a placement in which each worker has as much as it has threads.

        Parts that follow each other get the same worker, so that sums are always added up in the
        order of the rows.
        """
        if not workers:
            raise ConnectionError("the cluster has no worker: start one before the fit.")
        names, total = sorted(workers), sum(workers.values())
        ends, reached = [], 0
        for name in names:
            reached += workers[name]
            ends.append(reached / total * max(sum(sizes), 1))
        homes, before, position = [], 0.0, 0
        for size in sizes:
            while position < len(names) - 1 and before + size / 2 > ends[position]:
                position += 1
            homes.append(names[position])
            before += size
        return cls(list(sizes), homes)

    def by_worker(self) -> dict[str, list[int]]:
        """Return the numbers of the parts of each worker that has one."""
        numbers: dict[str, list[int]] = {}
        for number, home in enumerate(self.homes):
            numbers.setdefault(home, []).append(number)
        return numbers

    def shares(self) -> dict[str, int]:
        """Return the size of all parts of each worker, in bytes."""
        return {
            worker: sum(self.sizes[number] for number in numbers)
            for worker, numbers in self.by_worker().items()
        }

    def note(self, seconds: dict[int, float]) -> None:
        """Note the times that steps of the parts took.

        A shorter time counts at once, since compiling makes first steps long; a longer one counts
        after some rounds.
        """
        for number, time in seconds.items():
            before = self.seconds.get(number, time)
            self.seconds[number] = min(time, before + (time - before) / ROUNDS)

    def leave(self, workers: Iterable[str], others: dict[str, int]) -> None:
        """Give the parts of some workers to those of others that have least."""
        gone = set(workers)
        for number, home in enumerate(self.homes):
            if home in gone and others:
                shares = self.shares()
                self.homes[number] = min(sorted(others), key=lambda w: shares.get(w, 0) / others[w])

    def move(self, workers: dict[str, int]) -> tuple[int, str] | None:
        """Return a part of the slowest worker and the worker that should take it, or None."""
        own = self.by_worker()
        if len(self.seconds) < len(self.homes):
            return None
        loads = {w: sum(self.seconds[n] for n in own.get(w, ())) for w in workers}
        slowest, idlest = max(loads, key=loads.__getitem__), min(loads, key=loads.__getitem__)
        if len(own.get(slowest, ())) < 2 or loads[slowest] < LEAST:
            return None
        paces = [self._pace(numbers) for w, numbers in own.items() if w != slowest]
        pace = self._pace(own[idlest]) if idlest in own else min(paces, default=0.0)

        def there(number: int) -> float:
            return pace * self.sizes[number] or self.seconds[number]

        best = min(own[slowest], key=there)
        if loads[idlest] + there(best) > (1 - GAIN) * loads[slowest]:
            return None
        self.seconds[best] = there(best)
        return best, idlest

    def _pace(self, numbers: Sequence[int]) -> float:
        """Return the mean time of some parts for each byte."""
        return sum(self.seconds[n] for n in numbers) / max(sum(self.sizes[n] for n in numbers), 1)
