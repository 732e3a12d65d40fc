"""The command behind `make fuzz`, which looks for faults; it prints each kind and how to repeat it.

PYTHONPATH=tests python -m fuzz --minutes 60 --seed 0
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from .ledger import Ledger

PARTS = {"calls": 0.6, "readers": 0.2, "kills": 0.15, "memory": 0.05}
"""The parts, with their shares of the time."""


def main() -> int:
    """Run all parts, or one, or one example again."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", choices=PARTS, help="run this part alone")
    parser.add_argument("--again", help="repeat one example")
    options = parser.parse_args()
    if options.again:
        return again(options.again)
    ledger = Ledger()
    for name, share in {options.part: 1.0}.items() if options.part else PARTS.items():
        import_module(f"fuzz.{name}").run(ledger, 60 * share * options.minutes, options.seed)
    print(ledger.table(), end="")
    return 1 if ledger.failures else 0


def again(example: str) -> int:
    """Repeat one example: a case of a call, or a damaged file such as "npz:0:3"."""
    if example.startswith("Case("):
        from .calls import CHECKS
        from .case import Case

        case = eval(example, {"Case": Case, "inf": float("inf"), "nan": float("nan")})
        CHECKS[case.check](case)
    else:
        from .readers import repeat

        repeat(example, Path("out/fuzz"))
    print("no fault")
    return 0


if __name__ == "__main__":
    sys.exit(main())
