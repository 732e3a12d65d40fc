"""Write the table of what goes with what into docs/support.md.

python docs/support.py
"""

from __future__ import annotations

from pathlib import Path

from nmd_lab.fit.support import DATA, FEATURES, INCOMPATIBLE, TRAITS, cell

PAGE = Path(__file__).parent / "support.md"
TEXT = """# Feature table: which data, models and options go together

- Rows are features of a call, and columns are forms of data.
- "no" stands with its remedy, which the error contains, too. A dash marks a missing argument.
- `nmd.impute()` calls `sample()` and takes its arguments, so that its column is that of `sample()`.
- `client=` makes the data of a fit those of another column.
- A test fits every "yes", each alone, and compares it with another form of the same data.
- `docs/support.py` writes this page from the table of `nmd_lab/fit/support.py`.

{table}

The first two cells of each row exclude each other for all data. The third has the remedy:

{pairs}
"""


def pairs() -> str:
    """Return the features that do not go together as Markdown."""
    names = FEATURES | TRAITS
    rows = [
        f"| {names[a]} | {names[b]} | {no} |" for (a, b), no in INCOMPATIBLE.items() if a in names
    ]
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
