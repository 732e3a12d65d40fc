"""Write the table of what goes with what into docs/support.md.

python docs/support.py
"""

from __future__ import annotations

from pathlib import Path

from nmd_lab.solver.support import DATA, FEATURES, NO, TRAITS, cell

PAGE = Path(__file__).parent / "support.md"
TEXT = """# What goes with what

Rows are features of a call, columns are forms of data. A "no" stands with its remedy, which is
also what the error says. A dash stands where there is no such argument; `client=` makes the
data of a fit those of another column. A test fits every "yes", each alone, and compares it with
another form of the same data.

{table}

The first two cells of a row do not go together, whatever the data; the third has the remedy:

{pairs}

*Written by docs/support.py from `nmd_lab/solver/support.py`, which calls ask before they read X.*
"""


def pairs() -> str:
    """Return the features that do not go together as Markdown."""
    names = FEATURES | TRAITS
    rows = [f"| {names[a]} | {names[b]} | {no} |" for (a, b), no in NO.items() if a in names]
    return "\n".join(["| this | with this | remedy |", "| --- | --- | --- |", *rows])


def table() -> str:
    """Return the table as Markdown."""
    lines = ["| | " + " | ".join(DATA.values()) + " |", "| --- |" + " --- |" * len(DATA)]
    for feature, name in FEATURES.items():
        lines.append(f"| {name} | " + " | ".join(cell(data, feature) for data in DATA) + " |")
    return "\n".join(lines)


def text() -> str:
    """Return the page."""
    return TEXT.format(table=table(), pairs=pairs())


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
