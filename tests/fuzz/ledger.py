"""What was tried and what failed, as a table and as a file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path

from .known import KNOWN
from .quotas import calls_of, wanted, with_sum_of_calls


@dataclass
class Failure:
    """One kind of failure, with the first example that showed it."""

    part: str
    kind: str
    text: str
    example: str
    count: int = 1


class Ledger:
    """Counts of one or several parts.

    Attributes
    ----------
    tried : Counter
        Number of examples of each part.
    failures : dict
        Failures by part and kind.
    """

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.failures: dict[tuple[str, str], Failure] = {}

    def passed(self, part: str, count: int = 1) -> None:
        """Count examples."""
        self.tried[part] += count

    def failed(self, part: str, kind: str, text: str, example: str) -> bool:
        """Record a failure of an example that is already counted; return whether it is new."""
        if (part, kind) in self.failures:
            self.failures[part, kind].count += 1
            return False
        self.failures[part, kind] = Failure(part, kind, " ".join(text.split())[:300], example)
        return True

    def add(self, other: Ledger) -> None:
        """Add the counts of another ledger."""
        self.tried.update(other.tried)
        for failure in other.failures.values():
            known = self.failures.setdefault((failure.part, failure.kind), failure)
            if known is not failure:
                known.count += failure.count

    @property
    def unknown(self) -> list[Failure]:
        """Failures that `known.py` does not name."""
        return [f for f in self.failures.values() if known_as(f.kind) is None]

    def write(self, path: Path) -> None:
        """Write everything to a JSON file."""
        content = {"tried": self.tried, "failures": [asdict(f) for f in self.failures.values()]}
        new = path.with_suffix(".new")
        new.write_text(json.dumps(content), encoding="utf-8")
        new.replace(path)  # other processes read it

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Return the ledger of a JSON file."""
        content = json.loads(path.read_text(encoding="utf-8"))
        ledger = cls()
        ledger.tried.update(content["tried"])
        failures = [Failure(**f) for f in content["failures"]]
        ledger.failures = {(f.part, f.kind): f for f in failures}
        return ledger

    def table(self, hours: float = 1.0) -> str:
        """Return the table of tried, wanted and failed, and a paragraph for each kind of failure.

        Parameters
        ----------
        hours : float, default 1
            Duration of the whole run, on which depends how many examples are wanted.
        """
        failed: Counter[str] = Counter()
        for failure in self.failures.values():
            failed[failure.part] += failure.count
        failed["calls"] = calls_of(failed)
        lines = [f"{'part':<28}{'tried':>9}{'wanted':>9}{'failed':>9}"]
        for part, n in sorted(with_sum_of_calls(self.tried).items()):
            quota = wanted(part, hours)
            number = "" if quota == inf else f"{quota:.0f}"
            lines.append(f"{part:<28}{n:>9}{number:>9}{failed[part]:>9}")
        for failure in sorted(self.failures.values(), key=lambda f: (f.part, -f.count)):
            named = known_as(failure.kind)
            lines += [
                "",
                f"{failure.part}: {failure.count} x {failure.kind}"
                + (f"  [known: {named}]" if named else ""),
                f"    {failure.text}",
                f"    {failure.example}",
            ]
        return "\n".join(lines) + "\n"


def known_as(kind: str) -> str | None:
    """Return the name of a known fault, None for any other."""
    return next((name for part, name in KNOWN.items() if part in kind), None)
