"""A value that is computed anew only when what it is made of has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

PLAIN = (str, int, float, bool, tuple, list, dict)  # types that are compared by value


class Latest(Generic[T]):
    """The last value, and what it was made of: all but plain objects are told by identity."""

    def __init__(self) -> None:
        self._last: tuple[tuple[Any, ...], T] | None = None

    def __call__(self, make: Callable[[], T], *of: Any) -> T:
        """Return the last value if it is of the same objects, or else a new one."""
        if self._last is None or not all(map(_same, self._last[0], of)):
            self._last = of, make()
        return self._last[1]


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and type(a) in PLAIN and a == b)
