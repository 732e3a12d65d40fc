"""Measure what fits cost, and write docs/performance.md.

python -m benchmarks.performance                 print all tables, about half an hour
python -m benchmarks.performance TABLE ...       some tables
python -m benchmarks.performance --write         write docs/performance.md
python -m benchmarks.performance --quick         small versions, about a minute

Nothing else should run on the machine.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded
os.environ.setdefault("NUMBA_NUM_THREADS", "2")

import argparse

from . import page


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.performance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", choices=[[], *page.TABLES],
        help=f"of {', '.join(page.TABLES)}",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="small versions")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    given = parser.parse_args(arguments)
    if given.write and (given.tables or given.quick):
        parser.error("--write needs all tables in full: leave out TABLE and --quick.")
    parts = []
    for name in given.tables or page.TABLES:
        parts.append(page.part(name, given.quick))
        print(parts[-1], flush=True)
    if given.write:
        page.PATH.write_text(page.whole(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
