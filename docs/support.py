"""Write the table of what goes with what into docs/scale.md.

python docs/support.py
"""

from __future__ import annotations

from pathlib import Path

from nmd_lab.fit.support import DATA, INCOMPATIBLE

PAGE = Path(__file__).parent / "scale.md"
MARK, END = "<!-- tables: written by docs/support.py -->", "<!-- end of the tables -->"
TEXT = """
{table}

Combinations that are not supported, and what to do instead:

{pairs}

"""

FEATURES = {
    "rank": "rank chosen",
    "choice": "f, loss or ridge chosen",
    "kinds": "columns of several kinds, or dates",
    "learned": "a loss or an f that is learned",
    "nonlinearity": "a nonlinearity other than the identity",
    "validation": "`validation=`",
    "offsets": "`offsets=`",
    "split": "`split='observed'`",
    "limits": "`at_most=` or `at_least=`",
    "weights": "`weights=`",
    "constraint": "`w_constraint=` or `h_constraint=`",
    "order": "`order=`",
    "client": "`client=`",
    "device": "`device=`",
    "work_dir": "`work_dir=`",
    "memory_limit": "`memory_limit=`",
    "checkpoint": "`checkpoint=`",
    "threads": "`threads=`",
}
"""Features of a call, as the table names them."""

TRAITS = {
    "no interval": "a nonlinearity without an interval to widen",
    "homotopy": "`homotopy=True`",
    "polish": "`polish=True`",
    "orthonormal W": "`w_constraint='orthonormal'`",
    "orthonormal H": "`h_constraint='orthonormal'`",
}
"""Features that go with all data, but not with all other features."""

NO_SUCH_ARGUMENT = {"sample": {"rank", "choice", "validation", "split", "constraint"}}
"""Features that the sampler cannot be asked for."""

NOT_OF_FITS = {"client", "order"}
"""Features of the sampler alone; `client=` makes the data of a fit those on workers."""


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


def cell(data: str, feature: str) -> str:
    """Return the entry of the table for a form of data and a feature."""
    if feature in NO_SUCH_ARGUMENT.get(data, NOT_OF_FITS):
        return "-"
    remedy = INCOMPATIBLE.get((data, feature))
    return "yes" if remedy is None else f"no: {remedy}"


def text() -> str:
    """Return both tables."""
    return TEXT.format(table=table(), pairs=pairs())


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{MARK}\n{text()}{END}{after}", encoding="utf-8")
