"""Run the paper's experiments: all and the page, or some by name.

python -m benchmarks.paper          all of them, then docs/paper.md
python -m benchmarks.paper NAME     one of them; its section is printed

Each piece of work is stored as it is done: after an interruption the same line goes on.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
from pathlib import Path

from .page import EXPERIMENTS, module, section, write

ROOT = Path(__file__).parents[2]


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        choices=[[], *EXPERIMENTS],
        help=f"of {', '.join(EXPERIMENTS)}",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=ROOT / "results" / "paper",
        help="where the cells are stored (results/paper)",
    )
    given = parser.parse_args(arguments)
    if not given.names:
        write(ROOT / "docs" / "paper.md", given.folder)
    for name in given.names:
        results = module(name).run(given.folder)
        print(section(name, results, given.folder / "figures"))


if __name__ == "__main__":
    main()
