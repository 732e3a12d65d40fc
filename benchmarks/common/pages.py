"""Tables in the pages of the site, between marks with the name of the script that writes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
END = "<!-- end of the tables -->"


def mark(script: str) -> str:
    """Return the line above the tables of a script of this folder."""
    return f"<!-- tables: written by benchmarks/{script}.py --write -->"


def write_tables(page: str, script: str, text: str) -> None:
    """Replace the tables of a script in a page.

    Raises ``ValueError`` if the page does not have both marks.
    """
    path = DOCS / f"{page}.md"
    before, found, rest = path.read_text(encoding="utf-8").partition(mark(script))
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise ValueError(f"{path.name} has no {mark(script)!r} with {END!r} below it.")
    path.write_text(f"{before}{found}\n\n{text.strip()}\n\n{closed}{after}", encoding="utf-8")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
