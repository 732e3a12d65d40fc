"""More rank than needed: does it hurt?

`nmd.sample(frame, rank)` with the rank 2, 3, 5, 8, 12, 16, 20, 24, and one less than the table has
columns, on tables of the comparison above. The error is the mean over all numeric and ordinal
columns, divided by the lowest error of the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common.journals import Journals
from benchmarks.paper.report import prose, table

from .data import kind_of, load
from .hiding import hide
from .methods import ours
from .scores import score
from .sizes import Size

TITLE = "More rank than needed"

RANKS = (2, 3, 5, 8, 12, 16, 20, 24)


def ranks_of(columns: int) -> list[int]:
    """Return the ranks of a table of so many columns."""
    return [rank for rank in RANKS if rank < columns - 1] + [columns - 1]


def work(
    *, table: str, seed: int, rank: int, rows: int | None = None, sweeps: dict[str, Any]
) -> dict[str, Any]:
    """Return the error of a rank on a table, and its log score."""
    frame = load(table, rows)
    seen, hidden = hide(frame, seed)
    found = score(frame, seen, hidden, ours(seen, seed, rank=rank, **sweeps))
    kinds = [kind_of(frame[name]) for name in frame]
    parts = [(found[kind], kinds.count(kind)) for kind in ("number", "level") if kind in found]
    error = np.average([e for e, _ in parts], weights=[n for _, n in parts])
    return {"rmse": float(error), "log": found.get("log")}


def section(journals: Journals, size: Size) -> str:
    """Do what is missing, and return a table with a row for each table."""
    head = [
        "table",
        "times held out",
        *map(str, RANKS),
        "columns - 1",
        "most above the least, from there on",
    ]
    body = []
    for name in size.ranked:
        ranks = ranks_of(load(name).shape[1])
        cells = [
            {"table": name, "seed": seed, "rank": rank, "rows": size.rows, "sweeps": size.sweeps}
            for seed in range(size.rank_seeds)
            for rank in ranks
        ]
        records = journals.collect("ranks", work, cells)
        by_rank = [[r["rmse"] for r in records if r["rank"] == rank] for rank in ranks]
        times = min(map(len, by_rank))
        if times:
            errors = np.array([np.mean(each[:times]) for each in by_rank])
            body.append([name, str(times), *row(errors, ranks)])
    return f"{prose((__doc__ or '').split(chr(10) * 2, 1)[1])}\n\n{table(head, body)}"


def row(errors: np.ndarray, ranks: list[int]) -> list[str]:
    """Return the errors of a table over the least, by rank."""
    ratio = errors / errors.min()
    by_rank = dict(zip(ranks[:-1], ratio, strict=False))
    words = [f"{by_rank[rank]:.3f}" if rank in by_rank else "" for rank in RANKS]
    after = ratio[int(ratio.argmin()) :]
    return [*words, f"{ratio[-1]:.3f} (rank {ranks[-1]})", f"{100 * (after.max() - 1):.1f} %"]
