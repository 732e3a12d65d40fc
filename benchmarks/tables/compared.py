"""Hidden cells of sixteen real tables: ours beside other imputers.

Protocol, fixed before the first run:

- A table has at most 800 rows, chosen at random once. Columns are numeric, ordinal (whole numbers
  of at most seven values), binary (two values), and categorical (at most twelve categories); names
  of rows, free text, columns with more than half of the cells missing, and categorical columns with
  nearly one value alone are left out.
- A fifth of the observed cells is held out at random, with five seeds. No method sees them.
- Errors of numeric and ordinal columns are root mean squared errors (RMSE) divided by the standard
  deviation of the observed cells, as the mean over the columns. The prediction of an ordinal cell
  is its expected value. For binary and categorical columns the measure is the accuracy, as the mean
  over the columns.
- Log score: the logarithm of the probability of a held-out ordinal, binary or categorical cell,
  smoothed by `benchmarks/tables/scores.py` in the same way for all.
- Energy score of forty completed copies (`peers.py` has the exceptions): of all held-out cells of a
  row together. The continuous ranked probability score (CRPS) is computed for each numeric cell
  alone, and divided by the standard deviation of its column.
- Intervals of numeric cells have the level 90 %. Ends without a formula of the method are quantiles
  of its completed copies, if there are nineteen or more. Coverage counts all held-out numeric cells
  of a table, and the width is in standard deviations of the columns.
- Every method has its defaults except for the settings in `benchmarks/tables/peers.py`. Seconds are
  processor time, including completed copies, probabilities and the choice of settings, after a
  small table that is not counted.
- Boston has tracts of towns: for 97 to 99 % of the values of indus, all tracts with it have the
  same zn, rad, tax and ptratio. Trees can look up the town by exact equality; a smooth model only
  approximates it.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import nmd_lab as nmd
from benchmarks.common.journals import Journals
from benchmarks.paper.report import prose, table
from nmd_lab.studies.cell import Record

from . import overview
from .data import SOURCES, load
from .hiding import hide
from .peers import METHODS
from .scores import score
from .sizes import Size

TITLE = "Held-out cells of real tables"

SCORES = {
    "number": ("RMSE of numeric columns", False),
    "level": ("RMSE of ordinal columns", False),
    "class": ("Binary and categorical columns: accuracy", True),
    "log": ("Log score of ordinal, binary and categorical columns", True),
    "energy": ("Energy score of completed copies", False),
    "crps": ("CRPS of numeric columns", False),
    "coverage": ("Coverage of 90 % intervals", None),
    "width": ("Width of 90 % intervals", None),
    "seconds": ("Seconds", None),
}
"""Heads of the tables, and whether more is better; None where neither is."""
OURS = "nmd.sample"

_WARM: set[str] = set()


def work(
    *,
    table: str,
    seed: int,
    method: str,
    rows: int | None = None,
    sweeps: dict[str, Any],
    pattern: str = "a fifth",
) -> dict[str, Any]:
    """Return the scores of a method on a table."""
    frame = load(table, rows)
    seen, hidden = hide(frame, seed, pattern)
    more = sweeps if method == OURS else {}
    return score(frame, seen, hidden, METHODS[method].fill(seen, seed, **more))


def warm_up(method: str) -> None:
    """Fill a small table once: imports and compiles, which no time shall count."""
    if method not in _WARM:
        _WARM.add(method)
        sweeps = {"draws": 2, "tune": 2} if method == OURS else {}
        seen, _ = hide(load("wine", 30), 0)
        with warnings.catch_warnings(), suppress(Exception):  # a peer may fail
            warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
            METHODS[method].fill(seen, 0, **sweeps)


def records_of(
    journals: Journals, size: Size, method: str, part: str = "compared", **more: Any
) -> list[Record]:
    """Return what a method does on all tables, and do what is missing."""
    if not journals.is_stored:
        warm_up(method)
    cells = [
        {"table": name, "seed": seed, "method": method, "rows": size.rows, "sweeps": size.sweeps}
        | more
        for name in size.tables
        for seed in range(size.seeds)
    ]
    peer = None if method == OURS else METHODS[method].fill
    return journals.collect(f"{part}, {method}", work, cells, peer=peer)


def section(journals: Journals, size: Size, figures: Path) -> str:
    """Do what is missing, and return the tables."""
    there = [name for name in size.methods if METHODS[name].is_there or journals.is_stored]
    records = {name: records_of(journals, size, name) for name in there}
    there = [name for name in there if records[name]]
    found = by_table(records)
    tables = [name for name in size.tables if any(name == t for _, t in found)]
    scores = {key: means(found, there, tables, key) for key in SCORES}
    parts = overview.of_scores(scores, there, figures)
    parts += ["### Protocol", protocol(tables), *seeds_done(found, size)]
    for key, (head, is_more) in SCORES.items():
        if np.isnan(scores[key]).all():
            continue
        digits = 1 if key == "seconds" else 3
        parts += [f"### {head}", grid(scores[key], there, tables, is_more, digits)]
        if key in ("number", "level"):
            parts.append(beside_best(scores[key], there, tables))
    absent = {name for name in size.methods if not records.get(name)}
    return "\n\n".join([*parts, failures(found, absent)])


def by_table(records: dict[str, list[Record]]) -> dict[tuple[str, str], list[Record]]:
    """Return the records of each method and table; methods with fewer seeds are left out there."""
    found: dict[tuple[str, str], list[Record]] = {}
    for name, of_method in records.items():
        for record in of_method:
            found.setdefault((name, record["table"]), []).append(with_coverage(record))
    most = {t: max(len(each) for (_, u), each in found.items() if t == u) for _, t in found}
    return {(name, t): each for (name, t), each in found.items() if len(each) == most[t]}


def with_coverage(record: Record) -> Record:
    """Return a record with the fraction of all hidden numbers that lie in their intervals."""
    if "columns" not in record:
        return record
    inside, n = np.sum(list(record["columns"].values()), axis=0)
    return record | {"coverage": float(inside / n)}


def protocol(tables: list[str]) -> str:
    """Return the protocol, and where the tables come from."""
    said = (__doc__ or "").split("\n\n", 1)[1]
    sources = ", ".join(f"{name} ({SOURCES[name]})" for name in tables)
    return f"{prose(said)}\n\n{prose(f'Tables: {sources}.')}"


def seeds_done(found: Any, size: Size) -> list[str]:
    """Return a sentence if not all is done, as with --stored."""
    fewest = min((len(rs) for (name, _), rs in found.items() if name == OURS), default=0)
    if fewest == size.seeds:
        return []
    return [f"**Not all is done: {fewest} of {size.seeds} seeds of some tables.**"]


def means(found: Any, methods: list[str], tables: list[str], key: str) -> np.ndarray:
    """Return the mean over the seeds (tables, methods); NaN where a seed has no such score."""
    return np.array(
        [[np.mean([r.get(key, np.nan) if "error" not in r else np.nan
                   for r in found.get((name, t), [{}])]) for name in methods] for t in tables]
    )  # fmt: skip


def grid(
    values: np.ndarray, methods: list[str], tables: list[str], is_more: bool | None, digits: int = 3
) -> str:
    """Return a table whose best value of each row is bold; rows and columns of dashes go."""
    rows, columns = (~np.isnan(values).all(axis=k) for k in (1, 0))
    body = []
    for name, row in zip(np.array(tables)[rows], values[rows][:, columns], strict=True):
        words = ["–" if np.isnan(v) else f"{v:.{digits}f}" for v in row]
        if is_more is not None:
            best = (np.nanmax if is_more else np.nanmin)(row.round(digits))
            words = [
                f"**{w}**" if v == best else w
                for w, v in zip(words, row.round(digits), strict=True)
            ]
        body.append([str(name), *words])
    return table(["table", *np.array(methods)[columns]], body)


def beside_best(values: np.ndarray, methods: list[str], tables: list[str]) -> str:
    """Return our error over that of the best peer of each table, in a sentence."""
    if OURS not in methods or len(methods) < 2:
        return ""
    k = methods.index(OURS)
    best = np.min(np.nan_to_num(np.delete(values, k, axis=1), nan=np.inf), axis=1)
    rows = ~np.isnan(values[:, k]) & np.isfinite(best) & (best > 0)
    if not rows.any():
        return ""
    ratio = values[rows, k] / best[rows]
    worst = np.argsort(-ratio)[:3]
    names = ", ".join(f"{np.array(tables)[rows][w]} {ratio[w]:.3f}" for w in worst)
    return prose(
        f"Error of nmd_lab over the error of the best other method of each table: "
        f"{ratio.mean():.3f} in the mean, at or below 1 on {np.sum(ratio <= 1)} of {ratio.size} "
        f"tables; highest: {names}."
    )


def failures(found: Any, absent: set[str]) -> str:
    """Return which methods failed where, and which were not run."""
    lines = [f"- {name} is left out: it was not run here." for name in METHODS if name in absent]
    for name in METHODS:
        bad = [t for (n, t), rs in found.items() if n == name and any("error" in r for r in rs)]
        if bad:
            error = next(r["error"] for r in found[name, bad[0]] if "error" in r)
            lines.append(f"- {name} fails on {', '.join(bad)}; first error: `{error[:90]}`")
    lines.append("- TabPFN is left out: its weights are a download.")
    lines.append("- missRanger is left out: Debian's R does not have it.")
    return prose("\n".join(line.replace("{", "{{").replace("}", "}}") for line in lines))
