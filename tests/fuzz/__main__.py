"""The command behind `make fuzz`: two processes that look for faults, and the table of them.

PYTHONPATH=tests python -m fuzz --minutes 60 --seed 0 --out out/fuzz
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from pathlib import Path

from .ledger import Ledger

CHAINS = (
    {"calls": 0.75, "more_readers": 1.0},
    {"kills": 0.5, "memory": 0.1, "readers": 1.0},
)
"""The parts of each process with their largest shares of the time; most reach their quota first."""


def main() -> int:
    """Run all parts, one part, or one example again."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"))
    parser.add_argument("--part", help="run this part alone, in this process")
    parser.add_argument("--hours", type=float, help="with --part: duration of the whole run")
    parser.add_argument("--again", help="repeat one example of the table")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.again:
        return again(options.again, options.out)
    if options.part:
        hours = math.inf if options.hours is None else options.hours
        return run_part(options.part, options.minutes, options.seed, options.out, hours)
    return run_all(options)


def run_all(options: argparse.Namespace) -> int:
    """Run the parts in two processes, and print the table."""
    chains = [[list(chain.items()), None] for chain in CHAINS]
    names = [name for chain in CHAINS for name in chain]
    end = time.monotonic() + 60 * options.minutes
    for name in names:
        (options.out / f"{name}.json").unlink(missing_ok=True)
    broken = []
    while any(parts or process for parts, process in chains):
        for chain in chains:
            parts, process = chain
            if process is not None:
                try:
                    code = process.wait(timeout=1)
                except subprocess.TimeoutExpired:
                    continue
                broken += [process.args[4]] if code not in (0, 1) else []
                chain[1] = None
            elif parts:
                name, share = parts.pop(0)
                left = max((end - time.monotonic()) / 60, 0.1)
                chain[1] = start(name, min(share * options.minutes, left), options)
    ledger = Ledger()
    for name in names:
        path = options.out / f"{name}.json"
        if path.exists():
            ledger.add(Ledger.read(path))
    for name in broken:
        ledger.failed(name, "the part itself ended", "it died before its time was over", "")
    table = ledger.table(options.minutes / 60)
    (options.out / "table.txt").write_text(table, encoding="utf-8")
    print(table, end="")
    return 1 if ledger.unknown else 0


def start(name: str, minutes: float, options: argparse.Namespace) -> subprocess.Popen[bytes]:
    """Start a part in a process of its own."""
    arguments = ["--part", name, "--minutes", minutes, "--seed", options.seed, "--out", options.out]
    arguments += ["--hours", options.minutes / 60]
    return subprocess.Popen([sys.executable, "-m", "fuzz", *map(str, arguments)])


def run_part(name: str, minutes: float, seed: int, out: Path, hours: float) -> int:
    """Run one part in this process; its ledger goes to a file now and then."""
    from collections import Counter
    from importlib import import_module

    ledger, path = Ledger(), out / f"{name}.json"
    part = import_module(f"fuzz.{name}")

    def save() -> Counter[str]:
        ledger.write(path)
        others = [out / f"{other}.json" for chain in CHAINS for other in chain if other != name]
        return sum((Ledger.read(p).tried for p in others if p.exists()), ledger.tried)

    try:
        part.run(ledger, 60 * minutes, seed, save, hours)
    finally:
        ledger.write(path)
    print(f"{name}: {sum(ledger.tried.values())} tried, {len(ledger.failures)} kinds of failure")
    return 1 if ledger.unknown else 0


def again(example: str, out: Path) -> int:
    """Repeat one example: a case of a call, or a mutated file such as "npz 17 3"."""
    if example.startswith("Case("):
        from .calls import CHECKS
        from .case import Case

        case = eval(example, {"Case": Case, "inf": float("inf"), "nan": float("nan")})
        CHECKS[case.check](case)
    else:
        from .readers import repeat

        repeat(example, out)
    print("no fault")
    return 0


if __name__ == "__main__":
    sys.exit(main())
