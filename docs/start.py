"""Write the table of the start page and the README, and a picture: results of the gallery.

    python docs/start.py

takes half a minute.  The line of real tables has its numbers from docs/tables.md.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
GALLERY = HERE.parent / "examples" / "gallery"
MARK = "<!-- table: written by docs/start.py -->\n"
END = "\n<!-- end of the table -->\n"

HEAD = "| task | measure | without f, or usual | nmd_lab |\n| --- | --- | --- | --- |\n"
ROWS: list[tuple[str, Callable[[dict[str, Any]], tuple[str, ...]]]] = [
    ("plot_zeros", lambda g: (
        "[Digits by 16 components](gallery/plot_zeros)", "relative error of what was fitted",
        f"{g['errors']['SVD'][2]:.3f} SVD, {g['errors']['NMF'][2]:.3f} NMF",
        f"**{g['errors']['ReLU'][2]:.3f}** ReLU",
    )),
    ("plot_zeros", lambda g: (
        "[The same digits, 30 % of the pixels hidden](gallery/plot_zeros)",
        "RMSE of the hidden pixels", f"{g['hidden_errors']['linear']:.3f} linear, with a ridge",
        f"**{g['hidden_errors']['ReLU']:.3f}** ReLU",
    )),
    ("plot_photograph", lambda g: (
        "[A photograph with scattered holes](gallery/plot_photograph)", "RMSE of the holes",
        f"**{g['errors']['interpolation']:.3f}** interpolation", f"{g['errors']['low rank']:.3f}",
    )),
    ("plot_counts", lambda g: (
        "[Counts whose effects multiply](gallery/plot_counts), generated",
        "deviance of hidden counts",
        f"{g['errors']['NMF with KL']:.2f} NMF, {g['errors']['linear in log(1 + x)']:.2f} in logs",
        f"**{g['errors']['exp with KL']:.2f}** exp with KL",
    )),
    ("plot_detection_limits", lambda g: (
        "[Below detection limits](gallery/plot_detection_limits), generated",
        "RMSE below the limit",
        f"{g['errors']['half the limit, then fit']:.3f} half the limit, then a fit",
        f"**{g['errors']['at most the limit']:.3f}** `at_most=`",
    )),
    ("plot_survey", lambda g: (
        "[Answers of a survey](gallery/plot_survey), generated", "hidden answers right",
        f"{100 * g['shares']['numbers, rounded']:.0f} % as numbers",
        f"**{100 * g['shares']['levels']:.0f} %** as levels",
    )),
    ("plot_clipped_picture", lambda g: (
        "[A clipped picture with 60 % holes](gallery/plot_clipped_picture), generated",
        "RMSE of the holes",
        f"{g['errors']['linear']:.4f} linear, **{g['errors']['interpolation']:.4f}** interpolation",
        f"{g['errors']['MinMax']:.4f} MinMax",
    )),
]  # fmt: skip
"""The script of each row, and what the row takes from its variables."""


def line_of_tables() -> str:
    """Return the line of the real tables: mean errors of numbers, from docs/tables.md."""
    text = (HERE / "tables.md").read_text(encoding="utf-8")
    part = text.split("### Error of numbers\n")[1].split("\n### ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    names, _, *rows = ([cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines)
    mean = {
        name: sum(float(row[k]) for row in rows) / len(rows)
        for k, name in enumerate(names)
        if name in ("nmd.sample", "trees", "IterativeImputer")
    }
    cells = (
        f"[{len(rows)} real tables, a fifth of the cells hidden](tables)",
        "error of hidden numbers, in their SD, mean of the tables",
        f"{mean['trees']:.3f} trees, {mean['IterativeImputer']:.3f} IterativeImputer",
        f"**{mean['nmd.sample']:.3f}** `sample`, with intervals",
    )
    return f"| {' | '.join(cells)} |\n"


def results_of(name: str) -> dict[str, Any]:
    """Return the variables of a script of the gallery, and leave its last figure open."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return runpy.run_path(str(GALLERY / f"{name}.py"))


def lines(name: str, results: dict[str, Any]) -> list[str]:
    """Return the lines of the table that a script writes."""
    return [f"| {' | '.join(row(results))} |\n" for script, row in ROWS if script == name]


def main() -> None:
    """Write the table and the picture."""
    table = line_of_tables()
    for name in dict.fromkeys(script for script, _ in ROWS):
        table += "".join(lines(name, results_of(name)))
        if name == "plot_clipped_picture":
            plt.gcf().savefig(HERE / "figures" / "start.png", dpi=70)
        plt.close("all")
    of_readme = re.sub(r"\(gallery/(\w+)\)", r"(examples/gallery/\1.py)", table)
    of_readme = of_readme.replace("(tables)", "(docs/tables.md)")
    for page, text in ((HERE / "index.md", table), (HERE.parent / "README.md", of_readme)):
        before, _, after = page.read_text(encoding="utf-8").partition(MARK)
        _, _, after = after.partition(END)
        page.write_text(f"{before}{MARK}{HEAD}{text}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
