"""Results of a method for each case, photograph and seed, stored as they are done."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from benchmarks.common.journals import Journals
from nmd_lab.studies.cell import Record

from .cases import problem_of
from .data import load
from .methods import METHODS, is_ours
from .peers import Settings
from .scores import score
from .sizes import Size

Cell = dict[str, Any]

_WARM: set[str] = set()

WARM_SIDE = 32


def work(
    *, picture: str, case: str, method: str, settings: Settings, seed: int, side: int
) -> dict[str, float]:
    """Return the scores of a method for a photograph, and its seconds."""
    problem = problem_of(case, load(picture, side), seed)
    began = time.process_time()
    answer = METHODS[method].fill(problem, seed, **settings)
    return {"seconds": time.process_time() - began} | score(problem, answer)


def cells_of(
    size: Size, pictures: Iterable[str], method: str, case: str, settings: Settings,
    seeds: Iterable[int],
) -> list[Cell]:  # fmt: skip
    """Return the cells of a method for a case."""
    fixed = {"case": case, "method": method, "side": size.side}
    settings = settings | (size.options if is_ours(method) else {})
    return [
        fixed | {"picture": picture, "settings": settings, "seed": seed}
        for picture in pictures
        for seed in seeds
    ]


def collect(journals: Journals, method: str, cells: list[Cell]) -> list[Record]:
    """Return the records of cells of one method and case, and do what is missing."""
    if not (cells and (METHODS[method].is_there or journals.is_stored)):
        return []
    if not journals.is_stored:
        warm_up(method, cells[0])
    peer = None if is_ours(method) else METHODS[method].fill
    return journals.collect(f"{cells[0]['case']}, {method}", work, cells, peer=peer)


def warm_up(method: str, cell: Cell) -> None:
    """Work on a small photograph once: imports and compiles, which no time shall count."""
    kind = f"{method}, {cell['case'].split()[0]}"
    if kind not in _WARM:
        _WARM.add(kind)
        with warnings.catch_warnings(), suppress(Exception):  # a peer may fail
            warnings.simplefilter("ignore")
            work(**cell | {"side": WARM_SIDE})
