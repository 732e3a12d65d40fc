"""Compare what `nmd.complete(X)` chooses with the best in hindsight, in four tables.

python -m benchmarks.selection                     print all tables
python -m benchmarks.selection TABLE ... [--sets]  some tables, or some sets of a table
python -m benchmarks.selection --write             write docs/selection.md and its figure
python -m benchmarks.selection --quick             small versions, some minutes

Each fit is stored as it is done: after an interruption the same line goes on.  The plain fits of
the grid are kept when the library changes; the default calls are done again.  Two processes may
work on one folder at the same time, each with its own --sets.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
from pathlib import Path

from . import page
from .problems import NEED_DATA
from .store import Store

ROOT = Path(__file__).parents[2]


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.selection",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", choices=[[], *page.TABLES],
        help=f"of {', '.join(page.TABLES)}",
    )  # fmt: skip
    parser.add_argument("--sets", nargs="+", default=[], help="names of sets")
    parser.add_argument("--quick", action="store_true", help="small versions")
    parser.add_argument("--write", action="store_true", help="write docs/selection.md")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "results" / "selection", help="where fits are stored"
    )
    given = parser.parse_args(arguments)
    if not os.environ.get("NMD_LAB_DATA"):
        print(f"Sets whose names begin with {' or '.join(NEED_DATA)} need NMD_LAB_DATA.")
    tables = given.tables or list(page.TABLES)
    store = Store(given.folder)
    figures = (ROOT / "docs" if given.write else given.folder) / "figures"
    sections = page.sections(store, tables, figures, given.quick, tuple(given.sets))
    text = page.join(sections, given.quick)
    if given.write:
        (ROOT / "docs" / "selection.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
