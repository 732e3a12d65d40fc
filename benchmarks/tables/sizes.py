"""How much is done: everything, a quick look, or the least that shows that all runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from .data import TABLES
from .peers import METHODS


class Size(NamedTuple):
    """What each part of the page does.

    Attributes
    ----------
    tables, methods : tuple of str
        Tables with hidden cells, and the methods that fill them.
    seeds : int
        Number of times that cells are hidden.
    ranked : tuple of str
        Tables of the curves over the rank.
    rank_seeds : int
        Number of times that their cells are hidden.
    regressions, autoregressions : int
        Number of generated tables.
    suite_seeds, smalls : int
        Number of times that cells of other patterns and of small tables are hidden, and number of
        small tables.
    rows, copies : int or None
        Number of rows of a table, and of copies that are pooled; None for those of the protocol.
    sweeps : dict
        Arguments of `nmd.sample`; none of them for its defaults.
    """

    tables: tuple[str, ...] = tuple(TABLES)
    methods: tuple[str, ...] = tuple(METHODS)
    seeds: int = 5
    ranked: tuple[str, ...] = ("wine", "diabetes", "Hitters", "bdims", "pbc", "bfi")
    rank_seeds: int = 3
    regressions: int = 200
    autoregressions: int = 50
    suite_seeds: int = 3
    smalls: int = 40
    rows: int | None = None
    copies: int | None = None
    sweeps: dict[str, Any] = {}  # noqa: RUF012


FULL = Size()
QUICK = Size(("wine", "pbc", "penguins"), seeds=1, ranked=("wine",), rank_seeds=1, regressions=20,
             autoregressions=4, suite_seeds=1, smalls=2)  # fmt: skip
LEAST = Size(("wine",), ("nmd.sample", "mean, frequencies", "KNN", "trees"), 1, ("wine",), 1, 2, 1,
             1, 0, 60, 3, {"draws": 20, "tune": 5})  # fmt: skip
