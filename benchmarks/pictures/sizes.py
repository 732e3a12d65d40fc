"""How much is done: everything, a quick look, or the least that shows that all runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from .cases import CASES
from .data import OTHERS, REPORTED, SIDE
from .methods import METHODS


class Size(NamedTuple):
    """What the page has.

    Attributes
    ----------
    cases, methods, pictures, others : tuple of str
        What is done to the photographs, the methods, the photographs of the tables, and those on
        which settings are chosen.
    seeds, side : int
        Number of draws of hidden pixels and noise, and side of the photographs.
    options : dict
        Arguments of `nmd.inpaint`; none of them for its defaults.
    """

    cases: tuple[str, ...] = tuple(CASES)
    methods: tuple[str, ...] = tuple(METHODS)
    pictures: tuple[str, ...] = REPORTED
    others: tuple[str, ...] = OTHERS
    seeds: int = 3
    side: int = SIDE
    options: dict[str, Any] = {}  # noqa: RUF012


FULL = Size()
QUICK = Size(pictures=("china", "brick"), others=("chelsea",), seeds=1, side=96)
LEAST = Size(("60 % missing", "noise"), ("nmd.inpaint", "interpolation", "biharmonic", "TV"),
             ("china",), ("chelsea",), 1, 40, {"draws": 10})  # fmt: skip
