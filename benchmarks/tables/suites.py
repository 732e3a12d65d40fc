"""Other patterns of missing cells, and small tables.

Protocol, fixed before the first run:

- Patterns: a tenth or a half of the observed cells at random; more cells where one column, which
  stays known, is large (MAR); more of the large numeric and ordinal values (MNAR); and blocks: one
  half of the columns of a fifth of the rows, the other half of another fifth. The last three hold
  out about a fifth of the cells.
- Eight of the sixteen tables, with three seeds. A pattern has a row for each method.
- Small tables: forty of 50 to 250 rows, by the rule of `SMALL` in `benchmarks/tables/data.py`, with
  a fifth of the cells held out and three seeds.
- Each number is a mean over the tables, of those that every method of the list fills. Coverage has
  the lowest and the highest table behind it, small tables without those of fewer than 200 held-out
  numeric cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common.journals import Journals
from benchmarks.paper.report import prose, table
from nmd_lab.studies.cell import Record

from .compared import OURS, by_table, means, records_of
from .data import SMALL
from .hiding import PATTERNS
from .peers import METHODS
from .sizes import Size

Array = np.ndarray
Found = dict[tuple[str, str], list[Record]]

TITLE = "Other patterns of missing cells, and small tables"

TABLES = ("wine", "diabetes", "bfi", "Hitters", "bdims", "pbc", "Weather", "evals")
NAMES = (OURS, "KNN", "IterativeImputer", "trees", "vbpca_py", "mice, pmm")
FEWEST = 200
"""Hidden numbers of a table whose coverage counts as the lowest or the highest."""
KEYS = {
    "number": "numeric RMSE", "level": "ordinal RMSE", "class": "accuracy", "log": "log score",
    "energy": "energy score",
}  # fmt: skip


def section(journals: Journals, size: Size) -> str:
    """Do what is missing, and return a table for each pattern and one for the small tables."""
    names = [n for n in NAMES if n in size.methods and (METHODS[n].is_there or journals.is_stored)]
    own = size._replace(tables=tuple(t for t in TABLES if t in size.tables), seeds=size.suite_seeds)
    parts = [prose((__doc__ or "").split("\n\n", 1)[1])]
    made: dict[str, list[str]] = {}
    for pattern in list(PATTERNS)[1:]:  # the comparison above has the first
        more: dict[str, Any] = {"pattern": pattern}
        head = f"Held out: {pattern}"
        made[head] = suite(journals, own, names, head, "pattern", more)
    small = own._replace(tables=tuple(SMALL)[: size.smalls])
    made["Small tables"] = suite(journals, small, names, "Small tables", "small", {})
    absent = [head for head, each in made.items() if not each]
    if absent:
        parts.append(prose(f"Not run here: {'; '.join(absent)}."))
    return "\n\n".join([*parts, *(part for each in made.values() for part in each)])


def suite(
    journals: Journals, size: Size, names: list[str], head: str, part: str, more: dict[str, Any]
) -> list[str]:
    """Return the heading of a suite and its table; nothing if not all of ours is there."""
    records = {name: records_of(journals, size, name, part, **more) for name in names}
    found = by_table({name: each for name, each in records.items() if each})
    there = [name for name in names if any(name == n for n, _ in found)]
    seeds = [len(found.get((OURS, t), [])) for t in size.tables]
    if min(seeds, default=0) < size.seeds:
        return []
    tables = [t for t in size.tables if all(fills(found, name, t) for name in there)]
    left_out = [t for t in size.tables if t not in tables and (OURS, t) in found]
    said = f"{len(tables)} tables"
    if left_out:
        said += f"; another method fails on {', '.join(left_out)}"
    body = [[name, *row(found, name, tables)] for name in there]
    grid = table(["method", *KEYS.values(), "coverage of 90 % intervals", "width"], body)
    return [f"### {head}", f"{said}.", grid]


def fills(found: Found, name: str, of_table: str) -> bool:
    """Return whether a method fills a table with all seeds."""
    records = found.get((name, of_table), [])
    return bool(records) and not any("error" in record for record in records)


def row(found: Found, name: str, tables: list[str]) -> list[str]:
    """Return the means of a method over the tables, its coverage and its width."""
    words = []
    for key in KEYS:
        values = means(found, [name], tables, key)[:, 0]
        words.append("–" if np.isnan(values).all() else f"{np.nanmean(values):.3f}")
    counts = np.array([counts_of(found[name, t]) for t in tables])
    if not counts.sum():
        return [*words, "–", "–"]
    share = counts[:, 0] / np.maximum(counts[:, 1], 1)
    known, many = counts[:, 1] > 0, counts[:, 1] >= FEWEST
    ends = f" ({share[many].min():.3f} to {share[many].max():.3f})" if many.any() else ""
    width = np.nanmean(means(found, [name], tables, "width"))
    return [*words, f"{share[known].mean():.3f}{ends}", f"{width:.2f}"]


def counts_of(records: list[Record]) -> Array:
    """Return how many hidden numbers lie in their intervals, and how many there are."""
    each = [counts for record in records for counts in record.get("columns", {}).values()]
    return np.sum(each, axis=0) if each else np.zeros(2)
