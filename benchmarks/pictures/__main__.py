"""Fill and clean photographs by us and by others: the page docs/pictures.md.

python -m benchmarks.pictures                             print the page
python -m benchmarks.pictures --write                     write docs/pictures.md and its figures
python -m benchmarks.pictures --cases noise --methods TV  some cases and methods
python -m benchmarks.pictures --stored --write            with what is stored, and nothing new
python -m benchmarks.pictures --quick                     small versions, some minutes
python -m benchmarks.pictures --check                     the least that shows that it runs

Everything takes some hours.  Each result is stored as it is done: after an interruption the same
line resumes.  Results of other packages are kept when nmd_lab changes.  Several processes may work
on one folder at the same time, each with its own --cases or --methods.
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
from .cases import CASES
from .data import REPORTED
from .methods import METHODS
from .sizes import FULL, LEAST, QUICK

ROOT = Path(__file__).parents[2]


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.pictures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cases", nargs="+", choices=list(CASES))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS))
    parser.add_argument("--pictures", nargs="+", choices=REPORTED)
    parser.add_argument("--seeds", type=int, help="number of draws of hidden pixels and noise")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small versions")
    size.add_argument("--check", action="store_true", help="the least that shows that it runs")
    parser.add_argument("--write", action="store_true", help="write docs/pictures.md")
    parser.add_argument("--stored", action="store_true", help="nothing new")
    parser.add_argument(
        "--folder",
        type=Path,
        default=ROOT / "results" / "pictures",
        help="where results are stored",
    )
    given = parser.parse_args(arguments)
    chosen = QUICK if given.quick else LEAST if given.check else FULL
    chosen = chosen._replace(
        cases=tuple(given.cases or chosen.cases),
        methods=tuple(given.methods or chosen.methods),
        pictures=tuple(given.pictures or chosen.pictures),
        seeds=given.seeds or chosen.seeds,
    )
    if given.write and chosen != FULL:
        parser.error(
            "--write takes the whole: leave the choice of cases, methods, pictures and seeds out."
        )
    if importlib.util.find_spec("skimage") is None:
        parser.error("The photographs need scikit-image: pip install scikit-image")
    folder = (ROOT / "docs" if given.write else given.folder) / "figures"
    text = page.page(Journals(given.folder, given.stored), chosen, folder)
    if given.write:
        (ROOT / "docs" / "pictures.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
