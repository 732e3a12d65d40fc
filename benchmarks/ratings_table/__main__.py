"""Compare predicted ratings: ours, other libraries, published figures.

python -m benchmarks.ratings_table                   print the page
python -m benchmarks.ratings_table --sets u1 small   some sets, by a part of their names
python -m benchmarks.ratings_table --methods myFM    some methods, by their names
python -m benchmarks.ratings_table --write           write docs/ratings.md
python -m benchmarks.ratings_table --stored --write  with what is stored, and no new fit
python -m benchmarks.ratings_table --quick           a small version, a minute or two

Each fit is stored as it is done: after an interruption the same line goes on.  Fits by other
libraries and those with given numbers are kept when nmd_lab changes; the default call and the
sampler are done again.  Several processes may work on one folder at the same time, each with its
own --sets or --methods.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
from pathlib import Path

from benchmarks.selection.store import Store

from . import page
from .cells import FULL, METHODS, QUICK, Finished, folder_of
from .problems import NEED_DATA, available

ROOT = Path(__file__).parents[2]


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.ratings_table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", nargs="+", default=[""], help="parts of names of sets")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--quick", action="store_true", help="a small version")
    parser.add_argument("--write", action="store_true", help="write docs/ratings.md")
    parser.add_argument("--stored", action="store_true", help="no new fit")
    parser.add_argument("--folder", type=Path, default=folder_of(ROOT), help="where fits are")
    given = parser.parse_args(arguments)
    if not os.environ.get("NMD_LAB_DATA"):
        print(f"Sets whose names begin with {' or '.join(NEED_DATA)} need NMD_LAB_DATA.")
    methods = [METHODS[name] for name in given.methods if METHODS[name].available()]
    for name in given.methods:
        if not METHODS[name].available():
            print(f"{name} is left out: pip install {METHODS[name].requirement}")
    sets = {
        name: each
        for name, each in available(given.quick).items()
        if any(part in name for part in given.sets)
    }
    store = (Finished if given.stored else Store)(given.folder)
    text = page.page(store, sets, methods, QUICK if given.quick else FULL)
    if given.write:
        (ROOT / "docs" / "ratings.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
