"""Write the table of what goes with what into docs/support.md.

python docs/support.py
"""

from __future__ import annotations

from pathlib import Path

from nmd_lab.solver.support import pairs, table

PAGE = Path(__file__).parent / "support.md"
TEXT = """# What goes with what

Rows are features of a call, columns are forms of data. A "no" stands with its remedy, which is
also what the error says. A dash stands where there is no such argument; `client=` makes the
data of a fit those of another column. A test fits every "yes", and compares it with another form of
the same data.

{table}

Two features of one row of this table do not go together, whatever the data:

{pairs}

*Written by docs/support.py from `nmd_lab/solver/support.py`, which every call asks first.*
"""


def text() -> str:
    """Return the page."""
    return TEXT.format(table=table(), pairs=pairs())


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
