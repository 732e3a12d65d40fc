"""State of running computations as a tree: each nested loop keeps what it needs to resume.

A fit is one computation inside another: a start inside the list of starts, Algorithm 1 inside the
start, a refinement beside it.  Each of them gets a `Place` and tells it how to describe itself
(`Place.mark`).  A checkpoint is the description of the whole tree.  A later process builds the same
tree, and each computation takes what was stored for its place (`Place.take`).

>>> def count(place):
...     number = place.take()["number"] if place.goes_on else 0
...     place.mark(lambda: {"number": number})
...     while True:
...         number += 1
...         yield number
>>> place = Place()
>>> numbers = count(place)
>>> next(numbers), next(numbers)
(1, 2)
>>> next(count(Place(place.contents())))
3
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

Values = dict[str, Any]
"""Numbers, text, arrays, and objects and containers of them, by name."""


class Place:
    """One place of the tree."""

    def __init__(
        self, stored: Values | None = None, tick: Callable[[], None] = lambda: None
    ) -> None:
        self._stored: Values = {} if stored is None else stored
        self.tick = tick
        self._describe: Callable[[], Values] | None = None
        self._since_mark = 0
        self._inner: dict[str, Place] = {}

    @property
    def kept(self) -> bool:
        """Whether what is marked here can get into a checkpoint."""
        return True

    @property
    def goes_on(self) -> bool:
        """Whether `take` has something to give."""
        return "values" in self._stored

    def take(self) -> Values:
        """Return the values that were stored for this place; a second call fails."""
        values: Values = self._stored.pop("values")
        return values

    def mark(self, describe: Callable[[], Values]) -> None:
        """Set the function that returns the values with which the computation could go on."""
        self._describe, self._since_mark = describe, 0

    def inner(self, name: str) -> Place:
        """Return the place of a computation inside this one; an earlier one of this name ends."""
        stored = self._stored.get("inner", {}).pop(name, None)
        self._inner[name] = Place(stored, self.tick)
        return self._inner[name]

    def leave(self, name: str) -> None:
        """Drop the place of a computation that has ended."""
        self._inner.pop(name, None)
        self._stored.get("inner", {}).pop(name, None)

    def replay(self, make: Callable[[], Iterator[T]]) -> Iterator[T]:
        """Iterate over what `make` returns, and count the items since the last mark.

        A computation that goes on begins at its mark: the items that followed it are computed
        again, and passed over.
        """
        items, passed_over = make(), -1
        for item in items:
            if passed_over < 0:
                passed_over = self._stored.pop("since_mark", 0)
            self._since_mark += 1
            if passed_over > 0:
                passed_over -= 1
                continue
            yield item

    def contents(self) -> Values:
        """Return the description of this place and of those inside.

        What was stored, and not yet taken, is part of it.
        """
        inner = dict(self._stored.get("inner", {}))
        inner |= {name: place.contents() for name, place in self._inner.items()}
        since_mark = self._stored.get("since_mark", self._since_mark)
        contents: Values = {"since_mark": since_mark, "inner": inner}
        if self.goes_on:
            return contents | {"values": self._stored["values"]}
        return contents if self._describe is None else contents | {"values": self._describe()}


class _Nowhere(Place):
    """The place of a computation without checkpoints: nothing is kept."""

    @property
    def kept(self) -> bool:
        return False

    def mark(self, describe: Callable[[], Values]) -> None:
        pass

    def inner(self, name: str) -> Place:
        return self

    def replay(self, make: Callable[[], Iterator[T]]) -> Iterator[T]:
        return make()


NOWHERE = _Nowhere()
"""The place of a computation without checkpoints."""
