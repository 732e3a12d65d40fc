"""What was tried, and the first example of each kind of failure."""

from __future__ import annotations

from collections import Counter


class Ledger:
    """Counts of tried examples by part, and of failures by part and kind."""

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.failures: Counter[tuple[str, str]] = Counter()

    def passed(self, part: str) -> None:
        """Count an example."""
        self.tried[part] += 1

    def failed(self, part: str, kind: str, text: str, example: str) -> bool:
        """Count a failure of an example that is already counted; print and return whether new."""
        self.failures[part, kind] += 1
        new = self.failures[part, kind] == 1
        if new:
            print(f"{part}: {kind}\n    {' '.join(text.split())[:300]}\n    {example}", flush=True)
        return new

    def table(self) -> str:
        """Return the table of tried and failed."""
        failed: Counter[str] = Counter()
        for (part, _), count in self.failures.items():
            failed[part] += count
        lines = [f"{part:<28}{n:>9}{failed[part]:>9}" for part, n in sorted(self.tried.items())]
        return "\n".join([f"{'part':<28}{'tried':>9}{'failed':>9}", *lines]) + "\n"
