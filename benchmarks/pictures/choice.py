"""The settings of each method, chosen on other photographs than those of the tables.

Each combination of `peers.py` fills the other photographs once for each case. The one with the
lowest geometric mean of the errors is taken.
"""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np

from benchmarks.common.journals import Journals
from benchmarks.paper.report import prose, table
from nmd_lab.studies.cell import Record

from .cells import cells_of, collect
from .methods import METHODS
from .peers import Settings
from .sizes import Size

TITLE = "Settings that were chosen"

SEED = 100
"""Of the hidden pixels and the noise of the choice."""


def settings_of(journals: Journals, size: Size, method: str, case: str) -> Settings | None:
    """Return the best settings of a method for a case; None if none was tried."""
    grid = METHODS[method].grid
    if len(grid) == 1:
        return grid[0]
    cells = [
        cell
        for settings in grid
        for cell in cells_of(size, size.others, method, case, settings, [SEED])
    ]
    logs = defaultdict(list)
    for record in collect(journals, method, cells):
        logs[json.dumps(record["settings"])].append(log_error(record))
    return json.loads(min(logs, key=lambda key: np.mean(logs[key]))) if logs else None


def log_error(record: Record) -> float:
    """Return the logarithm of an error; infinity where the method failed."""
    return float(np.log(record["rmse"])) if "rmse" in record else np.inf


def section(journals: Journals, size: Size) -> str:
    """Return the settings of all methods that have some to choose."""
    rows = []
    for method in size.methods:
        for case in size.cases:
            if case in METHODS[method].cases and len(METHODS[method].grid) > 1:
                found = settings_of(journals, size, method, case)
                words = ", ".join(f"{name} {value}" for name, value in (found or {}).items())
                rows.append([f"{method}, {case}", str(len(METHODS[method].grid)), words or "–"])
    said = prose((__doc__ or "").split("\n\n", 1)[1])
    return "\n\n".join(
        [said, table(["method and case", "combinations in the grid", "chosen"], rows)]
    )
