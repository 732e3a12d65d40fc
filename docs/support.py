"""Write the table of what goes with what into docs/scale.md.

python docs/support.py
"""

from __future__ import annotations

from pathlib import Path

from nmd_lab.fit.support import DATA, FEATURES, INCOMPATIBLE, TRAITS, cell

PAGE = Path(__file__).parent / "scale.md"
MARK, END = "<!-- tables: written by docs/support.py -->", "<!-- end of the tables -->"
TEXT = """
{table}

Combinations that are not supported, and what to do instead:

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
    """Return both tables."""
    return TEXT.format(table=table(), pairs=pairs())


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{MARK}\n{text()}{END}{after}", encoding="utf-8")
