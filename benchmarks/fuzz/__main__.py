"""The command behind `make fuzz`, which looks for faults; it prints each kind and how to repeat it.

PYTHONPATH=tests python -m benchmarks.fuzz --minutes 60 --seed 0
"""

from __future__ import annotations

import argparse
import sys

from .calls import Case, cases
from .faults import Ledger
from .files import KINDS, Damage, damages
from .memory import Growth, growths

PARTS = {"calls": (0.7, cases), "readers": (0.25, damages(*KINDS)), "memory": (0.05, growths)}
"""The parts: their fractions of the time, and what they try."""


def main() -> int:
    """Run all parts, or one, or one example again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", choices=PARTS, help="run this part alone")
    parser.add_argument("--again", help="repeat one example, as it was printed")
    options = parser.parse_args()
    if options.again:
        known = {each.__name__: each for each in (Case, Damage, Growth)}
        eval(options.again, known | {"inf": float("inf"), "nan": float("nan")}).check()
        print("no fault")
        return 0
    ledger = Ledger()
    for name in [options.part] if options.part else PARTS:
        share = 1.0 if options.part else PARTS[name][0]
        ledger.explore(PARTS[name][1], 60 * share * options.minutes, options.seed)
    print(ledger.table(), end="")
    return 1 if ledger.failures else 0


if __name__ == "__main__":
    sys.exit(main())
